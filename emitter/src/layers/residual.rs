//! The residual stream of a model's blocks.

use mlxcel_models::Norm;
use safetensors::Dtype;

use super::{
    addend::Addend,
    builder::Builder,
    linear::added,
    norm::{add_norm, norm, norm_rows},
};
use crate::{graph::Tensor, plan::Products};

/// The residual stream, `[batch, tokens, hidden]`. Its last addition waits for the next norm, because kernels do both at once.
pub(crate) struct Residual {
    x: Tensor,
    /// What is not yet added.
    pending: Option<Addend>,
    /// Whether kernels of a GPU add to several rows.
    has_rows: bool,
}

impl Residual {
    /// Begins with `x`.
    pub(crate) fn new(b: &Builder<'_>, x: Tensor) -> Self {
        let rows: usize = b.graph.shape(x).iter().rev().skip(1).product();
        Self { x, pending: None, has_rows: b.numerics.gpu.is_some() && rows > 1 }
    }

    /// Adds what a layer computed.
    pub(crate) fn add(&mut self, b: &mut Builder<'_>, addend: Addend) {
        let is_plain = addend.is_plain();
        if is_plain && let Some(terms) = b.mixture_terms.remove(&addend.result) {
            for term in terms {
                self.add(b, Addend { factor: term.factor * addend.factor, ..term });
            }
            return;
        }
        self.sum(b);
        if is_plain && let Some(sum) = added(b, addend.result, self.x, addend.factor) {
            self.x = sum;
            return;
        }
        self.pending = Some(addend);
        if !self.has_rows && !matches!(b.numerics.products, Products::Kernels(_)) {
            self.sum(b);
        }
    }

    /// Returns the sum of all that was added.
    pub(crate) fn sum(&mut self, b: &mut Builder<'_>) -> Tensor {
        let Some(pending) = self.pending.take() else { return self.x };
        let by_kernel = norm_rows(b, self.x, Some(&pending), None);
        self.x = match by_kernel {
            Some([sum, _]) => sum,
            None if pending.is_plain() => {
                let result = b.graph.scale(pending.result, pending.factor);
                b.graph.add(self.x, result)
            }
            None => {
                b.graph.fail("residual", "found a norm or a gate without a kernel, expected a plain result")
            }
        };
        self.x
    }

    /// Returns the norm of the sum.
    pub(crate) fn norm(&mut self, b: &mut Builder<'_>, layer: &Norm) -> Tensor {
        self.rounded_norm(b, layer, Dtype::F32)
    }

    /// Returns the norm of the sum, for products alone: kernels may round it to the type that these multiply.
    pub(crate) fn input(&mut self, b: &mut Builder<'_>, layer: &Norm) -> Tensor {
        let ty = b.operand_dtype();
        self.rounded_norm(b, layer, ty)
    }

    fn rounded_norm(&mut self, b: &mut Builder<'_>, layer: &Norm, ty: Dtype) -> Tensor {
        if self.has_rows
            && let Some(both) = norm_rows(b, self.x, self.pending.as_ref(), Some((layer, ty)))
        {
            self.pending = None;
            self.x = both[0];
            return both[1];
        }
        if b.numerics.gpu.is_some() {
            self.sum(b);
        }
        let [sum, normed] = match self.pending.take() {
            Some(Addend { result, factor, .. }) => add_norm(b, layer, [self.x, result], factor),
            None => [self.x, norm(b, layer, self.x)],
        };
        self.x = sum;
        normed
    }

    /// Replaces the stream by `select` of it, which must select the same of every tensor.
    pub(crate) fn select(
        &mut self,
        b: &mut Builder<'_>,
        select: impl Fn(&mut Builder<'_>, Tensor) -> Tensor,
    ) {
        if self.pending.as_ref().is_some_and(|addend| addend.gate.is_some()) {
            self.sum(b);
        }
        self.x = select(b, self.x);
        if let Some(Addend { result, .. }) = &mut self.pending {
            *result = select(b, *result);
        }
    }
}
