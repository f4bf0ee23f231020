//! Events of a build.

use std::time::Duration;

/// Progress of a build.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A warning for the user. The build goes on.
    Warning(String),
    /// A program was emitted.
    Emitted {
        /// Length of its MLIR.
        bytes: usize,
        /// Time it took.
        took: Duration,
    },
    /// A compilation started.
    Compiling {
        /// Label of the compilation: the target, and which of its modules.
        target: String,
    },
    /// A compilation finished.
    Compiled {
        /// Label of the compilation.
        target: String,
        /// Time it took.
        took: Duration,
        /// Length of the vmfb.
        bytes: u64,
    },
    /// The store already had the compiled module.
    Cached {
        /// Label of the compilation.
        target: String,
        /// Length of the vmfb.
        bytes: u64,
    },
    /// A part of a file of the hub arrived.
    Downloading {
        /// Name of the file.
        file: String,
        /// Bytes that are here.
        received: u64,
        /// Size of the file.
        size: u64,
    },
    /// A file of the hub is here, and is what the hub states.
    Downloaded {
        /// Name of the file.
        file: String,
        /// Size of the file.
        bytes: u64,
        /// Time it took.
        took: Duration,
    },
    /// A file in the hub's cache is being verified.
    Checking {
        /// Name of the file.
        file: String,
    },
    /// All files of a model of the hub are here.
    Fetched {
        /// The model.
        model: String,
        /// The commit that its revision is.
        commit: String,
        /// How many files were in the cache.
        cached: usize,
        /// How many were downloaded.
        downloaded: usize,
    },
    /// Weights are being copied, generated or packed.
    Weights {
        /// Name of the file.
        file: String,
    },
}

/// Receiver of a build's events.
pub type Progress<'p> = dyn FnMut(Event) + 'p;
