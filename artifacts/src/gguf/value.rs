//! Values of the metadata.

use std::fmt;

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
