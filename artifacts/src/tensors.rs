//! The start of a safetensors file, such that its data can be used where it lies.

use std::collections::HashMap;

use safetensors::{
    Dtype, SafeTensorError,
    tensor::{Metadata, TensorInfo},
};

/// What tensors on a device need their place in memory to be a multiple of, in bytes: else IREE copies them.
pub const ALIGNMENT: usize = 64;

/// Everything of a safetensors file before its data, which is the tensors in this order.
///
/// # Errors
/// When two have one name, or sizes overflow.
pub fn safetensors_prefix<'t>(
    tensors: impl Iterator<Item = (&'t str, Dtype, &'t [usize])>,
) -> Result<Vec<u8>, SafeTensorError> {
    let mut end = 0usize;
    let mut infos = Vec::new();
    for (name, dtype, shape) in tensors {
        let start = end;
        let elements = shape.iter().try_fold(1usize, |product, &size| product.checked_mul(size));
        let bytes = elements.and_then(|elements| elements.checked_mul(dtype.bitsize())).map(|bits| bits / 8);
        end = bytes.and_then(|bytes| start.checked_add(bytes)).ok_or(SafeTensorError::ValidationOverflow)?;
        infos
            .push((name.to_owned(), TensorInfo { dtype, shape: shape.to_vec(), data_offsets: (start, end) }));
    }
    // transformers refuses a file that does not name its framework.
    let about = HashMap::from([("format".to_owned(), "pt".to_owned())]);
    let header = serde_json::to_vec(&Metadata::new(Some(about), infos)?)
        .map_err(|error| SafeTensorError::IoError(error.into()))?;
    Ok(aligned_header(header))
}

/// A safetensors file up to its data: the header's length, and the header with spaces at its end that bring the data to a
/// multiple of [`ALIGNMENT`].
#[must_use]
pub fn aligned_header(mut header: Vec<u8>) -> Vec<u8> {
    header.resize((header.len() + 8).next_multiple_of(ALIGNMENT) - 8, b' ');
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.append(&mut header);
    file
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
