//! A file with tensors, safetensors or GGUF: its header, digests of its tensors, and the file as a bundle contains it.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{BufReader, Cursor, Read, Seek as _, SeekFrom},
    ops::Range,
    path::{Path, PathBuf},
};

use mlxcel_artifacts::{
    Cancel, Digest, GGUF_MAGIC, GgufError, GgufHeader, HEADER_LIMIT_BYTES, LFS_POINTER, aligned_header,
    safetensors_header,
};
use safetensors::Dtype;

use crate::error::Error;

/// The ending of names of GGUF files.
pub(super) const GGUF_EXTENSION: &str = "gguf";

/// Returns whether a path names a GGUF file.
pub(crate) fn is_gguf(path: &Path) -> bool {
    path.extension().is_some_and(|end| end.eq_ignore_ascii_case(GGUF_EXTENSION))
}

/// The most bytes of a tensor whose contents are read while a model is described.
pub(super) const SMALL_BYTES: u64 = 1 << 20;

/// A file whose header was checked against the file's length.
pub(crate) struct TensorFile {
    path: PathBuf,
    file: File,
    header: Header,
    tensors: BTreeMap<String, FileTensor>,
}

/// The header of a file.
enum Header {
    /// Its bytes.
    Safetensors(Vec<u8>),
    Gguf(GgufHeader),
}

/// A tensor of a file.
#[derive(Debug, Clone)]
pub(crate) struct FileTensor {
    pub(crate) dtype: Dtype,
    pub(crate) shape: Vec<usize>,
    /// Its bytes in the file.
    range: Range<u64>,
}

