//! bitsandbytes: `quant_method` bitsandbytes, as transformers writes it with bitsandbytes 0.50.
//!
//! 4 bits: `weight` are bytes of two codes, the high one first, of all elements in a row. `absmax` are the scales of blocks,
//! and `quant_map` the 16 numbers. With double quantization, scales are 8-bit codes of their own blocks, numbers and an
//! offset, which the JSON text `quant_state` has. 8 bits: `weight` is `i8`, `SCB` the largest magnitude of each row.

use safetensors::Dtype;
use serde_json::Value;

use super::{
    names::{matrix, module},
    numbers::FloatCodes,
};
use crate::{
    error::Error,
    json::Json,
    layers::Weight,
    storage::{
        coding::{Coding, Numbers, Storage},
        expr::Expr,
        tensors::{Parts, StoredTensors, WrongStorage},
    },
};

/// bitsandbytes' settings.
#[derive(Debug, Clone, PartialEq)]
pub enum BitsAndBytes {
    /// 4-bit floats of this type.
    Four(&'static str),
    /// 8-bit integers.
    Eight,
}

const FLOAT_TYPES: [&str; 2] = ["fp4", "nf4"];

/// Scales of double quantization that have one scale.
const NESTED_BLOCK: usize = 256;

/// The reciprocal of 127, as bitsandbytes multiplies by it.
const PER_STEP: f32 = 7.874_016e-3;

impl BitsAndBytes {
    pub(in crate::storage) fn read(json: &Json<'_>) -> Result<Self, Error> {
        if json.flag("load_in_8bit", false)? {
            return Ok(Self::Eight);
        }
        if !json.flag("load_in_4bit", false)? {
            return Err(json.invalid("load_in_4bit", "true, unless load_in_8bit is"));
        }
        json.require("bnb_4bit_quant_storage", "uint8", |value| value.as_str() == Some("uint8"))?;
        let name = json.text("bnb_4bit_quant_type")?.unwrap_or(FLOAT_TYPES[0]);
        let known = FLOAT_TYPES.into_iter().find(|known| *known == name);
        known.map(Self::Four).ok_or_else(|| json.unsupported("bnb_4bit_quant_type", "nf4 or fp4"))
    }

    pub(in crate::storage) fn stores(&self, name: &str, tensors: &StoredTensors) -> bool {
        module(name).is_some_and(|module| match self {
            Self::Four(_) => tensors.has(&format!("{name}.absmax")),
            Self::Eight => tensors.has(&format!("{module}.SCB")),
        })
    }

    /// Returns whether the bytes of a tensor are needed: JSON, the numbers of codes, or the number of a layout.
    pub(in crate::storage) fn reads(name: &str) -> bool {
        name.contains(STATE) || name.ends_with(LAYOUT) || name.ends_with(NUMBERS)
    }

