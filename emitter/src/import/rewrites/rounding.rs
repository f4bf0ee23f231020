//! Rounding of numbers that are too small to be normal.
//!
//! Compiled code for CPUs takes them for zero, so that the smallest number above zero would not be rounded up to 1.

use safetensors::Dtype;

use super::super::ast::Op;
use crate::graph::{Graph, Tensor};

/// Returns what stands for `ceil` or `floor`.
pub(super) fn rewrite(graph: &mut Graph, op: &Op<'_>, x: Tensor) -> Option<Tensor> {
    let ty = graph.type_of(x);
    let bits = match ty.dtype {
        Dtype::F16 | Dtype::BF16 => Dtype::I16,
        Dtype::F32 => Dtype::I32,
        Dtype::F64 => Dtype::I64,
        _ => return None,
    };
    // The bits are compared, because the numbers themselves would be taken for zero.
    let x_bits = graph.bitcast_convert(x, bits);
    let zeros = graph.full(0.0, bits, &ty.shape);
    let zero = graph.full(0.0, ty.dtype, &ty.shape);
    let (rounded, has_sign, one) = match op.name {
        "stablehlo.ceil" => (graph.ceil(x), graph.gt(x_bits, zeros), 1.0),
        "stablehlo.floor" => {
            // Zero with a sign has no other bit.
            let doubled = graph.add(x_bits, x_bits);
            let (negative, some) = (graph.lt(x_bits, zeros), graph.ne(doubled, zeros));
            (graph.floor(x), graph.and(negative, some), -1.0)
        }
        _ => return None,
    };
    let is_zero = graph.eq(rounded, zero);
    let is_small = graph.and(is_zero, has_sign);
    let one = graph.full(one, ty.dtype, &ty.shape);
    Some(graph.select(is_small, one, rounded))
}
