//! What can go wrong between a description and a module.

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An op was given operands that it does not take. The first such op of a graph is kept.
    #[error("{scope}: {op}: {problem}")]
    Op {
        /// Where in the model: `layer.3.attention.q_proj`.
        scope: String,
        /// The op: `stablehlo.add`.
        op: &'static str,
        /// What was found and what was expected.
        problem: String,
    },
    /// The plan cannot be carried out for this model.
    #[error("{found}, but {expected}\nhint: {hint}")]
    Plan {
        /// What the plan says.
        found: String,
        /// What is possible.
        expected: String,
        /// What to do.
        hint: &'static str,
    },
    /// MLIR refused what a graph was lowered to: a defect of this crate.
    #[error("mlir refused {op}: {problem}")]
    Mlir {
        /// The op.
        op: String,
        /// What MLIR said.
        problem: String,
    },
}