    pub(in crate::storage) fn storage(
        &self,
        weight: &Weight,
        tensors: &StoredTensors,
    ) -> Result<Storage, WrongStorage> {
        let [rows, columns] = matrix(weight)?;
        let mut parts = Parts::new(tensors);
        let coding = match self {
            Self::Four(kind) => four_bits(weight, kind, tensors, &mut parts)?,
            Self::Eight => {
                let name = |part: &str| format!("{}{part}", module(&weight.name).unwrap_or_default());
                check_layout(&name(LAYOUT), tensors)?;
                let codes = parts.take(&weight.name, &[Dtype::I8], &[rows, columns])?.integers();
                let scales = parts.floats(&name(".SCB"), &[rows])?.reshape(&[rows, 1]);
                // In this order, so that every bit is that of bitsandbytes.
                let codes = codes.floats().times(scales);
                Coding::in_groups(codes, Numbers::Floats { bits: 8 }, columns, Expr::number(PER_STEP))
            }
        };
        Ok(parts.finish(coding))
    }
}

/// What the name of the JSON text has between those of the weight and of the type.
const STATE: &str = ".quant_state.bitsandbytes__";

/// What the name of the list of numbers has after that of the weight.
const NUMBERS: &str = ".quant_map";

/// What the name of a layout's number has after that of the module.
const LAYOUT: &str = ".weight_format";

/// Refuses the layouts for GPUs in which early versions saved 8-bit codes that had been used.
fn check_layout(name: &str, tensors: &StoredTensors) -> Result<(), WrongStorage> {
    match tensors.contents(name) {
        Some([0]) => Ok(()),
        None if !tensors.has(name) => Ok(()),
        found => {
            let found = found.and_then(<[u8]>::first).map_or_else(|| "unknown".into(), u8::to_string);
            Err(WrongStorage::new(name, format!("the layout {found}, expected 0, which is row by row")))
        }
    }
}

fn four_bits(
    weight: &Weight,
    kind: &str,
    tensors: &StoredTensors,
    parts: &mut Parts<'_>,
) -> Result<Coding, WrongStorage> {
    let name = |part: &str| format!("{}.{part}", weight.name);
    let state_name = format!("{}{STATE}{kind}", weight.name);
    let state = tensors.json(&state_name)?;
    let wrong = |problem: String| WrongStorage::new(&state_name, problem);
    let elements = weight.shape.iter().product::<usize>();
    let shape: Option<Vec<_>> =
        state["shape"].as_array().map(|sizes| sizes.iter().filter_map(Value::as_u64).collect());
    if shape.as_ref().is_none_or(|shape| {
        !shape.iter().eq(weight.shape.iter().map(|&size| size as u64).collect::<Vec<_>>().iter())
    }) {
        return Err(wrong(format!("shape {}, expected {:?}", state["shape"], weight.shape)));
    }
    let block = state["blocksize"].as_u64().and_then(|size| usize::try_from(size).ok());
    let block = block.filter(|size| (2..=1 << 16).contains(size));
    let block = block.ok_or_else(|| wrong(format!("blocksize {}, expected a size", state["blocksize"])))?;
    if !elements.is_multiple_of(2) {
        return Err(WrongStorage::new(&weight.name, format!("{elements} elements, expected an even number")));
    }
    let blocks = elements.div_ceil(block);
    let bytes = parts.take(&weight.name, &[Dtype::U8], &[elements / 2, 1])?;
    // Each byte has the first code in its high half.
    let codes = bytes.unpack(4).reorder(&[1, 0]);
    let numbers = match known_numbers(&format!("{}{NUMBERS}", weight.name), tensors) {
        Some(known) => known.list(),
        None => parts.floats(&format!("{}{NUMBERS}", weight.name), &[16])?,
    };
    // Where blocks do not end with rows, all elements are a row.
    let [rows, columns] = matrix(weight)?;
    let shape = if columns.is_multiple_of(block) { [rows, columns] } else { [1, elements] };
    let scales = if tensors.has(&name("nested_absmax")) {
        let nested = state["nested_blocksize"].as_u64();
        if nested != Some(NESTED_BLOCK as u64) {
            return Err(wrong(format!(
                "nested_blocksize {}, expected {NESTED_BLOCK}",
                state["nested_blocksize"]
            )));
        }
        let offset = state["nested_offset"].as_f64();
        let offset = offset.ok_or_else(|| wrong("no nested_offset, expected a number".into()))?;
        let outer = blocks.div_ceil(NESTED_BLOCK);
        let inner = parts.take(&name("absmax"), &[Dtype::U8], &[blocks])?.unpack(8);
        let list = parts.floats(&name("nested_quant_map"), &[256])?;
        let by = parts.floats(&name("nested_absmax"), &[outer])?.reshape(&[outer, 1]);
        let inner = inner.lookup(list).padded(outer * NESTED_BLOCK).reshape(&[outer, NESTED_BLOCK]);
        let all = inner.times(by).reshape(&[1, outer * NESTED_BLOCK]).slice(1, 0, blocks);
        #[expect(clippy::cast_possible_truncation, reason = "it was an f32")]
        all.added_to(Expr::number(offset as f32))
    } else {
        parts.floats(&name("absmax"), &[blocks])?.reshape(&[1, blocks])
    };
    let codes = codes.reshape(&shape).lookup(numbers);
    let scales = scales.reshape(&[shape[0], shape[1].div_ceil(block)]);
    Ok(Coding::in_groups(codes, Numbers::Floats { bits: 4 }, block, scales))
}

/// Returns what codes stand for, if their numbers are those of a type.
fn known_numbers(name: &str, tensors: &StoredTensors) -> Option<FloatCodes> {
    let tensor = tensors.get(name)?;
    let (numbers, []) = tensors.contents(name)?.as_chunks::<4>() else { return None };
    let numbers: Vec<_> = numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    (tensor.dtype == Dtype::F32 && tensor.shape == [16]).then(|| FloatCodes::of_list(&numbers))?
}
