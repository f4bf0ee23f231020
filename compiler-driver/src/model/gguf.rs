//! GGUF files: their parts, and what their metadata says about the model.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use mlxcel_artifacts::{GgufHeader, MetadataValue};
use mlxcel_models::{GgufModel, GgufTensorInfo};

use crate::{
    error::Error,
    model::tensor_file::{GGUF_EXTENSION, SMALL_BYTES, TensorFile},
};

/// Keys of a file that is split: the number of a part from 0 on, of parts, and of all tensors.
const PART: &str = "split.no";
const PARTS: &str = "split.count";
const TENSORS: &str = "split.tensors.count";

/// The most parts of a file.
const PARTS_MAX: i128 = 10_000;

/// A GGUF file, or the parts of one.
#[derive(Debug)]
pub(crate) struct GgufParts {
    /// Paths of the parts in order.
    pub(crate) paths: Vec<PathBuf>,
    /// The model that the first part describes, with the tensors of all.
    pub(crate) model: GgufModel,
}

impl GgufParts {
    /// Opens the file at `path`, or all parts of it if it is one of several.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let first = read(path)?;
        let (paths, headers) = match first.metadata.get(PARTS) {
            None => (vec![path.to_owned()], vec![first]),
            Some(count) => {
                let count = integer(count, 1..=PARTS_MAX)
                    .ok_or_else(|| damaged(path, format!("{PARTS} is {count}, expected 1 to {PARTS_MAX}")))?;
                if count == 1 { (vec![path.to_owned()], vec![first]) } else { parts(path, count)? }
            }
        };
        let mut tensors = BTreeMap::new();
        for (header, path) in headers.iter().zip(&paths) {
            for (name, tensor) in &header.tensors {
                let info = GgufTensorInfo {
                    name: name.clone(),
                    ty: tensor.ty.name.to_owned(),
                    in_blocks: tensor.ty.dtype.is_none(),
                    shape: tensor.shape.clone(),
                };
                if tensors.insert(name.clone(), info).is_some() {
                    let name = name.escape_default();
                    return Err(damaged(path, format!("tensor `{name}` is in another part too")));
                }
            }
        }
        let metadata = &headers[0].metadata;
        if let Some(expected) = metadata.get(TENSORS).filter(|_| headers.len() > 1)
            && integer(expected, 0..=i128::MAX) != Some(tensors.len())
        {
            let problem = format!("all parts have {} tensors, but {TENSORS} is {expected}", tensors.len());
            return Err(damaged(&paths[0], problem));
        }
        let metadata = metadata.iter().map(|(key, value)| (key.clone(), value.to_json()));
        let numbers = numbers(&paths)?;
        let model = GgufModel::new(metadata.collect(), tensors.into_values(), numbers);
        Ok(Self { model: model.map_err(Error::model(path.display()))?, paths })
    }
}

/// Reads the header of a file.
fn read(path: &Path) -> Result<GgufHeader, Error> {
    let file = TensorFile::open(path)?;
    file.into_gguf()
        .ok_or_else(|| damaged(path, "found no GGUF, expected the bytes GGUF at the start".into()))
}

fn damaged(path: &Path, reason: String) -> Error {
    Error::Damaged { path: path.to_owned(), reason }
}

fn integer(value: &MetadataValue, range: std::ops::RangeInclusive<i128>) -> Option<usize> {
    match value {
        MetadataValue::Integer(number) if range.contains(number) => usize::try_from(*number).ok(),
        _ => None,
    }
}

