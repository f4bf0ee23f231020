//! A checkpoint's tensors, in safetensors or GGUF files that are mapped into memory.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, fs, io,
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

use memmap2::Mmap;
use mlxcel_artifacts::{
    Bundle, CheckpointIndex, Digest, GGUF_MAGIC, GgufError, GgufHeader, HEADER_LIMIT_BYTES, INDEX_FILE,
    IndexError, LFS_POINTER, SINGLE_FILE, entry::Parameter, safetensors_header, type_text,
};
use safetensors::Dtype;

use crate::{error::Error, ffi};

/// The tensors of a checkpoint, mapped from its files.
///
/// Clones share the mappings. A file may be removed while it is mapped, but must not be changed.
#[derive(Clone)]
pub struct Weights {
    inner: Arc<Inner>,
    /// The name in the files of each tensor that is requested by another name.
    aliases: Arc<BTreeMap<String, String>>,
}

struct Inner {
    /// Paths of the files; empty for an image in memory.
    paths: Vec<PathBuf>,
    files: Vec<Mmap>,
    tensors: BTreeMap<String, Tensor>,
}

struct Tensor {
    dtype: Dtype,
    shape: Vec<usize>,
    /// Index of the file.
    file: usize,
    /// Bytes of the tensor in the file.
    range: Range<usize>,
}

impl Weights {
    /// Returns weights without tensors.
    #[must_use]
    pub fn empty() -> Self {
        Self::new(Inner { paths: Vec::new(), files: Vec::new(), tensors: BTreeMap::new() })
    }

    fn new(inner: Inner) -> Self {
        Self { inner: Arc::new(inner), aliases: Arc::default() }
    }

    /// Reads the header of a safetensors file in memory.
    #[cfg(feature = "iree")]
    pub(crate) fn from_mapping(image: Mmap) -> Result<Self, Error> {
        let tensors = read_header(Path::new("packed weights"), 0, &image)?.into_iter().collect();
        Ok(Self::new(Inner { paths: Vec::new(), files: vec![image], tensors }))
    }

    /// Returns the paths of the files; empty for an image in memory.
    #[must_use]
    pub fn paths(&self) -> &[PathBuf] {
        &self.inner.paths
    }

    /// Returns the mapped files.
    #[cfg(feature = "iree")]
    pub(crate) fn files(&self) -> &[Mmap] {
        &self.inner.files
    }

    /// Returns digest and length of each mapped file, in the order of [`Self::paths`].
    ///
    /// Hashes the mappings, which tensors are read from: another file may be at a path by now.
    #[cfg(feature = "iree")]
    pub(crate) fn blobs(&self) -> Result<Vec<mlxcel_artifacts::Blob>, Error> {
        let blob = |(path, file): (&PathBuf, &Mmap)| {
            let (digest, size) = Digest::of_reader(&mut &file[..]).map_err(Error::read(path))?;
            Ok(mlxcel_artifacts::Blob { digest, size })
        };
        self.paths().iter().zip(self.files()).map(blob).collect()
    }

    /// Maps these safetensors or GGUF files and reads their headers.
    ///
    /// # Errors
    /// A file cannot be read or is damaged, or two files have the same tensor.
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

    /// Opens the weights at `path`, a checkpoint's folder, a safetensors file or a GGUF file without further parts.
    ///
    /// # Errors
    /// As [`Weights::from_folder`] and [`Weights::from_files`].
    pub fn open(path: &Path) -> Result<Self, Error> {
        if path.is_file() { Self::from_files(&[path.to_path_buf()]) } else { Self::from_folder(path) }
    }

