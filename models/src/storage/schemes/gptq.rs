//! GPTQ: `quant_method` gptq, as gptqmodel 7.7 and auto-gptq write it.
//!
//! A module has `qweight`, words of codes down the columns with the lowest bits first, `qzeros`, words of zero points along
//! the rows, `scales`, and `g_idx`, the group of each input.

use safetensors::Dtype;

use super::names::{matrix, module};
use crate::{
    error::Error,
    json::Json,
    layers::Weight,
    storage::{
        coding::{Coding, Numbers, Storage},
        tensors::{Parts, StoredTensors, WrongStorage},
    },
};

/// GPTQ's settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Gptq {
    bits: usize,
    /// Inputs of a group; `None` if all have one scale.
    group: Option<usize>,
    /// Whether `g_idx` must be there (act-order), which decides the group of an input wherever it is.
    has_order: bool,
    /// Whether modules have other settings, by patterns. Their tensors show them.
    is_dynamic: bool,
    /// Whether zero points are stored less one, as in the first version.
    is_first_version: bool,
}

const WORD_BITS: usize = 32;

impl Gptq {
    pub(in crate::storage) fn read(json: &Json<'_>) -> Result<Self, Error> {
        let bits = json.required_size("bits", 8)?;
        if !BITS.contains(&bits) {
            return Err(json.unsupported("bits", "2, 3, 4 or 8"));
        }
        let is_dynamic = json.object("dynamic")?.is_some_and(|dynamic| !dynamic.is_empty());
        let is_first_version = is_first_version(json)?;
        Ok(Self {
            bits,
            group: json.group_size("group_size")?,
            has_order: json.flag("desc_act", false)?,
            is_dynamic,
            is_first_version,
        })
    }

    pub(in crate::storage) fn stores(&self, name: &str, tensors: &StoredTensors) -> bool {
        module(name).is_some_and(|module| tensors.has(&format!("{module}.qweight")))
    }

    pub(in crate::storage) fn storage(
        &self,
        weight: &Weight,
        tensors: &StoredTensors,
    ) -> Result<Storage, WrongStorage> {
        let [rows, columns] = matrix(weight)?;
        let name = |part: &str| format!("{}.{part}", module(&weight.name).unwrap_or_default());
        let Form { bits, size, groups, has_order } = match self.is_dynamic {
            true => Form::of_tensors(tensors, &name, columns)?,
            false => {
                let size = self.group.unwrap_or(columns);
                Form { bits: self.bits, size, groups: columns.div_ceil(size), has_order: self.has_order }
            }
        };
        for (count, what) in [(rows, "rows"), (columns, "columns")] {
            if !(count * bits).is_multiple_of(WORD_BITS) {
                let problem = format!("{count} {what} of {bits} bits, expected whole words of 32 bits");
                return Err(WrongStorage::new(&weight.name, problem));
            }
        }
        let mut parts = Parts::new(tensors);
        let words = parts.take(&name("qweight"), &[Dtype::I32], &[columns * bits / WORD_BITS, rows])?;
        let zeros = parts.take(&name("qzeros"), &[Dtype::I32], &[groups, rows * bits / WORD_BITS])?;
        let scales = parts.floats(&name("scales"), &[groups, rows])?;
        let column_groups = match has_order || tensors.has(&name("g_idx")) {
            true => parts.column_groups(&name("g_idx"), columns, [groups, size])?,
            false => None,
        };
        let zeros = match (self.is_first_version, bits) {
            (false, _) => zeros.unpack(bits),
            (true, 3) => zeros.unpack(bits).plus(1).and(7),
            // 1 was subtracted from whole words, so that a zero point of 0 has borrowed from its neighbor.
            (true, _) => zeros.integers().plus(ones(bits)).unpack(bits),
        };
        let coding = Coding {
            column_groups,
            zeros: Some(zeros.floats().transpose(&[1, 0])),
            ..Coding::in_groups(
                words.transpose(&[1, 0]).unpack(bits),
                Numbers::Integers { bits, signed: false },
                size,
                scales.transpose(&[1, 0]),
            )
        };
        Ok(parts.finish(coding))
    }
}

/// Reads whether zero points are stored less one. gptqmodel has the version under two keys, of which `checkpoint_format` is older.
fn is_first_version(json: &Json<'_>) -> Result<bool, Error> {
    let read = |key| match json.text_or_null(key)? {
        None => Ok(None),
        Some("gptq") => Ok(Some(true)),
        Some("gptq_v2") => Ok(Some(false)),
        Some(_) => Err(json.unsupported(key, "gptq or gptq_v2")),
    };
    match (read("checkpoint_format")?, read("format")?) {
        (Some(one), Some(other)) if one != other => {
            Err(json.invalid("format", "the same as checkpoint_format"))
        }
        (found, other) => Ok(found.or(other).unwrap_or(true)),
    }
}

/// How the tensors of a module are written.
struct Form {
    bits: usize,
    /// Columns of a group.
    size: usize,
    groups: usize,
    has_order: bool,
}

impl Form {
    /// Returns the form that the shapes of a module's tensors have.
    fn of_tensors(
        tensors: &StoredTensors,
        name: &dyn Fn(&str) -> String,
        columns: usize,
    ) -> Result<Self, WrongStorage> {
        let first = |part: &str| tensors.get(&name(part)).and_then(|tensor| tensor.shape.first().copied());
        let bits = first("qweight").and_then(|words| Some(words.checked_mul(WORD_BITS)? / columns.max(1)));
        let bits = bits.unwrap_or_default();
        if !BITS.contains(&bits) {
            let problem = format!("words for {bits} bits, expected those for 2, 3, 4 or 8");
            return Err(WrongStorage::new(name("qweight"), problem));
        }
        let groups = first("scales").unwrap_or_default().max(1);
        Ok(Self { bits, size: columns.div_ceil(groups), groups, has_order: true })
    }
}

/// Bits of a code.
const BITS: [usize; 4] = [2, 3, 4, 8];

/// Returns a word of codes that are all 1.
fn ones(bits: usize) -> i32 {
    let ones = (0..WORD_BITS).step_by(bits).fold(0u32, |word, bit| word | 1 << bit);
    ones.cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_ones() {
        assert_eq!([2, 4, 8].map(ones), [0x5555_5555, 0x1111_1111, 0x0101_0101]);
    }
}
