//! The file of `--trace`.

use std::{
    io::{self, Write as _},
    path::Path,
};

use anyhow::Result;
use mlxcel_runtime::{Trace, TraceFile};

/// Begins the timeline, and checks that its file can be written.
pub(crate) fn begin(path: &Path, timeline: &mut Trace) -> Result<TraceFile> {
    let file = TraceFile::create(path)?;
    *timeline = file.trace().clone();
    Ok(file)
}

/// Writes the file. What its reader should know goes to stderr too.
pub(crate) fn end(file: TraceFile) -> Result<()> {
    let notes = file.trace().notes();
    file.finish()?;
    for note in notes {
        // If stderr is gone, there is nowhere else to say it.
        _ = writeln!(io::stderr(), "note: timeline: {note}");
    }
    Ok(())
}
