//! Errors as C sees them.

use std::ffi::CString;

use mlxcel_artifacts::{Error as BundleError, Report};
use mlxcel_runtime::{EngineError, Error as RunError};

/// What kind of error it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub enum Code {
    /// There is none.
    None = 0,
    /// A handle is NULL, closed or of another kind, or another argument cannot be what it is.
    Usage = 1,
    /// The call is for another thread, or another thread is in a call that excludes it.
    Thread = 2,
    /// A bundle cannot be found or read, or is damaged.
    Bundle = 3,
    /// The bundle is not signed as required.
    Signature = 4,
    /// No target of the bundle runs on the device.
    Device = 5,
    /// A request or an argument of a function is refused. Nothing has run.
    Request = 6,
    /// As many requests wait as may wait.
    QueueFull = 7,
    /// The device failed while it ran.
    Engine = 8,
    /// The engine was closed.
    Closed = 9,
    /// This library failed: please report it.
    Internal = 10,
}

/// Why a call failed.
#[derive(Debug)]
pub(crate) enum Problem {
    /// A handle stands for nothing of the kind.
    Handle { found: &'static str, expected: &'static str },
    /// Another argument cannot be used.
    Argument(String),
    /// The call is not for this thread, or not now.
    Thread(String),
    /// A bundle's error.
    Bundle(BundleError),
    /// An error of running it.
    Run(RunError),
    /// A panic.
    Internal,
}

/// An error that C holds. Its texts live as long as it does.
#[derive(Debug)]
pub(crate) struct HeldError {
    pub(crate) code: Code,
    pub(crate) message: CString,
    pub(crate) found: Option<CString>,
    pub(crate) expected: Option<CString>,
    pub(crate) hint: Option<CString>,
}

impl Problem {
    /// Returns the parts of the message.
    pub(crate) fn report(&self) -> Report {
        match self {
            Self::Handle { found, expected } => {
                Report::of_text(&format!("found {found}, expected {expected}"))
            }
            Self::Argument(text) | Self::Thread(text) => Report::of_text(text),
            Self::Bundle(error) => Report::new(error),
            Self::Run(error) => {
                let mut report = Report::new(error);
                if let Some(hint) = hint(error) {
                    report.hints = vec![hint.to_owned()];
                }
                report
            }
            Self::Internal => Report::of_text(
                "the library failed, expected no panic\nhint: report it with its text on stderr",
            ),
        }
    }

    fn code(&self) -> Code {
        match self {
            Self::Handle { .. } | Self::Argument(_) => Code::Usage,
            Self::Thread(_) => Code::Thread,
            Self::Bundle(BundleError::Signature { .. })
            | Self::Run(RunError::Bundle(BundleError::Signature { .. })) => Code::Signature,
            Self::Bundle(_) => Code::Bundle,
            Self::Run(error) => code(error),
            Self::Internal => Code::Internal,
        }
    }

    /// Makes the error that C holds.
    pub(crate) fn held(&self) -> HeldError {
        let Report { message, found, expected, hints } = self.report();
        let hint = (!hints.is_empty()).then(|| hints.join("\n"));
        let text = |text: String| CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default();
        HeldError {
            code: self.code(),
            message: text(message),
            found: found.map(text),
            expected: expected.map(text),
            hint: hint.map(text),
        }
    }
}

/// Returns the remedy, where an error's own names options of programs.
fn hint(error: &RunError) -> Option<&'static str> {
    match error {
        RunError::NoChatTemplate(_) => Some("give prompt or tokens in place of messages_json"),
        RunError::ChatTemplate(_) => {
            Some("give messages_json as the template takes it, or prompt or tokens in its place")
        }
        _ => None,
    }
}

fn code(error: &RunError) -> Code {
    match error {
        RunError::NoTargetFor { .. }
        | RunError::NoTarget { .. }
        | RunError::Device { .. }
        | RunError::BuiltWithoutIree
        | RunError::Allocate { .. } => Code::Device,
        RunError::Engine(EngineError::QueueFull { .. }) => Code::QueueFull,
        RunError::Engine(EngineError::Closed) => Code::Closed,
        RunError::Engine(
            EngineError::StepFailed { .. } | EngineError::Stopped { .. } | EngineError::DeviceLost { .. },
        )
        | RunError::Iree { .. } => Code::Engine,
        RunError::Engine(_)
        | RunError::Program(_)
        | RunError::NoTokens
        | RunError::TokenOutOfRange { .. }
        | RunError::TooLong { .. }
        | RunError::Text { .. }
        | RunError::BadSampling { .. }
        | RunError::ContextSize { .. }
        | RunError::OnlyEmbedding { .. }
        | RunError::NoEmbedding { .. }
        | RunError::Tokenizer { .. }
        | RunError::NoTokenizer(_)
        | RunError::NoChatTemplate(_)
        | RunError::ChatTemplate(_) => Code::Request,
        _ => Code::Bundle,
    }
}

impl From<RunError> for Problem {
    fn from(error: RunError) -> Self {
        Self::Run(error)
    }
}

impl From<BundleError> for Problem {
    fn from(error: BundleError) -> Self {
        Self::Bundle(error)
    }
}

impl From<EngineError> for Problem {
    fn from(error: EngineError) -> Self {
        Self::Run(error.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chat_that_cannot_be_rendered_is_a_refused_request() {
        for error in [
            RunError::ChatTemplate("invalid operation: roles must alternate".into()),
            RunError::NoChatTemplate("my.bundle".into()),
        ] {
            let held = Problem::from(error).held();
            assert_eq!(held.code, Code::Request);
            let hint = held.hint.unwrap().into_string().unwrap();
            assert!(hint.contains("messages_json") && !hint.contains("--"), "{hint}");
        }
    }
}
