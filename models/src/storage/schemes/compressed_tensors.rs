//! compressed-tensors: `quant_method` compressed-tensors, as llmcompressor 0.14 writes it.
//!
//! Each group of `config_groups` has settings for modules, and a format says how their tensors are written. What inputs,
//! keys and values are rounded to is not of the weights.

use safetensors::Dtype;
use serde_json::Value;

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

/// The settings of compressed-tensors.
#[derive(Debug, Clone, PartialEq)]
pub struct CompressedTensors {
    groups: Vec<Settings>,
    /// Whether keys and values are to be rounded.
    pub(in crate::storage) rounds_cache: bool,
    /// Patterns, which begin with `re:`, exclude nothing here: the tensors show what is not quantized.
    pub(in crate::storage) excluded: Excluded,
}

/// The weights of some modules.
#[derive(Debug, Clone, PartialEq)]
struct Settings {
    format: Format,
    bits: usize,
    /// Rows and columns of a group; `None` stands for all.
    group: [Option<usize>; 2],
    has_zeros: bool,
    /// Whether `weight_g_idx` decides the group of an input.
    has_order: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    /// Words of codes with the lowest bits first.
    Packed,
    /// Integers of 8 bits.
    Integers,
    /// Floats of 8 bits.
    Floats,
    /// Bytes of two 4-bit floats, 8-bit floats as scales, and a number that divides those.
    Nvfp4,
    /// Bytes of two 4-bit floats, powers of two as scales.
    Mxfp4,
    /// Floats of 8 bits, powers of two as scales.
    Mxfp8,
}

const FORMATS: [(&str, Format); 6] = [
    ("pack-quantized", Format::Packed),
    ("int-quantized", Format::Integers),
    ("float-quantized", Format::Floats),
    ("nvfp4-pack-quantized", Format::Nvfp4),
    ("mxfp4-pack-quantized", Format::Mxfp4),
    ("mxfp8-quantized", Format::Mxfp8),
];

const WORD_BITS: usize = 32;

impl CompressedTensors {
    pub(in crate::storage) fn read(json: &Json<'_>) -> Result<Self, Error> {
        json.require("quantization_status", "compressed", |value| value.as_str() == Some("compressed"))?;
        json.require("sparsity_config", "null or an empty object", |value| {
            value
                .as_object()
                .is_some_and(|config| config.is_empty() || config.get("format") == Some(&"dense".into()))
        })?;
        json.require("kv_cache_scheme", "an object or null", Value::is_object)?;
        let of_weights = "null, or transforms that are applied to weights alone";
        json.require("transform_config", of_weights, transforms_only_weights)?;
        let Some(groups) = json.object("config_groups")? else {
            return Err(json.missing("config_groups", "an object"));
        };
        let of_all = json.text_or_null("format")?;
        let read = |name| {
            let group = groups.object(name)?.ok_or_else(|| groups.invalid(name, "an object"))?;
            Settings::read(&group, of_all)
        };
        let groups = groups.keys().map(read).collect::<Result<_, _>>()?;
        let rounds_cache = json.value("kv_cache_scheme").is_some();
        Ok(Self { groups, rounds_cache, excluded: Excluded::read(json, "ignore")? })
    }

    pub(in crate::storage) fn stores(&self, name: &str, tensors: &StoredTensors) -> bool {
        module(name).is_some_and(|module| tensors.has(&format!("{module}.weight_scale")))
    }

    pub(in crate::storage) fn storage(
        &self,
        weight: &Weight,
        tensors: &StoredTensors,
    ) -> Result<Storage, WrongStorage> {
        self.excluded.check(weight)?;
        // The tensors of a module have the form of one group of settings alone.
        let mut problem = None;
        for settings in &self.groups {
            match settings.storage(weight, tensors) {
                Ok(found) => return Ok(found),
                Err(error) => _ = problem.get_or_insert(error),
            }
        }
        let no_groups = || WrongStorage::new(&weight.name, "quantized, but config_groups has no group");
        Err(problem.unwrap_or_else(no_groups))
    }
}

