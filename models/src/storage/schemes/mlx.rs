//! MLX: `quantization` in config.json, as mlx-lm 0.32 writes it.
//!
//! A module has `weight`, words of codes with the lowest bits first, `scales`, and in the affine mode `biases`, which are
//! added. Embedding and head are quantized too. Experts are stacked in `switch_mlp`.

mod gpt_oss;

use std::collections::BTreeMap;

use safetensors::Dtype;

use super::{
    names::{matrix, module, whole_groups},
    numbers::{FloatCodes, e8m0},
};
use crate::{
    error::Error,
    json::Json,
    layers::Weight,
    storage::{
        coding::{Coding, Numbers, OfGroups, Storage},
        expr::Expr,
        tensors::{Parts, StoredTensors, WrongStorage},
    },
};

/// MLX's settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Mlx {
    default: Form,
    /// Forms of modules that have others.
    modules: BTreeMap<String, Form>,
}

/// The form of a module's weight.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Form {
    mode: Mode,
    bits: usize,
    group: usize,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Mode {
    Affine,
    /// 4-bit or 8-bit floats with powers of two as scales.
    Mx,
    /// 4-bit floats with 8-bit floats as scales.
    Nvfp4,
}

/// The stack of experts, and the names of an expert's layers in Mixtral.
const STACK: &str = "switch_mlp";
const MIXTRAL: [(&str, &str); 3] = [("w1", "gate_proj"), ("w2", "down_proj"), ("w3", "up_proj")];

/// Words of codes.
const WORD_BITS: usize = 32;

impl Mlx {
    pub(in crate::storage) fn read(json: &Json<'_>) -> Result<Self, Error> {
        let default = Form::read(json, None)?;
        let mut modules = BTreeMap::new();
        for key in json.keys().filter(|key| !SETTINGS.contains(key)) {
            // False stands for a module that is not quantized, which its tensors show.
            if json.value(key).is_some_and(|value| !value.is_boolean())
                && let Some(of_module) = json.object(key)?
            {
                modules.insert(key.to_owned(), Form::read(&of_module, Some(default))?);
            }
        }
        Ok(Self { default, modules })
    }

    /// Returns the module of a weight, and its expert if the module is a stack.
    fn module(name: &str) -> Option<(String, Option<usize>)> {
        let own = module(name)?;
        let Some((before, rest)) = own.split_once(".experts.") else { return Some((own.to_owned(), None)) };
        let (expert, layer) = rest.split_once('.')?;
        let layer = MIXTRAL.iter().find(|(name, _)| *name == layer).map_or(layer, |(_, other)| other);
        Some((format!("{before}.{STACK}.{layer}"), Some(expert.parse().ok()?)))
    }

    pub(in crate::storage) fn stores(&self, name: &str, tensors: &StoredTensors) -> bool {
        let has = |module: &str, part: &str| tensors.has(&format!("{module}.{part}"));
        if let Some((stack, _)) = gpt_oss::stacks(name) {
            return stack.iter().any(|module| has(module, "scales"));
        }
        // A stack of float experts has no form of its own elsewhere.
        Self::module(name).is_some_and(|(module, expert)| {
            has(&module, "scales") || (expert.is_some() && has(&module, "weight"))
        })
    }

