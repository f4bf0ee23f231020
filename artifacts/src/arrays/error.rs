//! Errors of tensor files.

use std::{
    io,
    path::{Path, PathBuf},
};

/// A file of tensors that cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}\nhint: {hint}", path.display())]
pub struct TensorFileError {
    path: PathBuf,
    problem: String,
    hint: &'static str,
    source: Option<io::Error>,
}

/// What is wrong with a file, and what helps.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) text: String,
    pub(super) hint: &'static str,
}

/// The remedy for a file that was changed or cut off.
const DAMAGED: &str = "write the file again, or copy it again";

impl Problem {
    /// Describes a damaged file.
    pub(super) fn damaged(text: impl Into<String>) -> Self {
        Self { text: text.into(), hint: DAMAGED }
    }

    /// Describes a file that is whole, but not supported.
    pub(super) fn unsupported(text: impl Into<String>, hint: &'static str) -> Self {
        Self { text: text.into(), hint }
    }

    /// Describes a failure to read a part of a file.
    pub(super) fn read(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::UnexpectedEof {
            return Self::damaged("it ends within a tensor");
        }
        Self::damaged(format!("cannot be read: {error}"))
    }

    /// Names the tensor that is wrong.
    pub(super) fn of(self, name: &str) -> Self {
        Self { text: format!("tensor `{}`: {}", name.escape_debug(), self.text), ..self }
    }

    pub(super) fn at(self, path: &Path) -> TensorFileError {
        TensorFileError { path: path.to_path_buf(), problem: self.text, hint: self.hint, source: None }
    }
}

impl TensorFileError {
    pub(super) fn io(path: &Path, doing: &str, source: io::Error) -> Self {
        let (problem, hint) = (format!("cannot {doing}"), "check the path, its permissions and the disk");
        Self { path: path.to_path_buf(), problem, hint, source: Some(source) }
    }
}
