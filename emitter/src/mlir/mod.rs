//! Reads MLIR's text: names, values of attributes, types.

pub(crate) mod attributes;
pub(crate) mod cursor;
