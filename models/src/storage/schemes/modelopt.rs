//! NVIDIA's Model Optimizer: `quant_method` modelopt, as its `export_hf_checkpoint` writes it (0.47).
//!
//! A module has `weight` in few bits and `weight_scale`, which multiplies it, and with NVFP4 `weight_scale_2`, which multiplies
//! the scales. An algorithm is that of all modules, or `quantized_layers` has one for each. What inputs, keys and values are
//! rounded to is not of the weights.

use std::collections::BTreeMap;

use safetensors::Dtype;
use serde_json::{Map, Value};

use super::{
    names::{Excluded, matrix, module, whole_groups},
    numbers::{FloatCodes, e8m0},
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

/// The settings of Model Optimizer.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelOpt {
    forms: Forms,
    /// Whether keys and values are to be rounded.
    pub(in crate::storage) rounds_cache: bool,
    /// Names with `*` exclude nothing here: the tensors show what is not quantized.
    pub(in crate::storage) excluded: Excluded,
}

/// The forms of modules.
#[derive(Debug, Clone, PartialEq)]
enum Forms {
    All(Form),
    ByModule(BTreeMap<String, Form>),
}

/// How the weight of a module is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// E4M3 with one scale.
    Fp8,
    /// E4M3 with a scale for each output.
    Fp8Rows,
    /// E4M3 with a scale for each block, whose scales have dimensions of size 1 between.
    Fp8Blocks,
    /// E2M1 with scales in E4M3 and a number that multiplies those.
    Nvfp4,
    /// E4M3 with powers of two as scales.
    Mxfp8,
    /// E2M1 with powers of two as scales.
    Mxfp4,
    /// Integers of 8 bits with a scale for each output.
    Int8,
}

/// The names of algorithms, of which some are written in small letters.
const ALGORITHMS: [(&str, Form); 11] = [
    ("FP8", Form::Fp8),
    ("FP8_PER_CHANNEL_PER_TOKEN", Form::Fp8Rows),
    ("FP8_PB_WO", Form::Fp8Blocks),
    ("NVFP4", Form::Nvfp4),
    ("NVFP4_AWQ", Form::Nvfp4),
    ("W4A16_NVFP4", Form::Nvfp4),
    ("W4A8_NVFP4_FP8", Form::Nvfp4),
    ("MXFP8", Form::Mxfp8),
    ("MXFP4", Form::Mxfp4),
    ("W4A8_MXFP4_FP8", Form::Mxfp4),
    ("W8A16", Form::Int8),
];

/// The algorithm of checkpoints whose modules have several.
const MIXED: &str = "MIXED_PRECISION";

/// Rows and columns of a block.
const BLOCK: usize = 128;

/// Columns that share a power of two.
const MX_GROUP: usize = 32;

/// Columns that share a scale in E4M3.
const NVFP4_GROUPS: [usize; 2] = [16, 32];

impl ModelOpt {
    pub(in crate::storage) fn read(json: &Json<'_>) -> Result<Self, Error> {
        let forms = if json.text("quant_algo")? == Some(MIXED) {
            let Some(layers) = json.object("quantized_layers")? else {
                return Err(json.missing("quantized_layers", "an object"));
            };
            let form_of = |name: &str| {
                let layer = layers.object(name)?.ok_or_else(|| layers.invalid(name, "an object"))?;
                Ok((name.to_owned(), Form::read(&layer)?))
            };
            Forms::ByModule(layers.keys().map(form_of).collect::<Result<_, _>>()?)
        } else {
            Forms::All(Form::read(json)?)
        };
        let key = ["ignore", "exclude_modules"].into_iter().find(|key| json.has(key));
        let rounds_cache =
            ["kv_cache_scheme", "kv_cache_quant_algo"].into_iter().any(|key| json.value(key).is_some());
        Ok(Self { forms, rounds_cache, excluded: Excluded::read(json, key.unwrap_or("ignore"))? })
    }

    pub(in crate::storage) fn stores(&self, name: &str, tensors: &StoredTensors) -> bool {
        module(name).is_some() && tensors.has(&format!("{name}_scale"))
    }

    pub(in crate::storage) fn storage(
        &self,
        weight: &Weight,
        tensors: &StoredTensors,
    ) -> Result<Storage, WrongStorage> {
        self.excluded.check(weight)?;
        let form = self.form(weight)?;
        refuse_changes_of_inputs(weight, tensors)?;
        let mut parts = Parts::new(tensors);
        let coding = form.coding(weight, tensors, &mut parts)?;
        Ok(parts.finish(coding))
    }

    fn form(&self, weight: &Weight) -> Result<Form, WrongStorage> {
        match &self.forms {
            Forms::All(form) => Ok(*form),
            Forms::ByModule(forms) => {
                let form = module(&weight.name).and_then(|module| forms.get(module));
                form.copied().ok_or_else(|| {
                    let problem = "quantized, but `quantized_layers` does not have its module";
                    WrongStorage::new(&weight.name, problem)
                })
            }
        }
    }
}

