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
    /// Weights are being copied, generated or packed.
    Weights {
        /// Name of the file.
        file: String,
    },
}

/// Receiver of a build's events.
pub type Progress<'p> = dyn FnMut(Event) + 'p;