/// Returns whether no transform of a `transform_config` is left to do: those of weights have been done, those of inputs and outputs
/// would have to be done at every call.
fn transforms_only_weights(config: &Value) -> bool {
    let of_weights =
        |apply: &Value| matches!(apply["location"].as_str(), Some("weight_input" | "weight_output"));
    let all = |group: &Value| group["apply"].as_array().is_some_and(|all| all.iter().all(of_weights));
    match &config["config_groups"] {
        Value::Null => config.as_object().is_some_and(serde_json::Map::is_empty),
        groups => groups.as_object().is_some_and(|groups| groups.values().all(all)),
    }
}

impl Settings {
    fn read(group: &Json<'_>, of_all: Option<&str>) -> Result<Self, Error> {
        let Some(weights) = group.object("weights")? else {
            return Err(group.missing("weights", "an object"));
        };
        let name = group.text_or_null("format")?.or(of_all);
        let known = || FORMATS.map(|(name, _)| name).join(", ");
        let format = FORMATS.iter().find(|(known, _)| Some(*known) == name).map(|(_, format)| *format);
        let format = format.ok_or_else(|| group.unsupported("format", format!("one of {}", known())))?;
        let (kind, bits) = match format {
            Format::Packed => ("int", [2, 3, 4, 5, 6, 8].as_slice()),
            Format::Integers => ("int", [8].as_slice()),
            Format::Floats | Format::Mxfp8 => ("float", [8].as_slice()),
            Format::Nvfp4 | Format::Mxfp4 => ("float", [4].as_slice()),
        };
        weights.require("type", kind, |value| value.as_str() == Some(kind))?;
        let found = weights.required_size("num_bits", 8)?;
        if !bits.contains(&found) {
            let expected: Vec<_> = bits.iter().map(ToString::to_string).collect();
            return Err(weights.unsupported("num_bits", expected.join(" or ")));
        }
        let size = weights.group_size("group_size")?;
        let group = match weights.text("strategy")? {
            Some("tensor") => [None, None],
            Some("channel") => [Some(1), None],
            Some("group" | "tensor_group") if size.is_some() => [Some(1), size],
            Some("group" | "tensor_group") => return Err(weights.invalid("group_size", "a size")),
            Some("block") => weights.sizes("block_structure")?.map(Some),
            _ => {
                let expected = "one of tensor, channel, group, tensor_group or block";
                return Err(weights.unsupported("strategy", expected));
            }
        };
        Ok(Self {
            format,
            bits: found,
            group,
            has_zeros: kind == "int" && !weights.flag("symmetric", true)?,
            has_order: match weights.text_or_null("actorder")? {
                Some("group" | "dynamic") => true,
                None | Some("weight" | "static") => false,
                Some(_) => {
                    return Err(weights.unsupported("actorder", "null, group, dynamic, weight or static"));
                }
            },
        })
    }

    fn storage(&self, weight: &Weight, tensors: &StoredTensors) -> Result<Storage, WrongStorage> {
        let [rows, columns] = matrix(weight)?;
        let Self { format, bits, has_order, .. } = *self;
        let group @ [of_rows, of_columns] = [self.group[0].unwrap_or(rows), self.group[1].unwrap_or(columns)];
        let groups = [rows.div_ceil(of_rows), columns.div_ceil(of_columns)];
        let name = |part: &str| format!("{}.{part}", module(&weight.name).unwrap_or_default());
        let mut parts = Parts::new(tensors);
        let integers = Numbers::Integers { bits, signed: format == Format::Integers };
        let floats = Numbers::Floats { bits };
        let (codes, numbers) = match format {
            Format::Packed => {
                let words = (columns * bits).div_ceil(WORD_BITS);
                let words = parts.take(&name("weight_packed"), &[Dtype::I32], &[rows, words])?;
                (words.unpack(bits).slice(1, 0, columns), integers)
            }
            Format::Integers => {
                (parts.take(&weight.name, &[Dtype::I8], &[rows, columns])?.integers(), integers)
            }
            Format::Floats | Format::Mxfp8 => {
                let codes = parts.take(&weight.name, &[Dtype::F8_E4M3], &[rows, columns])?;
                (codes.unpack(8).lookup(FloatCodes::E4m3.list()), floats)
            }
            Format::Nvfp4 | Format::Mxfp4 => {
                whole_groups(&weight.name, columns, of_columns)?;
                let bytes = parts.take(&name("weight_packed"), &[Dtype::U8], &[rows, columns / 2])?;
                (bytes.unpack(4).lookup(FloatCodes::E2m1.list()), floats)
            }
        };
        if matches!(format, Format::Packed | Format::Integers) {
            self.check_unused(tensors, &name)?;
        }
        let scales = self.scales(&mut parts, tensors, &name, groups)?;
        let column_groups = match has_order {
            true => parts.column_groups(&name("weight_g_idx"), columns, [groups[1], of_columns])?,
            false => None,
        };
        let zeros = self.zeros(&mut parts, &name, groups)?;
        let coding = Coding::in_groups(codes, numbers, of_columns, scales);
        Ok(parts.finish(Coding { group, column_groups, zeros, ..coding }))
    }

