//! Experts without kernels: a loop over blocks of rows, each of one expert.

use mlxcel_models::Experts;
use safetensors::Dtype;

use super::{Layers, between};
use crate::{DotDimensions, Graph, Reduction, Tensor, layers::Builder};

/// Rows of a block, of several tokens: enough to make something of the weights that are read for them, few enough that
/// little of them is padding.
const BLOCK: usize = 16;

/// `[batch, tokens, hidden]` → the same.
pub(super) fn experts(b: &mut Builder<'_>, layer: &Experts, logits: Tensor, x: Tensor) -> Tensor {
    let &[batch, tokens, hidden] = b.graph.shape(x) else {
        return x;
    };
    let (all, count, active) = (batch * tokens, layer.experts.len(), layer.active);
    let (chosen, weights) = choose(&mut b.graph, layer, logits, all);
    let blocks = Blocks::new(&mut b.graph, chosen, [all, active, count]);
    let operand = b.operand();
    let [first, last] = Layers::both(layer);
    let stacks = [&first, &last].map(|layers| {
        let size = layers.weights().size();
        let made = b.packed("stack", layers.weights(), 1, &[], |g, rows| {
            vec![g.reshape(rows[0], &[count, size.0, size.1])]
        });
        made[0]
    });
    let biases = [&first, &last].map(|layers| layers.biases(b));
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
        for (index, layers) in [&first, &last].into_iter().enumerate() {
            let product = dot(g, stacks[index], expert, x, operand);
            let whole = [&[1], g.shape(product)].concat();
            let product = g.reshape(product, &whole);
            let of_expert = |g: &mut Graph, table| {
                let row = row(g, table, expert);
                let width = g.shape(row).iter().product();
                let row = g.reshape(row, &[width]);
                g.broadcast_in_dim(row, &[blocks.size, width], &[1])
            };
            let given = layers.split(g, product, &biases[index], of_expert);
            let y = if index == 0 { between(g, layer, &given) } else { given[0] };
            let width = g.shape(y).last().copied().unwrap_or(1);
            x = g.reshape(y, &[blocks.size, width]);
        }
        let zero = g.scalar(0.0, Dtype::I32);
        vec![g.dynamic_update_slice(state[0], x, &[start, zero])]
    });
    let of_tokens = g.take_rows(y[0], blocks.slots);
    let weights = g.broadcast_in_dim(weights, &[all, active, hidden], &[0, 1]);
    let weighted = g.multiply(of_tokens, weights);
    let sum = g.reduce(weighted, Reduction::Sum, &[1]);
    g.reshape(sum, &[batch, tokens, hidden])
}

/// The experts with the largest logits of each token, and their weights: `[tokens, active]` both.
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
    let all_weights = if layer.normalised { weights } else { exponentials(g, total) };
    let sum = g.reduce(all_weights, Reduction::Sum, &[1]);
    let sum = g.broadcast_in_dim(sum, &[all, layer.active], &[0]);
    let weights = g.divide(weights, sum);
    // Where a token has one expert, nothing else keeps iree-compile 3.13 from fusing the choice with the table that compares
    // all choices with each other, whose workgroups then read what others have not written yet; and the sum with all up
    // to the next norm's, for which it has no code on CUDA.
    (g.barrier(chosen), g.barrier(weights))
}

/// Rows, a token with one of its experts each, dealt to blocks of one expert.
struct Blocks {
    /// How many there are at most.
    count: usize,
    /// Rows of each.
    size: usize,
    /// The expert of each block.
    experts: Tensor,
    /// The token of each row of each block; some token where a block is not full.
    tokens: Tensor,
    /// Where each token's rows are, `[tokens, active]`.
    slots: Tensor,
}

impl Blocks {
    /// For `chosen`, `[tokens, active]` of the numbers of experts.
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
        // How many rows of the same expert come before each: its place among them.
        let [this, other] =
            [0, 1].map(|dimension| g.broadcast_in_dim(row_experts, &[rows, rows], &[dimension]));
        let same = g.eq(this, other);
        let [at, before] = [0, 1].map(|dimension| g.iota(Dtype::I32, &[rows, rows], dimension));
        let earlier = g.lt(before, at);
        let earlier = g.and(same, earlier);
        let place = count_true(g, earlier);
        // Blocks of each expert, and the first of them.
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
        let first = reduced(g, before);
        let after = g.add(first, needed);
        // A block is of the expert before whose end it lies, and of no earlier one.
        let [block, ends] =
            [g.iota(Dtype::I32, &[count, experts], 0), g.broadcast_in_dim(after, &[count, experts], &[1])];
        let ended = g.le(ends, block);
        let of_block = count_true(g, ended);
        let last = g.full(small(experts - 1), Dtype::I32, &[count]);
        let of_block = g.minimum(of_block, last);
        // Each row's slot, and back.
        let column = g.reshape(first, &[experts, 1]);
        let starts = g.take_rows(column, row_experts);
        let starts = g.reshape(starts, &[rows]);
        let whole = g.full(small(size), Dtype::I32, &[rows]);
        let starts = g.multiply(starts, whole);
        let slots = g.add(starts, place);
        let all_slots = [count * size, rows];
        let [slot, of_row] = [g.iota(Dtype::I32, &all_slots, 0), g.broadcast_in_dim(slots, &all_slots, &[1])];
        let is_there = g.eq(slot, of_row);
        let row = g.iota(Dtype::I32, &all_slots, 1);
        let nothing = g.full(0.0, Dtype::I32, &all_slots);
        let row = g.select(is_there, row, nothing);
        // At most one row is there.
        let row = reduced(g, row);
        let per_token = g.full(small(active), Dtype::I32, &[count * size]);
        let tokens = g.divide(row, per_token);
        Self { count, size, experts: of_block, tokens, slots: g.reshape(slots, &[all, active]) }
    }
}

/// How many are true in each row.
fn count_true(g: &mut Graph, x: Tensor) -> Tensor {
    let ones = g.convert(x, Dtype::I32);
    reduced(g, ones)
}

/// The sum over the rows of a table that is worked out. Fused with that, iree-compile 3.13 has no code for it on CUDA.
fn reduced(g: &mut Graph, x: Tensor) -> Tensor {
    let x = g.barrier(x);
    g.reduce(x, Reduction::Sum, &[1])
}

/// Row `index` of a table.
fn row(g: &mut Graph, table: Tensor, index: Tensor) -> Tensor {
    let zero = g.scalar(0.0, Dtype::I32);
    let mut sizes = g.shape(table).to_vec();
    let mut starts = vec![zero; sizes.len()];
    if let (Some(size), Some(start)) = (sizes.first_mut(), starts.first_mut()) {
        (*size, *start) = (1, index);
    }
    g.dynamic_slice(table, &starts, &sizes)
}

/// `[rows, inputs]` · one of `stack`, `[experts, outputs, inputs]` → `[rows, outputs]`.
fn dot(g: &mut Graph, stack: Tensor, expert: Tensor, x: Tensor, operand: Dtype) -> Tensor {
    let shape = g.shape(stack).to_vec();
    let weight = row(g, stack, expert);
    let weight = g.reshape(weight, shape.get(1..).unwrap_or_default());
    let [x, weight] = [x, weight].map(|x| g.convert(x, operand));
    let dims = DotDimensions { lhs_contract: &[1], rhs_contract: &[1], ..DotDimensions::default() };
    g.dot_general(x, weight, &dims, Dtype::F32)
}

#[expect(clippy::cast_precision_loss, reason = "a number of rows or of experts")]
fn small(number: usize) -> f64 {
    number as f64
}
