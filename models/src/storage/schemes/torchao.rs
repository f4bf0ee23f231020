//! torchao: `quant_method` torchao, as transformers writes 8-bit integers with torchao 0.18.
//!
//! A module has `_weight_qdata`, codes, and `_weight_scale` and `_weight_zero_point` of rows or of groups of a row. What inputs
//! are rounded to is not of the weights. Other types of tensors depend on the machine that they were packed for.

use safetensors::Dtype;
use serde_json::Value;

use super::names::{Excluded, matrix, module, whole_groups};
use crate::{
    error::Error,
    json::Json,
    layers::Weight,
    storage::{
        coding::{Coding, Numbers, Storage},
        tensors::{Parts, StoredTensors, WrongStorage},
    },
};

/// torchao's settings.
#[derive(Debug, Clone, PartialEq)]
pub struct TorchAo {
    pub(in crate::storage) excluded: Excluded,
}

/// Configs whose tensors are 8-bit integers.
const INTEGERS: [&str; 2] = ["Int8WeightOnlyConfig", "Int8DynamicActivationInt8WeightConfig"];

const BITS: usize = 8;

impl TorchAo {
    pub(in crate::storage) fn read(json: &Json<'_>) -> Result<Self, Error> {
        let Some(types) = json.object("quant_type")? else {
            return Err(json.missing("quant_type", "an object with the entry default"));
        };
        let Some(default) = types.object("default")? else {
            return Err(types.missing("default", "a config of torchao"));
        };
        if let Some(other) = types.keys().find(|key| *key != "default") {
            return Err(types.unsupported(other, "the entry default alone"));
        }
        default.require("_type", &INTEGERS.join(" or "), |value| {
            value.as_str().is_some_and(|name| INTEGERS.contains(&name))
        })?;
        // The first version wrote tensors that only torch.load reads.
        default.require("_version", "2", |value| value.as_u64() == Some(2))?;
        json.require("include_input_output_embeddings", "false", |value| value == &Value::Bool(false))?;
        Ok(Self { excluded: Excluded::read(json, "modules_to_not_convert")? })
    }

    pub(in crate::storage) fn stores(&self, name: &str, tensors: &StoredTensors) -> bool {
        module(name).is_some_and(|module| tensors.has(&format!("{module}._weight_qdata")))
    }

    pub(in crate::storage) fn storage(
        &self,
        weight: &Weight,
        tensors: &StoredTensors,
    ) -> Result<Storage, WrongStorage> {
        self.excluded.check(weight)?;
        let [rows, columns] = matrix(weight)?;
        let name = |part: &str| format!("{}._weight_{part}", module(&weight.name).unwrap_or_default());
        let mut parts = Parts::new(tensors);
        let codes = parts.take(&name("qdata"), &[Dtype::I8], &[rows, columns])?.integers();
        // A row has one scale, or each group of a row has one, which no key says for all modules alike.
        let shape = tensors.get(&name("scale")).map(|tensor| tensor.shape).unwrap_or_default();
        let groups = match shape.as_slice() {
            &[_, groups] if groups > 0 && columns.is_multiple_of(groups) => groups,
            _ => 1,
        };
        let size = columns / groups;
        whole_groups(&weight.name, columns, size)?;
        let scales = parts.floats(&name("scale"), &[rows, groups])?;
        let zero_point = name("zero_point");
        let zeros = match tensors.has(&zero_point) {
            true => Some(parts.take(&zero_point, &[Dtype::I8], &[rows, groups])?.integers().floats()),
            false => None,
        };
        let numbers = Numbers::Integers { bits: BITS, signed: true };
        Ok(parts.finish(Coding { zeros, ..Coding::in_groups(codes, numbers, size, scales) }))
    }
}
