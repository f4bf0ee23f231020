//! A checkpoint's tensors, in safetensors files that are mapped and never copied.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, fs, io,
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

use memmap2::Mmap;
use mlxcel_artifacts::{
    Bundle, Digest, HEADER_LIMIT_BYTES,
    entry::{Parameter, type_text},
    printable, safetensors_header,
};
use safetensors::Dtype;
use serde::Deserialize;

use crate::{error::Error, ffi};

/// A checkpoint in one file.
const SINGLE: &str = "model.safetensors";
/// The list of a checkpoint in several files.
const INDEX: &str = "model.safetensors.index.json";
/// How the file begins that Git LFS leaves in place of one that was not fetched.
const LFS_POINTER: &[u8] = b"version https://git-lfs.github.com/spec/";

/// The tensors of a checkpoint. Clones share the mappings, which live as long as one of them.
#[derive(Clone)]
pub struct Weights {
    inner: Arc<Inner>,
    /// What tensors are called here that are asked for by other names.
    spelled: Arc<BTreeMap<String, String>>,
}

struct Inner {
    /// Where the files lie; none for what is in memory only.
    paths: Vec<PathBuf>,
    files: Vec<Mmap>,
    tensors: BTreeMap<String, Tensor>,
}

struct Tensor {
    dtype: Dtype,
    shape: Vec<usize>,
    file: usize,
    /// Its bytes in the file.
    range: Range<usize>,
}

/// The part of `model.safetensors.index.json` that is needed.
#[derive(Deserialize)]
struct Index {
    /// The file of each tensor.
    weight_map: BTreeMap<String, String>,
}

impl Weights {
    /// No tensors.
    #[must_use]
    pub fn empty() -> Self {
        Self::new(Inner { paths: Vec::new(), files: Vec::new(), tensors: BTreeMap::new() })
    }

    fn new(inner: Inner) -> Self {
        Self { inner: Arc::new(inner), spelled: Arc::default() }
    }

    /// The tensors of a safetensors file in memory.
    #[cfg(feature = "iree")]
    pub(crate) fn from_mapping(image: Mmap) -> Result<Self, Error> {
        let tensors = read_header(Path::new("packed weights"), 0, &image)?.into_iter().collect();
        Ok(Self::new(Inner { paths: Vec::new(), files: vec![image], tensors }))
    }

    /// Where the files lie; none for what is in memory only.
    #[must_use]
    pub fn paths(&self) -> &[PathBuf] {
        &self.inner.paths
    }

    /// The mapped files.
    pub(crate) fn files(&self) -> &[Mmap] {
        &self.inner.files
    }

    /// Maps these safetensors files and reads their headers.
    ///
    /// # Errors
    /// When a file cannot be read or is damaged, or two files have the same tensor.
    pub fn from_files(paths: &[PathBuf]) -> Result<Self, Error> {
        let mut files = Vec::with_capacity(paths.len());
        let mut tensors = BTreeMap::<String, Tensor>::new();
        for (file, path) in paths.iter().enumerate() {
            let map = map(path)?;
            for (name, tensor) in read_header(path, file, &map)? {
                if let Some(other) = tensors.get(&name) {
                    let first = paths[other.file].clone();
                    return Err(Error::DuplicateTensor { name, first, second: path.clone() });
                }
                tensors.insert(name, tensor);
            }
            files.push(map);
        }
        Ok(Self::new(Inner { paths: paths.to_vec(), files, tensors }))
    }

    /// The weights at `path`, which is a checkpoint's folder or a safetensors file.
    ///
    /// # Errors
    /// As [`Weights::from_folder`] and [`Weights::from_files`].
    pub fn open(path: &Path) -> Result<Self, Error> {
        if path.is_file() { Self::from_files(&[path.to_path_buf()]) } else { Self::from_folder(path) }
    }

