//! Gradients of loops whose number of rounds is known.

use safetensors::Dtype;

use super::{reads::captured, step::Step};
use crate::{
    graph::{Graph, Op, Region, Tensor},
    mlir::attributes::integers,
    types::TensorType,
};

/// Adds the gradients of what a loop reads, if it counts up to a constant: [`Graph::repeat`], and `fori_loop` of JAX.
///
/// The loop runs again and keeps the state of each round. A second loop goes through them backwards.
pub(super) fn pull(g: &mut Graph, step: &mut Step<'_>) -> bool {
    if step.name() != "stablehlo.while" {
        return false;
    }
    let [condition, body] = step.op.regions.as_slice() else { return false };
    let Some(rounds) = rounds(g, step.op, condition, body) else { return false };
    if rounds == 0 {
        step.send_unchanged(g);
        return true;
    }
    let kept = keep_states(g, &step.op.operands, body, rounds);
    if kept.contains(&Some(Graph::poison())) {
        return true;
    }
    let mut read = Vec::new();
    captured(body, step.active, &mut read);
    let floats: Vec<_> =
        (0..step.op.operands.len()).filter(|&index| g.is_differentiable(step.operand(index))).collect();
    let mut begin = Vec::new();
    for &index in &floats {
        let known = step.gradients.get(index).copied().flatten();
        begin.push(known.unwrap_or_else(|| g.zeros_like(step.operand(index))));
    }
    for &tensor in &read {
        begin.push(g.zeros_like(tensor));
    }
    // What no round changes is carried too: as values of its own, whose gradients are not those of what the body reads.
    let unchanged = kept.iter().zip(&step.op.operands).filter(|(kept, _)| kept.is_none());
    begin.extend(unchanged.map(|(_, &operand)| operand));
    let gradients = g.repeat(rounds, &begin, |g, round, values| {
        let (gradients, unchanged) = values.split_at(floats.len() + read.len());
        let last = number(g, rounds - 1);
        let round = g.subtract(last, round);
        let state = state_of(g, &kept, unchanged, round);
        let next = g.replay(body, &state);
        let outputs: Vec<_> = floats.iter().map(|&index| next[index]).collect();
        let of: Vec<_> = floats.iter().map(|&index| state[index]).chain(read.iter().copied()).collect();
        let innermost = g.open_regions().len() - 1;
        let (of_state, sums) = gradients.split_at(floats.len());
        let mut parts = g.vjp_within(innermost, &outputs, of_state, &of);
        for (part, &sum) in parts[floats.len()..].iter_mut().zip(sums) {
            *part = g.add(sum, *part);
        }
        parts.extend(unchanged);
        parts
    });
    let (of_state, of_read) = gradients.split_at(floats.len());
    for (&index, &gradient) in floats.iter().zip(of_state) {
        step.send(g, index, |_| gradient);
    }
    step.sent.extend(read.into_iter().zip(of_read.iter().copied()));
    true
}

/// Runs a loop, and returns for each element of its state the values at the beginnings of rounds, `[rounds, …]`, or none if no
/// round changes it.
fn keep_states(g: &mut Graph, state: &[Tensor], body: &Region, rounds: usize) -> Vec<Option<Tensor>> {
    let changes = |index: &usize| body.arguments.get(*index) != body.results.get(*index);
    let changing: Vec<_> = (0..state.len()).filter(changes).collect();
    let empty = changing.iter().map(|&index| {
        let TensorType { dtype, shape } = g.type_of(state[index]);
        g.full(0.0, dtype, &[&[rounds], shape.as_slice()].concat())
    });
    let empty: Vec<_> = empty.collect();
    let begin = [state, &empty].concat();
    let end = g.repeat(rounds, &begin, |g, round, values| {
        let (state, all) = values.split_at(state.len());
        let mut next = g.replay(body, state);
        for (&index, &all) in changing.iter().zip(all) {
            let shape = g.shape(all).to_vec();
            let row = g.reshape(state[index], &[&[1], &shape[1..]].concat());
            let starts = starts(g, round, shape.len());
            next.push(g.dynamic_update_slice(all, row, &starts));
        }
        next
    });
    let mut kept = vec![None; state.len()];
    for (&index, &all) in changing.iter().zip(&end[state.len()..]) {
        kept[index] = Some(all);
    }
    kept
}

/// Returns the state at the beginning of a round. `unchanged` are the elements that are not kept.
fn state_of(g: &mut Graph, kept: &[Option<Tensor>], unchanged: &[Tensor], round: Tensor) -> Vec<Tensor> {
    let mut unchanged = unchanged.iter().copied();
    kept.iter()
        .filter_map(|kept| match *kept {
            Some(all) => Some(row_of(g, all, round)),
            None => unchanged.next(),
        })
        .collect()
}

/// Returns one of the rows of `all`.
fn row_of(g: &mut Graph, all: Tensor, round: Tensor) -> Tensor {
    let shape = g.shape(all).to_vec();
    let starts = starts(g, round, shape.len());
    let row = g.dynamic_slice(all, &starts, &[&[1], &shape[1..]].concat());
    g.reshape(row, &shape[1..])
}

/// Returns the indices of the first element of a row.
fn starts(g: &mut Graph, row: Tensor, rank: usize) -> Vec<Tensor> {
    let zero = number(g, 0);
    std::iter::once(row).chain(std::iter::repeat_n(zero, rank - 1)).collect()
}

fn number(g: &mut Graph, value: usize) -> Tensor {
    #[expect(clippy::cast_precision_loss, reason = "numbers of rounds are below 2^31")]
    let number = g.scalar(value as f64, Dtype::I32);
    number
}

/// Returns how often a loop runs, if an element of its state counts up by one from a constant to a constant.
fn rounds(g: &Graph, op: &Op, condition: &Region, body: &Region) -> Option<usize> {
    let [result] = condition.results.as_slice() else { return None };
    let compare = defining(&condition.ops, *result).filter(|op| op.name == "stablehlo.compare")?;
    let (_, direction) = compare.attributes.iter().find(|(name, _)| name == "comparison_direction")?;
    let [counter, end] = compare.operands.as_slice() else { return None };
    let index = condition.arguments.iter().position(|argument| argument == counter)?;
    let add = defining(&body.ops, *body.results.get(index)?).filter(|op| op.name == "stablehlo.add")?;
    let steps = match add.operands.as_slice() {
        [counter, step] if counter == body.arguments.get(index)? => constant(g, &body.ops, *step)?,
        _ => return None,
    };
    let begin = constant(g, &[], *op.operands.get(index)?)?;
    let end = constant(g, &condition.ops, *end)?;
    let counts_up = direction.contains("comparison_direction LT") && steps == 1;
    counts_up.then(|| usize::try_from(end.saturating_sub(begin)).unwrap_or_default())
}

fn defining(ops: &[Op], tensor: Tensor) -> Option<&Op> {
    ops.iter().find(|op| op.results.contains(&tensor))
}

/// Returns the value of an integer constant, which is one of `ops` or defined around them.
fn constant(g: &Graph, ops: &[Op], tensor: Tensor) -> Option<i64> {
    let around = || g.open_regions().iter().find_map(|region| defining(&region.ops, tensor));
    let op = defining(ops, tensor).or_else(around).filter(|op| op.name == "stablehlo.constant")?;
    let (_, value) = op.attributes.iter().find(|(name, _)| name == "value")?;
    match *integers(value)? {
        [value] => Some(value),
        _ => None,
    }
}
