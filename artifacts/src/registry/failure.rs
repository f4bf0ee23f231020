//! Errors of registries and networks, in words.

use std::io;

use oci_client::errors::{DigestError, OciDistributionError, OciEnvelope, OciErrorCode};

use super::client::Registry;
use crate::error::Error;

/// The remedy for downloads that ended early.
const RESUMES: &str = "run the command again later: it resumes the transfer";

/// The remedy for uploads that ended early.
const SKIPS: &str = "run the command again later: it sends no file that the registry has";

/// The longest text of a registry that is shown.
const SHOWN_CHARS: usize = 300;

impl Registry {
    /// Converts an error of the transfer `doing`, `push` or `pull`, and adds a hint.
    pub(super) fn failed(&self, doing: &'static str, source: OciDistributionError) -> Error {
        let name = self.name.clone();
        let problem = describe(&source).into();
        if is_digest_mismatch(&source) {
            return Error::Tampered { name, source: problem };
        }
        Error::Registry { doing, name, hint: self.hint(doing, &source), source: problem }
    }

    /// Returns the error of a transfer that was cancelled.
    pub(super) fn cancelled(&self, doing: &'static str) -> Error {
        Error::Registry {
            doing,
            name: self.name.clone(),
            hint: later(doing).to_owned(),
            source: "it was cancelled".into(),
        }
    }

    /// Returns the error for an answer that makes no sense.
    pub(super) fn nonsense(&self, doing: &'static str) -> Error {
        Error::Registry {
            doing,
            name: self.name.clone(),
            hint: "check that the address is that of a registry, and ask who runs it".to_owned(),
            source: "found an address or a token in an answer of the registry that is none".into(),
        }
    }

    fn hint(&self, doing: &'static str, error: &OciDistributionError) -> String {
        use OciErrorCode::{Denied, ManifestUnknown, NameUnknown, NotFound, Unauthorized};
        match (error_code(error), error) {
            (Some(Unauthorized | Denied), _) => format!("run `docker login {}`", self.reference.registry()),
            (Some(ManifestUnknown | NameUnknown | NotFound), _) => "check the name and the tag".to_owned(),
            (_, OciDistributionError::RequestError(error)) if error.is_connect() => {
                "check the registry's name; pass --plain-http if it has no TLS".to_owned()
            }
            _ => later(doing).to_owned(),
        }
    }

    /// Returns the error for an artifact that is not a bundle.
    pub(super) fn not_a_bundle(&self, problem: String) -> Error {
        Error::NoArtifact { name: self.name.clone(), problem }
    }
}

/// Returns what to do when the transfer `doing` ended early.
fn later(doing: &str) -> &'static str {
    if doing == "push" { SKIPS } else { RESUMES }
}

/// Returns whether a layer or a manifest does not have the digest that it was requested by.
fn is_digest_mismatch(error: &OciDistributionError) -> bool {
    match error {
        OciDistributionError::DigestError(_) => true,
        // A mismatch found while a layer is read is wrapped in an I/O error.
        OciDistributionError::IoError(error) => {
            error.get_ref().is_some_and(|error| error.is::<DigestError>())
        }
        _ => false,
    }
}

/// Returns the error's code in the terms of the distribution specification, if it has one.
fn error_code(error: &OciDistributionError) -> Option<&OciErrorCode> {
    match error {
        OciDistributionError::RegistryError { envelope, .. } => {
            envelope.errors.first().map(|error| &error.code)
        }
        OciDistributionError::UnauthorizedError { .. } | OciDistributionError::AuthenticationFailure(_) => {
            Some(&OciErrorCode::Unauthorized)
        }
        OciDistributionError::ImageManifestNotFoundError(_) => Some(&OciErrorCode::ManifestUnknown),
        _ => match status(error) {
            Some(401 | 403) => Some(&OciErrorCode::Unauthorized),
            Some(404) => Some(&OciErrorCode::NotFound),
            _ => None,
        },
    }
}

/// Returns the status of an answer that has no code in those terms.
fn status(error: &OciDistributionError) -> Option<u16> {
    match error {
        OciDistributionError::RequestError(error) => error.status().map(|status| status.as_u16()),
        OciDistributionError::ServerError { code, .. } => Some(*code),
        _ => None,
    }
}

/// Returns whether another attempt may succeed.
pub(super) fn is_transient(error: &OciDistributionError) -> bool {
    match error {
        _ if is_digest_mismatch(error) => false,
        // A registry may answer 429 with a code.
        OciDistributionError::RegistryError { .. } => {
            error_code(error) == Some(&OciErrorCode::Toomanyrequests)
        }
        OciDistributionError::RequestError(error) if error.is_builder() => false,
        OciDistributionError::RequestError(_)
        | OciDistributionError::IoError(_)
        | OciDistributionError::ServerError { .. } => {
            status(error).is_none_or(|status| status >= 500 || [408, 429].contains(&status))
        }
        _ => false,
    }
}

/// Describes an error in one line without addresses: the registry's own text, or the root cause.
pub(super) fn describe(error: &OciDistributionError) -> String {
    match error {
        OciDistributionError::RegistryError { envelope, .. } => {
            format!("the registry reports: {}", messages(envelope))
        }
        OciDistributionError::ServerError { code, message, .. } => match serde_json::from_str(message) {
            Ok(envelope) => format!("the registry answered {code} and reports: {}", messages(&envelope)),
            Err(_) => format!("the registry answered {code}"),
        },
        OciDistributionError::UnauthorizedError { .. } => "the registry answered 401 Unauthorized".into(),
        OciDistributionError::ImageManifestNotFoundError(_) => "the registry has no such manifest".into(),
        _ => {
            if let OciDistributionError::RequestError(error) = error
                && let Some(status) = error.status()
            {
                return format!("the registry answered {status}");
            }
            let mut root: &dyn std::error::Error = error;
            while let Some(cause) = root.source() {
                root = cause;
            }
            printable(&root.to_string())
        }
    }
}

/// Returns what a registry writes about its errors.
fn messages(envelope: &OciEnvelope) -> String {
    let messages: Vec<_> = envelope.errors.iter().map(|error| error.message.as_str()).collect();
    printable(&messages.join("; "))
}

/// Escapes and shortens a text that a registry may have written, so that a terminal can show it.
fn printable(text: &str) -> String {
    text.escape_debug().take(SHOWN_CHARS).collect()
}

/// Wraps the end of a stream before its announced length.
pub(super) fn unexpected_end() -> OciDistributionError {
    io::Error::from(io::ErrorKind::UnexpectedEof).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_registries_are_short_and_without_controls() {
        let shown = describe(&OciDistributionError::AuthenticationFailure("\u{1b}[2J".repeat(1000)));
        assert_eq!(shown.chars().count(), SHOWN_CHARS);
        assert!(!shown.contains('\u{1b}'), "{shown}");
    }
}