    /// The weights in a checkpoint's folder: `model.safetensors`, or the shards that `model.safetensors.index.json`
    /// names. As in transformers the single file goes first.
    ///
    /// # Errors
    /// When there are none, the index is damaged, a shard is missing, or [`Weights::from_files`] refuses the files.
    pub fn from_folder(folder: &Path) -> Result<Self, Error> {
        fs::read_dir(folder).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Error::NoSuchWeights(folder.to_path_buf()),
            _ => Error::read(folder)(error),
        })?;
        let single = folder.join(SINGLE);
        if single.is_file() {
            return Self::from_files(&[single]);
        }
        let index = folder.join(INDEX);
        if !index.is_file() {
            return Err(Error::NoWeightsInFolder(folder.to_path_buf()));
        }
        let Index { weight_map } = read_index(&index)?;
        let shards: BTreeSet<&str> = weight_map.values().map(String::as_str).collect();
        let damaged = |reason: String| Error::Damaged { path: index.clone(), reason };
        if let Some(shard) = shards.iter().find(|shard| !is_plain(shard)) {
            let shard = shard.escape_default();
            return Err(damaged(format!("shard `{shard}`, expected the name of a safetensors file")));
        }
        let missing: Vec<&str> = shards.iter().copied().filter(|s| !folder.join(s).is_file()).collect();
        if !missing.is_empty() {
            return Err(damaged(format!("it names shards that are not there: {}", missing.join(", "))));
        }
        let paths: Vec<PathBuf> = shards.iter().map(|shard| folder.join(shard)).collect();
        let weights = Self::from_files(&paths)?;
        let is_there = |name: &str, shard: &str| {
            weights.inner.tensors.get(name).is_some_and(|tensor| paths[tensor.file] == folder.join(shard))
        };
        match weight_map.iter().find(|(name, shard)| !is_there(name, shard)) {
            None => Ok(weights),
            Some((name, shard)) => {
                let name = name.escape_default();
                Err(damaged(format!("it expects tensor `{name}` in {shard}, which lacks it")))
            }
        }
    }

    /// The weights that a bundle carries.
    ///
    /// # Errors
    /// When it carries none, or [`Weights::from_files`] refuses the files.
    pub fn from_bundle(bundle: &Bundle) -> Result<Self, Error> {
        // Beside the index: every file is whole, and the tensors are checked by name.
        let files = bundle.weights()?.into_iter().filter(|(name, _)| name.ends_with(".safetensors"));
        let paths: Vec<PathBuf> = files.map(|(_, path)| path).collect();
        if paths.is_empty() {
            return Err(Error::NoWeights(bundle.path().to_path_buf()));
        }
        Self::from_files(&paths)
    }

    /// Compares with what a bundle needs. Gives the names of tensors that it does not need.
    ///
    /// # Errors
    /// One that names every tensor that is missing or of another type or shape.
    pub fn check(&self, parameters: &[Parameter]) -> Result<Vec<String>, Error> {
        let mut extra: BTreeSet<&str> = self.inner.tensors.keys().map(String::as_str).collect();
        let mut problems = Vec::new();
        for Parameter { name, dtype, shape, source: _, aliases } in parameters {
            let here = self.spelling(name, aliases).unwrap_or(name);
            extra.remove(here);
            let expected = type_text(*dtype, shape);
            match self.inner.tensors.get(here) {
                None => problems.push(format!("{name}: missing, expected {expected}")),
                Some(found) if found.dtype != *dtype || found.shape != *shape => {
                    problems.push(format!(
                        "{name}: {}, expected {expected}",
                        type_text(found.dtype, &found.shape)
                    ));
                }
                Some(_) => {}
            }
        }
        if problems.is_empty() {
            return Ok(extra.into_iter().map(Into::into).collect());
        }
        Err(Error::WeightsMismatch { problems, expected: parameters.len() })
    }

    /// The same weights, in which these parameters are found by their names, whatever they are called here.
    #[must_use]
    pub fn with_aliases(self, parameters: &[Parameter]) -> Self {
        let other = |Parameter { name, aliases, .. }: &Parameter| {
            let here = self.spelling(name, aliases).filter(|here| here != name)?;
            Some((name.clone(), here.to_owned()))
        };
        let spelled = Arc::new(parameters.iter().filter_map(other).collect());
        Self { spelled, ..self }
    }

    /// What a tensor is called here.
    fn spelling<'n>(&self, name: &'n str, aliases: &'n [String]) -> Option<&'n str> {
        let mut names = std::iter::once(name).chain(aliases.iter().map(String::as_str));
        names.find(|name| self.inner.tensors.contains_key(*name))
    }

    /// Whether they are the tensors whose digests the parameters have.
    #[must_use]
    pub fn match_digests(&self, parameters: &[Parameter]) -> bool {
        parameters.iter().all(|Parameter { name, source, .. }| {
            let found = self.tensor(name).map(Digest::of);
            source.is_some() && found == *source
        })
    }

    /// A tensor's bytes, little-endian. They need not be aligned.
    #[must_use]
    pub fn tensor(&self, name: &str) -> Option<&[u8]> {
        let tensor = self.inner.tensors.get(self.spelled.get(name).map_or(name, String::as_str))?;
        Some(&self.inner.files[tensor.file][tensor.range.clone()])
    }

    /// The tensors' names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.inner.tensors.keys().map(String::as_str)
    }
}

