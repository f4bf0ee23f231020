//! Safetensors files as a source of tensors.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{Read as _, Seek as _, SeekFrom},
};

use safetensors::Dtype;

use super::{error::Problem, value::Tensor};
use crate::safetensors::{HEADER_LIMIT_BYTES, safetensors_header};

/// A tensor in a safetensors file.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) dtype: Dtype,
    pub(super) shape: Vec<usize>,
    /// Where its bytes begin, and how many there are.
    start: u64,
    length: usize,
}

/// Reads the header of a file of `found` bytes.
pub(super) fn places(mut file: File, found: u64) -> Result<BTreeMap<String, Place>, Problem> {
    let mut length = [0; 8];
    let unknown = || {
        Problem::unsupported(
            "found neither npy, npz nor safetensors",
            "write the file with numpy's save or savez, or with safetensors",
        )
    };
    file.read_exact(&mut length).map_err(|_| unknown())?;
    let length = u64::from_le_bytes(length);
    if length > HEADER_LIMIT_BYTES.min(found.saturating_sub(8)) {
        return Err(unknown());
    }
    // Fits: it is at most the limit.
    let mut header = vec![0; length as usize];
    file.read_exact(&mut header).map_err(|error| Problem::read(&error))?;
    let header = safetensors_header(&header, found).map_err(Problem::damaged)?;
    let place = |(name, info): (String, &safetensors::tensor::TensorInfo)| {
        let (from, to) = info.data_offsets;
        let (dtype, shape) = (info.dtype, info.shape.clone());
        (name, Place { dtype, shape, start: 8 + length + from as u64, length: to - from })
    };
    Ok(header.tensors().into_iter().map(place).collect())
}

/// Reads a tensor.
pub(super) fn read(mut file: File, place: &Place) -> Result<Tensor, Problem> {
    let mut bytes = vec![0; place.length];
    let read = file.seek(SeekFrom::Start(place.start)).and_then(|_| file.read_exact(&mut bytes));
    read.map_err(|error| Problem::read(&error))?;
    Tensor::new(place.dtype, &place.shape, bytes).map_err(|error| Problem::damaged(error.to_string()))
}

/// Returns the tensors of a safetensors file in memory, by name.
///
/// # Errors
/// The bytes are no such file, in words.
pub fn safetensors_tensors(bytes: &[u8]) -> Result<BTreeMap<String, Tensor>, String> {
    let found = bytes.len() as u64;
    let (length, rest) =
        bytes.split_first_chunk().ok_or_else(|| format!("found {found} bytes, expected 8 or more"))?;
    let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
    let (header, data) = rest
        .split_at_checked(length)
        .ok_or_else(|| format!("found a header of {length} bytes in {found}"))?;
    let header = safetensors_header(header, found)?;
    let mut tensors = BTreeMap::new();
    for (name, info) in header.tensors() {
        let (from, to) = info.data_offsets;
        let bytes = data.get(from..to).unwrap_or_default().to_vec();
        let tensor = Tensor::new(info.dtype, &info.shape, bytes).map_err(|error| error.to_string())?;
        tensors.insert(name, tensor);
    }
    Ok(tensors)
}