/// Returns config.json with what `hf_quant_config.json` beside it says: Model Optimizer's early versions wrote no
/// `quantization_config`. A config.json that has one stays as it is.
///
/// # Errors
/// A text is no JSON object, or the second one is not Model Optimizer's.
pub fn with_hf_quant_config(config: &str, file: &str) -> Result<String, Error> {
    let object = |text, name| {
        serde_json::from_str::<Map<String, Value>>(text)
            .map_err(|source| Error::Syntax { file: name, source })
    };
    let mut config_json = object(config, "config.json")?;
    if config_json.get("quantization_config").is_some_and(|value| !value.is_null()) {
        return Ok(config.to_owned());
    }
    let file = object(file, HF_QUANT_CONFIG_FILE)?;
    let json = Json::of_file(HF_QUANT_CONFIG_FILE, &file);
    if let Some(producer) = json.object("producer")? {
        producer.require("name", METHOD, |name| name.as_str() == Some(METHOD))?;
    }
    json.object("quantization")?;
    let Some(Value::Object(quantization)) = json.value("quantization") else {
        return Err(json.missing("quantization", "an object"));
    };
    let mut quantization = quantization.clone();
    quantization.insert("quant_method".into(), METHOD.into());
    config_json.insert("quantization_config".into(), quantization.into());
    Ok(Value::Object(config_json).to_string())
}

/// The file in which Model Optimizer says how it quantized.
pub const HF_QUANT_CONFIG_FILE: &str = "hf_quant_config.json";

/// The name of the method.
const METHOD: &str = "modelopt";

/// Refuses a module whose inputs are multiplied before its product, or whose product has another one added to it.
fn refuse_changes_of_inputs(weight: &Weight, tensors: &StoredTensors) -> Result<(), WrongStorage> {
    let module = module(&weight.name).unwrap_or_default();
    for part in ["pre_quant_scale", "svdquant_lora_a", "svdquant_lora_b"] {
        let name = format!("{module}.{part}");
        if tensors.has(&name) {
            let problem = "found, expected none: what changes inputs or adds to outputs is not supported";
            return Err(WrongStorage::new(name, problem));
        }
    }
    Ok(())
}

impl Form {
    fn read(json: &Json<'_>) -> Result<Self, Error> {
        let known = || ALGORITHMS.map(|(name, _)| name).join(", ");
        let Some(name) = json.text("quant_algo")? else {
            return Err(json.missing("quant_algo", format!("one of {}", known())));
        };
        let found = ALGORITHMS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        let form = found.map(|(_, form)| *form);
        form.ok_or_else(|| json.unsupported("quant_algo", format!("one of {}, {MIXED}", known())))
    }

    fn coding(
        self,
        weight: &Weight,
        tensors: &StoredTensors,
        parts: &mut Parts<'_>,
    ) -> Result<Coding, WrongStorage> {
        let [rows, columns] = matrix(weight)?;
        let scale = format!("{}_scale", weight.name);
        let e4m3 = |stored: Expr| stored.unpack(8).lookup(FloatCodes::E4m3.list());
        let (codes, numbers) = match self {
            Self::Fp8 | Self::Fp8Rows | Self::Fp8Blocks | Self::Mxfp8 => {
                let codes = parts.take(&weight.name, &[Dtype::F8_E4M3], &[rows, columns])?;
                (e4m3(codes), Numbers::Floats { bits: 8 })
            }
            Self::Nvfp4 | Self::Mxfp4 => {
                whole_groups(&weight.name, columns, NVFP4_GROUPS[0])?;
                let bytes = parts.take(&weight.name, &[Dtype::U8], &[rows, columns / 2])?;
                (bytes.unpack(4).lookup(FloatCodes::E2m1.list()), Numbers::Floats { bits: 4 })
            }
            Self::Int8 => {
                let codes = parts.take(&weight.name, &[Dtype::I8], &[rows, columns])?.integers();
                (codes, Numbers::Integers { bits: 8, signed: true })
            }
        };
        let (of_rows, of_columns, scales) = match self {
            Self::Fp8 => {
                // Of no dimensions, or some of size 1.
                let shape = tensors.get(&scale).map(|scale| scale.shape).unwrap_or_default();
                let shape = if shape.iter().product::<usize>() == 1 { shape } else { Vec::new() };
                (rows, columns, parts.floats(&scale, &shape)?.reshape(&[1, 1]))
            }
            Self::Fp8Rows | Self::Int8 => (1, columns, parts.floats(&scale, &[rows])?.reshape(&[rows, 1])),
            Self::Fp8Blocks => {
                let blocks = [rows.div_ceil(BLOCK), columns.div_ceil(BLOCK)];
                let scales = parts.floats(&scale, &[blocks[0], 1, blocks[1], 1])?;
                (BLOCK, BLOCK, scales.reshape(&blocks))
            }
            Self::Nvfp4 => {
                let size = nvfp4_group(&scale, columns, tensors)?;
                let scales = e4m3(parts.take(&scale, &[Dtype::F8_E4M3], &[rows, columns / size])?);
                let by = parts.floats(&format!("{scale}_2"), &[])?.reshape(&[1, 1]);
                (1, size, scales.times(by))
            }
            Self::Mxfp8 | Self::Mxfp4 => {
                let groups = whole_groups(&weight.name, columns, MX_GROUP)?;
                let scales = parts.take(&scale, &[Dtype::U8], &[rows, groups])?;
                (1, MX_GROUP, scales.unpack(8).lookup(e8m0()))
            }
        };
        let coding = Coding::in_groups(codes, numbers, of_columns, scales);
        Ok(Coding { group: [of_rows, of_columns], ..coding })
    }
}

/// Returns the columns that share a scale, of which config.json has the number for some algorithms alone.
fn nvfp4_group(scale: &str, columns: usize, tensors: &StoredTensors) -> Result<usize, WrongStorage> {
    let shape = tensors.get(scale).map(|scale| scale.shape).unwrap_or_default();
    let is_size = |size: &usize| shape.last().is_some_and(|&groups| groups * size == columns);
    NVFP4_GROUPS.into_iter().find(is_size).ok_or_else(|| {
        let problem = format!("shape {shape:?}, expected a scale for 16 or 32 of {columns} columns");
        WrongStorage::new(scale, problem)
    })
}
