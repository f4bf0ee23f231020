//! GGUF files of every architecture give the descriptions and the numbers of the checkpoints that they were made of.
//!
//! The oracle compares the answers of those checkpoints with Hugging Face's, so a file that gives the same has them too.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use mlxcel_artifacts::Cancel;
use mlxcel_models::{Coding, Expr, ModelConfig, OfGroups, Rope, RopeScaling, Storage, StoredTensor, Weight};
use safetensors::Dtype;

use super::{
    checkpoint::Checkpoint,
    source::{Model, ModelSource},
    tensor_file::TensorFile,
};

/// Returns a folder of `models/`.
fn models(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../models").join(folder)
}

/// A model with the numbers of its weights, by name.
struct Opened {
    config: ModelConfig,
    weights: BTreeMap<String, Array>,
    warnings: Vec<String>,
}

/// Numbers in row-major order.
#[derive(Debug, Clone, PartialEq)]
struct Array {
    shape: Vec<usize>,
    numbers: Vec<f32>,
}

/// Opens a model, and decodes its weights.
fn open(source: &ModelSource, mut checkpoint: Checkpoint) -> Opened {
    let Model { config, .. } = source.load().unwrap();
    let (config, warnings) = checkpoint.fit(config, "test", &Cancel::new()).unwrap();
    let (_, path) = checkpoint.files().next().unwrap();
    let mut file = TensorFile::open(&path).unwrap();
    let names: Vec<_> = file.tensors().into_keys().collect();
    let bytes = file.small_tensors(&names).unwrap();
    let decode = |weight: &Weight| {
        let Storage { tensors, coding, .. } = checkpoint.storage(&weight.name).unwrap().clone();
        let stored = tensors.into_iter().map(|StoredTensor { name, dtype, shape }| Array {
            numbers: floats(&bytes[&name], dtype),
            shape,
        });
        let stored: Vec<_> = stored.collect();
        let found = coding.map_or_else(|| stored[0].clone(), |coding| decoded(coding, &stored));
        // A vector is stored as one column.
        assert_eq!(found.numbers.len(), weight.shape.iter().product::<usize>());
        Array { shape: weight.shape.clone(), ..found }
    };
    let weights = config.weights().into_iter().map(|weight| (weight.name.clone(), decode(weight)));
    let weights = weights.collect();
    Opened { config, weights, warnings }
}

fn floats(bytes: &[u8], dtype: Dtype) -> Vec<f32> {
    let halves = || bytes.as_chunks().0.iter().map(|half| u16::from_le_bytes(*half));
    match dtype {
        Dtype::F32 => bytes.as_chunks().0.iter().map(|word| f32::from_le_bytes(*word)).collect(),
        Dtype::BF16 => halves().map(|half| f32::from_bits(u32::from(half) << 16)).collect(),
        Dtype::F16 => halves().map(half).collect(),
        other => panic!("found {other:?}, expected floats"),
    }
}

/// Widens a number of 16 bits.
fn half(bits: u16) -> f32 {
    let (exponent, mantissa) = (i32::from(bits >> 10 & 31), f32::from(bits & 1023));
    let magnitude = match exponent {
        0 => mantissa * 2f32.powi(-24),
        _ => (1.0 + mantissa / 1024.0) * 2f32.powi(exponent - 15),
    };
    if bits < 1 << 15 { magnitude } else { -magnitude }
}

/// Returns a weight that is stored in floats, whose order alone differs.
fn decoded(coding: Coding, stored: &[Array]) -> Array {
    let Coding { codes, scales, zeros: None, minima: None, transposed, .. } = coding else {
        panic!("found {coding}, expected floats")
    };
    assert!(matches!(scales, OfGroups::Numbers(one) if one.as_number() == Some(1.0)));
    let found = array(&codes, stored);
    let last = found.shape.len() - 1;
    let mut permutation: Vec<_> = (0..=last).collect();
    if transposed {
        permutation.swap(last - 1, last);
    }
    found.transposed(&permutation)
}

