//! One op on the way back.

use std::collections::HashSet;

use crate::{
    graph::{Graph, Op, Tensor},
    mlir::attributes::sizes,
};

/// An op with the gradients of its results, and what it adds to the gradients of others.
pub(super) struct Step<'s> {
    /// The recorded op.
    pub(super) op: &'s Op,
    /// The gradients of its results. The loss does not depend on those without.
    pub(super) gradients: Vec<Option<Tensor>>,
    /// The tensors whose gradients are wanted, or lead to those.
    pub(super) active: &'s HashSet<Tensor>,
    /// Tensors, each with what is added to its gradient.
    pub(super) sent: Vec<(Tensor, Tensor)>,
}

impl<'s> Step<'s> {
    /// Returns the name of the op.
    pub(super) fn name(&self) -> &'s str {
        &self.op.name
    }

    /// Returns an operand.
    pub(super) fn operand(&self, index: usize) -> Tensor {
        self.op.operands.get(index).copied().unwrap_or(Graph::poison())
    }

    /// Returns the first result.
    pub(super) fn result(&self) -> Tensor {
        self.op.results.first().copied().unwrap_or(Graph::poison())
    }

    /// Returns the gradient of the first result.
    pub(super) fn gradient(&self) -> Tensor {
        self.gradients.first().copied().flatten().unwrap_or(Graph::poison())
    }

    /// Returns whether the gradient of an operand is wanted.
    pub(super) fn wants(&self, index: usize) -> bool {
        self.active.contains(&self.operand(index))
    }

    /// Adds what `body` computes to the gradient of an operand, if that is wanted.
    pub(super) fn send(&mut self, g: &mut Graph, index: usize, body: impl FnOnce(&mut Graph) -> Tensor) {
        if self.wants(index) {
            let gradient = body(g);
            self.sent.push((self.operand(index), gradient));
        }
    }

    /// Adds the gradient of each result to that of the operand with its index: the op returns its operands.
    pub(super) fn send_unchanged(&mut self, g: &mut Graph) {
        for (index, gradient) in self.gradients.clone().into_iter().enumerate() {
            if let Some(gradient) = gradient {
                self.send(g, index, |_| gradient);
            }
        }
    }

    /// Returns the text of an attribute, or an empty one.
    pub(super) fn attribute(&self, name: &str) -> &str {
        self.op.attributes.iter().find(|(found, _)| *found == name).map_or("", |(_, text)| text.as_str())
    }

    /// Returns the integers of an attribute.
    pub(super) fn integers(&self, name: &str) -> Vec<usize> {
        sizes(self.attribute(name)).unwrap_or_default()
    }
}