#[cfg(feature = "iree")]
impl ffi::ParameterSource for Weights {
    fn parameter(&self, name: &str) -> Option<&[u8]> {
        self.tensor(name)
    }
}

impl fmt::Debug for Weights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Weights({} tensors in {} files)", self.inner.tensors.len(), self.inner.files.len())
    }
}

fn map(path: &Path) -> Result<Mmap, Error> {
    // Asked first: opening a pipe would wait for its writer.
    if !fs::metadata(path).map_err(Error::read(path))?.is_file() {
        return Err(Error::read(path)(io::Error::other("not a regular file")));
    }
    ffi::map(path).map_err(Error::read(path))
}

/// The tensors of a file. After this every range lies in the file and has the bytes of its type and shape.
fn read_header(path: &Path, file: usize, bytes: &[u8]) -> Result<Vec<(String, Tensor)>, Error> {
    let damaged = |reason: String| Error::Damaged { path: path.to_path_buf(), reason };
    if bytes.starts_with(LFS_POINTER) {
        return Err(Error::LfsPointer(path.to_path_buf()));
    }
    let length = match bytes.first_chunk() {
        None => return Err(damaged(format!("found {} bytes, expected at least 8", bytes.len()))),
        Some(&length) => u64::from_le_bytes(length),
    };
    if length > HEADER_LIMIT_BYTES.min(bytes.len() as u64 - 8) {
        return Err(damaged(format!("found a header of {length} bytes in a file of {}", bytes.len())));
    }
    // Fits: the whole header lies in the file.
    let start = 8 + length as usize;
    let header = safetensors_header(&bytes[8..start], bytes.len() as u64).map_err(damaged)?;
    let tensors = header.tensors().into_iter().map(|(name, info)| {
        let (from, to) = info.data_offsets;
        let range = start + from..start + to;
        (name, Tensor { dtype: info.dtype, shape: info.shape.clone(), file, range })
    });
    Ok(tensors.collect())
}

fn read_index(path: &Path) -> Result<Index, Error> {
    let damaged = |reason: String| Error::Damaged { path: path.to_path_buf(), reason };
    let length = fs::metadata(path).map_err(Error::read(path))?.len();
    if length > HEADER_LIMIT_BYTES {
        return Err(damaged(format!("found {length} bytes, expected at most {HEADER_LIMIT_BYTES}")));
    }
    let text = fs::read(path).map_err(Error::read(path))?;
    serde_json::from_slice(&text).map_err(|error| damaged(printable(&error.to_string())))
}

/// Whether a shard's name is that of a file beside the index, not a path to somewhere else.
fn is_plain(name: &str) -> bool {
    name.ends_with(".safetensors") && !name.contains(['/', '\\', '\0'])
}
