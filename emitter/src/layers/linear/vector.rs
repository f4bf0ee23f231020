//! Vectors of weights, as kernels of GPUs read them.

use mlxcel_models::Weight;

use crate::{graph::Tensor, kernels::element_number, layers::builder::Builder};

/// Loads a vector in a type that kernels read, with the number of the type.
pub(in crate::layers) fn vector(b: &mut Builder<'_>, weight: &Weight) -> (Tensor, usize) {
    let number = element_number(b.dtype(weight));
    // Any other type is widened.
    let tensor = if number == 0 { b.weight_f32(weight) } else { b.stored(weight) };
    (tensor, number)
}
