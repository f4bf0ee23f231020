//! Standard input, output and error.

use std::io::{self, IsTerminal as _, Write as _};

/// Writes a line to stderr. A failure is ignored, because there is nowhere to report it.
pub(crate) fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Returns whether the reader of the output has closed it, as in `mlxcel-run b -p x | head`.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
}

/// Returns whether stdin is a terminal.
pub(crate) fn is_interactive() -> bool {
    io::stdin().is_terminal()
}
