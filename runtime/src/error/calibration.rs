//! Errors of calibration.

use std::{io, path::PathBuf};

/// Weights that cannot be rounded by a text.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CalibrationError {
    /// The bundle has no code that collects moments.
    #[error(
        "target {target} was compiled without calibration\n\
         hint: compile the bundle again with --quant q4k --calibrate FILE"
    )]
    NotCompiled {
        /// The target.
        target: String,
    },

    /// The text has too few tokens.
    #[error(
        "the calibration text has {found} tokens, expected at least {expected}\n\
         hint: give a longer text of the kind that the model is for; some 40,000 tokens suit most models"
    )]
    ShortText {
        /// Tokens of the text.
        found: usize,
        /// Tokens of a call.
        expected: usize,
    },

    /// What a run has collected cannot be kept or read.
    #[error(
        "cannot keep what calibration has collected in {}\n\
         hint: df -h shows whether the disk is full; the folder can be deleted, and calibration starts anew",
        path.display()
    )]
    Keep {
        /// The folder.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
}
