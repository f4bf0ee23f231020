//! Products by kernels, over weights packed into panels: some outputs of one input lie side by side, so that a product is
//! one vector operation for each input, or few of them, and needs no shuffles.

mod float;
mod q4;
mod q8;

use mlxcel_artifacts::Quant;
use mlxcel_models::Weight;
use safetensors::Dtype;

use super::{
    Builder, Matrix,
    linear::Named,
    weights::{Weights, padded},
};
use crate::{Graph, Isa, Tensor, TensorType, kernels::Executable};

/// Bytes of panels that stay in the cache of one core as a kernel goes through them with every row.
const CACHED_BYTES: usize = 256 << 10;

/// Outputs of a workgroup at most: enough that a workgroup is worth its start, few enough that there are some for every core.
const MOST_OUTPUTS: usize = 64;

/// Workgroups that a product of a single row is divided into, where it is large enough.
const LEAST_WORKGROUPS: usize = 32;

/// Where the rows of a product with experts lie: the expert of each segment, and the first row of each and one past the
/// last.
#[derive(Clone, Copy)]
pub(super) struct Segments {
    pub(super) experts: Tensor,
    pub(super) begins: Tensor,
}

/// What a product is of: rows, with the same weights all or each with those of its expert.
#[derive(Clone, Copy)]
pub(super) struct Rows<'w> {
    pub(super) weights: Weights<'w>,
    /// `[batch, tokens, inputs]`.
    pub(super) x: Tensor,
    /// For experts.
    pub(super) segments: Option<Segments>,
}

/// A product by a kernel that is called as all of them are.
struct Product<'a> {
    isa: Isa,
    file: &'static str,
    /// For rows, and for rows of experts.
    functions: [&'static str; 2],
    segments: Option<Segments>,
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
        let product = product(b, isa, Rows { weights: Weights::Layers(&weights), x, segments: None });
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

/// `[batch, tokens, inputs]` → `[batch, tokens, outputs]`.
pub(super) fn product(b: &mut Builder<'_>, isa: Isa, rows: Rows<'_>) -> Tensor {
    match b.quant {
        Quant::None => float::product(b, isa, rows),
        Quant::Q8 => q8::product(b, isa, rows),
        Quant::Q4 => q4::product(b, isa, rows),
    }
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
        let Self { isa, file, functions: [of_rows, of_experts], segments, operands, outputs, inputs, .. } =
            self;
        let panels = outputs.div_ceil(self.panel);
        let by_row = outputs_of_a_row(outputs) / self.panel;
        let by_cache = (CACHED_BYTES / self.panel_bytes.max(1)).clamp(1, MOST_OUTPUTS / self.panel);
        let (function, last, sizes, items, few) = match segments {
            Some(Segments { experts, begins }) => {
                let count = b.graph.shape(experts).iter().product::<usize>();
                // Where there are as many segments as rows, each has one.
                let few = count == batch * tokens;
                (of_experts, vec![experts, begins], vec![outputs, inputs], count * panels, few)
            }
            None => {
                let lengths = b.lengths(batch, tokens);
                let sizes = vec![batch, tokens, outputs, inputs];
                (of_rows, vec![lengths], sizes, panels, batch * tokens == 1)
            }
        };
        let operands = [operands, &last].concat();
        let executable = Executable {
            isa,
            file,
            function,
            operands: operands.iter().map(|&operand| b.graph.type_of(operand)).collect(),
            cache: 0..0,
            results: vec![TensorType::new(Dtype::F32, [batch, tokens, outputs])],
            numbers: 0,
            sizes,
            items,
            grain: if few { by_row } else { by_cache },
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

/// Weights one after the other, `[outputs, inputs]`, as each panel's rows: `[panels, lanes, inputs]`, zeros at the end.
fn paneled(g: &mut Graph, weights: &[Tensor], lanes: usize) -> Tensor {
    let rows = padded(g, weights, lanes);
    let mut shape = g.shape(rows).to_vec();
    let Some(outputs) = shape.first().copied() else {
        return rows;
    };
    shape.splice(..1, [outputs / lanes, lanes]);
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
