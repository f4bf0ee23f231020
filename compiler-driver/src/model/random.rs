//! Random checkpoints of real models: the same model and seed give the same bytes on every machine.
//!
//! Every element is a function of seed, tensor name and index. So elements can be computed in any order, on any number
//! of threads, and by other programs. In numpy, for a tensor of `n` elements:
//!
//! ```python
//! M = 2**64 - 1
//! def mix(z):                                     # splitmix64's finalizer, on numpy.uint64 or masked ints
//!     z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & M
//!     z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & M
//!     return z ^ (z >> 31)
//! h = 0xCBF29CE484222325                          # FNV-1a of the name
//! for byte in name.encode(): h = ((h ^ byte) * 0x100000001B3) & M
//! base = mix((seed + 0x9E3779B97F4A7C15) & M) ^ h
//! u = mix(base + (arange(1, n + 1) * 0x9E3779B97F4A7C15))              # modulo 2**64
//! s = (u & 0xFFFF) + (u >> 16 & 0xFFFF) + (u >> 32 & 0xFFFF) + (u >> 48) - 131070
//! x = float32(s) * float32(0.02 / 37837.22)       # a sum of four uniforms: nearly normal, deviation 0.02
//! if the tensor is a norm's weight: x = float32(1) + x
//! ```
//!
//! then rounded to the checkpoint's element type, to nearest, ties to even.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Write},
    path::Path,
    thread,
};

use mlxcel_artifacts::{CONFIG_FILE, Cancel, SINGLE_FILE, safetensors_prefix};
use mlxcel_models::ModelConfig;
use safetensors::Dtype;

use crate::{
    error::Error,
    model::{files::SmallFile, source::ModelSource},
    target::float_name,
};

/// Step of splitmix64's counter: the odd number nearest to 2⁶⁴ divided by the golden ratio.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
/// Scales to a standard deviation of 0.02. The sum of four 16-bit uniforms has one of 37,837.22.
const SCALE: f32 = (0.02 / 37837.22) as f32;
/// Elements that one thread computes between two writes.
const CHUNK: usize = 1 << 20;

/// A random checkpoint of a model. Its weights are computed while it is written.
pub(crate) struct RandomCheckpoint<'m> {
    model: &'m ModelConfig,
    seed: u64,
    encoding: Encoding,
}

/// Element type of a checkpoint.
#[derive(Debug, Clone, Copy)]
enum Encoding {
    F32,
    Bf16,
    F16,
}

impl<'m> RandomCheckpoint<'m> {
    /// Describes the checkpoint of `model` for `seed`, in the element type that its config names.
    pub(crate) fn new(model: &'m ModelConfig, seed: u64) -> Result<Self, Error> {
        let encoding = match model.dtype {
            Dtype::F32 => Encoding::F32,
            Dtype::BF16 => Encoding::Bf16,
            Dtype::F16 => Encoding::F16,
            other => return Err(Error::RandomType { found: float_name(other) }),
        };
        Ok(Self { model, seed, encoding })
    }

    /// Writes the checkpoint to a file.
    pub(crate) fn write_file(&self, path: &Path, cancel: &Cancel) -> io::Result<()> {
        self.write(&mut cancel.watch(fs::File::create(path)?))
    }

    /// Writes the checkpoint as one safetensors file, holding a chunk per thread in memory.
    pub(crate) fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        let weights = self.model.weights();
        let dtype = self.model.dtype;
        let tensors = weights.iter().map(|weight| (weight.name.as_str(), dtype, weight.shape.as_slice()));
        to.write_all(&safetensors_prefix(tensors).map_err(io::Error::other)?)?;

        let norms = norms(self.model);
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let mut buffer = vec![0; threads * CHUNK * self.encoding.width()];
        for weight in weights {
            let tensor = Tensor {
                base: mix(self.seed.wrapping_add(STEP)) ^ fnv1a(&weight.name),
                offset: norms.get(weight.name.as_str()).copied().unwrap_or(0.0),
                encoding: self.encoding,
            };
            let elements: usize = weight.shape.iter().product();
            for start in (0..elements).step_by(threads * CHUNK) {
                let count = (elements - start).min(threads * CHUNK);
                let bytes = &mut buffer[..count * self.encoding.width()];
                tensor.fill_on_threads(start, bytes);
                to.write_all(bytes)?;
            }
        }
        to.flush()
    }
}

