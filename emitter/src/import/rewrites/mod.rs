//! Ops that iree-compile gets wrong or cannot compile, as others that it gets right.
//!
//! Each file has what one kind of op becomes. What an op means is in the StableHLO specification,
//! <https://openxla.org/stablehlo/spec>; what went wrong was seen with IREE 3.13.

mod boolean;
mod convert;
mod order;
mod power;
mod precision;
mod rounding;
mod sort;
mod top_k;

use safetensors::Dtype;

use super::{ast::Op, attributes::tensor_type, replay::Replay};
use crate::{error::Error, graph::Tensor};

/// Returns the results of what stands for an op, or `None` if it stays as it is.
pub(super) fn rewrite(
    replay: &mut Replay<'_, '_>,
    op: &Op<'_>,
    operands: &[Tensor],
) -> Result<Option<Vec<Tensor>>, Error> {
    let graph = &mut replay.graph;
    let one = |result: Option<Tensor>| result.map(|result| vec![result]);
    match op.name {
        // All programs run on one device.
        "stablehlo.partition_id" | "stablehlo.replica_id" => {
            return Ok(Some(vec![graph.full(0.0, Dtype::U32, &[])]));
        }
        // It would let what comes after it write into a constant.
        "stablehlo.optimization_barrier" => return Ok(Some(operands.to_vec())),
        _ => {}
    }
    let Some(&first) = operands.first() else { return Ok(None) };
    let dtype = graph.dtype(first);
    if matches!(op.name, "stablehlo.convolution" | "stablehlo.dot_general") {
        return Ok(one(precision::sums(replay, op, operands)?));
    }
    if op.name == "stablehlo.convert" {
        let to = op.result_types.first().and_then(|ty| tensor_type(ty));
        return Ok(one(convert::rewrite(graph, first, to)));
    }
    match (op.name, operands) {
        ("stablehlo.sort", _) => return sort::rewrite(replay, op, operands),
        ("chlo.top_k", [x]) => return Ok(top_k::rewrite(graph, op, *x)),
        _ => {}
    }
    if dtype == Dtype::BOOL {
        return Ok(one(boolean::rewrite(graph, op, operands)));
    }
    Ok(match (op.name, operands) {
        ("stablehlo.ceil" | "stablehlo.floor", [x]) => one(rounding::rewrite(graph, op, *x)),
        ("stablehlo.compare", [x, y]) => one(order::compare(graph, op, *x, *y)),
        ("stablehlo.maximum" | "stablehlo.minimum", [x, y]) if dtype == Dtype::C64 => {
            one(order::extreme(graph, op, *x, *y))
        }
        ("stablehlo.reduce_precision", [x]) => one(precision::reduced(graph, op, *x)),
        ("stablehlo.power", [x, y]) => one(power::rewrite(graph, *x, *y)),
        _ => None,
    })
}

#[cfg(test)]
mod tests;
