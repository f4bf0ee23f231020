//! The largest elements.
//!
//! iree-compile returns any of equal elements, where those with the lowest indices come first.

use safetensors::Dtype;

use super::{
    super::{ast::Op, attributes::integer},
    order::key,
};
use crate::graph::{Graph, Tensor};

/// Returns the largest elements of each row and their indices: the first of all of them in descending order.
pub(super) fn rewrite(graph: &mut Graph, op: &Op<'_>, x: Tensor) -> Option<Vec<Tensor>> {
    let k = usize::try_from(integer(op.attribute("k")?)?).ok()?;
    let shape = graph.shape(x).to_vec();
    let last = shape.len().checked_sub(1)?;
    let indices = graph.iota(Dtype::I32, &shape, last);
    let sorted = graph.sort(&[x, indices], last, true, |graph, pair| {
        // Of booleans, true is the larger one.
        let [a, b] = [pair[0], pair[1]].map(|value| key(graph, value).unwrap_or(value));
        graph.gt(a, b)
    });
    Some(sorted.into_iter().map(|all| graph.slice_dimension(all, last, 0, k)).collect())
}
