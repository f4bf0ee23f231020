//! The residual stream of a model's blocks.

use mlxcel_models::Norm;

use super::{
    builder::Builder,
    linear::added,
    norm::{add_norm, norm},
};
use crate::{graph::Tensor, plan::Products};

/// The residual stream, `[batch, tokens, hidden]`. Its last addition waits for the next norm, because kernels do both at once.
pub(crate) struct Residual {
    x: Tensor,
    pending: Option<Pending>,
}

/// `result · scale`, which is not yet added.
struct Pending {
    result: Tensor,
    scale: f64,
}

impl Residual {
    /// Begins with `x`.
    pub(crate) fn new(x: Tensor) -> Self {
        Self { x, pending: None }
    }

    /// Adds `result · scale`.
    pub(crate) fn add(&mut self, b: &mut Builder<'_>, result: Tensor, scale: f64) {
        self.sum(b);
        if let Some(sum) = added(b, result, self.x, scale) {
            self.x = sum;
            return;
        }
        self.pending = Some(Pending { result, scale });
        if !matches!(b.numerics.products, Products::Kernels(_)) {
            self.sum(b);
        }
    }

    /// Returns the sum of all that was added.
    pub(crate) fn sum(&mut self, b: &mut Builder<'_>) -> Tensor {
        if let Some(Pending { result, scale }) = self.pending.take() {
            let result = b.graph.scale(result, scale);
            self.x = b.graph.add(self.x, result);
        }
        self.x
    }

    /// Returns the norm of the sum.
    pub(crate) fn norm(&mut self, b: &mut Builder<'_>, layer: &Norm) -> Tensor {
        let Some(Pending { result, scale }) = self.pending.take() else { return norm(b, layer, self.x) };
        let [sum, normed] = add_norm(b, layer, [self.x, result], scale);
        self.x = sum;
        normed
    }

    /// Replaces the stream by `select` of it, which must select the same of every tensor.
    pub(crate) fn select(
        &mut self,
        b: &mut Builder<'_>,
        select: impl Fn(&mut Builder<'_>, Tensor) -> Tensor,
    ) {
        self.x = select(b, self.x);
        if let Some(Pending { result, .. }) = &mut self.pending {
            *result = select(b, *result);
        }
    }
}
