//! Gradients of control flow.

use super::{reads::captured, step::Step};
use crate::graph::{Graph, Tensor};

/// Adds the gradients of what control flow reads.
pub(super) fn pull(g: &mut Graph, step: &mut Step<'_>) -> bool {
    match step.name() {
        "stablehlo.if" => if_else(g, step),
        _ => return false,
    }
    true
}

/// Runs the branch again that was taken, and the way back through it.
fn if_else(g: &mut Graph, step: &mut Step<'_>) {
    let [then, otherwise] = step.op.regions.as_slice() else { return };
    let mut read = Vec::new();
    captured(then, step.active, &mut read);
    captured(otherwise, step.active, &mut read);
    let results: Vec<_> =
        step.gradients.iter().enumerate().filter(|(_, gradient)| gradient.is_some()).collect();
    let (places, cotangents): (Vec<_>, Vec<Tensor>) =
        results.into_iter().filter_map(|(place, gradient)| Some((place, (*gradient)?))).unzip();
    let way_back = |g: &mut Graph, branch| {
        let results = g.replay(branch, &[]);
        let outputs: Vec<_> = places.iter().map(|&place| results[place]).collect();
        let innermost = g.open_regions().len() - 1;
        g.vjp_within(innermost, &outputs, &cotangents, &read)
    };
    let condition = step.operand(0);
    let gradients = g.if_else(condition, |g| way_back(g, then), |g| way_back(g, otherwise));
    step.sent.extend(read.into_iter().zip(gradients));
}
