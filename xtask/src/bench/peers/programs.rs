//! What is measured: the programs, and the same weights for both.

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

/// The same weights in one format for both programs.
pub(super) struct Pair {
    pub(super) ours: &'static str,
    pub(super) theirs: &'static str,
    pub(super) bundle: PathBuf,
    pub(super) gguf: PathBuf,
}
