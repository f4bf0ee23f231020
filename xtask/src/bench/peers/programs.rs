//! The programs that are measured.

use std::path::PathBuf;

/// The number of decode steps of a test.
pub(super) const STEPS: usize = 64;

/// The executables and the settings of a run.
pub(super) struct Programs {
    pub(super) run: PathBuf,
    pub(super) bench: PathBuf,
    pub(super) llama_bench: PathBuf,
    pub(super) llama_batched_bench: PathBuf,
    pub(super) threads: String,
    pub(super) depth: usize,
}
