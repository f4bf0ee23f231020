//! An error with its causes, as people and programs read it.

use std::error;

/// The parts of an error's message, of all its causes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// What failed and why, in one line.
    pub message: String,
    /// What was found, if the message says so.
    pub found: Option<String>,
    /// What was expected, if the message says so.
    pub expected: Option<String>,
    /// The remedies.
    pub hints: Vec<String>,
}

impl Report {
    /// Takes an error and its causes apart.
    #[must_use]
    pub fn new(error: &(dyn error::Error + 'static)) -> Self {
        let mut report = Self::default();
        let mut next = Some(error);
        while let Some(error) = next {
            report.add(&error.to_string());
            next = error.source();
        }
        report
    }

    /// Takes a message apart.
    #[must_use]
    pub fn of_text(text: &str) -> Self {
        let mut report = Self::default();
        report.add(text);
        report
    }

    /// Adds the text of an error or of its next cause.
    fn add(&mut self, text: &str) {
        let (head, hint) = text.split_once("\nhint: ").unwrap_or((text, ""));
        if !self.message.is_empty() {
            self.message.push_str(": ");
        }
        self.message.push_str(head);
        if !hint.is_empty() {
            self.hints.push(hint.to_owned());
        }
        if self.expected.is_none()
            && let Some((before, expected)) = head.split_once(", expected ")
        {
            self.expected = Some(expected.to_owned());
            let found = before.split_once("found ").or_else(|| before.rsplit_once(" is "));
            self.found = found.map(|(_, found)| found.to_owned());
        }
    }
}

/// Renders an error for a terminal: the message with its causes in one line, then all hints.
#[must_use]
pub fn report(error: &(dyn error::Error + 'static)) -> String {
    let Report { message, hints, .. } = Report::new(error);
    hints.iter().fold(format!("error: {message}"), |text, hint| text + "\nhint: " + hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_and_expected_is_read_from_the_message() {
        let text = "argument 1 \"x\": found f32[2], expected f32[3]\nhint: convert it before the call";
        assert_eq!(
            Report::of_text(text),
            Report {
                message: "argument 1 \"x\": found f32[2], expected f32[3]".into(),
                found: Some("f32[2]".into()),
                expected: Some("f32[3]".into()),
                hints: vec!["convert it before the call".into()],
            }
        );
        let Report { found, expected, hints, .. } = Report::of_text("top_p is 2, expected at most 1");
        assert_eq!((found.as_deref(), expected.as_deref(), hints.len()), (Some("2"), Some("at most 1"), 0));
    }
}
