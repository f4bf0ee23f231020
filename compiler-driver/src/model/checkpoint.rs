//! A checkpoint's safetensors or GGUF files, and whether their tensors are the model's.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::{Path, PathBuf},
};

use mlxcel_artifacts::{Cancel, CheckpointIndex, Digest, INDEX_FILE, IndexError, SINGLE_FILE};
use mlxcel_models::{
    CheckpointTensors, GgufModel, Head, ModelConfig, Scheme, Storage, StoredTensor, StoredTensors, Weight,
    WrongStorage,
};
use safetensors::Dtype;

use crate::{
    error::Error,
    model::{
        gguf::GgufParts,
        tensor_file::{FileTensor, TensorFile},
    },
};

/// The tensors of a folder's safetensors files, or of a GGUF file.
#[derive(Debug)]
pub(crate) struct Checkpoint {
    folder: PathBuf,
    files: Vec<String>,
    tensors: BTreeMap<String, FileTensor>,
    /// What the metadata says, in a GGUF file.
    gguf: Option<Box<GgufModel>>,
    /// How each weight of the model is stored, once the model is known.
    storages: BTreeMap<String, Storage>,
}

impl Checkpoint {
    /// Reads the headers in `folder`. Returns `None` if it has no weights.
    ///
    /// As in transformers, a single file takes precedence over an index.
    pub(crate) fn open(folder: &Path) -> Result<Option<Self>, Error> {
        let mut checkpoint = Self::empty(folder);
        if folder.join(SINGLE_FILE).is_file() {
            checkpoint.add(SINGLE_FILE)?;
        } else if folder.join(INDEX_FILE).is_file() {
            checkpoint.add_indexed()?;
        } else {
            return Ok(None);
        }
        Ok(Some(checkpoint))
    }

