//! Errors of reading a config.json or the files of sentence-transformers.

use serde_json::Value;

/// An error in a config.json or in the files of sentence-transformers.
///
/// Every message names the key, the value found and the values expected. Hints follow on `hint:` lines of their own.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is not JSON.
    #[error("{file} is not valid JSON")]
    Syntax {
        /// Name of the file.
        file: &'static str,
        /// Error of the JSON parser.
        source: serde_json::Error,
    },
    /// A required key is absent.
    #[error("`{key}` is missing from {file}, expected {expected}{}", line(hint))]
    Missing {
        /// Path of the key, such as `rope_scaling.factor`.
        key: String,
        /// The file, such as config.json.
        file: &'static str,
        /// Expected value.
        expected: String,
        /// What to do about the error.
        hint: Option<String>,
    },
    /// A value of the wrong type, out of range, or in conflict with another value.
    #[error("`{key}` is {found}, expected {expected}{}", line(hint))]
    Invalid {
        /// Path of the key.
        key: String,
        /// Value as JSON.
        found: String,
        /// Values that are accepted.
        expected: String,
        /// What to do about the error.
        hint: Option<String>,
    },
    /// A valid value that a [`ModelConfig`](crate::ModelConfig) cannot express exactly.
    #[error("`{key}` is {found}, which is not supported, expected {supported}{}", line(hint))]
    Unsupported {
        /// Path of the key.
        key: String,
        /// Value as JSON.
        found: String,
        /// Values that are supported.
        supported: String,
        /// What to do about the error.
        hint: Option<String>,
    },
    /// A model with more parameters than any machine can hold, although every size is in range.
    #[error("config.json describes a model of {parameters} parameters, expected at most {limit}")]
    TooLarge {
        /// Number of parameters, or `u64::MAX` on overflow.
        parameters: u64,
        /// Largest number of parameters that is accepted.
        limit: u64,
    },
}

impl Error {
    /// Adds a hint to the error.
    #[must_use]
    pub(crate) fn with_hint(mut self, text: impl Into<String>) -> Self {
        match &mut self {
            Self::Missing { hint, .. } | Self::Invalid { hint, .. } | Self::Unsupported { hint, .. } => {
                *hint = Some(text.into());
            }
            Self::Syntax { .. } | Self::TooLarge { .. } => {}
        }
        self
    }
}

fn line(hint: &Option<String>) -> String {
    hint.as_ref().map(|hint| format!("\nhint: {hint}")).unwrap_or_default()
}

/// Returns a value of a config.json as messages display it: JSON, truncated, without control characters.
pub(crate) fn displayed(value: &Value) -> String {
    const LONGEST: usize = 80;
    let json = value.to_string();
    let mut text = String::new();
    for (count, c) in json.chars().enumerate() {
        if count == LONGEST {
            text.push('…');
            break;
        }
        // JSON escapes only the first 32 control characters, not DEL and the C1 set.
        if c.is_control() {
            text.extend(c.escape_unicode());
        } else {
            text.push(c);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn displayed_values_are_truncated_and_escaped() {
        assert_eq!(displayed(&Value::from("a\u{1b}[2J\u{9b}")), r#""a\u001b[2J\u{9b}""#);
        let long = displayed(&Value::from("ä".repeat(500)));
        assert_eq!(long.chars().count(), 81);
        assert!(long.ends_with('…'));
    }

    #[test]
    fn hints_have_their_own_line() {
        let error = Error::Unsupported {
            key: "pretraining_tp".into(),
            found: "2".into(),
            supported: "1".into(),
            hint: None,
        }
        .with_hint("set it to 1");
        assert_eq!(
            error.to_string(),
            "`pretraining_tp` is 2, which is not supported, expected 1\nhint: set it to 1"
        );
    }
}
