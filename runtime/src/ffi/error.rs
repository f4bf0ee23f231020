//! Errors of IREE.

use super::raw;

/// An error of IREE.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{status}: {message}")]
pub(crate) struct Error {
    status: String,
    message: String,
}

impl Error {
    /// Makes an error of arguments that this module refuses.
    pub(super) fn invalid(message: String) -> Self {
        Self { status: "invalid argument".into(), message }
    }

    /// Returns whether there was not enough memory.
    pub(crate) fn is_of_memory(&self) -> bool {
        self.status == "resource exhausted"
    }
}

/// Turns an error of the shim into a result, and frees it.
pub(super) fn check(error: *mut raw::Error) -> Result<(), Error> {
    // SAFETY: the shim returns null or an error that lives until it is freed.
    let Some(found) = (unsafe { error.as_ref() }) else { return Ok(()) };
    // SAFETY: its strings live as long as it does.
    let (code, text) = unsafe { (found.status.to_string(), found.message.to_string()) };
    // SAFETY: the error is freed once, and `found` is not used afterwards.
    unsafe { raw::shim_error_free(error) };
    Err(Error { status: code.to_lowercase().replace('_', " "), message: message(&code, &text) })
}

/// Returns `message` of `file.c:12: CODE; message; while doing something\n[ 0] in some frame`.
fn message(code: &str, text: &str) -> String {
    let start = text.find(code).map_or(0, |at| at + code.len());
    let text = text[start..].trim_start_matches([';', ' ']);
    let end = text.find("; while ").unwrap_or(text.len());
    text[..end].lines().map(str::trim).collect::<Vec<_>>().join(" ").trim_end_matches('.').to_string()
}