    pub(in crate::storage) fn storage(
        &self,
        weight: &Weight,
        tensors: &StoredTensors,
    ) -> Result<Storage, WrongStorage> {
        if let Some((stacks, is_bias)) = gpt_oss::stacks(&weight.name) {
            let coding_of = |parts: &mut Parts<'_>, module: &str, shape: (&[usize], usize)| {
                self.coding(parts, tensors, module, shape, &|all, _| all)
            };
            return gpt_oss::storage(weight, tensors, (&stacks, is_bias), &coding_of);
        }
        let [rows, columns] = matrix(weight)?;
        let Some((module, expert)) = Self::module(&weight.name) else {
            return Err(WrongStorage::new(&weight.name, "no weight of a module, expected one"));
        };
        let mut parts = Parts::new(tensors);
        let coding = match expert {
            None => self.coding(&mut parts, tensors, &module, (&[rows], columns), &|all, _| all)?,
            Some(expert) => {
                let outer = [parts.stack(&format!("{module}.weight"), expert)?, rows];
                // Before codes are unpacked, because each expert has the whole stack as its source.
                let pick = |all: Expr, last: usize| all.slice(0, expert, expert + 1).reshape(&[rows, last]);
                self.coding(&mut parts, tensors, &module, (&outer, columns), &pick)?
            }
        };
        Ok(parts.finish(coding))
    }

    /// Returns the coding of a module's weight, `[outer…, columns]`, of which `pick` takes a part.
    fn coding(
        &self,
        parts: &mut Parts<'_>,
        tensors: &StoredTensors,
        module: &str,
        (outer, columns): (&[usize], usize),
        pick: &dyn Fn(Expr, usize) -> Expr,
    ) -> Result<Coding, WrongStorage> {
        let shape = |last: usize| [outer, &[last]].concat();
        let part = |name: &str| format!("{module}.{name}");
        if !tensors.has(&part("scales")) {
            let all = parts.floats(&part("weight"), &shape(columns))?;
            let numbers = Numbers::Floats { bits: 16 };
            return Ok(Coding::in_groups(pick(all, columns), numbers, columns, Expr::number(1.0)));
        }
        let Form { mode, bits, group } = *self.modules.get(module).unwrap_or(&self.default);
        let groups = whole_groups(&part("weight"), columns, group)?;
        let words = columns * bits / WORD_BITS;
        let all = parts.take(&part("weight"), &[Dtype::U32], &shape(words))?;
        let codes = pick(all, words).unpack(bits);
        let scales = part("scales");
        Ok(match mode {
            Mode::Affine => {
                let all = parts.floats(&scales, &shape(groups))?;
                let minima = parts.floats(&part("biases"), &shape(groups))?;
                let numbers = Numbers::Integers { bits, signed: false };
                let coding = Coding::in_groups(codes, numbers, group, pick(all, groups));
                Coding { minima: Some(OfGroups::Numbers(pick(minima, groups))), ..coding }
            }
            Mode::Mx | Mode::Nvfp4 => {
                let all = parts.take(&scales, &[Dtype::U8], &shape(groups))?;
                let list = if mode == Mode::Mx { e8m0() } else { FloatCodes::E4m3.list() };
                let scales = pick(all, groups).unpack(8).lookup(list);
                let numbers = if bits == 4 { FloatCodes::E2m1.list() } else { FloatCodes::E4m3.list() };
                Coding::in_groups(codes.lookup(numbers), Numbers::Floats { bits }, group, scales)
            }
        })
    }
}

/// Keys that are no modules.
const SETTINGS: [&str; 4] = ["group_size", "bits", "mode", "quant_method"];

impl Form {
    fn read(json: &Json<'_>, default: Option<Self>) -> Result<Self, Error> {
        let mode = match json.text("mode")? {
            None | Some("affine") => Mode::Affine,
            Some("mxfp4" | "mxfp8") => Mode::Mx,
            Some("nvfp4") => Mode::Nvfp4,
            Some(_) => return Err(json.unsupported("mode", "one of affine, mxfp4, mxfp8 or nvfp4")),
        };
        let (own_bits, own_group) = match (json.text("mode")?, default) {
            (Some("mxfp8"), _) => (8, 32),
            (Some("mxfp4"), _) => (4, 32),
            (Some("nvfp4"), _) => (4, 16),
            (_, Some(form)) => (form.bits, form.group),
            _ => (4, 64),
        };
        let bits = json.size("bits", own_bits, 8)?;
        let fits = match mode {
            Mode::Affine => [2, 3, 4, 5, 6, 8].contains(&bits),
            Mode::Mx => [4, 8].contains(&bits),
            Mode::Nvfp4 => bits == 4,
        };
        if !fits {
            return Err(json.unsupported("bits", "2, 3, 4, 5, 6 or 8, and 4 or 8 for floats"));
        }
        // Words hold whole groups.
        let group = json.size("group_size", own_group, 1 << 16)?;
        if group.is_multiple_of(WORD_BITS) || (group == 16 && mode == Mode::Nvfp4) {
            Ok(Self { mode, bits, group })
        } else {
            Err(json.unsupported("group_size", "a multiple of 32"))
        }
    }
}
