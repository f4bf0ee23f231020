//! What is added to the residual stream.

use mlxcel_models::Norm;

use crate::graph::Tensor;

/// A result of a layer that is added to the residual stream, times a factor.
#[derive(Debug, Clone)]
pub(crate) struct Addend {
    pub(crate) result: Tensor,
    pub(crate) factor: f64,
    /// The norm of the result, if `adds_norm` of it.
    pub(crate) after: Option<Norm>,
    /// A number for each row, of which the sigmoid is a factor too. Only kernels of GPUs take it.
    pub(crate) gate: Option<Tensor>,
}

impl Addend {
    /// Adds `result · factor`.
    pub(crate) fn new(result: Tensor, factor: f64) -> Self {
        Self { result, factor, after: None, gate: None }
    }

    /// Returns whether it has neither a norm nor a gate, which only kernels of GPUs take.
    pub(crate) fn is_plain(&self) -> bool {
        self.after.is_none() && self.gate.is_none()
    }
}
