//! Forms: how the code of a target reads the weights of matrix products.

use std::collections::{BTreeMap, BTreeSet};

use mlxcel_artifacts::Quant;
use mlxcel_models::{Block, FeedForward, ModelConfig, Storage, Weight};
use safetensors::Dtype;

use crate::{
    group_form::{GroupForm, KernelsOf},
    mixed::mixed_forms,
    plan::{Numerics, Plan},
};

/// How a weight is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As floats. What the checkpoint stores in few bits is decoded.
    Floats,
    /// 8 bits with a scale for each output, see [`Quant::Q8`].
    Rows,
    /// Codes of few bits in groups of inputs.
    Groups(GroupForm),
}

/// What kernels quantize inputs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Activation {
    /// 8 bits with a scale for each row.
    Rows,
    /// 8 bits with a scale for each 32 elements, in as many terms as [`Plan::input_terms`] says.
    Groups,
}

/// The forms of a model's weights.
#[derive(Debug, Clone)]
pub struct Forms {
    /// By the names of all weights of matrix products.
    forms: BTreeMap<String, Form>,
    /// The type that such weights have if they are decoded.
    decoded: Dtype,
    /// What the inputs of most quantized weights are quantized to.
    activation: Option<Activation>,
}

impl Forms {
    /// Chooses the form of every weight of matrix products.
    #[must_use]
    pub fn new(model: &ModelConfig, plan: &Plan, storage_of: &dyn Fn(&Weight) -> Storage) -> Self {
        let fixed = with_fixed_inputs(model);
        let held = |weight: &Weight, inputs: usize, transposed: bool| {
            let storage = storage_of(weight);
            let kernels = if plan.numerics.gpu.is_some() { KernelsOf::Gpus } else { KernelsOf::Cpus };
            let form = GroupForm::holding(&storage, inputs, transposed, kernels)?;
            let may_permute = has_kernels(plan.numerics) && !fixed.contains(weight.name.as_str());
            let is_read = is_read(form, plan.numerics) && (storage.order.is_none() || may_permute);
            is_read.then_some(Form::Groups(form))
        };
        let exact: BTreeSet<_> = model
            .blocks
            .iter()
            .flat_map(|block| block.mlp.layer.unquantized_linears())
            .map(|linear| linear.weight.name.as_str())
            .collect();
        let mixed = if plan.quant == Quant::Q4K { mixed_forms(model) } else { BTreeMap::new() };
        let mut forms = BTreeMap::new();
        for (weight, inputs, transposed) in weights(model) {
            // Matrices of a stack have one form.
            forms.entry(weight.name.clone()).or_insert_with(|| match plan.quant {
                Quant::None => Form::Floats,
                Quant::Q8 | Quant::Q4 if exact.contains(weight.name.as_str()) => Form::Floats,
                Quant::Q8 => Form::Rows,
                Quant::Q4 => Form::Groups(GroupForm::Q4_0),
                // What is not among them is never quantized.
                Quant::Q4K => mixed.get(&weight.name).map_or(Form::Floats, |&form| Form::Groups(form)),
                Quant::Auto => held(weight, inputs, transposed).unwrap_or(Form::Floats),
            });
        }
        if plan.quant == Quant::Auto {
            model.blocks.iter().for_each(|block| decode_mixed_experts(&block.mlp.layer, &mut forms));
        }
        let decoded = if plan.quant == Quant::Auto { plan.precision.dtype() } else { Dtype::F32 };
        let has = |wanted: fn(&Form) -> bool| forms.values().any(wanted);
        let activation = if has(|form| matches!(form, Form::Groups(form) if !form.takes_floats())) {
            Some(Activation::Groups)
        } else {
            has(|form| *form == Form::Rows).then_some(Activation::Rows)
        };
        Self { forms, decoded, activation }
    }

    /// Returns the form of a weight.
    #[must_use]
    pub fn of(&self, weight: &Weight) -> Form {
        self.forms.get(&weight.name).copied().unwrap_or(Form::Floats)
    }

    /// Returns the form of a weight of matrix products by its name.
    pub(crate) fn of_name(&self, name: &str) -> Option<Form> {
        self.forms.get(name).copied()
    }

    /// Returns the type that a weight of few bits is decoded to.
    pub(crate) fn decoded_dtype(&self, weight: &Weight) -> Dtype {
        if self.forms.contains_key(&weight.name) { self.decoded } else { Dtype::F32 }
    }

    /// Returns what the inputs of most quantized weights are quantized to.
    pub(crate) fn activation(&self) -> Option<Activation> {
        self.activation
    }
}

/// Returns whether a target's code reads a form: kernels read all of them.
fn is_read(form: GroupForm, numerics: Numerics) -> bool {
    has_kernels(numerics) || form == GroupForm::Q4_0 && !numerics.floats_as_bits
}

/// Returns whether kernels multiply by weights in groups.
fn has_kernels(numerics: Numerics) -> bool {
    numerics.cpu_isa().is_some() || numerics.gpu.is_some()
}

