//! Mixtures of experts as generated code: a loop over blocks of rows, each of one expert.

use mlxcel_models::Experts;
use safetensors::Dtype;

use super::{
    linears::{ExpertLinears, inner},
    stack::{Stack, of_expert},
};
use crate::{
    graph::{Graph, Tensor},
    layers::{builder::Builder, feed_forward::activation::generated_activate},
    ops::Reduction,
};

/// Rows of a block. More rows share the weights that are read for them, but more rows are padding.
const BLOCK: usize = 16;

/// Computes `[batch, tokens, hidden]` to the same shape.
pub(super) fn experts(b: &mut Builder<'_>, layer: &Experts, logits: Tensor, x: Tensor) -> Tensor {
    let &[batch, tokens, hidden] = b.graph.shape(x) else {
        return x;
    };
    let (all, count, active) = (batch * tokens, layer.experts.len(), layer.active);
    let (chosen, weights) = choose(&mut b.graph, layer, logits, all);
    let blocks = Blocks::new(&mut b.graph, chosen, [all, active, count]);
    let operand = b.operand_dtype();
    let [up, down] = ExpertLinears::up_and_down(layer);
    let stacks = [&up, &down].map(|layers| Stack::load(b, layers.weights(), count));
    let biases = [&up, &down].map(|layers| layers.biases(b));
    let g = &mut b.graph;
    let flat = g.reshape(x, &[all, hidden]);
    let end = g.host_number(blocks.count);
    let y = g.full(0.0, Dtype::F32, &[blocks.count * blocks.size, hidden]);
    let y = g.for_loop(end, 1, &[y], |g, block, state| {
        let block = g.host_scalar(block);
        let expert = g.dynamic_slice(blocks.experts, &[block], &[1]);
        let expert = g.reshape(expert, &[]);
        let size = g.scalar(small(blocks.size), Dtype::I32);
        let start = g.multiply(block, size);
        let rows = g.dynamic_slice(blocks.tokens, &[start], &[blocks.size]);
        let mut x = g.take_rows(flat, rows);
        for (index, layers) in [&up, &down].into_iter().enumerate() {
            let product = stacks[index].product(g, expert, x, operand);
            let whole = [&[1], g.shape(product)].concat();
            let product = g.reshape(product, &whole);
            let rows_of = |g: &mut Graph, table| {
                let row = of_expert(g, table, expert);
                let width = g.shape(row).iter().product();
                let row = g.reshape(row, &[width]);
                g.broadcast_in_dim(row, &[blocks.size, width], &[1])
            };
            let results = layers.split(g, product, &biases[index], rows_of);
            let y = match (index, layer.experts.first(), inner(&results)) {
                (0, Some(expert), Some(inner)) => generated_activate(g, expert, inner),
                _ => results[0],
            };
            let width = g.shape(y).last().copied().unwrap_or(1);
            x = g.reshape(y, &[blocks.size, width]);
        }
        let zero = g.scalar(0.0, Dtype::I32);
        vec![g.dynamic_update_slice(state[0], x, &[start, zero])]
    });
    let by_token = g.take_rows(y[0], blocks.slots);
    let weights = g.broadcast_in_dim(weights, &[all, active, hidden], &[0, 1]);
    let weighted = g.multiply(by_token, weights);
    let sum = g.reduce(weighted, Reduction::Sum, &[1]);
    g.reshape(sum, &[batch, tokens, hidden])
}

/// Chooses the experts with the largest logits for each token, and their weights: `[tokens, active]` both.
fn choose(g: &mut Graph, layer: &Experts, logits: Tensor, all: usize) -> (Tensor, Tensor) {
    let shape = [all, layer.experts.len()];
    let mut rest = g.reshape(logits, &shape);
    let place = g.iota(Dtype::I32, &shape, 1);
    let nothing = g.full(f64::NEG_INFINITY, Dtype::F32, &shape);
    let (mut chosen, mut values) = (Vec::new(), Vec::new());
    let total = rest;
    for _ in 0..layer.active {
        let best = g.argmax(rest);
        let value = g.reduce(rest, Reduction::Max, &[1]);
        let at = g.broadcast_in_dim(best, &shape, &[0]);
        let is_best = g.eq(place, at);
        rest = g.select(is_best, nothing, rest);
        chosen.push(g.reshape(best, &[all, 1]));
        values.push(g.reshape(value, &[all, 1]));
    }
    let (chosen, values) = (g.concatenate(&chosen, 1), g.concatenate(&values, 1));
    let largest = g.reduce(values, Reduction::Max, &[1]);
    let exponentials = |g: &mut Graph, x: Tensor| {
        let shape = g.shape(x).to_vec();
        let largest = g.broadcast_in_dim(largest, &shape, &[0]);
        let shifted = g.subtract(x, largest);
        g.exponential(shifted)
    };
    let weights = exponentials(g, values);
    let all_weights = if layer.normalized { weights } else { exponentials(g, total) };
    let sum = g.reduce(all_weights, Reduction::Sum, &[1]);
    let sum = g.broadcast_in_dim(sum, &[all, layer.active], &[0]);
    let weights = g.divide(weights, sum);
    // If a token has one expert, only barriers keep iree-compile 3.13 from two fusions. It fuses the choice with the table that
    // compares all choices, whose workgroups then read what others have not written yet. And it fuses the sum with all up to
    // the next norm's sum, which it cannot compile for CUDA.
    (g.barrier(chosen), g.barrier(weights))
}

