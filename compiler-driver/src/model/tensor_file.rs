//! A safetensors file: its header, digests of its tensors, and the file as a bundle contains it.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{Cursor, Read, Seek as _, SeekFrom},
    path::{Path, PathBuf},
};

use mlxcel_artifacts::{Cancel, Digest, HEADER_LIMIT_BYTES, aligned_header, safetensors_header};
use safetensors::tensor::{Metadata, TensorInfo};

use crate::error::Error;

/// A safetensors file whose header was checked against the file's length.
pub(crate) struct TensorFile {
    path: PathBuf,
    file: File,
    /// The header's bytes.
    header: Vec<u8>,
    metadata: Metadata,
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
        let length = u64::from_le_bytes(length);
        // Checked before allocating that much.
        if length > HEADER_LIMIT_BYTES.min(found - 8) {
            return Err(damaged(format!("found a header of {length} bytes in a file of {found}")));
        }
        let mut header = Vec::new();
        file.by_ref().take(length).read_to_end(&mut header).map_err(Error::io("read", path))?;
        let metadata = safetensors_header(&header, found).map_err(damaged)?;
        Ok(Self { path: path.to_owned(), file, header, metadata })
    }

    /// Returns the tensors by name.
    pub(crate) fn tensors(&self) -> BTreeMap<String, TensorInfo> {
        self.metadata.tensors().into_iter().map(|(name, tensor)| (name, tensor.clone())).collect()
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
        let tensor = self.metadata.info(name).cloned();
        tensor.map(|tensor| self.digest(&tensor, cancel)).transpose()
    }

    /// Returns the bytes of the tensors that have these names and are small.
    pub(crate) fn small_tensors(&mut self, names: &[String]) -> Result<BTreeMap<String, Vec<u8>>, Error> {
        const MAX_BYTES: usize = 64 << 10;
        let mut found = BTreeMap::new();
        for (name, TensorInfo { data_offsets: (start, end), .. }) in self.tensors() {
            if names.contains(&name) && end - start <= MAX_BYTES {
                self.seek(start)?;
                let mut bytes = vec![0; end - start];
                self.file.read_exact(&mut bytes).map_err(Error::io("read", &self.path))?;
                found.insert(name, bytes);
            }
        }
        Ok(found)
    }

    fn digest(&mut self, tensor: &TensorInfo, cancel: &Cancel) -> Result<Digest, Error> {
        let (start, end) = tensor.data_offsets;
        self.seek(start)?;
        let mut bytes = cancel.watch(&mut self.file).take((end - start) as u64);
        let (digest, _) = Digest::of_reader(&mut bytes).map_err(Error::io("read", &self.path))?;
        Ok(digest)
    }

    /// Returns a reader of the file with its data moved to a multiple of [`mlxcel_artifacts::ALIGNMENT`].
    ///
    /// Aligned tensors are used as they are mapped; others would be copied into memory.
    pub(crate) fn aligned(&mut self) -> Result<impl Read + '_, Error> {
        self.seek(0)?;
        let header = aligned_header(self.header.clone());
        Ok(Cursor::new(header).chain(&mut self.file))
    }

    /// Seeks to an offset in the data.
    fn seek(&mut self, offset: usize) -> Result<(), Error> {
        let offset = (8 + self.header.len() + offset) as u64;
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
