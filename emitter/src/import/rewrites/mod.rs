//! Ops that iree-compile gets wrong or cannot compile, as others that it gets right.
//!
//! Each file has what one kind of op becomes. What an op means is in the StableHLO specification,
//! <https://openxla.org/stablehlo/spec>; what went wrong was seen with IREE 3.13.

mod boolean;
mod carried;
mod cholesky;
mod convert;
mod dilation;
mod elementary;
mod fft;
mod gather;
pub(super) mod lapack;
mod lu;
mod matrices;
mod order;
mod power;
mod precision;
mod reduce;
mod reshape;
mod rounding;
mod scatter;
mod sort;
mod top_k;
mod triangular_solve;
mod unroll;
mod vector_product;
mod window;

pub(super) use boolean::constant as boolean_constant;
use safetensors::Dtype;

use super::{ast::Op, attributes::tensor_type, replay::Replay};
use crate::{error::Error, graph::Tensor};

/// Returns the results of what stands for an op, or `None` if it stays as it is.
pub(super) fn rewrite(
    replay: &mut Replay<'_, '_>,
    op: &Op<'_>,
    operands: &[Tensor],
) -> Result<Option<Vec<Tensor>>, Error> {
    let one = |result: Option<Tensor>| result.map(|result| vec![result]);
    let combines = replay.combiners > 0;
    let graph = &mut replay.graph;
    let is_bool = operands.first().is_some_and(|operand| graph.dtype(*operand) == Dtype::BOOL);
    let is_complex = operands.first().is_some_and(|operand| graph.dtype(*operand) == Dtype::C64);
    Ok(match (op.name, operands) {
        ("stablehlo.add" | "stablehlo.multiply" | "stablehlo.maximum" | "stablehlo.minimum", [x, y])
            if is_bool =>
        {
            one(boolean::rewrite(graph, op, *x, *y))
        }
        ("stablehlo.maximum" | "stablehlo.minimum", [x, y]) if is_complex => {
            one(order::extreme(graph, op, *x, *y))
        }
        ("stablehlo.bitcast_convert", [x]) if is_complex => one(convert::same(replay, op, *x)?),
        ("stablehlo.broadcast_in_dim" | "stablehlo.reshape", [x]) => one(reshape::rewrite(graph, op, *x)),
        ("stablehlo.ceil" | "stablehlo.floor", [x]) => one(rounding::rewrite(graph, op, *x)),
        ("stablehlo.compare", [x, y]) => one(order::compare(graph, op, *x, *y)),
        ("stablehlo.convert", [x]) => {
            one(convert::rewrite(graph, *x, op.result_types.first().and_then(|ty| tensor_type(ty))))
        }
        ("stablehlo.convolution" | "stablehlo.dot_general", _) => {
            one(match vector_product::rewrite(replay, op, operands) {
                Some(product) => Some(product),
                None => precision::sums(replay, op, operands)?,
            })
        }
        ("stablehlo.fft", _) => fft::rewrite(replay, op, operands)?,
        ("stablehlo.gather", _) => gather::rewrite(replay, op, operands)?,
        // It would let what comes after it write into a constant.
        ("stablehlo.optimization_barrier", _) => Some(operands.to_vec()),
        // All programs run on one device.
        ("stablehlo.partition_id" | "stablehlo.replica_id", []) => {
            Some(vec![graph.full(0.0, Dtype::U32, &[])])
        }
        ("stablehlo.pad", [x, value]) => one(dilation::pad(graph, op, *x, *value)),
        ("stablehlo.power", [x, y]) => one(power::rewrite(graph, *x, *y)),
        ("stablehlo.reduce", _) => reduce::extreme(replay, op, operands)?,
        ("stablehlo.reduce_precision", [x]) => one(precision::reduced(graph, op, *x)),
        ("stablehlo.reverse", [x]) => one(window::reverse(replay, op, *x)),
        ("stablehlo.scatter", _) => scatter::rewrite(replay, op, operands)?,
        ("stablehlo.sort", _) => sort::rewrite(replay, op, operands)?,
        ("stablehlo.cholesky", [x]) => Some(vec![cholesky::rewrite(graph, op, *x)]),
        ("stablehlo.triangular_solve", _) => one(triangular_solve::rewrite(graph, op, operands)),
        ("stablehlo.while", _) => match unroll::rewrite(replay, op, operands)? {
            None => carried::rewrite(replay, op, operands)?,
            turns => turns,
        },
        ("chlo.top_k", [x]) => top_k::rewrite(graph, op, *x),
        ("stablehlo.reduce_window", _) => window::reduce_window(replay, op, operands)?,
        ("stablehlo.select_and_scatter", _) => window::select_and_scatter(replay, op, operands)?,
        _ => one(elementary::rewrite(graph, op, operands, combines)),
    })
}

#[cfg(test)]
mod tests;
