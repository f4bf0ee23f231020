//! Headers of GGUF files: metadata, and where each tensor is (llama.cpp's format, versions 2 and 3).

mod read;
mod types;
mod value;

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Read,
    ops::Range,
};

use safetensors::Dtype;

pub use read::GgufError;
pub use types::GgmlType;
pub use value::MetadataValue;

use read::Source;

/// What a file begins with.
pub const GGUF_MAGIC: &[u8] = b"GGUF";

/// Versions that are read. The first had lengths of 32 bits.
const VERSIONS: [u32; 2] = [2, 3];

/// The key of the alignment of tensors, and its default.
const ALIGNMENT_KEY: &str = "general.alignment";
const ALIGNMENT: u64 = 32;

/// The most dimensions of a tensor, as in ggml.
const MAX_RANK: u32 = 4;

/// The header of a GGUF file.
#[derive(Debug, Clone, PartialEq)]
pub struct GgufHeader {
    /// Values by key.
    pub metadata: BTreeMap<String, MetadataValue>,
    /// Tensors by name.
    pub tensors: BTreeMap<String, GgufTensor>,
}

/// A tensor of a GGUF file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GgufTensor {
    /// The element type.
    pub ty: GgmlType,
    /// The sizes of its dimensions in elements, outermost first.
    pub shape: Vec<usize>,
    /// Its bytes in the file.
    pub range: Range<u64>,
}

impl GgufTensor {
    /// Returns element type and shape as other files have them: those of numbers, or bytes `[…, bytes of a row]`.
    #[must_use]
    pub fn stored(&self) -> (Dtype, Vec<usize>) {
        let Self { ty, shape, .. } = self;
        let mut shape = shape.clone();
        match (ty.dtype, shape.last_mut()) {
            (Some(dtype), _) => (dtype, shape),
            (None, Some(row)) => {
                *row = *row / ty.block * ty.bytes;
                (Dtype::U8, shape)
            }
            (None, None) => (Dtype::U8, shape),
        }
    }
}

impl GgufHeader {
    /// Reads the header of a file of `length` bytes. Every tensor lies in the file, and no two overlap.
    ///
    /// # Errors
    /// The file cannot be read, is damaged, or is of a form that is not supported.
    pub fn read(from: impl Read, length: u64) -> Result<Self, GgufError> {
        let damaged = |problem: String| GgufError::Damaged(problem);
        let mut source = Source::new(from, length);
        let magic = source.u32()?.to_le_bytes();
        if magic != GGUF_MAGIC {
            return Err(damaged(format!("found the bytes {magic:?}, expected GGUF")));
        }
        let version = source.u32()?;
        if !VERSIONS.contains(&version) {
            // Of the other byte order, or old.
            let problem = match VERSIONS.contains(&version.swap_bytes()) {
                true => "found a big-endian file, expected little-endian numbers".to_owned(),
                false => format!("found version {version}, expected 2 or 3"),
            };
            return Err(damaged(problem));
        }
        // A tensor has a name, dimensions, a type and an offset; a value a key, a kind and itself.
        let tensors = source.number_of("tensors", 8 + 4 + 4 + 8)?;
        let values = source.number_of("values", 8 + 4 + 1)?;
        let mut metadata = BTreeMap::new();
        for _ in 0..values {
            let key = source.name("a key")?;
            let value = source.value(&key)?;
            if metadata.insert(key.clone(), value).is_some() {
                return Err(damaged(format!("the key `{key}` is there twice, expected it once")));
            }
        }
        let alignment = match metadata.get(ALIGNMENT_KEY) {
            None => ALIGNMENT,
            Some(MetadataValue::Integer(value)) if (1..=1 << 16).contains(value) => {
                u64::try_from(*value).unwrap_or(ALIGNMENT)
            }
            Some(other) => {
                let problem = format!("`{ALIGNMENT_KEY}` is {other}, expected a number from 1 to 65536");
                return Err(damaged(problem));
            }
        };
        let infos = (0..tensors).map(|_| TensorInfo::read(&mut source)).collect::<Result<Vec<_>, _>>()?;
        let start = source.read.next_multiple_of(alignment);
        let tensors = place(infos, start, alignment, length)?;
        Ok(Self { metadata, tensors })
    }
}

/// A tensor as the header describes it.
struct TensorInfo {
    name: String,
    ty: GgmlType,
    shape: Vec<usize>,
    bytes: u64,
    offset: u64,
}

impl TensorInfo {
    fn read(source: &mut Source<impl Read>) -> Result<Self, GgufError> {
        let name = source.name("the name of a tensor")?;
        let damaged = |problem: String| GgufError::Damaged(format!("tensor `{name:.200}`: {problem}"));
        let rank = source.u32()?;
        if !(1..=MAX_RANK).contains(&rank) {
            return Err(damaged(format!("found {rank} dimensions, expected 1 to {MAX_RANK}")));
        }
        let mut shape = Vec::new();
        for _ in 0..rank {
            let size = source.u64()?;
            let size = usize::try_from(size).ok().filter(|&size| size > 0);
            shape.push(size.ok_or_else(|| damaged("found a dimension of 0, expected at least 1".into()))?);
        }
        let number = source.u32()?;
        let ty = GgmlType::of_number(number).ok_or_else(|| {
            damaged(format!("found the element type {number}, expected one that ggml had in 2026"))
        })?;
        // ggml's first dimension is the innermost.
        if !shape[0].is_multiple_of(ty.block) {
            let problem = format!(
                "found rows of {} elements, expected a multiple of {} for {}",
                shape[0], ty.block, ty.name
            );
            return Err(damaged(problem));
        }
        let row = (shape[0] / ty.block).checked_mul(ty.bytes);
        let bytes = shape[1..].iter().try_fold(row, |bytes, &size| Some(bytes?.checked_mul(size))).flatten();
        let bytes = bytes.ok_or_else(|| damaged(format!("the shape {shape:?} has too many elements")))?;
        shape.reverse();
        let offset = source.u64()?;
        Ok(Self { name, ty, shape, bytes: bytes as u64, offset })
    }
}

/// Places tensors in the file.
fn place(
    mut infos: Vec<TensorInfo>,
    start: u64,
    alignment: u64,
    length: u64,
) -> Result<BTreeMap<String, GgufTensor>, GgufError> {
    infos.sort_by_key(|info| info.offset);
    let (mut end, mut names, mut tensors) = (start, BTreeSet::new(), BTreeMap::new());
    for TensorInfo { name, ty, shape, bytes, offset } in infos {
        let damaged = |problem: String| GgufError::Damaged(format!("tensor `{name:.200}`: {problem}"));
        let begin = start.checked_add(offset);
        let range = begin.and_then(|begin| Some(begin..begin.checked_add(bytes)?));
        let Some(range) = range.filter(|range| range.end <= length) else {
            let problem = format!(
                "found {bytes} bytes at {offset} of the data, expected a place in the file of {length} bytes"
            );
            return Err(damaged(problem));
        };
        if !offset.is_multiple_of(alignment) {
            return Err(damaged(format!("found the offset {offset}, expected a multiple of {alignment}")));
        }
        if range.start < end {
            return Err(damaged("overlaps another tensor, expected a place of its own".into()));
        }
        end = range.end;
        if !names.insert(name.clone()) {
            return Err(damaged("is there twice, expected it once".into()));
        }
        tensors.insert(name, GgufTensor { ty, shape, range });
    }
    Ok(tensors)
}

#[cfg(test)]
mod tests;
