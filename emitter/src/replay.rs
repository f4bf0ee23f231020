//! Copies of recorded ops.

use std::collections::HashMap;

use crate::graph::{Graph, Op, Region, Tensor};

impl Graph {
    /// Adds the ops of a recorded region again, with `arguments` in place of the block's, and returns its results.
    pub(crate) fn replay(&mut self, region: &Region, arguments: &[Tensor]) -> Vec<Tensor> {
        let mut copies: HashMap<_, _> =
            region.arguments.iter().copied().zip(arguments.iter().copied()).collect();
        for op in &region.ops {
            let op = self.copy_op(op, &mut copies);
            self.push(op);
        }
        renamed(&region.results, &copies)
    }

    fn copy_op(&mut self, op: &Op, copies: &mut HashMap<Tensor, Tensor>) -> Op {
        let regions = op.regions.iter().map(|region| self.copy_region(region, copies)).collect();
        let operands = renamed(&op.operands, copies);
        let results = self.copy_values(&op.results, copies);
        Op { operands, regions, results, ..op.clone() }
    }

    fn copy_region(&mut self, region: &Region, copies: &mut HashMap<Tensor, Tensor>) -> Region {
        let arguments = self.copy_values(&region.arguments, copies);
        let ops = region.ops.iter().map(|op| self.copy_op(op, copies)).collect();
        Region { arguments, ops, results: renamed(&region.results, copies) }
    }

    /// Makes new values of the same types.
    fn copy_values(&mut self, values: &[Tensor], copies: &mut HashMap<Tensor, Tensor>) -> Vec<Tensor> {
        let copy = |&value: &Tensor| {
            let copy = self.value_like(value);
            copies.insert(value, copy);
            copy
        };
        values.iter().map(copy).collect()
    }
}

/// Returns the copies of values. What the region does not define stays.
fn renamed(values: &[Tensor], copies: &HashMap<Tensor, Tensor>) -> Vec<Tensor> {
    values.iter().map(|value| copies.get(value).copied().unwrap_or(*value)).collect()
}
