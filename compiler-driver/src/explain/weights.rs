//! The table of a model's weights: parameters of each part, and bytes in each element type.

use std::collections::BTreeSet;

use mlxcel_artifacts::Quant;
use mlxcel_models::{Embedding, Head, Linear, Logits, ModelConfig, Norm, Weight};
use safetensors::Dtype;

use crate::explain::misfit::misfit;

/// The columns of the table.
const FORMS: [Form; 4] = [
    Form::Float("f32", Dtype::F32),
    Form::Float("bf16", Dtype::BF16),
    Form::Quantized(Quant::Q8),
    Form::Quantized(Quant::Q4),
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

    // A tensor that layers share counts once.
    let mut seen = BTreeSet::new();
    let mut part = |name, weights: Vec<(&Weight, Option<usize>)>| {
        let mut part = Part { name, parameters: 0, bytes: [0; FORMS.len()] };
        for (weight, inputs) in weights {
            if seen.insert(weight.name.clone()) {
                part.parameters += weight.elements();
                for (bytes, form) in part.bytes.iter_mut().zip(FORMS) {
                    *bytes += form.bytes(weight, inputs, dtype_of);
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

impl Form {
    /// Returns the bytes of a weight. Only a matrix has `inputs`.
    fn bytes(self, weight: &Weight, inputs: Option<usize>, dtype_of: &dyn Fn(&str) -> Dtype) -> u64 {
        let (quant, dtype) = match self {
            Self::Float(_, dtype) => (Quant::None, dtype),
            Self::Quantized(quant) if inputs.is_some() => (quant, Dtype::F32),
            Self::Quantized(_) => (Quant::None, dtype_of(&weight.name)),
        };
        quant.bytes(weight.elements(), inputs.unwrap_or(1) as u64, dtype)
    }
}
