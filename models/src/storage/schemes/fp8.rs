//! 8-bit floats in blocks: `quant_method` fp8, as DeepSeek and Qwen publish them and transformers 5 writes them.
//!
//! A module has `weight` in E4M3 and `weight_scale_inv`, which multiplies it.

use safetensors::Dtype;

use super::{
    names::{Excluded, matrix, module},
    numbers::{e4m3, e8m0},
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
    /// Rows and columns of a block.
    block: [usize; 2],
    /// Whether scales are powers of two.
    has_exponents: bool,
    excluded: Excluded,
}

impl Fp8 {
    pub(in crate::storage) fn read(json: &Json<'_>) -> Result<Self, Error> {
        json.require("fmt", "e4m3", |value| value.as_str() == Some("e4m3"))?;
        let block = match json.value("weight_block_size") {
            None => [128; 2],
            Some(_) => json.sizes("weight_block_size")?,
        };
        let has_exponents = match json.text_or_null("scale_fmt")? {
            None | Some("float") => false,
            Some("ue8m0") => true,
            Some(_) => return Err(json.unsupported("scale_fmt", "ue8m0, or null")),
        };
        Ok(Self { block, has_exponents, excluded: Excluded::read(json, "modules_to_not_convert")? })
    }

    pub(in crate::storage) fn stores(&self, name: &str, tensors: &StoredTensors) -> bool {
        module(name).is_some_and(|module| tensors.has(&format!("{module}.weight_scale_inv")))
    }

    pub(in crate::storage) fn storage(
        &self,
        weight: &Weight,
        tensors: &StoredTensors,
    ) -> Result<Storage, WrongStorage> {
        self.excluded.check(weight)?;
        let [rows, columns] = matrix(weight)?;
        let group @ [of_rows, of_columns] = self.block;
        let mut parts = Parts::new(tensors);
        let codes = parts.take(&weight.name, &[Dtype::F8_E4M3], &[rows, columns])?;
        let scales = format!("{}_scale_inv", weight.name);
        let groups = [rows.div_ceil(of_rows), columns.div_ceil(of_columns)];
        let scales = if self.has_exponents {
            parts.take(&scales, &[Dtype::F8_E8M0, Dtype::U8], &groups)?.unpack(8).lookup(e8m0())
        } else {
            parts.floats(&scales, &groups)?
        };
        let codes = codes.unpack(8).lookup(e4m3());
        let coding = Coding::in_groups(codes, Numbers::Floats { bits: 8 }, of_columns, scales);
        Ok(parts.finish(Coding { group, ..coding }))
    }
}
