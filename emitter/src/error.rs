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
    /// A program is not written in MLIR's generic form.
    #[error("found '{found}', expected {expected}")]
    Syntax {
        /// The text at the place.
        found: String,
        /// What belongs there.
        expected: String,
    },
    /// A program of others has an op that cannot be compiled, or would be compiled to something else than it says.
    #[error("{function}: {op}{}: {problem}\nhint: {hint}", at(place.as_deref()))]
    Refused {
        /// The function that others call.
        function: String,
        /// The op, `fft` for `stablehlo.fft`.
        op: String,
        /// Where its author wrote it: `train.py:170`.
        place: Option<String>,
        /// What was found and expected.
        problem: String,
        /// What to do instead.
        hint: String,
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

impl Error {
    /// Returns an error about a program as a whole, or about an argument, which has no place.
    pub(crate) fn refused(
        function: &str,
        what: &str,
        problem: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self::Refused {
            function: function.to_owned(),
            op: what.to_owned(),
            place: None,
            problem: problem.into(),
            hint: hint.into(),
        }
    }
}

/// Returns ` at train.py:170`, or nothing.
fn at(place: Option<&str>) -> String {
    place.map_or_else(String::new, |place| format!(" at {place}"))
}
