//! Products by kernels, over weights packed into panels: [`LANES`] outputs of one input lie side by side, so that a product
//! is one vector operation for each input and needs no shuffles.

use mlxcel_models::Weight;
use safetensors::Dtype;

use super::{Builder, linear::Named};
use crate::{GatherDimensions, Graph, Isa, Tensor, TensorType, kernels::Executable};

/// Outputs of a panel: two vector registers of `f32` with AVX2.
const LANES: usize = 16;

/// Panels of a workgroup: as the kernel goes through them they stay in the cache of one core, and rows are read once for
/// all of them.
const GRAIN: usize = 4;

/// `[rows, inputs]` → `[rows, outputs]` for each layer, as one product.
pub(super) fn products<const N: usize>(
    b: &mut Builder<'_>,
    isa: Isa,
    layers: [Named<'_>; N],
    x: Tensor,
) -> [Tensor; N] {
    b.scope(&layers.map(|(name, _)| name).join("+"), |b| {
        let &[rows, inputs] = b.graph.shape(x) else {
            return layers.map(|_| x);
        };
        let weights = layers.map(|(_, layer)| &layer.weight);
        let outputs: usize = layers.iter().map(|(_, layer)| layer.outputs()).sum();
        let panels = packed(b, &weights);
        let stored = b.graph.dtype(panels);
        let product = Executable {
            isa,
            file: "matmul_float",
            function: match stored {
                Dtype::BF16 => "matmul_bf16",
                Dtype::F16 => "matmul_f16",
                _ => "matmul_f32",
            },
            operands: vec![b.graph.type_of(panels), TensorType::new(Dtype::F32, [rows, inputs])],
            results: vec![TensorType::new(Dtype::F32, [rows, outputs])],
            numbers: 0,
            sizes: vec![rows, outputs, inputs],
            items: outputs.div_ceil(LANES),
            grain: GRAIN,
        };
        let product = b.module.call(&mut b.graph, product, &[panels, x], &[])[0];
        let mut first = 0;
        layers.map(|(_, layer)| {
            let last = first + layer.outputs();
            let part = b.graph.slice_dimension(product, 1, first, last);
            first = last;
            part
        })
    })
}

/// Rows of a weight that is packed: `[…]` → `[…, inputs]` in `f32`.
pub(super) fn rows(b: &mut Builder<'_>, weight: &Weight, rows: Tensor) -> Tensor {
    let panels = packed(b, &[weight]);
    let inputs = weight.shape.get(1).copied().unwrap_or(1);
    let g = &mut b.graph;
    let shape = g.shape(rows).to_vec();
    let part = |g: &mut Graph, value: usize| {
        #[expect(clippy::cast_precision_loss, reason = "a number of lanes")]
        let value = g.full(value as f64, Dtype::I32, &shape);
        value
    };
    let (bits, mask) = (part(g, LANES.trailing_zeros() as usize), part(g, LANES - 1));
    let panel = g.shift_right_logical(rows, bits);
    let lane = g.and(rows, mask);
    let vector: Vec<_> = shape.iter().copied().chain([1]).collect();
    let components = [panel, lane].map(|index| g.reshape(index, &vector));
    let indices = g.concatenate(&components, shape.len());
    let dims = GatherDimensions {
        offset: &[shape.len()],
        collapsed_slice: &[0, 2],
        start_index_map: &[0, 2],
        index_vector: shape.len(),
    };
    let found = g.gather(panels, indices, &dims, &[1, inputs, 1]);
    g.convert(found, Dtype::F32)
}

/// Weights of one number of inputs, one after the other, as `[panels, inputs, LANES]`.
fn packed(b: &mut Builder<'_>, weights: &[&Weight]) -> Tensor {
    let made = b.packed("panels", weights, &[], |g, weights| {
        let rows = if let &[only] = weights { only } else { g.concatenate(weights, 0) };
        let &[outputs, inputs] = g.shape(rows) else {
            return vec![rows];
        };
        let panels = outputs.div_ceil(LANES);
        let missing = panels * LANES - outputs;
        let rows = if missing == 0 {
            rows
        } else {
            let zero = g.scalar(0.0, g.dtype(rows));
            g.pad(rows, zero, &[0, 0], &[missing, 0], &[0, 0])
        };
        let rows = g.reshape(rows, &[panels, LANES, inputs]);
        vec![g.transpose(rows, &[0, 2, 1])]
    });
    made[0]
}
