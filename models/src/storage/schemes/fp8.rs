//! 8-bit floats: `quant_method` fp8, in blocks as DeepSeek and Qwen publish them and transformers 5 writes them, or with one
//! scale for a tensor, as AutoFP8 and Mistral do.
//!
//! A module has `weight` in E4M3 and `weight_scale_inv`, which multiplies it. AutoFP8 calls that `weight_scale`. What inputs,
//! keys and values are rounded to is not of the weights.

use safetensors::Dtype;

use super::{
    names::{Excluded, matrix, module},
    numbers::{FloatCodes, e8m0},
};
use crate::{
    error::Error,
    json::Json,
    layers::Weight,
    storage::{
        coding::{Coding, Numbers, Storage},
        tensors::{Parts, StoredTensors, WrongStorage},
    },
};

/// The settings of 8-bit floats.
#[derive(Debug, Clone, PartialEq)]
pub struct Fp8 {
    /// Rows and columns of a block; `None` if a tensor has one scale.
    block: Option<[usize; 2]>,
    /// Whether scales are powers of two.
    has_exponents: bool,
    /// Whether keys and values are to be rounded.
    pub(in crate::storage) rounds_cache: bool,
    pub(in crate::storage) excluded: Excluded,
}

impl Fp8 {
    pub(in crate::storage) fn read(json: &Json<'_>) -> Result<Self, Error> {
        json.require("fmt", "e4m3", |value| value.as_str() == Some("e4m3"))?;
        // Without the key, blocks are DeepSeek's.
        let block = match json.value("weight_block_size") {
            None if json.has("weight_block_size") => None,
            None => Some([128; 2]),
            Some(_) => Some(json.sizes("weight_block_size")?),
        };
        let has_exponents = match json.text_or_null("scale_fmt")? {
            None | Some("float") => false,
            Some("ue8m0") => true,
            Some(_) => return Err(json.unsupported("scale_fmt", "ue8m0, or null")),
        };
        // AutoFP8's name comes first in its own files.
        let key = ["ignored_layers", "modules_to_not_convert"].into_iter().find(|key| json.has(key));
        let excluded = Excluded::read(json, key.unwrap_or("modules_to_not_convert"))?;
        let rounds_cache = json.value("kv_cache_scheme").is_some();
        Ok(Self { block, has_exponents, rounds_cache, excluded })
    }

    pub(in crate::storage) fn stores(&self, name: &str, tensors: &StoredTensors) -> bool {
        let has = |module: &str, end: &str| tensors.has(&format!("{module}.{end}"));
        module(name).is_some_and(|module| has(module, "weight_scale_inv") || has(module, "weight_scale"))
    }

    pub(in crate::storage) fn storage(
        &self,
        weight: &Weight,
        tensors: &StoredTensors,
    ) -> Result<Storage, WrongStorage> {
        self.excluded.check(weight)?;
        let [rows, columns] = matrix(weight)?;
        let of_tensor = format!("{}_scale", weight.name);
        let (scales, block) = match tensors.has(&of_tensor) {
            true => (of_tensor, None),
            false => (format!("{}_scale_inv", weight.name), self.block),
        };
        let mut parts = Parts::new(tensors);
        let codes = parts
            .take(&weight.name, &[Dtype::F8_E4M3], &[rows, columns])?
            .unpack(8)
            .lookup(FloatCodes::E4m3.list());
        let group @ [of_rows, of_columns] = block.unwrap_or([rows, columns]);
        let groups = [rows.div_ceil(of_rows), columns.div_ceil(of_columns)];
        // The scale of a whole tensor has no dimensions, or some of size 1.
        let shape = tensors.get(&scales).map(|tensor| tensor.shape).unwrap_or_default();
        let is_only = block.is_none() && shape.iter().all(|&size| size == 1) && shape.len() <= 2;
        let shape = if is_only { shape } else { groups.to_vec() };
        let scales = if self.has_exponents {
            parts.take(&scales, &[Dtype::F8_E8M0, Dtype::U8], &shape)?.unpack(8).lookup(e8m0())
        } else {
            parts.floats(&scales, &shape)?
        };
        let scales = scales.reshape(&groups);
        let coding = Coding::in_groups(codes, Numbers::Floats { bits: 8 }, of_columns, scales);
        Ok(parts.finish(Coding { group, ..coding }))
    }
}
