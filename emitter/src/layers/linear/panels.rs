//! Products by kernels on CPUs, over weights packed into panels.
//!
//! In a panel, the same input of several outputs is contiguous. So a product takes one vector operation for each input, or
//! few of them, and no shuffles.

mod float;
mod groups;
mod layout;
mod product;
mod q8;
mod rows;

use mlxcel_models::Weight;

use super::named::Named;
use crate::{
    form::Form,
    graph::Tensor,
    kernels::Isa,
    layers::{
        builder::Builder,
        weights::{Matrix, Weights},
    },
};

pub(in crate::layers) use product::{ProductInputs, Segments};
pub(in crate::layers) use rows::quantized_results;

/// Computes `[batch, tokens, inputs]` to `[batch, tokens, outputs of the tensor]` for each layer's tensor, as one product.
pub(super) fn products(b: &mut Builder<'_>, isa: Isa, layers: &[Named<'_>], x: Tensor) -> Vec<Tensor> {
    let names: Vec<_> = layers.iter().map(|(name, _)| *name).collect();
    b.scope(&names.join("+"), |b| {
        let weights: Vec<_> = layers.iter().map(|&(_, layer)| Matrix::from(layer)).collect();
        let inputs = ProductInputs { weights: Weights::Layers(&weights), x, segments: None };
        let product = product(b, isa, inputs);
        let mut first = 0;
        let part = |(_, layer): &Named<'_>| {
            let last = first + layer.weight_outputs();
            let part = b.graph.slice_dimension(product, 2, first, last);
            first = last;
            part
        };
        layers.iter().map(part).collect()
    })
}

/// Computes `[batch, tokens, inputs]` to `[batch, tokens, outputs]`.
pub(in crate::layers) fn product(b: &mut Builder<'_>, isa: Isa, inputs: ProductInputs<'_>) -> Tensor {
    match form(b, inputs.weights) {
        Form::Floats => float::product(b, isa, inputs),
        Form::Rows => q8::product(b, isa, inputs),
        Form::Groups(form) => groups::product(b, isa, inputs, form),
    }
}

/// Looks up rows of a packed weight: `[…]` to `[…, inputs]` in `f32`.
pub(super) fn rows(b: &mut Builder<'_>, isa: Isa, weight: &Weight, rows: Tensor) -> Tensor {
    match b.form(weight) {
        Form::Floats => float::rows(b, isa, weight, rows),
        Form::Rows => q8::rows(b, isa, weight, rows),
        Form::Groups(form) => groups::rows(b, isa, weight, rows, form),
    }
}

/// Returns the form that all weights have, or floats if there are several.
fn form(b: &Builder<'_>, weights: Weights<'_>) -> Form {
    let tensors = weights.tensors();
    let mut forms = tensors.iter().map(|weight| b.form(weight));
    let first = forms.next().unwrap_or(Form::Floats);
    if forms.all(|form| form == first) { first } else { Form::Floats }
}
