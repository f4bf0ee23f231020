//! A checkpoint's safetensors files, and whether their tensors are the model's.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::{Path, PathBuf},
};

use mlxcel_artifacts::{Cancel, CheckpointIndex, Digest, INDEX_FILE, IndexError, SINGLE_FILE};
use mlxcel_models::{Head, ModelConfig};
use safetensors::{Dtype, tensor::TensorInfo};

use crate::{error::Error, model::tensor_file::TensorFile};

/// The tensors of a folder's safetensors files.
#[derive(Debug)]
pub(crate) struct Checkpoint {
    folder: PathBuf,
    files: Vec<String>,
    tensors: BTreeMap<String, TensorInfo>,
}

impl Checkpoint {
    /// Reads the headers in `folder`. Returns `None` if it has no weights.
    ///
    /// As in transformers, a single file takes precedence over an index.
    pub(crate) fn open(folder: &Path) -> Result<Option<Self>, Error> {
        let mut checkpoint = Self { folder: folder.to_owned(), files: vec![], tensors: BTreeMap::new() };
        if folder.join(SINGLE_FILE).is_file() {
            checkpoint.add(SINGLE_FILE)?;
        } else if folder.join(INDEX_FILE).is_file() {
            checkpoint.add_indexed()?;
        } else {
            return Ok(None);
        }
        Ok(Some(checkpoint))
    }

    /// Returns name and path of every file that a bundle with these weights contains, including the index.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, PathBuf)> {
        self.files.iter().map(|name| (name.as_str(), self.folder.join(name)))
    }

    /// Returns the folder of the files.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the element type of a tensor.
    pub(crate) fn dtype(&self, name: &str) -> Option<Dtype> {
        self.tensors.get(name).map(|tensor| tensor.dtype)
    }

    /// Adapts the description of a model to the tensors. Returns it with warnings for the user.
    ///
    /// # Errors
    /// The tensors are not those of `model`, which messages call `name`.
    pub(crate) fn fit(
        &self,
        model: ModelConfig,
        name: &str,
        cancel: &Cancel,
    ) -> Result<(ModelConfig, Vec<String>), Error> {
        let (model, warning) = self.adapt(model, cancel)?;
        let unused = unused_warning(&self.check(&model, name)?);
        Ok((model, warning.into_iter().chain(unused).collect()))
    }

    /// Takes over the tensors' names, and whether the head is tied to the embedding.
    ///
    /// A head that is a copy of the embedding counts as tied.
    fn adapt(&self, model: ModelConfig, cancel: &Cancel) -> Result<(ModelConfig, Option<String>), Error> {
        let is_tied = |model: &ModelConfig| matches!(&model.head, Head::Logits(head) if head.tied);
        let expected = is_tied(&model);
        let mut model = model.with_tensors(|name| self.tensors.contains_key(name));
        if let (true, Head::Logits(head)) = (expected, &mut model.head)
            && !head.tied
        {
            let digest = self.digest(&head.linear.weight.name, cancel)?;
            head.tied = digest == self.digest(&model.embedding.weight.name, cancel)?;
        }
        let warning = match (expected, is_tied(&model)) {
            (true, false) => {
                "config.json ties the head to the embedding, but the checkpoint has a head of its own: using that"
            }
            (false, true) => {
                "the checkpoint has no head of its own: using the embedding, as if they were tied"
            }
            _ => return Ok((model, None)),
        };
        Ok((model, Some(warning.into())))
    }

    /// Returns the digest of a tensor's bytes, or `None` if there is no such tensor.
    fn digest(&self, name: &str, cancel: &Cancel) -> Result<Option<Digest>, Error> {
        for (_, path) in self.files().filter(|(file, _)| *file != INDEX_FILE) {
            let mut file = TensorFile::open(&path)?;
            if let Some(digest) = file.digest_of(name, cancel)? {
                return Ok(Some(digest));
            }
        }
        Ok(None)
    }

    /// Compares the tensors with those of `model`. Returns the names of tensors that `model` does not use.
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
            let is_leftover =
                |name: &&str| model.ignored_prefixes.iter().any(|start| name.starts_with(start));
            return Ok(extra.into_iter().filter(|name| !is_leftover(name)).collect());
        }
        Err(Error::Weights { folder: self.folder.clone(), model: name.to_owned(), problems })
    }

    /// Returns the element type that most elements have.
    pub(crate) fn main_dtype(&self) -> Option<Dtype> {
        let elements = self.elements_by_dtype();
        elements.into_iter().max_by_key(|&(dtype, count)| (count, dtype)).map(|(dtype, _)| dtype)
    }

    /// Counts the elements of each type.
    pub(crate) fn elements_by_dtype(&self) -> BTreeMap<Dtype, u128> {
        let mut elements: BTreeMap<Dtype, u128> = BTreeMap::new();
        for TensorInfo { dtype, shape, .. } in self.tensors.values() {
            *elements.entry(*dtype).or_default() += shape.iter().map(|&size| size as u128).product::<u128>();
        }
        elements
    }

    /// Adds the shards that the index lists.
    fn add_indexed(&mut self) -> Result<(), Error> {
        let path = self.folder.join(INDEX_FILE);
        let damaged = |reason: String| Error::Damaged { path: path.clone(), reason };
        let bad = |error| match error {
            IndexError::Io(error) => Error::io("read", &path)(error),
            IndexError::Damaged(reason) => damaged(reason),
        };
        let index = CheckpointIndex::read(&self.folder).map_err(bad)?;
        self.files.push(INDEX_FILE.to_owned());
        let mut shard_of: HashMap<String, &str> = HashMap::new();
        for shard in index.shards() {
            for name in self.add(shard)? {
                if let Some(other) = shard_of.insert(name.clone(), shard) {
                    let name = name.escape_default();
                    return Err(damaged(format!("tensor `{name}` is both in {other} and in {shard}")));
                }
            }
        }
        index.check(|name| shard_of.get(name).copied()).map_err(bad)
    }

    /// Adds the tensors of one file. Returns their names.
    fn add(&mut self, file: &str) -> Result<Vec<String>, Error> {
        let tensors = TensorFile::open(&self.folder.join(file))?.tensors();
        let names = tensors.keys().cloned().collect();
        self.tensors.extend(tensors);
        self.files.push(file.to_owned());
        Ok(names)
    }
}

/// Returns a warning that these tensors are not used, if there are any.
fn unused_warning(names: &[&str]) -> Option<String> {
    const SHOWN: usize = 5;
    // The names come from an untrusted file.
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
