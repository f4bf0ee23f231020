//! A checkpoint's safetensors files: their headers, read and checked, and their tensors as a bundle carries them.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fs::File,
    io::{Cursor, Read, Seek as _, SeekFrom},
    path::{Path, PathBuf},
};

use mlxcel_artifacts::{Cancel, Digest, HEADER_LIMIT_BYTES, aligned_header, safetensors_header};
use mlxcel_models::{Head, ModelConfig};
use safetensors::{
    Dtype,
    tensor::{Metadata, TensorInfo},
};
use serde::Deserialize;

use crate::{Error, source::read_limited};

/// A checkpoint in one file.
pub(crate) const SINGLE: &str = "model.safetensors";
/// The list of a checkpoint in several files.
pub(crate) const INDEX: &str = "model.safetensors.index.json";

/// The tensors of a folder's safetensors files.
#[derive(Debug)]
pub(crate) struct Checkpoint {
    folder: PathBuf,
    files: Vec<String>,
    tensors: BTreeMap<String, TensorInfo>,
}

/// The part of `model.safetensors.index.json` that is needed.
#[derive(Deserialize)]
struct Index {
    /// The file of each tensor.
    weight_map: BTreeMap<String, String>,
}

impl Checkpoint {
    /// Reads the headers in `folder`; `None` when it has no weights. As transformers does, a single file goes before an
    /// index.
    pub(crate) fn in_folder(folder: &Path) -> Result<Option<Self>, Error> {
        let mut checkpoint = Self { folder: folder.to_owned(), files: vec![], tensors: BTreeMap::new() };
        let index = folder.join(INDEX);
        if folder.join(SINGLE).is_file() {
            checkpoint.add(SINGLE)?;
        } else if index.is_file() {
            checkpoint.add_indexed(&index)?;
        } else {
            return Ok(None);
        }
        Ok(Some(checkpoint))
    }

    /// The files that a bundle with these weights carries, the index among them: name and path.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, PathBuf)> {
        self.files.iter().map(|name| (name.as_str(), self.folder.join(name)))
    }

    /// The folder it was read from.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The element type of the tensor called `name`.
    pub(crate) fn dtype(&self, name: &str) -> Option<Dtype> {
        self.tensors.get(name).map(|tensor| tensor.dtype)
    }

    /// `model` as the tensors that are here have it, and what a person should know of that.
    ///
    /// # Errors
    /// They are not the tensors of `model`, which is called `name`.
    pub(crate) fn fit(
        &self,
        model: ModelConfig,
        name: &str,
        cancel: &Cancel,
    ) -> Result<(ModelConfig, Vec<String>), Error> {
        let (model, said) = self.adapt(model, cancel)?;
        let unused = unused(&self.check(&model, name)?);
        Ok((model, said.into_iter().chain(unused).collect()))
    }

    /// `model` with the head and the names that are here. A head of its own that is a copy of the embedding counts as tied.
    fn adapt(&self, model: ModelConfig, cancel: &Cancel) -> Result<(ModelConfig, Option<String>), Error> {
        let is_tied = |model: &ModelConfig| matches!(&model.head, Head::Logits(head) if head.tied);
        let expected = is_tied(&model);
        let mut model = model.with_tensors(|name| self.tensors.contains_key(name));
        if let (true, Head::Logits(head)) = (expected, &mut model.head)
            && !head.tied
        {
            let own = self.digest(&head.linear.weight.name, cancel)?;
            head.tied = own == self.digest(&model.embedding.weight.name, cancel)?;
        }
        let said = match (expected, is_tied(&model)) {
            (true, false) => {
                "config.json ties the head to the embedding, but the checkpoint has another one: used"
            }
            (false, true) => {
                "the checkpoint has no head of its own: the embedding is used, as if they were tied"
            }
            _ => return Ok((model, None)),
        };
        Ok((model, Some(said.into())))
    }

    /// The digest of a tensor's bytes; `None` where there is no such tensor.
    fn digest(&self, name: &str, cancel: &Cancel) -> Result<Option<Digest>, Error> {
        for (_, path) in self.files().filter(|(file, _)| *file != INDEX) {
            let mut file = TensorFile::open(&path)?;
            if let Some(tensor) = file.metadata.info(name).cloned() {
                return file.digest(&tensor, cancel).map(Some);
            }
        }
        Ok(None)
    }

    /// Compares with what `model` needs. Gives the names of tensors that it does not need.
    fn check(&self, model: &ModelConfig, name: &str) -> Result<Vec<&str>, Error> {
        let mut problems = Vec::new();
        let mut extra: BTreeSet<&str> = self.tensors.keys().map(String::as_str).collect();
        for weight in model.weights() {
            extra.remove(weight.name.as_str());
            let Some(TensorInfo { dtype, shape, .. }) = self.tensors.get(&weight.name) else {
                problems.push(format!("{}: missing, expected shape {:?}", weight.name, weight.shape));
                continue;
            };
            if *shape != weight.shape {
                problems.push(format!("{}: shape {shape:?}, expected {:?}", weight.name, weight.shape));
            }
            if !matches!(dtype, Dtype::F32 | Dtype::BF16 | Dtype::F16) {
                problems.push(format!("{}: dtype {dtype:?}, expected F32, BF16 or F16", weight.name));
            }
        }
        if problems.is_empty() {
            let is_leftover = |name: &&str| model.leftovers.iter().any(|start| name.starts_with(start));
            return Ok(extra.into_iter().filter(|name| !is_leftover(name)).collect());
        }
        Err(Error::Weights { folder: self.folder.clone(), model: name.to_owned(), problems })
    }

    /// The element type that most elements of the checkpoint have.
    pub(crate) fn main_dtype(&self) -> Option<Dtype> {
        let elements = self.elements_by_dtype();
        elements.into_iter().max_by_key(|&(dtype, count)| (count, dtype)).map(|(dtype, _)| dtype)
    }

    /// How many elements the checkpoint has of each type.
    pub(crate) fn elements_by_dtype(&self) -> BTreeMap<Dtype, u128> {
        let mut elements: BTreeMap<Dtype, u128> = BTreeMap::new();
        for TensorInfo { dtype, shape, .. } in self.tensors.values() {
            *elements.entry(*dtype).or_default() += shape.iter().map(|&size| size as u128).product::<u128>();
        }
        elements
    }

    fn add_indexed(&mut self, index: &Path) -> Result<(), Error> {
        let damaged = |reason: String| Error::Damaged { path: index.to_owned(), reason };
        let text = read_limited(index, HEADER_LIMIT_BYTES)?;
        let Index { weight_map } =
            serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;

        let shards: BTreeSet<&str> = weight_map.values().map(String::as_str).collect();
        if let Some(shard) = shards.iter().find(|shard| !is_plain(shard)) {
            let shard = shard.escape_default();
            return Err(damaged(format!("shard `{shard}`, expected a safetensors file's name")));
        }
        let missing: Vec<&str> =
            shards.iter().copied().filter(|shard| !self.folder.join(shard).is_file()).collect();
        if !missing.is_empty() {
            return Err(damaged(format!("it names shards that are not there: {}", missing.join(", "))));
        }

        self.files.push(INDEX.to_owned());
        let mut home: HashMap<String, &str> = HashMap::new();
        for &shard in &shards {
            for name in self.add(shard)? {
                if let Some(other) = home.insert(name.clone(), shard) {
                    let name = name.escape_default();
                    return Err(damaged(format!("tensor `{name}` is both in {other} and in {shard}")));
                }
            }
        }
        match weight_map.iter().find(|(name, shard)| home.get(*name) != Some(&shard.as_str())) {
            None => Ok(()),
            Some((name, shard)) => Err(damaged(format!(
                "it expects tensor `{}` in {shard}, which lacks it",
                name.escape_default()
            ))),
        }
    }

    /// Adds the tensors of one file and gives their names.
    fn add(&mut self, file: &str) -> Result<Vec<String>, Error> {
        let tensors = TensorFile::open(&self.folder.join(file))?.tensors();
        let names = tensors.keys().cloned().collect();
        self.tensors.extend(tensors);
        self.files.push(file.to_owned());
        Ok(names)
    }
}

