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
    storage::{Coding, Numbers, Storage, StoredTensors, WrongStorage, find::Parts},
};

/// GPTQ's settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Gptq {
    bits: usize,
    /// Inputs of a group; `None` if all have one scale.
    group: Option<usize>,
    /// Whether `g_idx` decides the group of an input (act-order), and not its place.
    has_order: bool,
    /// Whether zero points are stored less one, as in the first version.
    is_first_version: bool,
}

const WORD_BITS: usize = 32;

impl Gptq {
    pub(in crate::storage) fn read(json: &Json<'_>) -> Result<Self, Error> {
        let bits = json.required_size("bits", 8)?;
        if ![2, 3, 4, 8].contains(&bits) {
            return Err(json.unsupported("bits", "2, 3, 4 or 8"));
        }
        json.require("dynamic", "null or an empty object", |value| {
            value.as_object().is_some_and(serde_json::Map::is_empty)
        })?;
        let is_first_version = match json.text_or_null("checkpoint_format")? {
            None | Some("gptq") => true,
            Some("gptq_v2") => false,
            Some(_) => return Err(json.unsupported("checkpoint_format", "gptq or gptq_v2")),
        };
        Ok(Self {
            bits,
            group: json.group_size("group_size")?,
            has_order: json.flag("desc_act", false)?,
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
        let Self { bits, has_order, .. } = *self;
        let [rows, columns] = matrix(weight)?;
        let size = self.group.unwrap_or(columns);
        let groups = columns.div_ceil(size);
        for (count, what) in [(rows, "rows"), (columns, "columns")] {
            if !(count * bits).is_multiple_of(WORD_BITS) {
                let problem = format!("{count} {what} of {bits} bits, expected whole words of 32 bits");
                return Err(WrongStorage::new(&weight.name, problem));
            }
        }
        let name = |part: &str| format!("{}.{part}", module(&weight.name).unwrap_or_default());
        let mut parts = Parts::new(tensors);
        let words = parts.take(&name("qweight"), &[Dtype::I32], &[columns * bits / WORD_BITS, rows])?;
        let zeros = parts.take(&name("qzeros"), &[Dtype::I32], &[groups, rows * bits / WORD_BITS])?;
        let scales = parts.floats(&name("scales"), &[groups, rows])?;
        let column_groups = match has_order {
            true => Some(parts.take(&name("g_idx"), &[Dtype::I32], &[columns])?.integers()),
            false => None,
        };
        // A borrow of one zero point goes into its neighbor, as gptqmodel reads them.
        let zeros = if self.is_first_version { zeros.integers().plus_each(&ones(bits)) } else { zeros };
        let coding = Coding {
            column_groups,
            zeros: Some(zeros.unpack(bits).to_floats().transpose(&[1, 0])),
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

/// Returns the words of codes that are all 1, until they repeat.
fn ones(bits: usize) -> Vec<i32> {
    let words = if WORD_BITS.is_multiple_of(bits) { 1 } else { bits };
    let mut ones = vec![0u32; words];
    for bit in (0..words * WORD_BITS).step_by(bits) {
        ones[bit / WORD_BITS] |= 1 << (bit % WORD_BITS);
    }
    ones.into_iter().map(u32::cast_signed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_ones() {
        let words = |bits| ones(bits).into_iter().map(i32::cast_unsigned).collect::<Vec<_>>();
        assert_eq!(words(4), [0x1111_1111]);
        assert_eq!(words(8), [0x0101_0101]);
        assert_eq!(words(3), [0x4924_9249, 0x9249_2492, 0x2492_4924]);
    }
}