/// Decodes the weights of experts that kernels multiply at once, the gates with what they gate and the last ones, where these
/// have several forms.
fn decode_mixed_experts(layer: &FeedForward, forms: &mut BTreeMap<String, Form>) {
    let FeedForward::Experts(layer) = layer else { return };
    let experts = &layer.experts;
    let first = experts.iter().flat_map(|mlp| mlp.gate.iter().chain([&mlp.up]));
    let last = experts.iter().map(|mlp| &mlp.down);
    for linears in [first.collect::<Vec<_>>(), last.collect()] {
        let names = || linears.iter().map(|linear| linear.weight.name.as_str());
        let form_of = |name: &str| forms.get(name).copied();
        let first = names().next().and_then(form_of);
        if !names().all(|name| form_of(name) == first) {
            let names: Vec<_> = names().map(str::to_owned).collect();
            forms.extend(names.into_iter().map(|name| (name, Form::Floats)));
        }
    }
}

/// Returns the names of weights whose inputs cannot be permuted: rows are looked up in the embedding, and experts share inputs.
fn with_fixed_inputs(model: &ModelConfig) -> BTreeSet<&str> {
    let is_mixture = |block: &&Block| matches!(block.mlp.layer, FeedForward::Experts(_));
    let experts = model.blocks.iter().filter(is_mixture).flat_map(|block| block.mlp.layer.linears());
    experts
        .map(|linear| &linear.weight)
        .chain([&model.embedding.weight])
        .map(|weight| weight.name.as_str())
        .collect()
}

/// Returns every weight of matrix products with its inputs, and whether it has them first.
fn weights(model: &ModelConfig) -> impl Iterator<Item = (&Weight, usize, bool)> {
    let embedding = (&model.embedding.weight, model.hidden, false);
    let linears = model.linears().map(|linear| (&linear.weight, linear.inputs(), linear.transposed));
    // The weight of a tied head is the embedding's.
    [embedding].into_iter().chain(linears)
}

#[cfg(test)]
mod tests {
    use mlxcel_artifacts::Float;
    use mlxcel_models::{Coding, Expr, FloatCodes, Numbers, OfGroups, PRESETS, Preset, StoredTensor};

    use super::*;
    use crate::{kernels::Isa, plan::Products};

    /// Returns a matrix of floats of few bits with one scale.
    fn in_floats(codes: FloatCodes, weight: &Weight) -> Storage {
        let tensor =
            StoredTensor { name: weight.name.clone(), dtype: Dtype::U8, shape: weight.shape.clone() };
        let coding = Coding {
            codes: Expr::Stored(0).unpack(8).lookup(codes.list()),
            numbers: Numbers::Floats { bits: codes.bits() },
            group: [weight.shape[0], weight.shape[1]],
            column_groups: None,
            scales: OfGroups::Numbers(Expr::number(0.5)),
            zeros: None,
            minima: None,
            transposed: false,
        };
        Storage { tensors: vec![tensor], coding: Some(coding), order: None }
    }

    #[test]
    fn floats_of_few_bits_are_read_as_they_are_stored() {
        let model = Preset::find("smollm2-135m").unwrap().model().unwrap();
        let form_of = |codes: FloatCodes, weight: &Weight, isa, float| {
            let numerics = Numerics { products: Products::Kernels(isa), ..Numerics::default() };
            let plan = Plan { quant: Quant::Auto, ..Plan::new(&model, float, 64) };
            let storage = |weight: &Weight| in_floats(codes, weight);
            Forms::new(&model, &plan.for_target(numerics), &storage).of(weight)
        };
        let up = &model.blocks[0].mlp.layer.linears().next().unwrap().weight;
        for isa in [Isa::X86_64V3, Isa::X86_64V4Bf16, Isa::X86_64V4Amx] {
            for float in [Float::F32, Float::Bf16] {
                for codes in FloatCodes::ALL {
                    assert_ne!(form_of(codes, up, isa, float), Form::Floats, "{codes:?}, {isa:?}, {float}");
                }
                let of_embedding = form_of(FloatCodes::E4m3, &model.embedding.weight, isa, float);
                assert_ne!(of_embedding, Form::Floats, "{isa:?}, {float}");
            }
        }
    }

    #[test]
    fn routers_and_gates_of_mixtures_are_never_quantized() {
        let mixtures: Vec<_> = PRESETS
            .iter()
            .map(|preset| preset.model().unwrap())
            .filter(|model| model.blocks.iter().any(|b| b.mlp.layer.unquantized_linears().next().is_some()))
            .collect();
        assert!(mixtures.len() > 3);
        for (model, quant) in
            mixtures.iter().flat_map(|model| [Quant::Q8, Quant::Q4, Quant::Q4K].map(|q| (model, q)))
        {
            let plan = Plan { quant, ..Plan::new(model, Float::Bf16, 64) };
            let forms = Forms::new(model, &plan, &|weight| Storage::plain(weight, Dtype::BF16));
            for block in &model.blocks {
                let exact: BTreeSet<_> =
                    block.mlp.layer.unquantized_linears().map(|linear| linear.weight.name.as_str()).collect();
                for linear in block.mlp.layer.linears() {
                    let (name, form) = (linear.weight.name.as_str(), forms.of(&linear.weight));
                    assert_eq!(form == Form::Floats, exact.contains(name), "{quant:?}: {name} is {form:?}");
                }
            }
        }
    }
}