    /// Refuses tensors of integers that change what codes mean, but of which these settings say nothing: those of another group may.
    fn check_unused(
        &self,
        tensors: &StoredTensors,
        name: &dyn Fn(&str) -> String,
    ) -> Result<(), WrongStorage> {
        let unused = [
            ("weight_zero_point", self.has_zeros, "none, because config.json has `symmetric` weights"),
            ("weight_g_idx", self.has_order, "none, because config.json has no `actorder` group"),
        ];
        for (part, is_used, expected) in unused {
            if !is_used && tensors.has(&name(part)) {
                return Err(WrongStorage::new(name(part), format!("found, expected {expected}")));
            }
        }
        Ok(())
    }

    fn scales(
        &self,
        parts: &mut Parts<'_>,
        tensors: &StoredTensors,
        name: &dyn Fn(&str) -> String,
        groups: [usize; 2],
    ) -> Result<Expr, WrongStorage> {
        let scale = name("weight_scale");
        match self.format {
            Format::Nvfp4 => {
                let scales =
                    parts.take(&scale, &[Dtype::F8_E4M3], &groups)?.unpack(8).lookup(FloatCodes::E4m3.list());
                let by = parts.floats(&name("weight_global_scale"), &[1])?.reshape(&[1, 1]);
                Ok(scales.divided_by(by))
            }
            Format::Mxfp4 | Format::Mxfp8 => {
                Ok(parts.take(&scale, &[Dtype::U8], &groups)?.unpack(8).lookup(e8m0()))
            }
            _ => {
                // The scale of a whole tensor has no dimensions, or one.
                let shape = tensors.get(&scale).map(|scale| scale.shape).unwrap_or_default();
                let is_only = groups == [1, 1] && shape.iter().product::<usize>() == 1;
                let expected = if is_only { shape } else { groups.to_vec() };
                Ok(parts.floats(&scale, &expected)?.reshape(&groups))
            }
        }
    }

    /// Returns the zero points. Packed codes and their zero points are larger by half of their range.
    fn zeros(
        &self,
        parts: &mut Parts<'_>,
        name: &dyn Fn(&str) -> String,
        groups @ [rows, columns]: [usize; 2],
    ) -> Result<Option<Expr>, WrongStorage> {
        let zero_point = name("weight_zero_point");
        Ok(match (self.format, self.has_zeros) {
            (Format::Packed, false) => {
                let half = 1u8 << (self.bits - 1);
                Some(Expr::number(f32::from(half)))
            }
            (Format::Packed, true) => {
                let words = (rows * self.bits).div_ceil(WORD_BITS);
                let words = parts.take(&zero_point, &[Dtype::I32], &[words, columns])?;
                let zeros = words.transpose(&[1, 0]).unpack(self.bits).slice(1, 0, rows);
                Some(zeros.transpose(&[1, 0]).floats())
            }
            (_, true) => Some(parts.take(&zero_point, &[Dtype::I8], &groups)?.integers().floats()),
            (_, false) => None,
        })
    }
}
