//! Values of the metadata.

use std::fmt;

use serde_json::{Number, Value};

/// A value of the metadata.
#[derive(Debug, Clone, PartialEq)]
pub enum MetadataValue {
    /// A whole number of any size and sign.
    Integer(i128),
    /// A floating-point number.
    Float(f64),
    /// True or false.
    Bool(bool),
    /// A text.
    Text(String),
    /// Values of one kind.
    List(Vec<Self>),
}

impl MetadataValue {
    /// Returns the value as JSON; null for numbers that JSON does not have.
    #[must_use]
    pub fn to_json(&self) -> Value {
        match self {
            Self::Integer(number) => {
                let unsigned = u64::try_from(*number).map(Number::from);
                let number = unsigned.or_else(|_| i64::try_from(*number).map(Number::from));
                number.map_or(Value::Null, Value::Number)
            }
            Self::Float(number) => {
                #[expect(clippy::cast_possible_truncation, reason = "compared with the number itself")]
                let single = *number as f32;
                // An f32 that came from a decimal fraction becomes that fraction again.
                let decimal = single.to_string().parse::<f64>().ok().filter(|_| f64::from(single) == *number);
                Number::from_f64(decimal.unwrap_or(*number)).map_or(Value::Null, Value::Number)
            }
            Self::Bool(flag) => Value::Bool(*flag),
            Self::Text(text) => Value::String(text.clone()),
            Self::List(values) => Value::Array(values.iter().map(Self::to_json).collect()),
        }
    }
}

impl fmt::Display for MetadataValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(number) => write!(f, "{number}"),
            Self::Float(number) => write!(f, "{number:?}"),
            Self::Bool(flag) => write!(f, "{flag}"),
            Self::Text(text) => write!(f, "{:?}", text.chars().take(100).collect::<String>()),
            Self::List(values) => write!(f, "a list of {} values", values.len()),
        }
    }
}
