//! Values of the metadata.

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
