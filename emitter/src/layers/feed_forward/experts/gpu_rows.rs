//! The mixture of several tokens by kernels on GPUs.

use mlxcel_models::Experts;
use safetensors::Dtype;

use super::{linears::ExpertLinears, stack::matrices};
use crate::{
    graph::Tensor,
    kernels::{
        CudaChooseExperts, CudaCombineExperts, CudaMatmulExperts, CudaSortRows, GatedExperts, Isa,
        MatvecWeights, PairedRows, Tiles,
    },
    layers::{
        builder::Builder,
        linear::{WHOLE_INPUTS, gating, operand_rows, row_weights},
    },
    types::TensorType,
};

/// Computes `[batch, tokens, hidden]` to the same shape, if there are kernels for it.
pub(super) fn of_tokens(
    b: &mut Builder<'_>,
    isa: Isa,
    (layer, [up, down], rows): (&Experts, &[ExpertLinears<'_>; 2], PairedRows),
    logits: Tensor,
    x: Tensor,
) -> Option<Tensor> {
    let shape = b.graph.shape(x).to_vec();
    let (hidden, inner) = down.weights().size();
    let of = |b: &Builder<'_>, layers: &ExpertLinears<'_>| {
        row_weights(b, layers.weights().layers().first()?.weight)
    };
    let (of_up, of_down) = (of(b, up)?, of(b, down)?);
    let whole = [hidden, inner].iter().all(|inputs| inputs.is_multiple_of(WHOLE_INPUTS));
    // What the first products write is what the second ones read, in tiles of as many rows.
    let are_alike = of_up == of_down || of_up.is_packed() && of_down.is_packed();
    if !whole || !are_alike {
        return None;
    }
    let tokens = shape.iter().rev().skip(1).product();
    let x = operand_rows(b, of_up, x, [tokens, hidden])?;
    let routes = Routes::new(b, isa, layer, logits, tokens, of_up);
    let (activation, gate) = gating(layer.experts.first()?);
    let row_tokens = routes.row_tokens;
    let gated = GatedExperts { row_tokens, rows, activation, gate };
    let out = TensorType::new(b.graph.dtype(x), [routes.rows, inner]);
    let inner = b.scope("experts.inner", |b| routes.product(b, isa, up, x, (out, Some(gated))))?;
    let out = TensorType::new(Dtype::F32, [routes.rows, hidden]);
    let products = b.scope("experts.outer", |b| routes.product(b, isa, down, inner, (out, None)))?;
    let combine = CudaCombineExperts {
        products,
        places: routes.places,
        token_shares: routes.token_shares,
        out: TensorType::new(Dtype::F32, [tokens, hidden]),
        tokens,
        width: hidden,
        active: layer.active,
    };
    let grid = combine.grid();
    let y = b.module.call(&mut b.graph, isa, combine, grid)[0];
    Some(b.graph.reshape(y, &shape))
}

/// The experts of each token, and rows sorted by expert.
struct Routes {
    tiles: Tiles,
    experts: usize,
    /// Rows of all tokens.
    rows: usize,
    max_tiles: usize,
    token_shares: Tensor,
    places: Tensor,
    row_tokens: Tensor,
    tile_list: Tensor,
}

impl Routes {
    /// Chooses experts by `logits`, and sorts rows for products with such weights.
    fn new(
        b: &mut Builder<'_>,
        isa: Isa,
        layer: &Experts,
        logits: Tensor,
        tokens: usize,
        weights: MatvecWeights,
    ) -> Self {
        let (experts, active) = (layer.experts.len(), layer.active);
        let rows = tokens * active;
        let [small_rows, ..] = Tiles::Small.shape(weights);
        // Most experts have one tile.
        let tiles = if rows <= experts * small_rows { Tiles::Small } else { Tiles::Medium };
        let [tile_rows, ..] = tiles.shape(weights);
        let max_tiles = rows / tile_rows + experts.min(rows);
        let numbers = |count: usize| TensorType::new(Dtype::I32, [count]);
        // Without numbers, all rows are real.
        let row_numbers = b.row_numbers.unwrap_or_else(|| b.graph.full(1.0, Dtype::I32, &[3, tokens]));
        let choose = CudaChooseExperts {
            logits: b.graph.reshape(logits, &[tokens, experts]),
            row_numbers,
            token_experts: numbers(rows),
            token_shares: TensorType::new(Dtype::F32, [rows]),
            tokens,
            experts,
            active,
            normalized: layer.normalized,
        };
        let grid = choose.grid();
        let chosen = b.module.call(&mut b.graph, isa, choose, grid);
        let sort = CudaSortRows {
            token_experts: chosen[0],
            places: numbers(rows),
            row_tokens: numbers(rows),
            tiles: numbers(3 * max_tiles),
            rows,
            experts,
            active,
            tile_rows,
            max_tiles,
        };
        let sorted = b.module.call(&mut b.graph, isa, sort, CudaSortRows::GRID);
        Self {
            tiles,
            experts,
            rows,
            max_tiles,
            token_shares: chosen[1],
            places: sorted[0],
            row_tokens: sorted[1],
            tile_list: sorted[2],
        }
    }

    /// Multiplies rows by the weights of their experts.
    fn product(
        &self,
        b: &mut Builder<'_>,
        isa: Isa,
        layers: &ExpertLinears<'_>,
        x: Tensor,
        (out, gated): (TensorType, Option<GatedExperts>),
    ) -> Option<Tensor> {
        let Self { tiles, max_tiles, tile_list, .. } = *self;
        let matrices = matrices(b, layers, self.experts, self.token_shares)?;
        let (n, k) = (out.shape[1], layers.weights().size().1);
        let call = CudaMatmulExperts { tiles, x, matrices, tile_list, out, n, max_tiles, k, gated };
        let grid = call.grid();
        Some(b.module.call(&mut b.graph, isa, call, grid)[0])
    }
}
