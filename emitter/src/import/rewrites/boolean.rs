//! Arithmetic of booleans.
//!
//! iree-compile adds them modulo 2, where the specification says "or".

use super::super::ast::Op;
use crate::graph::{Graph, Tensor};

/// Returns what stands for arithmetic of booleans.
pub(super) fn rewrite(graph: &mut Graph, op: &Op<'_>, x: Tensor, y: Tensor) -> Option<Tensor> {
    Some(match op.name {
        "stablehlo.add" | "stablehlo.maximum" => graph.or(x, y),
        "stablehlo.multiply" | "stablehlo.minimum" => graph.and(x, y),
        _ => return None,
    })
}
