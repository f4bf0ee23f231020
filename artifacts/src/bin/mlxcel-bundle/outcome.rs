//! The result of a command.

/// What a command prints to stdout, and its exit status.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) text: String,
    pub(crate) status: u8,
}

impl From<String> for Outcome {
    fn from(text: String) -> Self {
        Self { text, status: 0 }
    }
}
