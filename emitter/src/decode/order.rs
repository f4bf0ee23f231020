//! Numbers in ascending order, in StableHLO.

use safetensors::Dtype;

use crate::{
    graph::{Graph, Tensor},
    ops::Reduction,
};

/// Returns where the numbers of a list are in ascending order; those of equal numbers as they come.
///
/// Comparing all with all is done in parallel, and IREE's sort is not: it takes as many steps, one after the other, and does not
/// compile for GPUs here.
pub(super) fn order_of(g: &mut Graph, numbers: Tensor) -> Tensor {
    let &[count] = g.shape(numbers) else { return numbers };
    let shape = [count, count];
    let [first, second] = [0, 1].map(|dimension| g.iota(Dtype::I32, &shape, dimension));
    let [own, other] = [0, 1].map(|dimension| g.broadcast_in_dim(numbers, &shape, &[dimension]));
    let (is_less, is_equal, is_before) = (g.lt(other, own), g.eq(other, own), g.lt(second, first));
    let is_equal_before = g.and(is_equal, is_before);
    let precedes = g.or(is_less, is_equal_before);
    // Sums of integers do not compile for GPUs; floats have all of these exactly.
    let precedes = g.convert(precedes, Dtype::F32);
    let ranks = g.reduce(precedes, Reduction::Sum, &[1]);
    let rank = g.broadcast_in_dim(ranks, &shape, &[1]);
    let [first, second] = [first, second].map(|places| g.convert(places, Dtype::F32));
    let is_there = g.eq(rank, first);
    let is_there = g.convert(is_there, Dtype::F32);
    let places = g.multiply(is_there, second);
    let places = g.reduce(places, Reduction::Sum, &[1]);
    g.convert(places, Dtype::I32)
}