impl Encoding {
    /// Returns the bytes of an element.
    fn width(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::Bf16 | Self::F16 => 2,
        }
    }
}

/// Parameters of one tensor's elements.
#[derive(Clone, Copy)]
struct Tensor {
    base: u64,
    offset: f32,
    encoding: Encoding,
}

impl Tensor {
    /// Fills `bytes` with the elements from `start` on, one chunk per thread.
    fn fill_on_threads(self, start: usize, bytes: &mut [u8]) {
        let chunk = CHUNK * self.encoding.width();
        if bytes.len() <= chunk {
            return self.fill(start, bytes);
        }
        thread::scope(|scope| {
            for (i, bytes) in bytes.chunks_mut(chunk).enumerate() {
                scope.spawn(move || self.fill(start + i * CHUNK, bytes));
            }
        });
    }

    fn fill(self, start: usize, bytes: &mut [u8]) {
        match self.encoding {
            Encoding::F32 => self.encode(start, bytes, f32::to_le_bytes),
            Encoding::Bf16 => self.encode(start, bytes, |x| half::bf16::from_f32(x).to_le_bytes()),
            Encoding::F16 => self.encode(start, bytes, |x| half::f16::from_f32(x).to_le_bytes()),
        }
    }

    fn encode<const N: usize>(self, start: usize, bytes: &mut [u8], encode: impl Fn(f32) -> [u8; N]) {
        let mut counter = self.base.wrapping_add((start as u64).wrapping_mul(STEP));
        for bytes in bytes.chunks_exact_mut(N) {
            counter = counter.wrapping_add(STEP);
            bytes.copy_from_slice(&encode(self.offset + element(mix(counter))));
        }
    }
}

/// Returns a number of mean 0 and standard deviation 0.02 from 64 random bits.
fn element(bits: u64) -> f32 {
    let uniform = |shift: u32| (bits >> shift & 0xFFFF) as i32;
    let sum = uniform(0) + uniform(16) + uniform(32) + uniform(48) - 131_070;
    sum as f32 * SCALE
}

/// Applies splitmix64's finalizer.
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ bits >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ bits >> 31
}

fn fnv1a(text: &str) -> u64 {
    let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
    text.bytes().fold(0xCBF2_9CE4_8422_2325, step)
}

/// Returns the mean of each norm's weights, by name: with its offset, a norm multiplies by about 1.
fn norms(model: &ModelConfig) -> BTreeMap<&str, f32> {
    let weights = model.norms().flat_map(|norm| norm.weights.iter().map(move |weight| (norm, weight)));
    weights.map(|(norm, weight)| (weight.name.as_str(), 1.0 - norm.offset as f32)).collect()
}

/// Writes the random checkpoint of `model` for `seed` as a folder in Hugging Face's format.
///
/// A bundle built with `--weights random:SEED` has the same weights, so other programs can be compared with it.
///
/// # Errors
/// The folder exists or cannot be written, or `cancel` was triggered.
pub fn write_random_weights(
    model: &ModelSource,
    seed: u64,
    out: &Path,
    cancel: &Cancel,
) -> Result<(), Error> {
    let model = model.load()?;
    let random = RandomCheckpoint::new(&model.config, seed)?;
    if out.exists() {
        return Err(Error::Occupied { path: out.to_owned() });
    }
    fs::create_dir_all(parent(out)).map_err(Error::io("write", parent(out)))?;
    let staging = tempfile::Builder::new()
        .prefix(".mlxcel-")
        .tempdir_in(parent(out))
        .map_err(Error::io("write", parent(out)))?;
    random.write_file(&staging.path().join(SINGLE_FILE), cancel).map_err(Error::io("write", out))?;
    let config = staging.path().join(CONFIG_FILE);
    fs::write(&config, &model.json).map_err(Error::io("write", &config))?;
    for (name, file) in model.small_files(None, BTreeMap::new()) {
        let to = staging.path().join(name);
        match file {
            SmallFile::Path(path) => _ = fs::copy(&path, to).map_err(Error::io("copy", &path))?,
            SmallFile::Text(text) => fs::write(&to, text).map_err(Error::io("write", &to))?,
        }
    }
    fs::rename(staging.path(), out).map_err(Error::io("write", out))?;
    // It was renamed: there is nothing left to remove.
    let _ = staging.keep();
    Ok(())
}

