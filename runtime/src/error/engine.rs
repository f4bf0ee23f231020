//! Errors of the engine.

use std::{error, sync::Arc};

/// The cause of several errors at once, because several requests share a step.
pub type SharedCause = Arc<dyn error::Error + Send + Sync>;

/// An error of the engine.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The request needs more pages than there are.
    #[error(
        "the request needs {needed} pages{}, expected at most {pages}\n\
         hint: shorten the prompt, lower the largest number of tokens, or give a larger --cache-size",
        of_window(*window)
    )]
    NeverFits {
        /// The window of the pool that is too small.
        window: Option<usize>,
        /// Pages that the request needs.
        needed: usize,
        /// Pages that the pool has.
        pages: usize,
    },

    /// As many requests wait as may wait.
    #[error(
        "the queue is full: {waiting} requests wait, expected fewer than {limit}\n\
         hint: submit the request again when another one has ended, or let more wait"
    )]
    QueueFull {
        /// Requests that wait.
        waiting: usize,
        /// Requests that may wait.
        limit: usize,
    },

    /// Requests that run have the pages that a text needs which is scored.
    #[error(
        "{running} requests run and have the pages that the text needs, expected enough free ones\n\
         hint: score texts when no request runs, or give a larger --cache-size"
    )]
    Busy {
        /// Requests that run.
        running: usize,
    },

    /// A text has no token whose log-probability is wanted.
    #[error(
        "{tokens} tokens from number {} on, expected a token after another one\nhint: give a text of at least 2 tokens",
        from + 1
    )]
    NothingToScore {
        /// The index of the first token that is wanted.
        from: usize,
        /// Tokens of the text.
        tokens: usize,
    },

    /// The work was cancelled.
    #[error("cancelled, expected to end by itself\nhint: submit it again")]
    Cancelled,

    /// A setting of speculation is out of its range.
    #[error(
        "{name} is {value}, expected {expected}\nhint: ngram_min 2, ngram_max 4 and draft_max 8 suit most texts"
    )]
    BadSpeculation {
        /// The setting.
        name: &'static str,
        /// Its value.
        value: usize,
        /// The range.
        expected: String,
    },

    /// A bias or a penalty is out of its range.
    #[error(
        "{name} is {value}, expected {expected}\nhint: 0 adds nothing, and a repetition penalty of 1 changes nothing"
    )]
    BadChange {
        /// The setting.
        name: &'static str,
        /// Its value.
        value: f32,
        /// The range.
        expected: &'static str,
    },

    /// A bias is for a token that does not exist.
    #[error("a logit bias is for the token {token}, expected 0 to {}\nhint: tokenize a text to see its ids", vocab - 1)]
    BiasedToken {
        /// The id.
        token: u32,
        /// The size of the vocabulary.
        vocab: usize,
    },

    /// The grammar of an answer cannot be used.
    #[error("the grammar cannot be used: {problem}\nhint: correct or simplify the grammar or schema")]
    Grammar {
        /// What is wrong.
        problem: String,
    },

    /// A model has limits that no request can be run with.
    #[error(
        "the model's limits: {found}, expected {expected}\nhint: compile the bundle again with this version"
    )]
    BadLimits {
        /// The limit that is wrong.
        found: String,
        /// What the engine needs.
        expected: &'static str,
    },

    /// The step that a request was part of failed.
    #[error(
        "a step of {requests} request{} failed\nhint: submit the request again",
        if *requests == 1 { "" } else { "s" }
    )]
    StepFailed {
        /// Requests in the step.
        requests: usize,
        /// The device's answer.
        source: SharedCause,
    },

    /// The device returned another number of rows than were selected.
    #[error(
        "the device returned {found} rows, expected {expected}\nhint: compile the bundle again with this version"
    )]
    WrongRows {
        /// Rows returned.
        found: usize,
        /// Rows selected.
        expected: usize,
    },

    /// Too many steps failed one after another.
    #[error("{failures} steps failed one after another: the engine has stopped\nhint: load the model again")]
    Stopped {
        /// Steps that failed.
        failures: usize,
        /// The device's last answer.
        source: SharedCause,
    },

    /// The device is gone: what is on it is lost, and it answers nothing more to this process.
    #[error(
        "{device} is lost, expected a device that answers\n\
         hint: sudo dmesg | grep Xid shows what NVIDIA's driver noted; load the model again, or on another --device"
    )]
    DeviceLost {
        /// The device.
        device: String,
        /// Its driver's answer.
        source: SharedCause,
    },

    /// The engine's thread has ended.
    #[error("the engine's thread has ended\nhint: start another EngineThread")]
    Closed,
}

/// Returns the words that name a pool in a message.
fn of_window(window: Option<usize>) -> String {
    window.map_or(String::new(), |window| format!(" of layers with a window of {window}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_the_pool_and_the_numbers() {
        let message = |window| EngineError::NeverFits { window, needed: 9, pages: 4 }.to_string();
        let hint =
            "hint: shorten the prompt, lower the largest number of tokens, or give a larger --cache-size";
        assert_eq!(message(None), format!("the request needs 9 pages, expected at most 4\n{hint}"));
        assert_eq!(
            message(Some(512)),
            format!("the request needs 9 pages of layers with a window of 512, expected at most 4\n{hint}")
        );
    }
}
