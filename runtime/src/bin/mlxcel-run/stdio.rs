//! What stands at the ends of this program: a person, or another program.

use std::io::{self, IsTerminal as _, Write as _};

/// Says something on stderr. That nobody hears it is no error.
pub(crate) fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Whether the reader of our output has gone: `mlxcel-run b -p x | head`.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
}

/// Whether a person sits in front of stdin.
pub(crate) fn is_interactive() -> bool {
    io::stdin().is_terminal()
}
