//! What ops read, those in their regions included.

use std::collections::HashSet;

use crate::graph::{Op, Region, Tensor};

/// Returns whether an op or its regions read any of these tensors.
pub(super) fn reads_any(op: &Op, tensors: &HashSet<Tensor>) -> bool {
    op.operands.iter().any(|operand| tensors.contains(operand))
        || op.regions.iter().any(|region| {
            region.ops.iter().any(|op| reads_any(op, tensors))
                || region.results.iter().any(|result| tensors.contains(result))
        })
}

/// Returns those of these tensors that a region reads, each once.
pub(super) fn captured(region: &Region, tensors: &HashSet<Tensor>, found: &mut Vec<Tensor>) {
    let mut note = |tensor: &Tensor| {
        if tensors.contains(tensor) && !found.contains(tensor) {
            found.push(*tensor);
        }
    };
    region.ops.iter().flat_map(|op| &op.operands).chain(&region.results).for_each(&mut note);
    for inner in region.ops.iter().flat_map(|op| &op.regions) {
        captured(inner, tensors, found);
    }
}
