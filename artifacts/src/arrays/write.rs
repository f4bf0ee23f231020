//! Writing files of tensors.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Write as _},
    path::Path,
};

use super::{
    dtypes,
    error::{Problem, TensorFileError},
    npy, npz,
    value::Tensor,
};
use crate::{files::parent, safetensors::safetensors_prefix};

/// The remedy if a file cannot hold the tensors.
const NAMED: &str = "use a name that ends in .npz or .safetensors";

/// Writes tensors by name to an npz or safetensors file, or one tensor to an npy file. The end of the path says which.
///
/// The file appears when it is whole.
///
/// # Errors
/// The path has another end, an npy file cannot hold the tensors, or the file cannot be written.
pub fn write_tensors(path: &Path, tensors: &BTreeMap<String, Tensor>) -> Result<(), TensorFileError> {
    let extension = path.extension().and_then(|end| end.to_str()).unwrap_or_default();
    let refused = |text: String| Err(Problem::unsupported(text, NAMED).at(path));
    let write: &dyn Fn(&mut File) -> io::Result<()> = match (extension, tensors.values().next()) {
        ("npz", _) => &|to| npz::write(tensors, to, path),
        ("safetensors", _) => &|to| to.write_all(&safetensors_bytes(tensors)?),
        ("npy", Some(tensor)) if tensors.len() == 1 => {
            if let Some(name) = dtypes::suffix(tensor.dtype()) {
                return refused(format!("found a tensor of {name}, expected a type that numpy has"));
            }
            &|to| npy::write(tensor, to)
        }
        ("npy", _) => {
            return refused(format!("found {} tensors, expected one in an npy file", tensors.len()));
        }
        _ => return refused("found another end of the name, expected npy, npz or safetensors".into()),
    };
    let io = |error| TensorFileError::io(path, "write it", error);
    let Ok(folder) = parent(path) else {
        return refused("found no name of a file".into());
    };
    let staging = tempfile::tempdir_in(folder).map_err(io)?;
    let staged = staging.path().join("tensors");
    let mut file = File::create(&staged).map_err(io)?;
    write(&mut file).and_then(|()| fs::rename(&staged, path)).map_err(io)
}

/// Returns the bytes of a safetensors file with these tensors.
///
/// # Errors
/// Their sizes overflow, which those of tensors in memory do not.
pub fn safetensors_bytes(tensors: &BTreeMap<String, Tensor>) -> io::Result<Vec<u8>> {
    let types = tensors.iter().map(|(name, tensor)| (name.as_str(), tensor.dtype(), tensor.shape()));
    let mut bytes = safetensors_prefix(types).map_err(io::Error::other)?;
    tensors.values().for_each(|tensor| bytes.extend_from_slice(tensor.bytes()));
    Ok(bytes)
}