    /// Reads the headers of a GGUF file, or of all its parts.
    pub(crate) fn open_gguf(path: &Path) -> Result<Self, Error> {
        let GgufParts { paths, model } = GgufParts::open(path)?;
        let mut checkpoint = Self::empty(path.parent().unwrap_or(Path::new("")));
        checkpoint.gguf = Some(model.into());
        for path in paths {
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
                let reason = "its name is no UTF-8, expected text".into();
                return Err(Error::Damaged { path, reason });
            };
            checkpoint.add(name)?;
        }
        Ok(checkpoint)
    }

    fn empty(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            files: vec![],
            tensors: BTreeMap::new(),
            gguf: None,
            storages: BTreeMap::new(),
        }
    }

    /// Returns what the metadata of a GGUF file says.
    pub(crate) fn gguf(&self) -> Option<&GgufModel> {
        self.gguf.as_deref()
    }

    /// Returns name and path of every file that a bundle with these weights contains, including the index.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, PathBuf)> {
        self.files.iter().map(|name| (name.as_str(), self.folder.join(name)))
    }

    /// Returns the folder that the files belong to. A GGUF file belongs to none, wherever it is.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.gguf.is_none().then_some(&self.folder)
    }

    /// Returns how a weight is stored, once the model is fitted.
    pub(crate) fn storage(&self, weight: &str) -> Option<&Storage> {
        self.storages.get(weight)
    }

    /// Returns how a weight of a fitted model is stored, or as what its config.json says if there is no such weight.
    pub(crate) fn storage_or_plain(&self, weight: &Weight, config: &ModelConfig) -> Storage {
        self.storage(&weight.name).cloned().unwrap_or_else(|| Storage::plain(weight, config.dtype))
    }

    /// Returns how all weights are stored, once the model is fitted.
    pub(crate) fn storages(&self) -> impl Iterator<Item = &Storage> {
        self.storages.values()
    }

    /// Adapts the description of a model to the tensors. Returns it with warnings for the user.
    ///
    /// # Errors
    /// The tensors are not those of `model`, which messages call `name`.
    pub(crate) fn fit(
        &mut self,
        model: ModelConfig,
        name: &str,
        cancel: &Cancel,
    ) -> Result<(ModelConfig, Vec<String>), Error> {
        let model = match &self.gguf {
            Some(gguf) => gguf.adapt(model).map_err(Error::model(name))?,
            None => model,
        };
        let stored = self.stored_tensors(&model)?;
        let (model, warning) = self.adapt(model, &stored, cancel)?;
        let storages = self.find(&model, &stored, name)?;
        let unused = unused_warning(&self.unused(&model, &storages));
        let undone = model.scheme.as_ref().and_then(Scheme::warning).map(str::to_owned);
        let idle = exclusions_warning(&model);
        self.storages = storages;
        Ok((model, warning.into_iter().chain(undone).chain(idle).chain(unused).collect()))
    }

    /// Returns the types of all tensors, with the contents of small ones that the model's scheme reads.
    fn stored_tensors(&self, model: &ModelConfig) -> Result<StoredTensors, Error> {
        let tensors = self.tensors.iter().map(|(name, info)| {
            let FileTensor { dtype, shape, .. } = info.clone();
            StoredTensor { name: name.clone(), dtype, shape }
        });
        let mut stored: StoredTensors = tensors.collect();
        let is_needed = |name: &&str| model.scheme.as_ref().is_some_and(|scheme| scheme.reads(name));
        let needed: Vec<_> = stored.names().filter(is_needed).map(str::to_owned).collect();
        for (file, path) in self.files().filter(|_| !needed.is_empty()) {
            if file != INDEX_FILE {
                let contents = TensorFile::open(&path)?.small_tensors(&needed)?;
                contents.into_iter().for_each(|(name, bytes)| stored.add_contents(name, bytes));
            }
        }
        Ok(stored)
    }

    /// Takes over the tensors' names, and whether the head is tied to the embedding.
    ///
    /// A head that is a copy of the embedding counts as tied.
    fn adapt(
        &self,
        model: ModelConfig,
        stored: &StoredTensors,
        cancel: &Cancel,
    ) -> Result<(ModelConfig, Option<String>), Error> {
        let is_tied = |model: &ModelConfig| matches!(&model.head, Head::Logits(head) if head.tied);
        let expected = is_tied(&model);
        let scheme = model.scheme.clone();
        let found = CheckpointTensors { tensors: stored, scheme: scheme.as_ref() };
        let mut model = model.with_tensors(|name| found.has(name));
        if let (true, Head::Logits(head)) = (expected, &mut model.head)
            && !head.tied
            && let Some(digest) = self.digest(&head.linear.weight.name, cancel)?
        {
            head.tied = Some(digest) == self.digest(&model.embedding.weight.name, cancel)?;
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

    /// Finds how every weight of `model` is stored.
    fn find(
        &self,
        model: &ModelConfig,
        stored: &StoredTensors,
        name: &str,
    ) -> Result<BTreeMap<String, Storage>, Error> {
        let (mut storages, mut problems) = (BTreeMap::new(), Vec::new());
        let found = CheckpointTensors { tensors: stored, scheme: model.scheme.as_ref() };
        for weight in model.weights() {
            match found.storage(weight) {
                Ok(storage) => _ = storages.insert(weight.name.clone(), storage),
                Err(wrong) => problems.push(problem(wrong)),
            }
        }
        if let Some(scheme) = &model.scheme
            && !scheme.is_container()
            && problems.is_empty()
            && storages.values().all(|storage| storage.coding.is_none())
        {
            problems.push(format!(
                "no tensor is quantized, expected some, because config.json says {}",
                scheme.name()
            ));
        }
        let claimed = model.scheme.as_ref().map(Scheme::name);
        if let Some(shown) =
            stored.shown_scheme().filter(|shown| !problems.is_empty() && claimed != Some(shown))
        {
            let expected = claimed.map_or("no scheme".into(), |claimed| format!("those of {claimed}"));
            problems.insert(0, format!("found tensors of {shown}, expected {expected} by config.json"));
        }
        self.refuse(problems, name)?;
        Ok(storages)
    }

    fn refuse(&self, problems: Vec<String>, name: &str) -> Result<(), Error> {
        if problems.is_empty() {
            return Ok(());
        }
        Err(Error::Weights { folder: self.folder.clone(), model: name.to_owned(), problems })
    }

    /// Returns the names of tensors that `model` does not use.
    fn unused(&self, model: &ModelConfig, storages: &BTreeMap<String, Storage>) -> Vec<&str> {
        let used: BTreeSet<&str> = storages
            .values()
            .flat_map(|storage| &storage.tensors)
            .map(|tensor| tensor.name.as_str())
            .collect();
        let is_leftover = |name: &&str| {
            model.ignored_prefixes.iter().any(|start| name.starts_with(start))
                || model.scheme.as_ref().is_some_and(|scheme| scheme.ignores(name))
        };
        let names = self.tensors.keys().map(String::as_str);
        names.filter(|name| !used.contains(name) && !is_leftover(name)).collect()
    }

    /// Returns the type that most floating-point numbers have. In a quantized checkpoint, those are few.
    pub(crate) fn main_dtype(&self) -> Option<Dtype> {
        let is_coded = self.storages.values().any(|storage| storage.coding.is_some());
        let elements = if is_coded { BTreeMap::new() } else { self.elements_by_dtype() };
        elements.into_iter().max_by_key(|&(dtype, count)| (count, dtype)).map(|(dtype, _)| dtype)
    }

    /// Counts the elements of each type.
    pub(crate) fn elements_by_dtype(&self) -> BTreeMap<Dtype, u128> {
        let mut elements: BTreeMap<Dtype, u128> = BTreeMap::new();
        for FileTensor { dtype, shape, .. } in self.tensors.values() {
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

/// Returns what is wrong with a tensor, with its name.
fn problem(wrong: WrongStorage) -> String {
    let WrongStorage { tensor, problem } = wrong;
    format!("{tensor}: {problem}")
}

/// Returns a warning that these tensors are not used, if there are any.
fn unused_warning(names: &[&str]) -> Option<String> {
    match names {
        [] => None,
        [_] => Some(format!("1 tensor of the checkpoint is not used: {}", listed(names))),
        _ => Some(format!("{} tensors of the checkpoint are not used: {}", names.len(), listed(names))),
    }
}

/// Returns a warning that config.json excludes modules from quantization that the model does not have. They change nothing, so
/// that a list with modules of images or of more layers is no error.
fn exclusions_warning(model: &ModelConfig) -> Option<String> {
    let heads = model.linears().map(|linear| &linear.weight);
    let weights: Vec<_> = model.weights().into_iter().chain(heads).collect();
    let is_left_out = |name: &&str| model.ignored_prefixes.iter().any(|start| name.starts_with(start));
    let mut names = model.scheme.as_ref()?.unmatched_exclusions(&weights);
    names.retain(|name| !is_left_out(name));
    let words = || {
        format!(
            "config.json excludes modules from quantization that the model does not have: {}",
            listed(&names)
        )
    };
    (!names.is_empty()).then(words)
}

/// Lists the first of some names, which come from an untrusted file.
fn listed(names: &[&str]) -> String {
    const SHOWN: usize = 5;
    let shown = names.iter().take(SHOWN);
    let shown = shown.map(|name| name.chars().take(100).flat_map(char::escape_default).collect::<String>());
    let dots = if names.len() > SHOWN { ", …" } else { "" };
    shown.collect::<Vec<_>>().join(", ") + dots
}

#[cfg(test)]
mod tests;
