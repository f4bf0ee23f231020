//! The result of a command.

use crate::pack::PackFailure;

/// What a successful command prints, and whether packing failed after it.
pub(crate) struct Outcome {
    /// The text for stdout.
    pub(crate) stdout: String,
    pub(crate) packing: Result<(), PackFailure>,
}

impl From<String> for Outcome {
    fn from(stdout: String) -> Self {
        Self { stdout, packing: Ok(()) }
    }
}