impl TensorFile {
    /// Opens a file and reads its header.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let damaged = |reason: String| Error::Damaged { path: path.to_owned(), reason };
        let mut file = File::open(path).map_err(Error::io("read", path))?;
        let found = file.metadata().map_err(Error::io("read", path))?.len();
        if found < 8 {
            return Err(damaged(format!("found {found} bytes, expected at least 8")));
        }
        let mut length = [0; 8];
        file.read_exact(&mut length).map_err(Error::io("read", path))?;
        if length.starts_with(GGUF_MAGIC) {
            return Self::open_gguf(path, file, found);
        }
        if length == LFS_POINTER[..8] {
            return Err(damaged(
                "it is a pointer of Git LFS, which `git lfs pull` replaces, expected tensors".into(),
            ));
        }
        if is_gguf(path) {
            let found = length[..4].escape_ascii().to_string();
            return Err(damaged(format!("it begins with {found:?}, expected \"GGUF\"")));
        }
        let length = u64::from_le_bytes(length);
        // Checked before allocating that much.
        if length > HEADER_LIMIT_BYTES.min(found - 8) {
            return Err(damaged(format!("found a header of {length} bytes in a file of {found}")));
        }
        let mut header = Vec::new();
        file.by_ref().take(length).read_to_end(&mut header).map_err(Error::io("read", path))?;
        let metadata = safetensors_header(&header, found).map_err(damaged)?;
        let tensors = metadata.tensors().into_iter().map(|(name, tensor)| {
            let (start, end) = tensor.data_offsets;
            let range = 8 + length + start as u64..8 + length + end as u64;
            (name, FileTensor { dtype: tensor.dtype, shape: tensor.shape.clone(), range })
        });
        let tensors = tensors.collect();
        Ok(Self { path: path.to_owned(), file, header: Header::Safetensors(header), tensors })
    }

    /// Reads the header of a GGUF file of so many bytes.
    fn open_gguf(path: &Path, mut file: File, length: u64) -> Result<Self, Error> {
        file.rewind().map_err(Error::io("read", path))?;
        let header = GgufHeader::read(BufReader::new(&mut file), length).map_err(|error| match error {
            GgufError::Io(error) => Error::io("read", path)(error),
            GgufError::Damaged(reason) => Error::Damaged { path: path.to_owned(), reason },
        })?;
        let tensors = header.tensors.iter().map(|(name, tensor)| {
            let (dtype, shape) = tensor.stored();
            (name.clone(), FileTensor { dtype, shape, range: tensor.range.clone() })
        });
        let tensors = tensors.collect();
        Ok(Self { path: path.to_owned(), file, header: Header::Gguf(header), tensors })
    }

    /// Returns the header if the file is a GGUF file.
    pub(crate) fn into_gguf(self) -> Option<GgufHeader> {
        match self.header {
            Header::Gguf(header) => Some(header),
            Header::Safetensors(_) => None,
        }
    }

    /// Returns the tensors by name.
    pub(crate) fn tensors(&self) -> BTreeMap<String, FileTensor> {
        self.tensors.clone()
    }

    /// Returns the element type of a tensor.
    pub(crate) fn dtype(&self, name: &str) -> Option<Dtype> {
        self.tensors.get(name).map(|tensor| tensor.dtype)
    }

    /// Returns how many bytes a tensor has.
    pub(crate) fn bytes(&self, name: &str) -> Option<u64> {
        self.tensors.get(name).map(|FileTensor { range: Range { start, end }, .. }| end - start)
    }

    /// Returns the digest of each tensor's bytes, by name.
    pub(crate) fn digests(&mut self, cancel: &Cancel) -> Result<BTreeMap<String, Digest>, Error> {
        let mut digests = BTreeMap::new();
        for (name, tensor) in self.tensors() {
            digests.insert(name, self.digest(&tensor, cancel)?);
        }
        Ok(digests)
    }

    /// Returns the digest of a tensor's bytes, or `None` if there is no such tensor.
    pub(crate) fn digest_of(&mut self, name: &str, cancel: &Cancel) -> Result<Option<Digest>, Error> {
        let tensor = self.tensors.get(name).cloned();
        tensor.map(|tensor| self.digest(&tensor, cancel)).transpose()
    }

    /// Returns the bytes of the tensors that have these names and are small: at most [`SMALL_BYTES`].
    pub(crate) fn small_tensors(&mut self, names: &[String]) -> Result<BTreeMap<String, Vec<u8>>, Error> {
        let mut found = BTreeMap::new();
        for (name, FileTensor { range: Range { start, end }, .. }) in self.tensors() {
            if names.contains(&name) && end - start <= SMALL_BYTES {
                self.seek(start)?;
                let mut bytes = vec![0; usize::try_from(end - start).unwrap_or_default()];
                self.file.read_exact(&mut bytes).map_err(Error::io("read", &self.path))?;
                found.insert(name, bytes);
            }
        }
        Ok(found)
    }

    fn digest(&mut self, tensor: &FileTensor, cancel: &Cancel) -> Result<Digest, Error> {
        let Range { start, end } = tensor.range;
        self.seek(start)?;
        let mut bytes = cancel.watch(&mut self.file).take(end - start);
        let (digest, _) = Digest::of_reader(&mut bytes).map_err(Error::io("read", &self.path))?;
        Ok(digest)
    }

    /// Returns a reader of the file as a bundle contains it: the data of a safetensors file is moved to a multiple of
    /// [`mlxcel_artifacts::ALIGNMENT`], and GGUF files are as they are.
    ///
    /// Aligned tensors are used as they are mapped; others would be copied into memory.
    pub(crate) fn aligned(&mut self) -> Result<impl Read + '_, Error> {
        let (header, start) = match &self.header {
            Header::Safetensors(header) => (aligned_header(header.clone()), 8 + header.len() as u64),
            Header::Gguf(_) => (Vec::new(), 0),
        };
        self.seek(start)?;
        Ok(Cursor::new(header).chain(&mut self.file))
    }

    /// Seeks to an offset in the file.
    fn seek(&mut self, offset: u64) -> Result<(), Error> {
        self.file.seek(SeekFrom::Start(offset)).map_err(Error::io("read", &self.path))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use safetensors::SafeTensors;

    use mlxcel_artifacts::ALIGNMENT;

    use super::*;

    #[test]
    fn aligning_changes_neither_tensors_nor_digests() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.safetensors");
        // The safetensors crate pads headers to multiples of 8.
        for pad in 0..8 {
            let header = format!(
                r#"{{"a":{{"dtype":"F32","shape":[2],"data_offsets":[0,8]}},"b":{{"dtype":"I8","shape":[3],"data_offsets":[8,11]}}{}}}"#,
                " ".repeat(8 * pad)
            );
            let data: Vec<u8> = (1..=11).collect();
            let whole = [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &data].concat();
            std::fs::write(&path, &whole).unwrap();

            let mut file = TensorFile::open(&path).unwrap();
            let digests = file.digests(&Cancel::new()).unwrap();
            let mut aligned = Vec::new();
            file.aligned().unwrap().read_to_end(&mut aligned).unwrap();
            assert_eq!((aligned.len() - data.len()) % ALIGNMENT, 0);
            let tensors = SafeTensors::deserialize(&aligned).unwrap();
            for (name, bytes) in [("a", &data[..8]), ("b", &data[8..])] {
                assert_eq!(tensors.tensor(name).unwrap().data(), bytes);
                assert_eq!(digests[name], Digest::of(bytes));
            }
        }
    }
}