/// Computes an expression that moves elements.
fn array(expr: &Expr, stored: &[Array]) -> Array {
    match expr {
        Expr::Stored(index) => stored[*index].clone(),
        Expr::Floats(of) => array(of, stored),
        Expr::Reshape(of, shape) => {
            let numbers = array(of, stored).numbers;
            assert_eq!(numbers.len(), shape.iter().product::<usize>());
            Array { shape: shape.clone(), numbers }
        }
        Expr::Transpose(of, permutation) => array(of, stored).transposed(permutation),
        &Expr::Slice { ref of, dimension, start, end } => {
            let Array { mut shape, numbers } = array(of, stored);
            let inner: usize = shape[dimension + 1..].iter().product();
            let rows = numbers.chunks(shape[dimension] * inner);
            shape[dimension] = end - start;
            Array { shape, numbers: rows.flat_map(|row| row[start * inner..end * inner].to_vec()).collect() }
        }
        Expr::Concatenate(parts, dimension) => {
            let parts: Vec<_> = parts.iter().map(|part| array(part, stored)).collect();
            let row = |part: &Array| part.shape[*dimension..].iter().product::<usize>();
            let outer = parts[0].shape[..*dimension].iter().product();
            let numbers = (0..outer).flat_map(|index| {
                let rows = parts.iter().map(|part| &part.numbers[index * row(part)..][..row(part)]);
                rows.collect::<Vec<_>>().concat()
            });
            let mut shape = parts[0].shape.clone();
            shape[*dimension] = parts.iter().map(|part| part.shape[*dimension]).sum();
            Array { numbers: numbers.collect(), shape }
        }
        other => panic!("found {other:?}, expected one that moves floats"),
    }
}

impl Array {
    /// Returns dimension `permutation[d]` as dimension `d`.
    fn transposed(&self, permutation: &[usize]) -> Self {
        let mut strides = vec![1; self.shape.len()];
        for dimension in (1..self.shape.len()).rev() {
            strides[dimension - 1] = strides[dimension] * self.shape[dimension];
        }
        let shape: Vec<_> = permutation.iter().map(|&dimension| self.shape[dimension]).collect();
        let numbers = (0..self.numbers.len()).map(|index| {
            let (mut rest, mut from) = (index, 0);
            for (&size, &dimension) in shape.iter().zip(permutation).rev() {
                from += rest % size * strides[dimension];
                rest /= size;
            }
            self.numbers[from]
        });
        Self { numbers: numbers.collect(), shape }
    }
}

/// Returns the lines of a description, without names, ids of tokens, and what other numbers follow from.
fn described(mut config: ModelConfig) -> Vec<String> {
    config.scheme = None;
    config.bos = None;
    config.eos.clear();
    config.notes.clear();
    for rope in config.blocks.iter_mut().filter_map(|block| block.attention.layer.rope.as_mut()) {
        let factors = rope.inverse_frequencies().into_iter().map(f64::from).collect();
        let scaling = RopeScaling::PerPair { factors, amplitude: rope.amplitude() };
        *rope = Rope { theta: 1.0, scaling, ..rope.clone() };
    }
    let text = format!("{config:#?}");
    let lines = text.lines().map(str::trim);
    lines
        .filter(|line| !["name:", "offset:"].iter().any(|key| line.starts_with(key)))
        .map(str::to_owned)
        .collect()
}

/// Returns whether two lines of a description are the same. Metadata has numbers in f32.
fn is_same(one: &str, other: &str) -> bool {
    let parts = |line: &str| {
        let line = line.trim_end_matches(',');
        let (key, value) = line.rsplit_once(' ').unwrap_or(("", line));
        Some((key.to_owned(), value.parse::<f64>().ok()?))
    };
    match (parts(one), parts(other)) {
        (Some((key, number)), Some((other_key, other))) => {
            key == other_key && (number - other).abs() <= 5e-7 * other.abs()
        }
        _ => one == other,
    }
}

