//! RMS norm and layer norm, by kernels on CPUs (`kernel.rs`) and of rows on GPUs (`gpu.rs`), and as generated code
//! (`generated.rs`).

mod generated;
mod gpu;
mod kernel;

use mlxcel_models::Norm;
use safetensors::Dtype;

use self::generated::norm as generated_norm;
pub(crate) use self::gpu::{adds_norm, adds_rows, norm_rows};
use super::{builder::Builder, linear::takes_norm};
use crate::{graph::Tensor, plan::Products};

/// Normalizes the last dimension of `x`, `[batch, tokens, width]`, in `f32`, see [`Norm`].
pub(crate) fn norm(b: &mut Builder<'_>, layer: &Norm, x: Tensor) -> Tensor {
    let Products::Kernels(isa) = b.numerics.products else {
        // The norm of one row is computed with the product after it.
        let is_row = b.graph.shape(x).iter().rev().skip(1).all(|&size| size == 1);
        if !is_row && let Some([_, normed]) = norm_rows(b, x, None, Some((layer, Dtype::F32))) {
            return normed;
        }
        let normed = generated_norm(b, layer, x);
        if takes_norm(b, layer) {
            b.norms.insert(normed, (x, layer.clone()));
        }
        return normed;
    };
    kernel::norm(b, isa, layer, x, 1).unwrap_or_else(|| generated_norm(b, layer, x))
}

/// Normalizes each of `heads` parts of rows: `[batch, tokens, heads · width]` to `[batch, tokens, heads, width]`. The weight
/// may be different for each head.
pub(crate) fn norm_heads(b: &mut Builder<'_>, layer: &Norm, x: Tensor, heads: usize) -> Tensor {
    let &[batch, tokens, width] = b.graph.shape(x) else {
        return x;
    };
    let normed = match b.numerics.products {
        Products::Kernels(isa) => kernel::norm(b, isa, layer, x, heads),
        Products::Native | Products::Widened => None,
    };
    let split = [batch, tokens, heads, width.checked_div(heads).unwrap_or(0)];
    if let Some(normed) = normed {
        return b.graph.reshape(normed, &split);
    }
    let x = b.graph.reshape(x, &split);
    generated_norm(b, layer, x)
}

/// Computes `x + y · scale` and its norm, `[batch, tokens, width]` all.
pub(crate) fn add_norm(b: &mut Builder<'_>, layer: &Norm, [x, y]: [Tensor; 2], scale: f64) -> [Tensor; 2] {
    if let Products::Kernels(isa) = b.numerics.products
        && let Some(both) = kernel::add_norm(b, isa, layer, [x, y], scale)
    {
        return both;
    }
    let y = b.graph.scale(y, scale);
    let sum = b.graph.add(x, y);
    [sum, generated_norm(b, layer, sum)]
}
