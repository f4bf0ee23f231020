//! What a test checks, found as it is replayed.

use super::ast::Op;
use crate::graph::Tensor;

/// The checks of a test as it is replayed.
#[derive(Debug)]
pub(super) struct Checks {
    /// Whether the test has a function that returns its inputs. Otherwise all of its constants are.
    has_inputs: bool,
    /// Whether inputs are arguments; otherwise they are constants.
    pub(super) takes_inputs: bool,
    pub(super) inputs: Vec<Tensor>,
    pub(super) found: Vec<(String, [Tensor; 2])>,
}

impl Checks {
    pub(super) fn new(has_inputs: bool, takes_inputs: bool) -> Self {
        Self { has_inputs, takes_inputs, inputs: Vec::new(), found: Vec::new() }
    }

    /// Notes a check; returns whether the call is one.
    pub(super) fn note(&mut self, target: &str, operands: &[Tensor]) -> bool {
        let kind = target.strip_prefix("check.");
        if let (Some(kind), [actual, expected, ..]) = (kind, operands) {
            self.found.push((kind.to_owned(), [*actual, *expected]));
        }
        kind.is_some()
    }

    /// Returns whether the results of an op are inputs of the ops under test.
    pub(super) fn are_inputs(&self, op: &Op<'_>, operands: &[Tensor]) -> bool {
        if self.has_inputs {
            return op.name == "func.call" && op.attribute("callee") == Some("@inputs");
        }
        operands.is_empty()
            && op.name == "stablehlo.constant"
            && op.result_types.iter().all(|ty| ty.contains('x'))
    }
}
