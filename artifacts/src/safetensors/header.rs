//! Headers of safetensors files: reading, checking and writing them.

use std::collections::{BTreeMap, HashMap};

use safetensors::{
    Dtype, SafeTensorError,
    tensor::{Metadata, TensorInfo},
};
use serde::Deserialize as _;

use crate::tensor::{tensor_bits, type_text};

/// The longest header of a safetensors file, by the format's specification, and the longest index.
pub const HEADER_LIMIT_BYTES: u64 = 100_000_000;

/// The start of a Git LFS pointer, which lies in place of a file that was not fetched.
pub const LFS_POINTER: &[u8] = b"version https://git-lfs.github.com/spec/";

/// The alignment in bytes of tensors that IREE uses in place. It copies others.
pub const ALIGNMENT: usize = 64;

/// Returns everything of a safetensors file before its data. The data is the tensors in this order.
///
/// # Errors
/// Two tensors have one name, or sizes overflow.
pub fn safetensors_prefix<'t>(
    tensors: impl Iterator<Item = (&'t str, Dtype, &'t [usize])>,
) -> Result<Vec<u8>, SafeTensorError> {
    let mut end = 0usize;
    let mut infos = Vec::new();
    for (name, dtype, shape) in tensors {
        let start = end;
        let bytes = tensor_bits(dtype, shape).map(|bits| bits / 8);
        end = bytes.and_then(|bytes| start.checked_add(bytes)).ok_or(SafeTensorError::ValidationOverflow)?;
        infos
            .push((name.to_owned(), TensorInfo { dtype, shape: shape.to_vec(), data_offsets: (start, end) }));
    }
    // transformers requires the name of the framework.
    let about = HashMap::from([("format".to_owned(), "pt".to_owned())]);
    let header = serde_json::to_vec(&Metadata::new(Some(about), infos)?)
        .map_err(|error| SafeTensorError::IoError(error.into()))?;
    Ok(aligned_header(header))
}

/// Returns the header's length and the header, padded with spaces so that the data is aligned to [`ALIGNMENT`].
#[must_use]
pub fn aligned_header(mut header: Vec<u8>) -> Vec<u8> {
    header.resize((header.len() + 8).next_multiple_of(ALIGNMENT) - 8, b' ');
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.append(&mut header);
    file
}

/// Parses the header of a safetensors file of `found` bytes.
///
/// Every tensor's range lies in the file, and has the size of its type and shape.
///
/// # Errors
/// The problem as [`printable`] text.
pub fn safetensors_header(header: &[u8], found: u64) -> Result<Metadata, String> {
    let text = str::from_utf8(header).map_err(|error| format!("invalid UTF-8 in header: {error}"))?;
    let metadata: Metadata = serde_json::from_str(text).map_err(|error| {
        printable(&wrong_tensor(text).unwrap_or_else(|| match error.line() {
            // Line 0 is an error of valid JSON: the tensors' ranges do not fit each other.
            0 => error.to_string(),
            _ => format!("invalid JSON in header: {error}"),
        }))
    })?;
    // The library's `read_metadata` is not used, because its sum can overflow.
    let expected = metadata.data_len() as u128 + 8 + header.len() as u128;
    if u128::from(found) != expected {
        return Err(format!("found {found} bytes, expected {expected} by its header"));
    }
    Ok(metadata)
}

/// Describes the first tensor whose range does not fit its type and shape.
fn wrong_tensor(header: &str) -> Option<String> {
    let entries: BTreeMap<String, serde_json::Value> = serde_json::from_str(header).ok()?;
    entries.into_iter().filter(|(name, _)| name != "__metadata__").find_map(|(name, entry)| {
        let problem = match TensorInfo::deserialize(entry) {
            Ok(TensorInfo { dtype, shape, data_offsets: (from, to) }) => {
                let found = to.checked_sub(from)?;
                let of = type_text(dtype, &shape);
                match tensor_bits(dtype, &shape) {
                    Some(bits) if bits.div_ceil(8) == found => return None,
                    Some(bits) => format!("found {found} bytes, expected {} of {of}", bits.div_ceil(8)),
                    None => format!("found {found} bytes, expected those of {of}, more than any file has"),
                }
            }
            Err(error) => error.to_string(),
        };
        Some(format!("tensor `{name}`: {problem}"))
    })
}

/// Escapes control characters, so that text from a file cannot control the terminal.
#[must_use]
pub fn printable(text: &str) -> String {
    text.chars()
        .flat_map(|c| match c.is_control() {
            true => c.escape_debug().collect(),
            false => vec![c],
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use safetensors::SafeTensors;

    use super::*;

    #[test]
    fn a_prefix_and_the_data_are_a_file() {
        let tensors = [("b", Dtype::F32, &[2usize][..]), ("a", Dtype::I8, &[3, 1])];
        let mut file = safetensors_prefix(tensors.into_iter()).unwrap();
        assert!(file.len().is_multiple_of(ALIGNMENT));
        file.extend(1..=11);
        let read = SafeTensors::deserialize(&file).unwrap();
        assert_eq!(read.tensor("b").unwrap().data(), [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(read.tensor("a").unwrap().data(), [9, 10, 11]);
        let huge = [("a", Dtype::F32, &[usize::MAX][..])];
        assert!(safetensors_prefix(huge.into_iter()).is_err());
    }
}
