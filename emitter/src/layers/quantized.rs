//! How weights and the cache are quantised, and the product of quantised weights in plain StableHLO: what the kernels
//! compute, for targets that have none.

use mlxcel_artifacts::{CacheType, Quant};
use mlxcel_models::Weight;
use safetensors::Dtype;

use super::{Builder, Matrix, weights::Weights};
use crate::{DotDimensions, Graph, Reduction, Tensor, TensorType};

/// Inputs that share a scale in [`Quant::Q4`].
pub(super) const GROUP: usize = 32;

/// Half of what 8 bits tell apart: compressed-tensors maps the largest magnitude to it, and what rounds to 128 to 127.
const Q8_STEPS: f64 = 127.5;

/// The least scale of compressed-tensors: the difference from 1 to the next `f32`.
const Q8_LEAST_SCALE: f64 = f32::EPSILON as f64;

/// `x · weightᵀ`, `[rows, inputs]` → `[rows, outputs]`.
pub(super) fn product(b: &mut Builder<'_>, weight: Matrix<'_>, x: Tensor) -> Tensor {
    match b.quant {
        Quant::Q4 => q4_product(b, weight, x),
        Quant::Q8 | Quant::None => q8_product(b, weight, x),
    }
}

/// Rows of a weight: `[…]` → `[…, inputs]` in `f32`.
pub(super) fn rows(b: &mut Builder<'_>, weight: &Weight, rows: Tensor) -> Tensor {
    let [bytes, scales] = kept(b, weight.into());
    let quant = b.quant;
    let g = &mut b.graph;
    let shape = g.shape(rows).to_vec();
    let outputs = weight.shape.first().copied().unwrap_or(1);
    let inputs = weight.shape.get(1).copied().unwrap_or(1);
    let flat = |g: &mut Graph, x: Tensor| {
        let width = g.shape(x).iter().skip(1).product();
        g.reshape(x, &[outputs, width])
    };
    let parts = [bytes, scales].map(|part| {
        let part = flat(g, part);
        g.take_rows(part, rows)
    });
    let whole: Vec<_> = shape.iter().copied().chain([inputs]).collect();
    if quant == Quant::Q4 {
        return q4_rows(g, parts[0], parts[1], &whole);
    }
    let bytes = g.convert(parts[0], Dtype::F32);
    let scales = g.reshape(parts[1], &shape);
    scaled(g, bytes, scales)
}

/// Weights, `[outputs, inputs]` each and one after the other, in 8 bits: `[outputs, inputs]` of `i8` and their scales,
/// `[outputs]` in `f32`.
pub(super) fn q8(g: &mut Graph, weights: &[Tensor]) -> [Tensor; 2] {
    let x = joined(g, weights);
    let shape = g.shape(x).to_vec();
    let largest = largest_magnitude(g, x);
    let steps = like(g, largest, Q8_STEPS);
    let scales = g.divide(largest, steps);
    let zero = like(g, scales, 0.0);
    let is_zero = g.eq(scales, zero);
    let least = like(g, scales, Q8_LEAST_SCALE);
    let scales = g.select(is_zero, least, scales);
    let by = g.broadcast_in_dim(scales, &shape, &[0]);
    let steps = g.divide(x, by);
    let whole = g.round_nearest_even(steps);
    let [low, high] = [-128.0, 127.0].map(|bound| like(g, whole, bound));
    let whole = g.clamp(low, whole, high);
    [g.convert(whole, Dtype::I8), scales]
}

