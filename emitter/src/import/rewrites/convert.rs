//! Conversions of integers to floats of 16 bits, for which CPUs have no instruction.

use safetensors::Dtype;

use crate::{
    graph::{Graph, Tensor},
    types::{TensorType, is_float},
};

/// Returns what stands for a conversion to `to`: one to `f32`, and from there.
pub(super) fn rewrite(graph: &mut Graph, x: Tensor, to: Option<TensorType>) -> Option<Tensor> {
    let to = to?.dtype;
    let from = graph.dtype(x);
    let is_narrow = matches!(to, Dtype::BF16 | Dtype::F16);
    if !is_narrow || is_float(from) || from == Dtype::C64 {
        return None;
    }
    let wide = graph.convert(x, Dtype::F32);
    let bits = if to == Dtype::BF16 { (8, 7) } else { (5, 10) };
    // Rounded by itself, because the compiler would join the two conversions.
    let rounded = graph.reduce_precision(wide, bits.0, bits.1);
    Some(graph.convert(rounded, to))
}
