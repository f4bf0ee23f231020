//! Receipts in files.

use std::path::Path;

use mlxcel_artifacts::{Links, read_limited};
use serde::Deserialize as _;
use serde_json::Value;

use super::{
    document::{Receipt, VERSION},
    error::ReceiptError,
};

/// The longest file with receipts.
pub const MAX_BYTES: u64 = 64 << 20;

/// What the data of an event begins with, in a stream that was saved.
const EVENT: &[u8] = b"data: ";

/// Reads the receipts of a file, which is a receipt or an answer that has one or several, streamed or not. Checks their
/// hashes.
///
/// # Errors
/// The file cannot be read or has no receipt, or the parts of one do not fit together.
pub fn read(path: &Path) -> Result<Vec<Receipt>, ReceiptError> {
    let bytes = read_limited(path, MAX_BYTES, Links::Follow);
    let bytes = bytes.map_err(|error| ReceiptError::Read { path: path.into(), source: error.into() })?;
    parse(&bytes)
}

/// Parses the receipts of a text; see [`read`].
pub(super) fn parse(text: &[u8]) -> Result<Vec<Receipt>, ReceiptError> {
    let mut events = text.split(|&byte| byte == b'\n').filter_map(|line| line.strip_prefix(EVENT)).peekable();
    let found = match events.peek() {
        None => find(text)?,
        Some(_) => events.find_map(|event| find(event).ok()).ok_or(ReceiptError::Missing)?,
    };
    found.into_iter().map(receipt).collect()
}

/// Finds the receipts of an answer, or of an event of a stream.
fn find(text: &[u8]) -> Result<Vec<Value>, ReceiptError> {
    let value = serde_json::from_slice(text).map_err(|error| ReceiptError::Text(error.to_string()))?;
    let Value::Object(mut object) = value else { return Err(ReceiptError::Missing) };
    let found = match (object.remove("receipt"), object.remove("receipts")) {
        (Some(receipt), None) => vec![receipt],
        (None, Some(Value::Array(receipts))) if !receipts.is_empty() => receipts,
        (None, None) if object.contains_key("version") => vec![Value::Object(object)],
        _ => return Err(ReceiptError::Missing),
    };
    Ok(found)
}

fn receipt(value: Value) -> Result<Receipt, ReceiptError> {
    // A later version has other fields.
    match value.get("version") {
        Some(version) if *version == VERSION => {}
        Some(found) if found.is_u64() => {
            return Err(ReceiptError::Version { found: found.clone(), expected: VERSION });
        }
        _ => return Err(ReceiptError::Missing),
    }
    let receipt = Receipt::deserialize(value).map_err(|error| ReceiptError::Text(error.to_string()))?;
    receipt.check()?;
    Ok(receipt)
}
