//! Why a config.json gives no description.

use serde_json::Value;

/// Why a config.json gives no description. Every message names the key, what was found and what is expected; a remedy,
/// where there is one, follows on a `hint:` line of its own.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is not JSON.
    #[error("{file} is not valid JSON")]
    Syntax {
        /// Which text.
        file: &'static str,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// A key without a default is not there.
    #[error("`{key}` is missing from config.json, expected {expected}{}", line(hint))]
    Missing {
        /// The key, with the objects it lies in: `rope_scaling.factor`.
        key: String,
        /// What should be there.
        expected: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// A value that no checkpoint can mean: of the wrong type, out of range, or at odds with another.
    #[error("`{key}` is {found}, expected {expected}{}", line(hint))]
    Invalid {
        /// The key, with the objects it lies in.
        key: String,
        /// The value, as JSON.
        found: String,
        /// What could be there.
        expected: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// A value that means something which a [`crate::ModelConfig`] cannot express exactly.
    #[error("`{key}` is {found}, which is not supported, expected {supported}{}", line(hint))]
    Unsupported {
        /// The key, with the objects it lies in.
        key: String,
        /// The value, as JSON.
        found: String,
        /// The values that are supported.
        supported: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// All sizes are in range and the model is still beyond any machine.
    #[error("config.json describes a model of {parameters} parameters, expected at most {limit}")]
    TooLarge {
        /// How many there are, or `u64::MAX` where that does not fit.
        parameters: u64,
        /// How many there may be.
        limit: u64,
    },
}

impl Error {
    /// The same error with a remedy.
    #[must_use]
    pub(crate) fn with_hint(mut self, remedy: impl Into<String>) -> Self {
        match &mut self {
            Self::Missing { hint, .. } | Self::Invalid { hint, .. } | Self::Unsupported { hint, .. } => {
                *hint = Some(remedy.into());
            }
            Self::Syntax { .. } | Self::TooLarge { .. } => {}
        }
        self
    }
}

fn line(hint: &Option<String>) -> String {
    hint.as_ref().map(|hint| format!("\nhint: {hint}")).unwrap_or_default()
}

/// A value of a config.json as a message shows it: JSON, cut where it is long, and with nothing that a terminal acts on.
pub(crate) fn shown(value: &Value) -> String {
    const LONGEST: usize = 80;
    let json = value.to_string();
    let mut text = String::new();
    for (count, c) in json.chars().enumerate() {
        if count == LONGEST {
            text.push('…');
            break;
        }
        // JSON escapes the first 32 control characters itself; this is for DEL and the C1 set.
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
    fn a_value_is_shown_cut_and_harmless() {
        assert_eq!(shown(&Value::from("a\u{1b}[2J\u{9b}")), r#""a\u001b[2J\u{9b}""#);
        let long = shown(&Value::from("ä".repeat(500)));
        assert_eq!(long.chars().count(), 81);
        assert!(long.ends_with('…'));
    }

    #[test]
    fn a_hint_has_its_own_line() {
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
