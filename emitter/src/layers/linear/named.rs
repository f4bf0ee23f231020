//! Linear layers with their names.

use mlxcel_models::Linear;
use safetensors::Dtype;

use crate::{form::Form, layers::builder::Builder};

/// A linear layer with the name that errors give it.
pub(super) type Named<'l> = (&'static str, &'l Linear);

/// Returns how a layer's weight is read: its form, and the element type of floats.
fn form(b: &Builder<'_>, (_, layer): Named<'_>) -> (Form, Option<Dtype>) {
    let form = b.form(&layer.weight);
    (form, (form == Form::Floats).then(|| b.dtype(&layer.weight)))
}

/// Returns whether the weights of all layers are read in one form.
pub(super) fn have_one_form(b: &Builder<'_>, layers: &[Named<'_>]) -> bool {
    by_form(b, layers).len() <= 1
}

/// Returns runs of layers whose weights are read in one form.
pub(super) fn by_form<'s, 'l>(b: &Builder<'_>, layers: &'s [Named<'l>]) -> Vec<&'s [Named<'l>]> {
    layers.chunk_by(|one, other| form(b, *one) == form(b, *other)).collect()
}