/// That these tensors are not used, if there are any.
fn unused(names: &[&str]) -> Option<String> {
    const SHOWN: usize = 5;
    // They are whatever a file says, so each is cut and made harmless.
    let shown = names.iter().take(SHOWN);
    let shown = shown.map(|name| name.chars().take(100).flat_map(char::escape_default).collect::<String>());
    let shown = shown.collect::<Vec<_>>().join(", ");
    match names {
        [] => None,
        [_] => Some(format!("1 tensor of the checkpoint is not used: {shown}")),
        _ => {
            let dots = if names.len() > SHOWN { ", …" } else { "" };
            Some(format!("{} tensors of the checkpoint are not used: {shown}{dots}", names.len()))
        }
    }
}

/// Whether a shard's name is that of a file beside the index, not a path to somewhere else.
fn is_plain(name: &str) -> bool {
    name.ends_with(".safetensors") && !name.contains(['/', '\\', '\0'])
}

/// A safetensors file with its header read and checked against the file's length.
pub(crate) struct TensorFile {
    path: PathBuf,
    file: File,
    /// The header's bytes.
    header: Vec<u8>,
    metadata: Metadata,
}

impl TensorFile {
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
        // Before anything of that size is allocated.
        if length > HEADER_LIMIT_BYTES.min(found - 8) {
            return Err(damaged(format!("found a header of {length} bytes in a file of {found}")));
        }
        let mut header = Vec::new();
        file.by_ref().take(length).read_to_end(&mut header).map_err(Error::io("read", path))?;
        let metadata = safetensors_header(&header, found).map_err(damaged)?;
        Ok(Self { path: path.to_owned(), file, header, metadata })
    }

    /// Its tensors by name.
    fn tensors(&self) -> BTreeMap<String, TensorInfo> {
        self.metadata.tensors().into_iter().map(|(name, tensor)| (name, tensor.clone())).collect()
    }

    /// The digest of each tensor's bytes, by name.
    pub(crate) fn digests(&mut self, cancel: &Cancel) -> Result<BTreeMap<String, Digest>, Error> {
        let mut digests = BTreeMap::new();
        for (name, tensor) in self.tensors() {
            digests.insert(name, self.digest(&tensor, cancel)?);
        }
        Ok(digests)
    }

    fn digest(&mut self, tensor: &TensorInfo, cancel: &Cancel) -> Result<Digest, Error> {
        let (start, end) = tensor.data_offsets;
        self.seek(start)?;
        let mut bytes = cancel.watch(&mut self.file).take((end - start) as u64);
        let (digest, _) = Digest::of_reader(&mut bytes).map_err(Error::io("read", &self.path))?;
        Ok(digest)
    }

    /// The same tensors as a file whose data starts at a multiple of [`mlxcel_artifacts::ALIGNMENT`]: mapped, it can be used where it lies.
    pub(crate) fn aligned(&mut self) -> Result<impl Read + '_, Error> {
        self.seek(0)?;
        let header = aligned_header(self.header.clone());
        Ok(Cursor::new(header).chain(&mut self.file))
    }

    /// Goes to a place in the data.
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
    fn an_aligned_file_has_the_same_tensors_with_their_digests() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(SINGLE);
        // Headers of every length that safetensors writes, multiples of 8.
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
