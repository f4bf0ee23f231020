//! Lines on stderr.

use std::io::{self, Write as _};

/// Writes a line to stderr. A failure to do so is no error.
pub(crate) fn note(line: &str) {
    _ = writeln!(io::stderr().lock(), "{line}");
}
