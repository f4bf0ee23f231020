//! The file of a timeline, which is there whole or not at all.

use std::{
    fs::{self, Permissions},
    io::{self, BufWriter, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;

use super::{Trace, chrome, picture};
use crate::error::Error;

/// The file that a timeline goes to.
///
/// A temporary file beside it is made first, so that a folder that cannot be written is known before anything else is done.
/// It is renamed when it is complete; if the program ends before, nothing is left or replaced.
#[derive(Debug)]
pub struct TraceFile {
    path: PathBuf,
    file: NamedTempFile,
    trace: Trace,
}

impl TraceFile {
    /// Makes the file, and begins the timeline.
    ///
    /// # Errors
    /// No file can be written there.
    pub fn create(path: &Path) -> Result<Self, Error> {
        let failed = Error::write_trace(path);
        match fs::metadata(path) {
            Ok(found) if found.is_dir() => return Err(failed(io::ErrorKind::IsADirectory.into())),
            Ok(found) if !found.is_file() => {
                return Err(failed(io::Error::other("found a device or a pipe, expected a file")));
            }
            _ => {}
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // As for any new file, the rights are those that the process's mask leaves.
        let file = tempfile::Builder::new()
            .prefix(".trace-")
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder)
            // Its text names the temporary file.
            .map_err(|error| failed(error.kind().into()))?;
        Ok(Self { path: path.to_owned(), file, trace: Trace::new() })
    }

    /// Returns the timeline.
    #[must_use]
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Writes what was recorded: a picture if the name ends in `.svg`, and otherwise events in JSON.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(self) -> Result<(), Error> {
        let Self { path, file, trace } = self;
        let failed = Error::write_trace(&path);
        let mut out = BufWriter::new(file);
        let is_picture = path.extension().is_some_and(|kind| kind.eq_ignore_ascii_case("svg"));
        if let Some(shared) = &trace.0 {
            let recorder = shared.lock();
            let written = if is_picture {
                picture::write(&recorder, &mut out)
            } else {
                chrome::write(&recorder, &mut out)
            };
            written.map_err(&failed)?;
        }
        out.flush().map_err(&failed)?;
        let file = out.into_inner().map_err(|error| failed(error.into_error()))?;
        file.persist(&path).map_err(|error| failed(error.error))?;
        Ok(())
    }
}
