//! Errors as Python's exceptions, which `mlxcel/errors.py` defines.

use std::error;

use mlxcel_artifacts::{Error as BundleError, Report};
use mlxcel_runtime::{EngineError, Error};
use pyo3::{prelude::*, sync::PyOnceLock};

/// The module that defines the exceptions.
static ERRORS: PyOnceLock<Py<PyModule>> = PyOnceLock::new();

/// Makes an exception of the class `class` of this message, which may have hints.
pub(crate) fn new(class: &str, message: &str) -> PyErr {
    raise(class, Report::of_text(message))
}

/// Makes an exception of an error of running a bundle.
pub(crate) fn of(error: Error) -> PyErr {
    let mut report = Report::new(&error);
    if let Some(hint) = hint(&error) {
        report.hints = vec![hint.to_owned()];
    }
    raise(class(&error), report)
}

/// Returns the remedy, where an error's own names options of programs.
fn hint(error: &Error) -> Option<&'static str> {
    match error {
        Error::OnlyEmbedding { .. } => Some("use embed"),
        Error::NoEmbedding { .. } => Some("use generate"),
        Error::NoChatTemplate(_) => Some("use generate"),
        Error::ChatTemplate(_) => Some("give messages as the template takes them, or use generate"),
        Error::NoTokenizer(_) => Some("give token ids, or weights= a folder with a tokenizer.json"),
        Error::NoTokens => Some("give a text, or at least one token id"),
        Error::NoTargetFor { .. } | Error::Device { .. } => Some("leave out device=, or name another one"),
        Error::ContextSize { .. } => Some("leave out context=, or compile the bundle with a larger one"),
        Error::Engine(EngineError::NeverFits { .. }) => {
            Some("shorten the prompt, lower max_tokens, or give a larger cache_size=")
        }
        Error::Engine(EngineError::Busy { .. }) => {
            Some("score texts when no request runs, or give a larger cache_size=")
        }
        _ => None,
    }
}

/// Makes an exception of an error of bundles and stores.
pub(crate) fn of_bundle(error: BundleError) -> PyErr {
    raise(class_of_bundle(&error), Report::new(&error))
}

/// Makes an exception of the class `class` of any error.
pub(crate) fn of_any(class: &str, error: &(dyn error::Error + 'static)) -> PyErr {
    raise(class, Report::new(error))
}

fn class_of_bundle(error: &BundleError) -> &'static str {
    match error {
        BundleError::Signature { .. } => "SignatureError",
        _ => "BundleError",
    }
}

fn class(error: &Error) -> &'static str {
    match error {
        Error::Bundle(error) => class_of_bundle(error),
        Error::NoTargetFor { .. }
        | Error::NoTarget { .. }
        | Error::Device { .. }
        | Error::BuiltWithoutIree
        | Error::Allocate { .. } => "DeviceError",
        Error::Engine(EngineError::QueueFull { .. }) => "QueueFullError",
        Error::Engine(EngineError::Closed) => "ClosedError",
        Error::Engine(
            EngineError::StepFailed { .. } | EngineError::Stopped { .. } | EngineError::DeviceLost { .. },
        )
        | Error::Iree { .. } => "EngineError",
        Error::Engine(_) | Error::Program(_) => "RequestError",
        Error::NoTokens
        | Error::TokenOutOfRange { .. }
        | Error::TooLong { .. }
        | Error::Text { .. }
        | Error::BadSampling { .. }
        | Error::ContextSize { .. }
        | Error::OnlyEmbedding { .. }
        | Error::NoEmbedding { .. }
        | Error::Tokenizer { .. }
        | Error::NoChatTemplate(_)
        | Error::ChatTemplate(_) => "RequestError",
        _ => "BundleError",
    }
}

fn raise(class: &str, report: Report) -> PyErr {
    Python::attach(|py| {
        let module = ERRORS.get_or_try_init(py, || py.import("mlxcel.errors").map(Bound::unbind));
        let Report { message, found, expected, hints } = report;
        let hint = (!hints.is_empty()).then(|| hints.join("\n"));
        let instance =
            module.and_then(|module| module.bind(py).getattr(class)?.call1((message, found, expected, hint)));
        instance.map_or_else(|error| error, PyErr::from_value)
    })
}