/// Returns the folder that contains `path`.
fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use mlxcel_models::Preset;
    use safetensors::SafeTensors;

    use super::*;

    /// Returns a real model cut to one block, with a vocabulary of several chunks.
    fn model(dtype: Dtype) -> ModelConfig {
        let mut model = Preset::find("smollm2-135m").unwrap().model().unwrap();
        model.blocks.truncate(1);
        // The head is tied, so this is the only matrix of that size.
        model.embedding.weight.shape[0] = 4096;
        model.dtype = dtype;
        model
    }

    fn written(dtype: Dtype, seed: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        RandomCheckpoint::new(&model(dtype), seed).unwrap().write(&mut bytes).unwrap();
        bytes
    }

    fn floats(bytes: &[u8], name: &str) -> Vec<f32> {
        let file = SafeTensors::deserialize(bytes).unwrap();
        let data = file.tensor(name).unwrap().data().chunks_exact(4);
        data.map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap())).collect()
    }

    /// Compares with the numbers that the module's numpy text gives.
    #[test]
    fn elements_match_numpy() {
        let bytes = written(Dtype::F32, 3);
        let embedding = floats(&bytes, "model.embed_tokens.weight");
        assert_eq!(embedding[..3], [-0.010019235, 0.032028254, -0.0077056405]);
        // An element of the third chunk.
        assert_eq!(embedding[2_200_000], 0.008483182);
        assert_eq!(floats(&bytes, "model.norm.weight")[..3], [1.0237015, 1.0129762, 0.9813559]);
    }

    #[test]
    fn every_weight_is_written_in_its_shape() {
        for dtype in [Dtype::F32, Dtype::BF16, Dtype::F16] {
            let bytes = written(dtype, 0);
            let file = SafeTensors::deserialize(&bytes).unwrap();
            let model = model(dtype);
            assert_eq!(file.len(), model.weights().len());
            for weight in model.weights() {
                let tensor = file.tensor(&weight.name).unwrap();
                assert_eq!((tensor.dtype(), tensor.shape()), (dtype, weight.shape.as_slice()));
            }
            let (_, about) = SafeTensors::read_metadata(&bytes).unwrap();
            assert_eq!(about.metadata().as_ref().unwrap()["format"], "pt");
        }
    }

    #[test]
    fn elements_are_nearly_normal() {
        let bytes = written(Dtype::F32, 1);
        for (name, center) in [("model.embed_tokens.weight", 0.0), ("model.norm.weight", 1.0)] {
            let x = floats(&bytes, name);
            let count = x.len() as f64;
            let mean = x.iter().map(|&x| f64::from(x)).sum::<f64>() / count;
            let deviation = (x.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / count).sqrt();
            assert!((mean - center).abs() < 0.1 / count.sqrt(), "{name}: mean {mean}");
            assert!((deviation - 0.02).abs() < 0.002, "{name}: deviation {deviation}");
        }
    }

    #[test]
    fn equal_seeds_give_equal_bytes() {
        assert!(written(Dtype::BF16, 7) == written(Dtype::BF16, 7));
        assert!(written(Dtype::BF16, 7) != written(Dtype::BF16, 8));
    }

    #[test]
    fn other_types_are_refused() {
        let error = RandomCheckpoint::new(&model(Dtype::F8_E4M3), 0).err().unwrap();
        assert_eq!(error.to_string(), "random weights in f8_e4m3, expected f32, bf16 or f16");
    }
}
