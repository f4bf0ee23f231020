//! Rounding of numbers that are too small to be normal.
//!
//! Compiled code for CPUs takes them for zero, so that the smallest number above zero would not be rounded up to 1.

use safetensors::Dtype;

use super::super::ast::Op;
use crate::graph::{Graph, Tensor};

/// Returns what stands for `ceil` or `floor`.
pub(super) fn rewrite(graph: &mut Graph, op: &Op<'_>, x: Tensor) -> Option<Tensor> {
    let ty = graph.type_of(x);
    let (bits, sign) = match ty.dtype {
        Dtype::F16 | Dtype::BF16 => (Dtype::U16, 2.0_f64.powi(15)),
        Dtype::F32 => (Dtype::U32, 2.0_f64.powi(31)),
        Dtype::F64 => (Dtype::U64, 2.0_f64.powi(63)),
        _ => return None,
    };
    // The bits are compared, because the numbers themselves would be taken for zero. Those of negative numbers are larger than
    // the sign alone. LLVM would make a comparison of floats of a test of the sign.
    let x_bits = graph.bitcast_convert(x, bits);
    let negative_zero = graph.full(sign, bits, &ty.shape);
    let (rounded, is_beyond, one) = match op.name {
        "stablehlo.ceil" => {
            let zeros = graph.full(0.0, bits, &ty.shape);
            let (some, positive) = (graph.gt(x_bits, zeros), graph.lt(x_bits, negative_zero));
            (graph.ceil(x), graph.and(some, positive), 1.0)
        }
        "stablehlo.floor" => (graph.floor(x), graph.gt(x_bits, negative_zero), -1.0),
        _ => return None,
    };
    let zero = graph.full(0.0, ty.dtype, &ty.shape);
    let is_zero = graph.eq(rounded, zero);
    let is_small = graph.and(is_zero, is_beyond);
    let one = graph.full(one, ty.dtype, &ty.shape);
    Some(graph.select(is_small, one, rounded))
}
