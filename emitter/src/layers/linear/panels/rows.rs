//! Quantized rows, the inputs of products with quantized weights.

use safetensors::Dtype;

use crate::{
    form::Activation,
    graph::Tensor,
    group_form::GROUP,
    kernels::{Grid, Isa, QuantizeGroups, QuantizeRows, QuantizedResults},
    layers::builder::Builder,
    types::TensorType,
};

/// Inputs whose sum products with groups need: half a group.
const HALF: usize = GROUP / 2;

/// Returns the types of `[batch, tokens]` quantized rows of `width` elements.
pub(in crate::layers) fn quantized_results(
    b: &Builder<'_>,
    activation: Option<Activation>,
    isa: Isa,
    [batch, tokens, width]: [usize; 3],
) -> QuantizedResults {
    match activation {
        None => QuantizedResults::None,
        Some(Activation::Rows) => QuantizedResults::Q8 {
            q: TensorType::new(isa.q8_activation(), [batch, tokens, width]),
            scale: TensorType::new(Dtype::F32, [batch, tokens]),
        },
        Some(Activation::Groups) if !width.is_multiple_of(GROUP) => QuantizedResults::None,
        Some(Activation::Groups) => {
            let terms = b.input_terms;
            QuantizedResults::Q4 {
                q: TensorType::new(Dtype::I8, [batch, tokens, terms, width]),
                scale: TensorType::new(Dtype::F32, [batch, tokens, terms, width / GROUP]),
                sums: TensorType::new(Dtype::I16, [batch, tokens, terms, width / HALF]),
                terms,
            }
        }
    }
}

/// Returns the quantized rows of `x`, `[batch, tokens, width]`: bytes, scales, and for groups the sums of their halves. A
/// kernel that computed `x` may have quantized it.
pub(super) fn quantized_rows(
    b: &mut Builder<'_>,
    isa: Isa,
    x: Tensor,
    activation: Activation,
) -> Vec<Tensor> {
    if let Some(known) = b.quantized.get(&(x, activation)) {
        return known.clone();
    }
    let &[batch, tokens, k] = b.graph.shape(x) else {
        return vec![x; 3];
    };
    let grid = Grid { items: batch * tokens, grain: 1 };
    let rows = match quantized_results(b, Some(activation), isa, [batch, tokens, k]) {
        QuantizedResults::None => vec![x; 3],
        QuantizedResults::Q8 { q, scale } => {
            b.module.call(&mut b.graph, isa, QuantizeRows { x, q, scale, k }, grid)
        }
        QuantizedResults::Q4 { q, scale, sums, terms } => {
            b.module.call(&mut b.graph, isa, QuantizeGroups { x, q, scale, sums, k, terms }, grid)
        }
    };
    b.quantized.insert((x, activation), rows.clone());
    rows
}