    /// Opens the weights of a checkpoint's folder: `model.safetensors`, or else the shards that
    /// `model.safetensors.index.json` lists. Transformers has the same order.
    ///
    /// # Errors
    /// The folder has no weights, the index is damaged, a shard is missing, or [`Weights::from_files`] fails.
    pub fn from_folder(folder: &Path) -> Result<Self, Error> {
        fs::read_dir(folder).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Error::NoSuchWeights(folder.to_path_buf()),
            _ => Error::read(folder)(error),
        })?;
        let single = folder.join(SINGLE_FILE);
        if single.is_file() {
            return Self::from_files(&[single]);
        }
        let path = folder.join(INDEX_FILE);
        if !path.is_file() {
            return Err(Error::NoWeightsInFolder(folder.to_path_buf()));
        }
        let bad = |error| match error {
            IndexError::Io(error) => Error::read(&path)(error),
            IndexError::Damaged(reason) => Error::Damaged { path: path.clone(), reason },
        };
        let index = CheckpointIndex::read(folder).map_err(bad)?;
        let shards: Vec<&str> = index.shards().into_iter().collect();
        let paths: Vec<PathBuf> = shards.iter().map(|shard| folder.join(shard)).collect();
        let weights = Self::from_files(&paths)?;
        let shard_of = |name: &str| weights.inner.tensors.get(name).map(|tensor| shards[tensor.file]);
        index.check(shard_of).map_err(bad)?;
        Ok(weights)
    }

    /// Opens the weights that a bundle carries.
    ///
    /// # Errors
    /// The bundle carries none, or [`Weights::from_files`] fails.
    pub fn from_bundle(bundle: &Bundle) -> Result<Self, Error> {
        // The index is not needed: the bundle lists the files, and the tensors are checked by name.
        let has_tensors = |name: &str| name.ends_with(".safetensors") || name.ends_with(".gguf");
        let files = bundle.weights()?.into_iter().filter(|(name, _)| has_tensors(name));
        let paths: Vec<PathBuf> = files.map(|(_, path)| path).collect();
        if paths.is_empty() {
            return Err(Error::NoWeights(bundle.path().to_path_buf()));
        }
        Self::from_files(&paths)
    }

    /// Opens the weights at `path`, or else those of the bundle. `None` if the bundle's packed weights are used.
    ///
    /// # Errors
    /// As [`Weights::open`] and [`Weights::from_bundle`].
    pub fn choose(bundle: &Bundle, path: Option<&Path>) -> Result<Option<Self>, Error> {
        match path {
            Some(path) => Self::open(path).map(Some),
            None if bundle.is_packed() => Ok(None),
            None => Self::from_bundle(bundle).map(Some),
        }
    }

    /// Checks that the tensors have the names, types and shapes of `parameters`; returns the names of other tensors.
    ///
    /// # Errors
    /// A tensor is missing or has another type or shape. The error lists all of them.
    pub fn check(&self, parameters: &[Parameter]) -> Result<Vec<String>, Error> {
        let mut extra: BTreeSet<&str> = self.inner.tensors.keys().map(String::as_str).collect();
        let mut problems = Vec::new();
        for Parameter { name, dtype, shape, source: _, aliases } in parameters {
            let here = self.name_in_files(name, aliases).unwrap_or(name);
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

    /// Checks as [`Weights::check`] does, then that the tensors have the digests that their parameters state. Reads those that
    /// have one stated.
    ///
    /// # Errors
    /// As [`Weights::check`], or a tensor has another digest. The error lists all of them.
    pub fn check_digests(&self, parameters: &[Parameter]) -> Result<(), Error> {
        self.check(parameters)?;
        let problem = |Parameter { name, source, aliases, .. }: &Parameter| {
            let expected = (*source)?;
            let found =
                self.name_in_files(name, aliases).and_then(|name| self.tensor(name)).map(Digest::of)?;
            (found != expected).then(|| format!("{name}: {found}, expected {expected}"))
        };
        let problems: Vec<String> = parameters.iter().filter_map(problem).collect();
        if problems.is_empty() {
            return Ok(());
        }
        Err(Error::WeightsMismatch { problems, expected: parameters.len() })
    }

    /// Makes tensors that the files have under one of a parameter's aliases available by the parameter's name.
    #[must_use]
    pub fn with_aliases(self, parameters: &[Parameter]) -> Self {
        let alias = |Parameter { name, aliases, .. }: &Parameter| {
            let alias = self.name_in_files(name, aliases).filter(|alias| alias != name)?;
            Some((name.clone(), alias.to_owned()))
        };
        let aliases = Arc::new(parameters.iter().filter_map(alias).collect());
        Self { aliases, ..self }
    }

    /// Returns which of a parameter's names the files have.
    fn name_in_files<'n>(&self, name: &'n str, aliases: &'n [String]) -> Option<&'n str> {
        let mut names = std::iter::once(name).chain(aliases.iter().map(String::as_str));
        names.find(|name| self.inner.tensors.contains_key(*name))
    }

    /// Returns whether every parameter's tensor has the digest that the parameter states. Reads all of them.
    #[must_use]
    pub fn match_digests(&self, parameters: &[Parameter]) -> bool {
        parameters.iter().all(|Parameter { name, source, .. }| {
            let found = self.tensor(name).map(Digest::of);
            source.is_some() && found == *source
        })
    }

    /// Returns a tensor's bytes, little-endian. They need not be aligned.
    #[must_use]
    pub fn tensor(&self, name: &str) -> Option<&[u8]> {
        let tensor = self.inner.tensors.get(self.aliases.get(name).map_or(name, String::as_str))?;
        Some(&self.inner.files[tensor.file][tensor.range.clone()])
    }

    /// Returns the tensors' names, sorted.
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

/// Maps a regular file.
fn map(path: &Path) -> Result<Mmap, Error> {
    // Checked before opening, because opening a pipe waits for its writer.
    if !fs::metadata(path).map_err(Error::read(path))?.is_file() {
        return Err(Error::NotAFile(path.to_path_buf()));
    }
    ffi::map(path).map_err(Error::read(path))
}

/// Returns the tensors of a file. Every range lies in the file and has the size of its type and shape.
fn read_header(path: &Path, file: usize, bytes: &[u8]) -> Result<Vec<(String, Tensor)>, Error> {
    let damaged = |reason: String| Error::Damaged { path: path.to_path_buf(), reason };
    if bytes.starts_with(LFS_POINTER) {
        return Err(Error::LfsPointer(path.to_path_buf()));
    }
    if bytes.starts_with(GGUF_MAGIC) {
        return read_gguf(path, file, bytes);
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

/// Returns the tensors of a GGUF file: numbers, or the bytes of blocks.
fn read_gguf(path: &Path, file: usize, bytes: &[u8]) -> Result<Vec<(String, Tensor)>, Error> {
    let header = GgufHeader::read(bytes, bytes.len() as u64).map_err(|error| match error {
        GgufError::Io(error) => Error::read(path)(error),
        GgufError::Damaged(reason) => Error::Damaged { path: path.to_path_buf(), reason },
    })?;
    let tensors = header.tensors.into_iter().map(|(name, tensor)| {
        let (dtype, shape) = tensor.stored();
        // Fits: it lies in the file, which is mapped.
        let range = tensor.range.start as usize..tensor.range.end as usize;
        (name, Tensor { dtype, shape, file, range })
    });
    Ok(tensors.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a file of the tensors `a` and `b` with these bytes.
    fn file(data: [u8; 8]) -> Vec<u8> {
        let header = r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},
            "b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}"#;
        [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &data].concat()
    }

    #[test]
    #[cfg(feature = "iree")]
    fn blobs_are_those_of_the_mapped_files() {
        let folder = tempfile::tempdir().unwrap();
        let [path, later] = [SINGLE_FILE, "later"].map(|name| folder.path().join(name));
        let [mapped, replacing] = [file([1; 8]), file([2; 8])];
        fs::write(&path, &mapped).unwrap();
        let weights = Weights::open(&path).unwrap();
        fs::write(&later, replacing).unwrap();
        fs::rename(&later, &path).unwrap();
        assert_eq!(weights.blobs().unwrap(), [mlxcel_artifacts::Blob::of(&mapped)]);
        assert_eq!(weights.tensor("b").unwrap(), [1; 4]);
    }

    #[test]
    fn tensors_have_the_digests_that_are_stated() {
        let data = [1, 2, 3, 4, 5, 6, 7, 8];
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(SINGLE_FILE);
        fs::write(&path, file(data)).unwrap();
        let weights = Weights::open(&path).unwrap();
        let parameter = |name: &str, source| Parameter { source, ..Parameter::new(name, Dtype::F32, &[1]) };
        let (of_a, of_b) = (Digest::of(&data[..4]), Digest::of(&data[4..]));
        // The file has the second one under another name.
        let renamed = |source| Parameter { aliases: vec!["b".into()], ..parameter("c", source) };
        assert!(weights.check_digests(&[parameter("a", Some(of_a)), renamed(Some(of_b))]).is_ok());
        // A bundle that was compiled without weights states none.
        assert!(weights.check_digests(&[parameter("a", None), renamed(None)]).is_ok());
        let refused = |parameters: &[Parameter]| weights.check_digests(parameters).unwrap_err().to_string();
        let hint = "hint: give the checkpoint that the bundle was compiled from, or compile it for this one";
        assert_eq!(
            refused(&[parameter("a", Some(of_a)), renamed(Some(of_a))]),
            format!(
                "the weights do not fit the bundle: 1 of 2 tensors\n  c: {of_b}, expected {of_a}\n{hint}"
            )
        );
        assert_eq!(
            refused(&[parameter("d", Some(of_a))]),
            format!(
                "the weights do not fit the bundle: 1 of 1 tensors\n  d: missing, expected f32[1]\n{hint}"
            )
        );
    }
}
