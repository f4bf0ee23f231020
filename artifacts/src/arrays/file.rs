//! Files of tensors: npy, npz and safetensors, known by what they begin with.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::Read as _,
    path::{Path, PathBuf},
};

use safetensors::Dtype;

use super::{
    error::{Problem, TensorFileError},
    npy::{self, Header},
    npz, safetensors_file,
    value::Tensor,
};

/// A file of tensors whose names and types are known. Elements are read when they are asked for, so that a caller can refuse
/// types before memory is taken for them.
#[derive(Debug)]
pub struct TensorFile {
    path: PathBuf,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Npy(Header),
    Npz(BTreeMap<String, npz::Member>),
    Safetensors(BTreeMap<String, safetensors_file::Place>),
}

impl TensorFile {
    /// Opens an npy, npz or safetensors file and reads what it says about its tensors.
    ///
    /// # Errors
    /// The file cannot be read, is in another format, or is damaged.
    pub fn open(path: &Path) -> Result<Self, TensorFileError> {
        let io = |error| TensorFileError::io(path, "read it", error);
        // Checked before opening, because opening a pipe waits for its writer.
        let found = fs::metadata(path).map_err(io)?;
        if !found.is_file() {
            return Err(Problem::unsupported("is not a regular file", "name a file of tensors").at(path));
        }
        let open = || File::open(path).map_err(io);
        let mut magic = Vec::new();
        open()?.take(npy::MAGIC.len() as u64).read_to_end(&mut magic).map_err(io)?;
        let content = if magic == npy::MAGIC {
            npy_header(&mut open()?, found.len()).map(Content::Npy)
        } else if npz::MAGICS.iter().any(|known| magic.starts_with(known)) {
            npz::members(open()?).map(Content::Npz)
        } else {
            safetensors_file::places(open()?, found.len()).map(Content::Safetensors)
        };
        let content = content.map_err(|problem| problem.at(path))?;
        Ok(Self { path: path.to_path_buf(), content })
    }

    /// Returns the file's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether the tensors have names. An npy file has one without.
    #[must_use]
    pub fn has_names(&self) -> bool {
        !matches!(self.content, Content::Npy(_))
    }

    /// Returns name, element type and shape of every tensor, sorted by name.
    #[must_use]
    pub fn tensors(&self) -> Vec<(&str, Dtype, &[usize])> {
        match &self.content {
            Content::Npy(header) => vec![("", header.dtype, &header.shape)],
            Content::Npz(members) => members
                .iter()
                .map(|(name, member)| (name.as_str(), member.header.dtype, member.header.shape.as_slice()))
                .collect(),
            Content::Safetensors(places) => places
                .iter()
                .map(|(name, place)| (name.as_str(), place.dtype, place.shape.as_slice()))
                .collect(),
        }
    }

    /// Reads a tensor. That of an npy file has an empty name.
    ///
    /// # Errors
    /// There is no such tensor, or the file is damaged.
    pub fn read(&self, name: &str) -> Result<Tensor, TensorFileError> {
        let file =
            || File::open(&self.path).map_err(|error| TensorFileError::io(&self.path, "read it", error));
        let missing = || Problem::damaged("found no such tensor");
        let read = match &self.content {
            Content::Npy(header) => {
                let mut file = file()?;
                npy_header(&mut file, u64::MAX).and_then(|_| header.read_data(&mut file))
            }
            Content::Npz(members) => match members.get(name) {
                Some(member) => npz::read(file()?, member),
                None => Err(missing()),
            },
            Content::Safetensors(places) => match places.get(name) {
                Some(place) => safetensors_file::read(file()?, place),
                None => Err(missing()),
            },
        };
        read.map_err(|problem| if name.is_empty() { problem } else { problem.of(name) }.at(&self.path))
    }
}

/// Reads the header of an npy file of `found` bytes.
fn npy_header(file: &mut File, found: u64) -> Result<Header, Problem> {
    let header = Header::read(file, None)?;
    let expected = header.length as u64 + header.data_bytes() as u64;
    if found != expected && found != u64::MAX {
        return Err(Problem::damaged(format!("found {found} bytes, expected {expected} by its header")));
    }
    Ok(header)
}
