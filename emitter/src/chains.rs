//! Joins kernels for CPUs that follow each other into chains.
//!
//! A step of few rows has some 180 dispatches, and IREE takes 9 µs to end one and begin the next, in which no weights are read:
//! a tenth of the step (Zen 4, llama-3.2-1b in Q4). A chain is one dispatch for the kernels of a layer. What passes between
//! them stays in its own memory.

mod dispatch;
mod members;
#[cfg(test)]
mod tests;
mod uses;

use std::{collections::HashSet, mem};

use safetensors::Dtype;

use self::{
    dispatch::dispatch,
    members::{Member, Members},
    uses::{Uses, is_view, used_by},
};
use crate::{
    graph::{Graph, Op, Tensor},
    kernels::LINK_WORDS,
    module::Module,
    types::{HostType, TensorType, ValueType},
};

/// The most tensors of a dispatch, a limit of IREE's HAL.
const MAX_BINDINGS: usize = 32;

/// The bindings of every chain: counters and memory of its own.
const OWN_BINDINGS: usize = 2;

/// Joins the kernels of a function that returns `results`. A chain ends with a layer.
pub(crate) fn join(module: &mut Module, graph: &mut Graph, results: &[Tensor]) {
    if graph.has_failed() {
        return;
    }
    let ops = graph.take_ops();
    let uses = Uses::of(&ops, results);
    let mut joiner = Joiner::new(module, &uses);
    for (index, op) in ops.into_iter().enumerate() {
        joiner.add(index, op);
    }
    joiner.close();
    let parts = joiner.parts;
    let links = parts.iter().map(Part::links).sum::<usize>();
    let mut counters = None;
    let mut first_link = 0;
    for part in parts {
        match part {
            Part::Op(op) => graph.put_op(op),
            Part::Chain(members) => {
                let zeros = counters.unwrap_or_else(|| zeros(graph, links * LINK_WORDS));
                counters = Some(dispatch(module, graph, &uses, &members, zeros, first_link));
                first_link += members.all.len();
            }
        }
    }
}

/// Returns `count` zeros that kernels can write to: a constant could not be overwritten.
fn zeros(g: &mut Graph, count: usize) -> Tensor {
    let zero = vec![("value", "0 : i32".to_owned())];
    let host = vec![ValueType::Host(HostType::I32)];
    let zero = g.op_with_regions("arith.constant", &[], zero, vec![], host)[0];
    g.op("flow.tensor.splat", &[zero], vec![], TensorType::new(Dtype::I32, [count]))
}

/// A part of a function's new body.
enum Part {
    Op(Op),
    Chain(Members),
}

impl Part {
    fn links(&self) -> usize {
        match self {
            Self::Op(_) => 0,
            Self::Chain(members) => members.all.len(),
        }
    }
}

/// Divides a function's ops into chains and others.
struct Joiner<'j> {
    module: &'j Module,
    uses: &'j Uses,
    /// The chain to which calls are added.
    open: Members,
    /// The layer of that chain.
    layer: String,
    /// Ops that use what the chain makes, and come after it.
    after: Vec<Op>,
    /// Tensors that the chain or the ops after it make.
    pending: HashSet<Tensor>,
    parts: Vec<Part>,
}

impl<'j> Joiner<'j> {
    fn new(module: &'j Module, uses: &'j Uses) -> Self {
        Self {
            module,
            uses,
            open: Members::default(),
            layer: String::new(),
            after: Vec::new(),
            pending: HashSet::new(),
            parts: Vec::new(),
        }
    }

    /// Adds the next op.
    fn add(&mut self, index: usize, op: Op) {
        let executable = op.kernel.as_deref().and_then(|symbol| self.module.executable(symbol));
        if let Some(executable) = executable.filter(|executable| !executable.is_gpu()) {
            self.add_member(Member { index, executable: executable.clone(), op });
            return;
        }
        // A store ends a chain, so that it stays in order with loads.
        if op.results.is_empty() {
            self.close();
        }
        if used_by(&op).iter().any(|tensor| self.pending.contains(tensor)) {
            self.pending.extend(&op.results);
            self.after.push(op);
        } else {
            self.parts.push(Part::Op(op));
        }
    }

    /// Adds a call of a kernel to the open chain, or to a new one.
    fn add_member(&mut self, member: Member) {
        let layer = layer_of(&member.op.scope);
        if layer != self.layer || !self.takes(&member) {
            self.close();
            layer.clone_into(&mut self.layer);
        }
        self.pending.extend(&member.op.results);
        self.open.push(member);
        if self.bindings() > MAX_BINDINGS
            && let Some(last) = self.open.pop()
        {
            self.close();
            self.pending.extend(&last.op.results);
            self.open.push(last);
        }
    }

    /// Returns whether a call can follow those of the open chain.
    fn takes(&self, member: &Member) -> bool {
        // What generated code makes from the chain's results comes after the chain.
        let is_known = |&operand: &Tensor| {
            let resolved = self.open.resolve(self.uses, operand);
            resolved != operand || !self.after.iter().any(|op| op.results.contains(&operand))
        };
        member.operands().iter().all(is_known) && !self.open.overwrites_again(self.uses, member)
    }

    /// Returns how many tensors the open chain has as a dispatch.
    fn bindings(&self) -> usize {
        self.open.operands(self.uses).len() + self.open.results(self.uses).len() + OWN_BINDINGS
    }

    /// Ends the open chain.
    fn close(&mut self) {
        let mut members = mem::take(&mut self.open);
        self.pending.clear();
        let is_inside = |index| members.contains(index);
        let is_used = |op: &Op| {
            !is_view(op) || op.results.iter().any(|&result| self.uses.is_used_outside(result, &is_inside))
        };
        let after: Vec<_> = self.after.drain(..).filter(is_used).map(Part::Op).collect();
        match members.all.as_mut_slice() {
            [] => {}
            [_] => self.parts.extend(members.all.pop().map(|only| Part::Op(only.op))),
            _ => self.parts.push(Part::Chain(members)),
        }
        self.parts.extend(after);
    }
}

/// Returns the layer that a scope is in: `layer.3` of `layer.3.attention.q_proj`, or nothing.
fn layer_of(scope: &str) -> &str {
    let Some(rest) = scope.strip_prefix("layer.") else { return "" };
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    &scope[.."layer.".len() + digits]
}