/// Rows, sorted into blocks of one expert.
struct Blocks {
    /// The most blocks that there can be.
    count: usize,
    /// Rows of each block.
    size: usize,
    /// The expert of each block.
    experts: Tensor,
    /// The token of each row of each block. Rows past the end of a block have any token.
    tokens: Tensor,
    /// The slots of each token's rows, `[tokens, active]`.
    slots: Tensor,
}

impl Blocks {
    /// Sorts the rows of `chosen`, `[tokens, active]` of expert numbers.
    fn new(g: &mut Graph, chosen: Tensor, [all, active, experts]: [usize; 3]) -> Self {
        let rows = all * active;
        let row_experts = g.reshape(chosen, &[rows]);
        if all == 1 {
            // Each row is a block.
            let tokens = g.full(0.0, Dtype::I32, &[rows]);
            let slots = g.iota(Dtype::I32, &[1, rows], 1);
            return Self { count: rows, size: 1, experts: row_experts, tokens, slots };
        }
        let size = BLOCK.min(all);
        let count = rows.div_ceil(size) + experts.min(rows);
        // The number of earlier rows with the same expert is the row's index among them.
        let [this, other] =
            [0, 1].map(|dimension| g.broadcast_in_dim(row_experts, &[rows, rows], &[dimension]));
        let same = g.eq(this, other);
        let [at, before] = [0, 1].map(|dimension| g.iota(Dtype::I32, &[rows, rows], dimension));
        let earlier = g.lt(before, at);
        let earlier = g.and(same, earlier);
        let place = count_true(g, earlier);
        // Count the blocks of each expert, and find its first one.
        let [expert, of_row] = [
            g.iota(Dtype::I32, &[experts, rows], 0),
            g.broadcast_in_dim(row_experts, &[experts, rows], &[1]),
        ];
        let is_of = g.eq(expert, of_row);
        let found = count_true(g, is_of);
        let whole = g.full(small(size), Dtype::I32, &[experts]);
        let more = g.full(small(size - 1), Dtype::I32, &[experts]);
        let found = g.add(found, more);
        let needed = g.divide(found, whole);
        let [row, column] = [0, 1].map(|dimension| g.iota(Dtype::I32, &[experts, experts], dimension));
        let is_before = g.lt(column, row);
        let needed_all = g.broadcast_in_dim(needed, &[experts, experts], &[1]);
        let zero = g.full(0.0, Dtype::I32, &[experts, experts]);
        let before = g.select(is_before, needed_all, zero);
        let first = sum_rows(g, before);
        let after = g.add(first, needed);
        // The expert of a block is the first one whose blocks end after it.
        let [block, ends] =
            [g.iota(Dtype::I32, &[count, experts], 0), g.broadcast_in_dim(after, &[count, experts], &[1])];
        let ended = g.le(ends, block);
        let of_block = count_true(g, ended);
        let last = g.full(small(experts - 1), Dtype::I32, &[count]);
        let of_block = g.minimum(of_block, last);
        // Map each row to its slot, and each slot to its row.
        let column = g.reshape(first, &[experts, 1]);
        let starts = g.take_rows(column, row_experts);
        let starts = g.reshape(starts, &[rows]);
        let whole = g.full(small(size), Dtype::I32, &[rows]);
        let starts = g.multiply(starts, whole);
        let slots = g.add(starts, place);
        let all_slots = [count * size, rows];
        let [slot, of_row] = [g.iota(Dtype::I32, &all_slots, 0), g.broadcast_in_dim(slots, &all_slots, &[1])];
        let has_slot = g.eq(slot, of_row);
        let row = g.iota(Dtype::I32, &all_slots, 1);
        let nothing = g.full(0.0, Dtype::I32, &all_slots);
        let row = g.select(has_slot, row, nothing);
        // At most one row has the slot.
        let row = sum_rows(g, row);
        let per_token = g.full(small(active), Dtype::I32, &[count * size]);
        let tokens = g.divide(row, per_token);
        Self { count, size, experts: of_block, tokens, slots: g.reshape(slots, &[all, active]) }
    }
}

/// Counts the true elements of each row.
fn count_true(g: &mut Graph, x: Tensor) -> Tensor {
    let ones = g.convert(x, Dtype::I32);
    sum_rows(g, ones)
}

/// Sums each row of a computed table. Fused with the computation, iree-compile 3.13 cannot compile the sum for CUDA.
fn sum_rows(g: &mut Graph, x: Tensor) -> Tensor {
    let x = g.barrier(x);
    g.reduce(x, Reduction::Sum, &[1])
}

#[expect(clippy::cast_precision_loss, reason = "a number of rows or of experts")]
fn small(number: usize) -> f64 {
    number as f64
}
