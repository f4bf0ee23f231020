//! Errors of registries and networks, in words.

use std::io;

use oci_client::errors::{DigestError, OciDistributionError, OciErrorCode};

use super::client::Registry;
use crate::error::Error;

/// The remedy for transfers that ended early.
const RESUMES: &str = "run the command again later: it resumes the transfer";

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
        Error::Registry { doing, name, hint: self.hint(&source), source: problem }
    }

    /// Returns the error of a transfer that was cancelled.
    pub(super) fn cancelled(&self, doing: &'static str) -> Error {
        Error::Registry {
            doing,
            name: self.name.clone(),
            hint: RESUMES.to_owned(),
            source: "it was cancelled".into(),
        }
    }

    fn hint(&self, error: &OciDistributionError) -> String {
        use OciErrorCode::{Denied, ManifestUnknown, NameUnknown, NotFound, Unauthorized};
        match (error_code(error), error) {
            (Some(Unauthorized | Denied), _) => format!("run `docker login {}`", self.reference.registry()),
            (Some(ManifestUnknown | NameUnknown | NotFound), _) => "check the name and the tag".to_owned(),
            (_, OciDistributionError::RequestError(error)) if error.is_connect() => {
                "check the registry's name; pass --plain-http if it has no TLS".to_owned()
            }
            _ => RESUMES.to_owned(),
        }
    }

    /// Returns the error for an artifact that is not a bundle.
    pub(super) fn not_a_bundle(&self, problem: String) -> Error {
        Error::NoArtifact { name: self.name.clone(), problem }
    }
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
        OciDistributionError::RequestError(error) => match error.status().map(|status| status.as_u16()) {
            Some(401 | 403) => Some(&OciErrorCode::Unauthorized),
            Some(404) => Some(&OciErrorCode::NotFound),
            _ => None,
        },
        _ => None,
    }
}

/// Returns whether another attempt may succeed.
pub(super) fn is_transient(error: &OciDistributionError) -> bool {
    match error {
        OciDistributionError::RequestError(_) | OciDistributionError::IoError(_) => true,
        OciDistributionError::ServerError { code, .. } => *code >= 500 || *code == 429,
        _ => false,
    }
}

/// Describes an error in one line without addresses: the registry's own text, or the root cause.
pub(super) fn describe(error: &OciDistributionError) -> String {
    match error {
        OciDistributionError::RegistryError { envelope, .. } => {
            let messages: Vec<_> = envelope.errors.iter().map(|error| error.message.as_str()).collect();
            format!("the registry reports: {}", printable(&messages.join("; ")))
        }
        OciDistributionError::ServerError { code, .. } => format!("the registry answered {code}"),
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
