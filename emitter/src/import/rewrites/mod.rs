//! Ops that iree-compile gets wrong or cannot compile, as others that it gets right.
//!
//! Each file has what one kind of op becomes. What an op means is in the StableHLO specification,
//! <https://openxla.org/stablehlo/spec>; what went wrong was seen with IREE 3.13.

mod boolean;
mod rounding;

use safetensors::Dtype;

use super::{ast::Op, replay::Replay};
use crate::{error::Error, graph::Tensor};

/// Returns the results of what stands for an op, or `None` if it stays as it is.
pub(super) fn rewrite(
    replay: &mut Replay<'_, '_>,
    op: &Op<'_>,
    operands: &[Tensor],
) -> Result<Option<Vec<Tensor>>, Error> {
    let graph = &mut replay.graph;
    let Some(&first) = operands.first() else { return Ok(None) };
    if graph.dtype(first) == Dtype::BOOL {
        return Ok(boolean::rewrite(graph, op, operands).map(|result| vec![result]));
    }
    Ok(match op.name {
        "stablehlo.ceil" | "stablehlo.floor" => {
            rounding::rewrite(graph, op, first).map(|result| vec![result])
        }
        _ => None,
    })
}