/// Weights, `[outputs, inputs]` each and one after the other, in 4 bits: bytes of two, `[outputs, groups, 16]` of which byte
/// `i` holds input `i` of its group low and `16 + i` high, and scales, `[outputs, groups]` in `f16`.
///
/// As ggml's `quantize_row_q4_0_ref`: the value of the largest magnitude, the first of several, becomes -8.
pub(super) fn q4(g: &mut Graph, weights: &[Tensor]) -> [Tensor; 2] {
    let x = joined(g, weights);
    let &[outputs, inputs] = g.shape(x) else {
        return [x; 2];
    };
    let shape = [outputs, inputs / GROUP, GROUP];
    let x = g.reshape(x, &shape);
    let magnitude = g.abs(x);
    let largest = g.reduce(magnitude, Reduction::Max, &[2]);
    let largest = g.broadcast_in_dim(largest, &shape, &[0, 1]);
    let is_largest = g.eq(magnitude, largest);
    let place = g.iota(Dtype::I32, &shape, 2);
    let first = g.first_true(is_largest);
    let first = g.broadcast_in_dim(first, &shape, &[0, 1]);
    let is_first = g.eq(place, first);
    let zero = like(g, x, 0.0);
    let only = g.select(is_first, x, zero);
    let extreme = g.reduce(only, Reduction::Sum, &[2]);
    let eighths = like(g, extreme, -8.0);
    let scales = g.divide(extreme, eighths);

    let (zero, one) = (like(g, scales, 0.0), like(g, scales, 1.0));
    let inverse = g.divide(one, scales);
    let is_zero = g.eq(scales, zero);
    let inverse = g.select(is_zero, zero, inverse);
    let inverse = g.broadcast_in_dim(inverse, &shape, &[0, 1]);
    let steps = g.multiply(x, inverse);
    let offset = like(g, steps, 8.5);
    let steps = g.add(steps, offset);
    // Towards zero, and nothing here is below it.
    let steps = g.convert(steps, Dtype::I32);
    let [low, high] = [0.0, 15.0].map(|bound| like(g, steps, bound));
    let nibbles = g.clamp(low, steps, high);
    let [low, high] = [0, GROUP / 2].map(|start| g.slice_dimension(nibbles, 2, start, start + GROUP / 2));
    let four = like(g, high, 4.0);
    let high = g.shift_left(high, four);
    let both = g.or(low, high);
    [g.convert(both, Dtype::I8), g.convert(scales, Dtype::F16)]
}

/// Groups of the last dimension in 8 bits, as GGUF's `Q8_0`: `i8` of the same shape, and `f16` scales, `[…, groups]`.
pub(super) fn q8_groups(g: &mut Graph, x: Tensor) -> [Tensor; 2] {
    let shape = g.shape(x).to_vec();
    let grouped = groups_of(&shape, CacheType::Q8_GROUP_SIZE);
    let x = g.reshape(x, &grouped);
    let (steps, scales) = quantize(g, x);
    let steps = g.reshape(steps, &shape);
    [g.convert(steps, Dtype::I8), g.convert(scales, Dtype::F16)]
}

/// What [`q8_groups`] makes, as `f32` again.
pub(super) fn from_q8_groups(g: &mut Graph, bytes: Tensor, scales: Tensor) -> Tensor {
    let shape = g.shape(bytes).to_vec();
    let grouped = groups_of(&shape, CacheType::Q8_GROUP_SIZE);
    let steps = g.reshape(bytes, &grouped);
    let [steps, scales] = [steps, scales].map(|x| g.convert(x, Dtype::F32));
    let values = scaled(g, steps, scales);
    g.reshape(values, &shape)
}

/// `[…, groups, size]` of `[…, groups · size]`.
fn groups_of(shape: &[usize], size: usize) -> Vec<usize> {
    let (last, before) = shape.split_last().map_or((0, &[][..]), |(&last, before)| (last, before));
    before.iter().copied().chain([last / size, size]).collect()
}

/// What [`q4`] makes, as `f32` again: the low halves of the groups and the high ones, `[…, groups, 16]`.
fn from_q4(g: &mut Graph, bytes: Tensor, scales: Tensor) -> [Tensor; 2] {
    let bytes = g.convert(bytes, Dtype::I32);
    let scales = g.convert(scales, Dtype::F32);
    let (mask, four) = (like(g, bytes, 15.0), like(g, bytes, 4.0));
    let upper = g.shift_right_logical(bytes, four);
    [bytes, upper].map(|nibble| {
        let nibble = g.and(nibble, mask);
        let steps = g.convert(nibble, Dtype::F32);
        let eight = like(g, steps, 8.0);
        let steps = g.subtract(steps, eight);
        scaled(g, steps, scales)
    })
}

/// The same as rows of `shape`, of bytes in the right order.
pub(super) fn q4_rows(g: &mut Graph, bytes: Tensor, scales: Tensor, shape: &[usize]) -> Tensor {
    let groups = g.shape(scales).to_vec();
    let halves: Vec<_> = groups.iter().copied().chain([GROUP / 2]).collect();
    let bytes = g.reshape(bytes, &halves);
    let values = from_q4(g, bytes, scales);
    let values = g.concatenate(&values, groups.len());
    g.reshape(values, shape)
}

fn q8_product(b: &mut Builder<'_>, weight: Matrix<'_>, x: Tensor) -> Tensor {
    let [bytes, scales] = kept(b, weight);
    // Whole numbers up to 128 are exact in every float.
    let operand = b.operand();
    let g = &mut b.graph;
    let (steps, row_scales) = quantize(g, x);
    let [steps, bytes] = [steps, bytes].map(|whole| g.convert(whole, operand));
    let product = dot(g, steps, bytes);
    let product = scaled(g, product, row_scales);
    let shape = g.shape(product).to_vec();
    let scales = g.broadcast_in_dim(scales, &shape, &[1]);
    g.multiply(product, scales)
}