/// Returns the numbers of all weights in their order, those of norms with what is added to them.
fn numbers(opened: &Opened) -> Vec<(String, Array)> {
    let norms =
        opened.config.norms().flat_map(|norm| norm.weights.iter().map(|weight| (&weight.name, norm.offset)));
    let offsets: BTreeMap<&String, f64> = norms.collect();
    let all = opened.config.weights().into_iter().map(|weight| {
        let mut array = opened.weights[&weight.name].clone();
        let offset = offsets.get(&weight.name).map_or(0.0, |offset| *offset as f32);
        array.numbers.iter_mut().for_each(|number| *number += offset);
        (weight.name.clone(), array)
    });
    all.collect()
}

/// Returns the files, each with the name of the checkpoint that it was made of.
fn files() -> Vec<(String, PathBuf)> {
    let entries =
        fs::read_dir(models("oracle/gguf_architectures")).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.filter(|path| path.extension().is_some_and(|end| end == "gguf"));
    let mut files: Vec<_> =
        files.map(|path| (path.file_stem().unwrap().to_string_lossy().into_owned(), path)).collect();
    files.sort();
    files
}

/// Returns where a file says something else than the checkpoint that it was made of.
fn difference(name: &str, path: &Path) -> Option<String> {
    let folder = models("oracle/fixtures").join(name);
    let checkpoint = Checkpoint::open(&folder).unwrap().unwrap();
    let expected = open(&ModelSource::Folder(folder), checkpoint);
    let found = open(&ModelSource::Gguf(path.to_owned()), Checkpoint::open_gguf(path).unwrap());
    if !found.warnings.is_empty() {
        return Some(found.warnings.join(", "));
    }
    let [lines, expected_lines] = [&found, &expected].map(|opened| described(opened.config.clone()));
    assert_eq!(lines.len(), expected_lines.len(), "{name}");
    let mut pairs = lines.iter().zip(&expected_lines).enumerate();
    if let Some((line, (one, other))) = pairs.find(|(_, (one, other))| !is_same(one, other)) {
        let before = lines[line.saturating_sub(5)..line].join(" ");
        return Some(format!("found {one}, expected {other}, after {before}"));
    }
    let [weights, expected_weights] = [&found, &expected].map(numbers);
    assert_eq!(weights.len(), expected_weights.len(), "{name}");
    let mut pairs = weights.into_iter().zip(expected_weights);
    let (weight, _) = pairs.find(|((_, array), (_, expected))| array != expected)?.0;
    Some(format!("{weight} has other numbers"))
}

#[test]
fn files_say_what_their_checkpoints_say() {
    let found = files().into_iter().filter_map(|(name, path)| Some((difference(&name, &path)?, name)));
    let words: Vec<_> = found.map(|(difference, name)| format!("{name}: {difference}")).collect();
    assert!(words.is_empty(), "{}", words.join("\n"));
}

#[test]
fn every_architecture_has_a_file() {
    let readme = fs::read_to_string(models("README.md")).unwrap();
    let row = readme.lines().find(|line| line.starts_with("| architectures |")).unwrap();
    let named: BTreeSet<_> = row.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    let quantized = fs::read_dir(models("oracle/quantized_checkpoints/fixtures")).unwrap();
    let quantized = quantized.map(|entry| entry.unwrap().path().join("model.gguf"));
    let paths = files().into_iter().map(|(_, path)| path).chain(quantized.filter(|path| path.exists()));
    let architecture = |path: PathBuf| {
        let header = TensorFile::open(&path).unwrap().into_gguf().unwrap();
        header.metadata["general.architecture"].to_json().as_str().unwrap().to_owned()
    };
    assert_eq!(paths.map(architecture).collect::<BTreeSet<_>>(), named);
}
