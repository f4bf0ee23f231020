//! Errors of the engine whose cause is a device that is gone.

use super::{EngineError, Error, SharedCause};

impl EngineError {
    /// Returns the error of requests whose step failed.
    pub(crate) fn of_step(requests: usize, source: &SharedCause) -> Self {
        Self::lost(source).unwrap_or_else(|| Self::StepFailed { requests, source: source.clone() })
    }

    /// Returns the error of requests after the last step, when so many have failed.
    pub(crate) fn of_stop(failures: usize, source: &SharedCause) -> Self {
        Self::lost(source).unwrap_or_else(|| Self::Stopped { failures, source: source.clone() })
    }

    /// Returns the cause of failed steps if no further one can succeed.
    pub(crate) fn lost(cause: &SharedCause) -> Option<Self> {
        match cause.downcast_ref()? {
            Error::Engine(lost @ Self::DeviceLost { .. }) => Some(lost.clone()),
            _ => None,
        }
    }
}