/// In `f32`, whatever the plan's precision: scaled weights are not exact in less.
fn q4_product(b: &mut Builder<'_>, weight: Matrix<'_>, x: Tensor) -> Tensor {
    let [bytes, scales] = kept(b, weight);
    let g = &mut b.graph;
    let &[rows, inputs] = g.shape(x) else {
        return x;
    };
    let groups = inputs / GROUP;
    let x = g.reshape(x, &[rows, groups, GROUP]);
    let (steps, row_scales) = quantize(g, x);
    let x = scaled(g, steps, row_scales);
    let mut part = 0;
    let [low, high] = from_q4(g, bytes, scales).map(|weight| {
        let outputs = g.shape(weight).first().copied().unwrap_or(1);
        let weight = g.reshape(weight, &[outputs, inputs / 2]);
        let x = g.slice_dimension(x, 2, part, part + GROUP / 2);
        part += GROUP / 2;
        let x = g.reshape(x, &[rows, inputs / 2]);
        dot(g, x, weight)
    });
    g.add(low, high)
}

/// Whole numbers of at most 127 in magnitude, in `f32`, and the scale of each row of the last dimension: what
/// `quantize.c` computes.
fn quantize(g: &mut Graph, x: Tensor) -> (Tensor, Tensor) {
    let shape = g.shape(x).to_vec();
    let largest = largest_magnitude(g, x);
    let most = like(g, largest, 127.0);
    let scales = g.divide(largest, most);
    let inverse = g.divide(most, largest);
    // Below it the inverse overflows, and such rows count as zero.
    let least = like(g, largest, 2f64.powi(-120));
    let is_zero = g.lt(largest, least);
    let zero = like(g, largest, 0.0);
    let [scales, inverse] = [scales, inverse].map(|x| g.select(is_zero, zero, x));
    let kept: Vec<_> = (0..shape.len().saturating_sub(1)).collect();
    let inverse = g.broadcast_in_dim(inverse, &shape, &kept);
    let steps = g.multiply(x, inverse);
    (g.round_nearest_even(steps), scales)
}

/// What [`packed`] gives, for generated code: else the compiler would keep a widened copy of the whole weight. It ends a
/// command buffer before each.
fn kept(b: &mut Builder<'_>, weight: Matrix<'_>) -> [Tensor; 2] {
    packed(b, weight).map(|part| b.graph.barrier(part))
}

/// Bytes and scales of a weight as [`q8`] and [`q4`] give them.
pub(super) fn packed(b: &mut Builder<'_>, weight: Matrix<'_>) -> [Tensor; 2] {
    let made = match b.quant {
        Quant::Q4 => {
            b.packed("q4", Weights::Layers(&[weight]), 1, &["scales"], |g, weights| q4(g, weights).to_vec())
        }
        Quant::Q8 | Quant::None => {
            b.packed("q8", Weights::Layers(&[weight]), 1, &["scales"], |g, weights| q8(g, weights).to_vec())
        }
    };
    [made[0], made[1]]
}

/// `x` times the scale of its row of the last dimension.
fn scaled(g: &mut Graph, x: Tensor, scales: Tensor) -> Tensor {
    let shape = g.shape(x).to_vec();
    let kept: Vec<_> = (0..shape.len().saturating_sub(1)).collect();
    let scales = g.broadcast_in_dim(scales, &shape, &kept);
    g.multiply(x, scales)
}

/// Over the last dimension.
fn largest_magnitude(g: &mut Graph, x: Tensor) -> Tensor {
    let last = g.shape(x).len().saturating_sub(1);
    let magnitude = g.abs(x);
    g.reduce(magnitude, Reduction::Max, &[last])
}

/// Weights one after the other, in `f32`.
fn joined(g: &mut Graph, weights: &[Tensor]) -> Tensor {
    let weights: Vec<_> = weights.iter().map(|&weight| g.convert(weight, Dtype::F32)).collect();
    if let &[only] = weights.as_slice() { only } else { g.concatenate(&weights, 0) }
}

/// `[rows, inputs] · [outputs, inputs]ᵀ`.
fn dot(g: &mut Graph, x: Tensor, weight: Tensor) -> Tensor {
    let dims = DotDimensions { lhs_contract: &[1], rhs_contract: &[1], ..DotDimensions::default() };
    g.dot_general(x, weight, &dims, Dtype::F32)
}

/// `value` everywhere, in the shape and type of `x`.
fn like(g: &mut Graph, x: Tensor, value: f64) -> Tensor {
    let TensorType { dtype, shape } = g.type_of(x);
    g.full(value, dtype, &shape)
}
