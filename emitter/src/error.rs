//! Errors between a description and a module.

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An op has operands that it does not accept. A graph keeps the first such op.
    #[error("{scope}: {op}: {problem}")]
    Op {
        /// The part of the model, such as `layer.3.attention.q_proj`.
        scope: String,
        /// The op, such as `stablehlo.add`.
        op: &'static str,
        /// The operands that were found and those expected.
        problem: String,
    },
    /// The plan does not fit the model.
    #[error("{found}, but {expected}\nhint: {hint}")]
    Plan {
        /// The value in the plan.
        found: String,
        /// The values that fit.
        expected: String,
        /// What to choose instead.
        hint: &'static str,
    },
    /// MLIR refused the lowered module, which is a defect of this crate.
    #[error("mlir refused {op}: {problem}")]
    Mlir {
        /// The op.
        op: String,
        /// The message of MLIR.
        problem: String,
    },
}
