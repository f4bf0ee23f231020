//! Products by kernels, over weights packed into panels: some outputs of one input lie side by side, so that a product is
//! one vector operation for each input, or few of them, and needs no shuffles.

mod float;
mod q4;
mod q8;

use mlxcel_models::Weight;
use safetensors::Dtype;

use super::{Builder, Matrix, linear::Named};
use crate::{Graph, Isa, Quant, Tensor, TensorType, kernels::Executable};

/// Bytes of panels that stay in the cache of one core as a kernel goes through them with every row.
const CACHED_BYTES: usize = 256 << 10;

/// Outputs of a workgroup at most: enough that a workgroup is worth its start, few enough that there are some for every core.
const MOST_OUTPUTS: usize = 64;

/// Workgroups that a product of a single row is divided into, where it is large enough.
const LEAST_WORKGROUPS: usize = 32;

/// A product by a kernel that is called as all of them are.
struct Product<'a> {
    isa: Isa,
    file: &'static str,
    function: &'static str,
    /// The packed weights, then what the kernel takes of the rows.
    operands: &'a [Tensor],
    /// Outputs and inputs of the weights.
    outputs: usize,
    inputs: usize,
    /// Outputs of a panel, and its bytes.
    panel: usize,
    panel_bytes: usize,
}

/// `[batch, tokens, inputs]` → `[batch, tokens, outputs of the tensor]` for each layer's tensor, as one product.
pub(super) fn products(b: &mut Builder<'_>, isa: Isa, layers: &[Named<'_>], x: Tensor) -> Vec<Tensor> {
    let names: Vec<_> = layers.iter().map(|(name, _)| *name).collect();
    b.scope(&names.join("+"), |b| {
        let weights: Vec<_> = layers.iter().map(|&(_, layer)| Matrix::from(layer)).collect();
        let product = match b.quant {
            Quant::None => float::product(b, isa, &weights, x),
            Quant::Q8 => q8::product(b, isa, &weights, x),
            Quant::Q4 => q4::product(b, isa, &weights, x),
        };
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

/// Rows of a weight that is packed: `[…]` → `[…, inputs]` in `f32`.
pub(super) fn rows(b: &mut Builder<'_>, isa: Isa, weight: &Weight, rows: Tensor) -> Tensor {
    match b.quant {
        Quant::None => float::rows(b, isa, weight, rows),
        Quant::Q8 => q8::rows(b, isa, weight, rows),
        Quant::Q4 => q4::rows(b, weight, rows),
    }
}

impl Product<'_> {
    /// Calls it for rows `[batch, tokens]`.
    fn call(self, b: &mut Builder<'_>, batch: usize, tokens: usize) -> Tensor {
        let Self { isa, file, function, operands, outputs, inputs, panel, panel_bytes } = self;
        let lengths = b.lengths(batch, tokens);
        let operands = [operands, &[lengths]].concat();
        let executable = Executable {
            isa,
            file,
            function,
            operands: operands.iter().map(|&operand| b.graph.type_of(operand)).collect(),
            cache: 0..0,
            results: vec![TensorType::new(Dtype::F32, [batch, tokens, outputs])],
            numbers: 0,
            sizes: vec![batch, tokens, outputs, inputs],
            items: outputs.div_ceil(panel),
            grain: if batch * tokens == 1 {
                outputs_of_a_row(outputs) / panel
            } else {
                (CACHED_BYTES / panel_bytes.max(1)).clamp(1, MOST_OUTPUTS / panel)
            },
        };
        b.module.call(&mut b.graph, executable, &operands, &[])[0]
    }
}

/// Outputs of a workgroup for a single row. Nothing is read twice then, and kernels read in four places at once, each of
/// which should be long: so as many as leave some workgroups for every core, in whole panels of all four.
fn outputs_of_a_row(outputs: usize) -> usize {
    let most = 4 * MOST_OUTPUTS;
    (outputs / LEAST_WORKGROUPS / MOST_OUTPUTS * MOST_OUTPUTS).clamp(MOST_OUTPUTS, most)
}

/// Outputs and inputs of weights that lie one after the other.
fn size(weights: &[Matrix<'_>]) -> (usize, usize) {
    let outputs = weights.iter().map(|weight| weight.size().0).sum();
    (outputs, weights.first().map_or(1, |weight| weight.size().1))
}

/// Weights one after the other, `[outputs, inputs]`, as each panel's rows: `[panels, lanes, inputs]`, zeros at the end.
fn paneled(g: &mut Graph, weights: &[Tensor], lanes: usize) -> Tensor {
    let rows = if let &[only] = weights { only } else { g.concatenate(weights, 0) };
    let mut shape = g.shape(rows).to_vec();
    let Some(outputs) = shape.first().copied() else {
        return rows;
    };
    let panels = outputs.div_ceil(lanes);
    let missing = panels * lanes - outputs;
    let rows = if missing == 0 {
        rows
    } else {
        let zero = g.scalar(0.0, g.dtype(rows));
        let none = vec![0; shape.len()];
        let mut high = none.clone();
        high[0] = missing;
        g.pad(rows, zero, &none, &high, &none)
    };
    shape.splice(..1, [panels, lanes]);
    g.reshape(rows, &shape)
}

/// Where rows of a weight are in its panels: `[…]` → `[…, 2]`, panel and lane.
fn places(g: &mut Graph, rows: Tensor, lanes: usize) -> Tensor {
    let shape = g.shape(rows).to_vec();
    let part = |g: &mut Graph, value: usize| {
        #[expect(clippy::cast_precision_loss, reason = "a number of lanes")]
        let value = g.full(value as f64, Dtype::I32, &shape);
        value
    };
    let (bits, mask) = (part(g, lanes.trailing_zeros() as usize), part(g, lanes - 1));
    let panel = g.shift_right_logical(rows, bits);
    let lane = g.and(rows, mask);
    let vector: Vec<_> = shape.iter().copied().chain([1]).collect();
    let components = [panel, lane].map(|index| g.reshape(index, &vector));
    g.concatenate(&components, shape.len())
}
