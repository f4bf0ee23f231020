//! Linear layers with their names.

use mlxcel_models::Linear;

use crate::layers::builder::Builder;

/// A linear layer with the name that errors give it.
pub(super) type Named<'l> = (&'static str, &'l Linear);

/// Returns whether the weights of all layers have the same element type.
pub(super) fn have_one_dtype(b: &Builder<'_>, layers: &[Named<'_>]) -> bool {
    let dtype = |(_, layer): Named<'_>| b.dtype(&layer.weight);
    layers.windows(2).all(|pair| dtype(pair[0]) == dtype(pair[1]))
}
