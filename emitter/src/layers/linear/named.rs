//! Linear layers with their names.

use mlxcel_models::Linear;
use safetensors::Dtype;

use crate::{form::Form, layers::builder::Builder};

/// A linear layer with the name that errors give it.
pub(super) type Named<'l> = (&'static str, &'l Linear);

/// How a layer's weight is read.
#[derive(PartialEq)]
enum Reading {
    /// As floats of this type.
    Floats(Dtype),
    /// In few bits, with inputs in this order, if they are packed so.
    Bits(Form, Option<Vec<i32>>),
}

fn reading(b: &Builder<'_>, (_, layer): Named<'_>) -> Reading {
    match b.form(&layer.weight) {
        Form::Floats => Reading::Floats(b.dtype(&layer.weight)),
        Form::Rows => Reading::Bits(Form::Rows, None),
        Form::Groups(form) => {
            let storage = b.storage(&layer.weight);
            // What is quantized anew has its inputs in their own order.
            let is_held = form.is_held_by(&storage, layer.inputs(), layer.transposed);
            Reading::Bits(Form::Groups(form), storage.order.filter(|_| is_held))
        }
    }
}

/// Returns whether the weights of all layers are read in one form.
pub(super) fn have_one_form(b: &Builder<'_>, layers: &[Named<'_>]) -> bool {
    by_form(b, layers).len() <= 1
}

/// Returns runs of layers whose weights are read in one form.
pub(super) fn by_form<'s, 'l>(b: &Builder<'_>, layers: &'s [Named<'l>]) -> Vec<&'s [Named<'l>]> {
    layers.chunk_by(|one, other| reading(b, *one) == reading(b, *other)).collect()
}
