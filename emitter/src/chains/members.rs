//! Calls of kernels that become the links of a chain.

use std::collections::{HashMap, HashSet};

use super::uses::Uses;
use crate::{
    graph::{Op, Tensor},
    kernels::Executable,
};

/// A call of a kernel.
pub(super) struct Member {
    /// The index of the op in the function's old body.
    pub(super) index: usize,
    pub(super) op: Op,
    pub(super) executable: Executable,
}

impl Member {
    /// Returns the tensors that the kernel reads.
    pub(super) fn operands(&self) -> &[Tensor] {
        &self.op.operands[..self.executable.operand_count()]
    }

    /// Returns the numbers that the kernel takes.
    pub(super) fn numbers(&self) -> &[Tensor] {
        let first = self.executable.operand_count();
        &self.op.operands[first..first + self.executable.number_count()]
    }

    /// Returns the tensors that the kernel makes.
    pub(super) fn made(&self) -> &[Tensor] {
        &self.op.results[..self.op.results.len() - self.executable.overwritten().len()]
    }

    /// Returns the operands that the kernel overwrites, each with the tensor that it becomes.
    pub(super) fn overwritten(&self) -> impl Iterator<Item = (Tensor, Tensor)> {
        let after = self.op.results[self.made().len()..].iter().copied();
        self.executable.overwritten().map(|index| self.op.operands[index]).zip(after)
    }
}

/// The calls of a chain, in order.
#[derive(Default)]
pub(super) struct Members {
    pub(super) all: Vec<Member>,
    /// The tensors that they make.
    made: HashSet<Tensor>,
    /// Operands that they overwrite, by the tensor that they become.
    overwritten: HashMap<Tensor, Tensor>,
}

impl Members {
    /// Adds a call.
    pub(super) fn push(&mut self, member: Member) {
        self.made.extend(member.made());
        self.overwritten.extend(member.overwritten().map(|(before, after)| (after, before)));
        self.all.push(member);
    }

    /// Removes the last call.
    pub(super) fn pop(&mut self) -> Option<Member> {
        let last = self.all.pop()?;
        for made in last.made() {
            self.made.remove(made);
        }
        for (_, after) in last.overwritten() {
            self.overwritten.remove(&after);
        }
        Some(last)
    }

    /// Returns whether a call overwrites what another one has made or overwritten: a dispatch is tied to operands from outside
    /// alone.
    pub(super) fn overwrites_again(&self, uses: &Uses, member: &Member) -> bool {
        let is_own = |before| self.made.contains(&self.resolve(uses, before));
        member.overwritten().any(|(before, _)| self.overwritten.contains_key(&before) || is_own(before))
    }

    /// Returns what a kernel's operand is: a tensor that a member makes, or one from outside.
    pub(super) fn resolve(&self, uses: &Uses, operand: Tensor) -> Tensor {
        let made = uses.sources(operand).find(|source| self.made.contains(source));
        let before = self.overwritten.get(&operand).copied();
        made.or(before).unwrap_or_else(|| uses.first_equal(operand))
    }

    /// Returns the tensors that come from outside, in the order of their first use.
    pub(super) fn operands(&self, uses: &Uses) -> Vec<Tensor> {
        let all = self.all.iter().flat_map(Member::operands).map(|&operand| self.resolve(uses, operand));
        distinct(all.filter(|operand| !self.made.contains(operand)))
    }

    /// Returns the numbers that the kernels take, in the order of their first use.
    pub(super) fn numbers(&self) -> Vec<Tensor> {
        distinct(self.all.iter().flat_map(Member::numbers).copied())
    }

    /// Returns the tensors that are made and used outside.
    pub(super) fn results(&self, uses: &Uses) -> Vec<Tensor> {
        let made = self.all.iter().flat_map(Member::made).copied();
        made.filter(|&tensor| uses.is_used_outside(tensor, &|index| self.contains(index))).collect()
    }

    /// Returns whether a member is the op with this index.
    pub(super) fn contains(&self, index: usize) -> bool {
        self.all.iter().any(|member| member.index == index)
    }
}

/// Returns the first of equal tensors.
fn distinct(tensors: impl Iterator<Item = Tensor>) -> Vec<Tensor> {
    let mut seen = HashSet::new();
    tensors.filter(|&tensor| seen.insert(tensor)).collect()
}
