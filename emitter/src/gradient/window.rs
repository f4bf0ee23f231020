//! Gradients of reductions of windows.

use safetensors::Dtype;

use super::step::Step;
use crate::{
    graph::{Graph, Tensor},
    ops::{Reduction, Steps, Window},
    types::TensorType,
};

/// Adds the gradient of the operand of a windowed reduction.
pub(super) fn pull(g: &mut Graph, step: &mut Step<'_>) -> bool {
    if step.name() != "stablehlo.reduce_window" || step.op.operands.len() != 2 || step.wants(1) {
        return false;
    }
    let Some(reduction) = step.op.regions.first().and_then(Reduction::of) else { return false };
    let window = Window::read(|name| step.attribute(name));
    let (x, z, d) = (step.operand(0), step.result(), step.gradient());
    match reduction {
        Reduction::Sum => step.send(g, 0, |g| of_sum(g, x, d, &window)),
        Reduction::Max | Reduction::Min if is_tiling(&window) => {
            step.send(g, 0, |g| of_extremum_of_tiles(g, x, z, d, &window));
        }
        Reduction::Max | Reduction::Min if !has_dilations(&window) => {
            step.send(g, 0, |g| of_extremum(g, x, d, reduction, &window));
        }
        _ => return false,
    }
    true
}

/// Returns the sums of the windows that each element is in: a sum of windows of `d`, whose gaps are the strides.
fn of_sum(g: &mut Graph, x: Tensor, d: Tensor, window: &Window) -> Tensor {
    let (input, output) = (g.shape(x).to_vec(), g.shape(d).to_vec());
    let padding = (0..input.len()).map(|i| {
        let input = Steps { size: input[i], dilation: window.base_dilation[i] }.signed_extent();
        let kernel = Steps { size: window.sizes[i], dilation: window.dilation[i] }.signed_extent();
        let output = Steps { size: output[i], dilation: window.strides[i] }.signed_extent();
        let before = kernel - 1 - window.padding[i].0;
        (before, input + kernel - 1 - output - before)
    });
    let back = Window {
        sizes: window.sizes.clone(),
        strides: window.base_dilation.clone(),
        base_dilation: window.strides.clone(),
        dilation: window.dilation.clone(),
        padding: padding.collect(),
    };
    g.reduce_window(d, Reduction::Sum, &back)
}

/// Returns whether there are gaps between elements of the tensor or of the window.
fn has_dilations(window: &Window) -> bool {
    window.base_dilation.iter().chain(&window.dilation).any(|&step| step != 1)
}

/// Returns whether windows lie side by side.
fn is_tiling(window: &Window) -> bool {
    let tiles = Window::tiles(&window.sizes);
    *window == tiles
}

/// Returns `d` at the first element of each window that is its extremum, where windows lie side by side.
///
/// Each dimension becomes two: that of windows and that of elements in a window.
fn of_extremum_of_tiles(g: &mut Graph, x: Tensor, z: Tensor, d: Tensor, window: &Window) -> Tensor {
    let (shape, counts) = (g.shape(x).to_vec(), g.shape(d).to_vec());
    let rank = shape.len();
    let covered: Vec<_> = counts.iter().zip(&window.sizes).map(|(count, size)| count * size).collect();
    let split: Vec<_> = counts.iter().zip(&window.sizes).flat_map(|(&count, &size)| [count, size]).collect();
    let windows: Vec<_> = (0..rank).map(|dimension| 2 * dimension).collect();
    let places: Vec<_> = (0..rank).map(|dimension| 2 * dimension + 1).collect();
    let tiles = g.slice(x, &vec![0; rank], &covered);
    let tiles = g.reshape(tiles, &split);
    let [extremum, d] = [z, d].map(|of_window| g.broadcast_in_dim(of_window, &split, &windows));
    let is_extremum = g.eq(tiles, extremum);
    // The number of a place in its window, in floats, whose extrema are right on every target.
    let mut number = g.full(0.0, Dtype::F32, &window.sizes);
    for (dimension, &size) in window.sizes.iter().enumerate() {
        #[expect(clippy::cast_precision_loss, reason = "windows are small")]
        let longer = g.scale(number, size as f64);
        let index = g.iota(Dtype::F32, &window.sizes, dimension);
        number = g.add(longer, index);
    }
    let number = g.broadcast_in_dim(number, &split, &places);
    let none = g.full(f64::INFINITY, Dtype::F32, &split);
    let found = g.select(is_extremum, number, none);
    let first = g.reduce_broadcast(found, Reduction::Min, &places);
    let is_first = g.eq(found, first);
    let zeros = g.zeros_like(d);
    let gradient = g.select(is_first, d, zeros);
    let gradient = g.reshape(gradient, &covered);
    g.unslice(gradient, &shape, &vec![0; rank], &covered, &vec![1; rank])
}

/// Returns `d` at the first element of each window that is its extremum.
fn of_extremum(g: &mut Graph, x: Tensor, d: Tensor, reduction: Reduction, window: &Window) -> Tensor {
    let ty = g.type_of(x);
    let scalar = [ty.dtype, ty.dtype].map(|dtype| TensorType::new(dtype, []).into());
    let select = g.region(&scalar, |g, values| {
        vec![match reduction {
            Reduction::Min => g.le(values[0], values[1]),
            _ => g.ge(values[0], values[1]),
        }]
    });
    let add = g.reduction_body(Reduction::Sum, ty.dtype);
    let zero = g.scalar(0.0, ty.dtype);
    let dilations = ["base_dilations", "window_dilations"];
    let attributes = window.attributes().into_iter().filter(|(name, _)| !dilations.contains(name)).collect();
    let regions = vec![select, add];
    g.op_with_regions("stablehlo.select_and_scatter", &[x, d, zero], attributes, regions, vec![ty.into()])[0]
}
