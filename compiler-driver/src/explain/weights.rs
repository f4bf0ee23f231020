//! The table of a model's weights: parameters of each part, and bytes in each element type.

use std::collections::BTreeSet;

use mlxcel_artifacts::{Float, Quant};
use mlxcel_emitter::{Form as StoredForm, Forms, Plan};
use mlxcel_models::{Embedding, Head, Linear, Logits, ModelConfig, Norm, Storage, Weight};
use safetensors::Dtype;

use crate::explain::misfit::misfit;

/// The columns of the table.
const FORMS: [Form; 5] = [
    Form::Float("f32", Dtype::F32),
    Form::Float("bf16", Dtype::BF16),
    Form::Quantized(Quant::Q8),
    Form::Quantized(Quant::Q4),
    Form::Quantized(Quant::Q4K),
];

/// A form of stored weights.
#[derive(Debug, Clone, Copy)]
enum Form {
    /// Every weight has this type.
    Float(&'static str, Dtype),
    /// Matrices are quantized, other weights keep their type.
    Quantized(Quant),
}

/// A part of the model.
#[derive(Debug)]
pub(super) struct Part {
    name: &'static str,
    pub(super) parameters: u64,
    /// Bytes in each of [`FORMS`].
    pub(super) bytes: [u64; FORMS.len()],
}

/// Formats the table. `dtype_of` tells the types that norms and biases keep if matrices are quantized.
pub(super) fn table(config: &ModelConfig, dtype_of: &dyn Fn(&str) -> Dtype) -> String {
    let heads = FORMS.map(|form| match form {
        Form::Float(name, _) => format!("{name} MiB"),
        Form::Quantized(quant) => format!("{quant} MiB"),
    });
    let possible = FORMS.map(|form| match form {
        Form::Float(..) => true,
        Form::Quantized(quant) => misfit(config, |plan| plan.quant = quant).is_none(),
    });
    let line = |name: &str, parameters: &str, cells: [String; FORMS.len()]| {
        let cells = cells.map(|cell| format!("  {cell:>11}")).concat();
        format!("{name:<9}  {parameters:>15}{cells}\n")
    };
    let mut text = line("part", "parameters", heads);
    for Part { name, parameters, bytes } in parts(config, dtype_of) {
        let cells = std::array::from_fn(|form| match possible[form] {
            true => format!("{:.2}", bytes[form] as f64 / f64::from(1 << 20)),
            false => "-".into(),
        });
        text += &line(name, &parameters.to_string(), cells);
    }
    text
}

/// Returns the parts, the last of which is their sum.
pub(super) fn parts(config: &ModelConfig, dtype_of: &dyn Fn(&str) -> Dtype) -> [Part; 6] {
    let Embedding { weight, positions, token_types, norm: _, scale: _ } = &config.embedding;
    let attention = config.blocks.iter().flat_map(|block| {
        let layer = &block.attention.layer;
        [&layer.query, &layer.key, &layer.value, &layer.output]
    });
    let sinks = config.blocks.iter().filter_map(|block| block.attention.layer.sinks.as_ref());
    let mlp = config.blocks.iter().flat_map(|block| block.mlp.layer.linears());
    let exact = config.blocks.iter().flat_map(|block| block.mlp.layer.unquantized_linears());
    let norms = config.norms().flat_map(|Norm { weights, bias, .. }| weights.iter().chain(bias));
    let table = (weight, Some(config.hidden));
    let head: Vec<_> = match &config.head {
        Head::Logits(head) => {
            let Logits { linear, tied, .. } = &**head;
            let own = (!tied).then_some((&linear.weight, Some(linear.inputs())));
            own.into_iter().chain(linear.bias.iter().map(unquantized)).collect()
        }
        Head::Pooling(_) => vec![],
    };

    let sizes = FORMS.map(|form| Sizes::new(form, config));
    // A tensor that layers share counts once.
    let mut seen = BTreeSet::new();
    let mut part = |name, weights: Vec<(&Weight, Option<usize>)>| {
        let mut part = Part { name, parameters: 0, bytes: [0; FORMS.len()] };
        for (weight, inputs) in weights {
            if seen.insert(weight.name.clone()) {
                part.parameters += weight.elements();
                for (bytes, sizes) in part.bytes.iter_mut().zip(&sizes) {
                    *bytes += sizes.bytes(weight, inputs, dtype_of);
                }
            }
        }
        part
    };
    let parts = [
        part(
            "embedding",
            [table].into_iter().chain(positions.iter().chain(token_types).map(unquantized)).collect(),
        ),
        part("attention", attention.flat_map(linear_weights).chain(sinks.map(unquantized)).collect()),
        part(
            "mlp",
            exact.map(|linear| unquantized(&linear.weight)).chain(mlp.flat_map(linear_weights)).collect(),
        ),
        part("norms", norms.map(unquantized).collect()),
        part("head", head),
    ];
    let all = Part {
        name: "all",
        parameters: parts.iter().map(|part| part.parameters).sum(),
        bytes: std::array::from_fn(|form| parts.iter().map(|part| part.bytes[form]).sum()),
    };
    let [embedding, attention, mlp, norms, head] = parts;
    [embedding, attention, mlp, norms, head, all]
}

/// Returns a weight that is never quantized.
fn unquantized(weight: &Weight) -> (&Weight, Option<usize>) {
    (weight, None)
}

/// Returns the weights of a linear layer, with the matrix's number of inputs.
fn linear_weights(linear: &Linear) -> impl Iterator<Item = (&Weight, Option<usize>)> {
    [(&linear.weight, Some(linear.inputs()))].into_iter().chain(linear.bias.iter().map(unquantized))
}

/// What weights take in a form.
enum Sizes {
    /// Every weight has this type.
    Float(Dtype),
    /// Matrices are quantized.
    Quantized(Forms),
}

impl Sizes {
    fn new(form: Form, config: &ModelConfig) -> Self {
        match form {
            Form::Float(_, dtype) => Self::Float(dtype),
            Form::Quantized(quant) => {
                let plan = Plan { quant, ..Plan::new(config, Float::F32, 1) };
                Self::Quantized(Forms::new(config, &plan, &Storage::all(Dtype::F32)))
            }
        }
    }

    /// Returns the bytes of a weight. Only a matrix has `inputs`. A size that does not fit is `u64::MAX`.
    fn bytes(&self, weight: &Weight, inputs: Option<usize>, dtype_of: &dyn Fn(&str) -> Dtype) -> u64 {
        let elements = weight.elements();
        let of_floats = |dtype: Dtype| elements.saturating_mul(dtype.bitsize() as u64 / 8);
        match (self, inputs) {
            (Self::Float(dtype), _) => of_floats(*dtype),
            (Self::Quantized(_), None) => of_floats(dtype_of(&weight.name)),
            (Self::Quantized(forms), Some(inputs)) => {
                let rows = elements / inputs.max(1) as u64;
                match forms.of(weight) {
                    StoredForm::Floats => of_floats(dtype_of(&weight.name)),
                    // A scale of 4 bytes for each output.
                    StoredForm::Rows => elements.saturating_add(rows.saturating_mul(4)),
                    StoredForm::Groups(form) => rows.saturating_mul(form.row_bytes(inputs) as u64),
                }
            }
        }
    }
}
