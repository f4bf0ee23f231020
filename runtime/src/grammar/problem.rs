//! What is wrong with a grammar.

use std::fmt;

use crate::error::{EngineError, Error};

/// The most characters of an error of llguidance's, which can contain the whole grammar.
const MAX_ERROR: usize = 300;

/// Returns an error in one line. llguidance's others are of its state, or show where a regular expression is wrong.
pub(super) fn one_line(error: impl fmt::Display) -> String {
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default().trim_end_matches(':');
    // What is behind it are llguidance's options, which nobody can give here.
    let first = first.split(". Enable '").next().unwrap_or(first);
    let line = match text.lines().skip(1).find_map(|line| line.strip_prefix("error: ")) {
        Some(reason) => format!("{first}: {reason}"),
        None => first.to_owned(),
    };
    match line.char_indices().nth(MAX_ERROR) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Refuses a grammar.
pub(super) fn refuse(problem: impl fmt::Display) -> Error {
    EngineError::Grammar { problem: problem.to_string() }.into()
}