/// Reads all parts beside one of them, whose names end with `-00001-of-00003.gguf`.
fn parts(path: &Path, count: usize) -> Result<(Vec<PathBuf>, Vec<GgufHeader>), Error> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let end = format!("-of-{count:05}.{GGUF_EXTENSION}");
    let start = name.strip_suffix(&end).and_then(|start| start.rsplit_once('-')).map(|(start, _)| start);
    let Some(start) = start else {
        let problem = format!("it is one of {count} parts, expected a name that ends with -00001{end}");
        return Err(damaged(path, problem));
    };
    let (mut paths, mut headers) = (Vec::new(), Vec::new());
    for part in 0..count {
        let path = path.with_file_name(format!("{start}-{:05}{end}", part + 1));
        if !path.exists() {
            return Err(Error::NoPart { path, count });
        }
        let header = read(&path)?;
        let found = [PART, PARTS].map(|key| header.metadata.get(key));
        let expected = [part, count].map(|number| number as i128);
        let fits = |(found, expected): (Option<&MetadataValue>, i128)| {
            found == Some(&MetadataValue::Integer(expected))
        };
        if !found.into_iter().zip(expected).all(fits) {
            let [no, of] = found.map(|value| value.map_or_else(|| "missing".to_owned(), ToString::to_string));
            let problem = format!("{PART} is {no} and {PARTS} is {of}, expected {part} and {count}");
            return Err(damaged(&path, problem));
        }
        paths.push(path);
        headers.push(header);
    }
    Ok((paths, headers))
}

/// Reads the numbers of the small tensors that descriptions need.
fn numbers(paths: &[PathBuf]) -> Result<BTreeMap<String, Vec<f32>>, Error> {
    let wanted = GgufModel::NUMBERS.map(str::to_owned);
    let mut numbers = BTreeMap::new();
    for path in paths {
        let mut file = TensorFile::open(path)?;
        for name in &wanted {
            if let Some(bytes) = file.bytes(name).filter(|&bytes| bytes > SMALL_BYTES) {
                let problem = format!("tensor `{name}` has {bytes} bytes, expected at most {SMALL_BYTES}");
                return Err(damaged(path, problem));
            }
        }
        for (name, bytes) in file.small_tensors(&wanted)? {
            let (words, rest) = bytes.as_chunks();
            if file.dtype(&name) != Some(safetensors::Dtype::F32) || !rest.is_empty() {
                return Err(damaged(path, format!("tensor `{name}` is of another type, expected F32")));
            }
            numbers.insert(name, words.iter().map(|word| f32::from_le_bytes(*word)).collect());
        }
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn fixture(name: &str) -> PathBuf {
        let fixtures = "../models/oracle/quantized_checkpoints/fixtures";
        Path::new(env!("CARGO_MANIFEST_DIR")).join(fixtures).join(name)
    }

    #[test]
    fn any_part_stands_for_all() {
        let open =
            |part| GgufParts::open(&fixture(&format!("gguf-split/model-0000{part}-of-00002.gguf"))).unwrap();
        let [first, second] = [1, 2].map(open);
        assert_eq!(first.paths, second.paths);
        let names = first.paths.iter().map(|path| path.file_name().unwrap().to_str().unwrap());
        assert_eq!(names.collect::<Vec<_>>(), ["model-00001-of-00002.gguf", "model-00002-of-00002.gguf"]);
    }

    #[test]
    fn parts_that_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let copy = |from: &str, to: &str| _ = fs::copy(fixture("gguf-split").join(from), path(to)).unwrap();
        let refused = |name: &str| {
            let error = GgufParts::open(&path(name)).unwrap_err().to_string();
            error.replace(&folder.path().display().to_string(), "…")
        };
        copy("model-00001-of-00002.gguf", "model-00001-of-00002.gguf");
        copy("model-00001-of-00002.gguf", "other.gguf");
        let missing = refused("model-00001-of-00002.gguf");
        let renamed = refused("other.gguf");
        copy("model-00001-of-00002.gguf", "model-00002-of-00002.gguf");
        let twice = refused("model-00001-of-00002.gguf");
        fs::write(path("text.gguf"), "not a file with tensors").unwrap();
        let text = refused("text.gguf");
        assert_eq!(
            [missing, renamed, twice].join("\n"),
            "found no …/model-00002-of-00002.gguf, expected all 2 parts of the file\n\
             hint: download the missing part\n\
             …/other.gguf is damaged: it is one of 2 parts, expected a name that ends with -00001-of-00002.gguf\n\
             hint: download or copy the checkpoint again\n\
             …/model-00002-of-00002.gguf is damaged: split.no is 0 and split.count is 2, expected 1 and 2\n\
             hint: download or copy the checkpoint again"
        );
        assert!(
            text.starts_with(r#"…/text.gguf is damaged: it begins with "not ", expected "GGUF""#),
            "{text}"
        );
    }
}
