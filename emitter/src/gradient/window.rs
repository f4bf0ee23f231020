//! Gradients of reductions of windows.

use safetensors::Dtype;

use super::step::Step;
use crate::{
    graph::{Graph, Tensor},
    ops::{Reduction, Steps, Window},
};

/// The largest window whose extremum has a gradient. Each place in a window takes ops of its own.
const LARGEST: usize = 256;

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
        Reduction::Max | Reduction::Min if window.sizes.iter().product::<usize>() <= LARGEST => {
            step.send(g, 0, |g| of_extremum(g, x, z, d, reduction, &window));
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

/// Returns `d` at the first element of each window that is its extremum.
///
/// Every place of a window is a strided slice of the padded tensor. Ops without a region of their own have gradients again.
fn of_extremum(
    g: &mut Graph,
    x: Tensor,
    z: Tensor,
    d: Tensor,
    reduction: Reduction,
    window: &Window,
) -> Tensor {
    let ty = g.type_of(x);
    let neutral = g.neutral(reduction, ty.dtype);
    let (low, high): (Vec<_>, Vec<_>) = window.padding.iter().copied().unzip();
    let between: Vec<_> = window.base_dilation.iter().map(|dilation| dilation - 1).collect();
    let padded = g.pad_or_crop(x, neutral, &low, &high, &between);
    let (padded_shape, counts) = (g.shape(padded).to_vec(), g.shape(d).to_vec());
    let zeros = g.zeros_like(d);
    let mut is_found = g.full(0.0, Dtype::BOOL, &counts);
    let mut sum = None;
    for place in places(&window.sizes) {
        let start: Vec<_> =
            place.iter().zip(&window.dilation).map(|(index, dilation)| index * dilation).collect();
        let limit: Vec<_> = (0..start.len())
            .map(|i| start[i] + Steps { size: counts[i], dilation: window.strides[i] }.extent())
            .collect();
        let elements = g.slice_strided(padded, &start, &limit, &window.strides);
        let is_extremum = g.eq(elements, z);
        let is_later = g.not(is_found);
        let is_first = g.and(is_extremum, is_later);
        is_found = g.or(is_found, is_extremum);
        let part = g.select(is_first, d, zeros);
        let part = g.unslice(part, &padded_shape, &start, &limit, &window.strides);
        sum = Some(match sum {
            Some(sum) => g.add(sum, part),
            None => part,
        });
    }
    let Some(sum) = sum else { return g.zeros_like(x) };
    g.unpad(sum, &low, &high, &between)
}

/// Returns the indices of all elements of a window, in row-major order.
fn places(sizes: &[usize]) -> Vec<Vec<usize>> {
    sizes.iter().fold(vec![vec![]], |places, &size| {
        places.iter().flat_map(|place| (0..size).map(|index| [&place[..], &[index]].concat())).collect()
    })
}
