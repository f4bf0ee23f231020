//! Gradients of reductions of windows.

use safetensors::Dtype;

use super::step::Step;
use crate::{
    graph::{Graph, Tensor},
    ops::{Reduction, ScatterDimensions, Steps, Window},
    types::{TensorType, ValueType},
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
    g.with_wide_sums(d, |g, d| g.reduce_window(d, Reduction::Sum, &back))
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
/// Each dimension becomes two: that of windows and that of elements in a window. NaN equals no element: a window with NaN has its
/// last element instead. JAX takes the extremum of what follows the last NaN, which is the same in windows of two.
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
    // Elements that are no extremum come after those that are, from the last to the first.
    let most = g.full_like(number, 2 * window.sizes.iter().product::<usize>() - 1);
    let other = g.subtract(most, number);
    let [number, other] = [number, other].map(|number| g.broadcast_in_dim(number, &split, &places));
    let found = g.select(is_extremum, number, other);
    let first = g.reduce_broadcast(found, Reduction::Min, &places);
    let is_first = g.eq(found, first);
    let zeros = g.zeros_like(d);
    let gradient = g.select(is_first, d, zeros);
    let gradient = g.reshape(gradient, &covered);
    g.unslice(gradient, &shape, &vec![0; rank], &covered, &vec![1; rank])
}

/// Returns `d` at the first element of each window that is its extremum: a scatter, which has a gradient too.
fn of_extremum(g: &mut Graph, x: Tensor, d: Tensor, reduction: Reduction, window: &Window) -> Tensor {
    let (ty, windows) = (g.type_of(x), g.type_of(d));
    let numbers = numbers_of_extrema(g, x, &windows.shape, reduction, window);
    let numbers = g.reshape(numbers, &[windows.elements(), 1]);
    let d = g.reshape(d, &[windows.elements()]);
    let zeros = g.full(0.0, ty.dtype, &[ty.elements()]);
    let dims = ScatterDimensions {
        update_window: &[],
        inserted_window: &[0],
        scatter_to_operand: &[0],
        index_vector: 1,
    };
    let gradient = g.scatter(zeros, numbers, d, &dims, Graph::add);
    g.reshape(gradient, &ty.shape)
}

/// Returns for each of the `windows` the number of its extremum among the elements of `x`, or -1 if it has no element.
///
/// The extremum is what comparing with each next element leaves, as in `select_and_scatter`, which JAX has here.
fn numbers_of_extrema(
    g: &mut Graph,
    x: Tensor,
    windows: &[usize],
    reduction: Reduction,
    window: &Window,
) -> Tensor {
    let ty = g.type_of(x);
    let dtypes = [ty.dtype, if i32::try_from(ty.elements()).is_ok() { Dtype::I32 } else { Dtype::I64 }];
    let numbers = g.iota(dtypes[1], &[ty.elements()], 0);
    let numbers = g.reshape(numbers, &ty.shape);
    let (zero, none) = (g.scalar(0.0, dtypes[0]), g.scalar(-1.0, dtypes[1]));
    let pair = dtypes.map(|dtype| ValueType::from(TensorType::new(dtype, [])));
    let body = g.region(&[pair.clone(), pair].concat(), |g, values| {
        let &[a, a_number, b, b_number] = values else { return vec![Graph::poison(); 2] };
        let zero = g.scalar(0.0, dtypes[1]);
        let is_extremum = if reduction == Reduction::Min { g.le(a, b) } else { g.ge(a, b) };
        let (has_a, has_no_b) = (g.ge(a_number, zero), g.lt(b_number, zero));
        let stays = g.or(is_extremum, has_no_b);
        let stays = g.and(stays, has_a);
        vec![g.select(stays, a, b), g.select(stays, a_number, b_number)]
    });
    let results = dtypes.map(|dtype| TensorType::new(dtype, windows).into()).to_vec();
    let operands = [x, numbers, zero, none];
    g.op_with_regions("stablehlo.reduce_window", &operands, window.attributes(), vec![body], results)[1]
}
