//! The formulas of quantization, in StableHLO: of weights, of activations and of the cache.

use mlxcel_artifacts::CacheType;
use safetensors::Dtype;

use super::{packing_kernels::PackingKernels, superblocks};
use crate::{
    graph::{Graph, Tensor},
    group_form::{GROUP, GroupForm, Scales},
    ops::Reduction,
    types::TensorType,
};

/// The quantized value of the largest magnitude, as in compressed-tensors. 128 is clamped to 127.
const Q8_STEPS: f64 = 127.5;

/// The smallest scale, as in compressed-tensors: the difference from 1 to the next `f32`.
const Q8_MIN_SCALE: f64 = f32::EPSILON as f64;

/// Quantizes a weight, `[outputs, inputs]`, to 8 bits: `[outputs, inputs]` of `i8`, and scales, `[outputs]` of `f32`.
pub(super) fn quantize_q8(g: &mut Graph, weight: Tensor) -> [Tensor; 2] {
    let x = g.convert(weight, Dtype::F32);
    let shape = g.shape(x).to_vec();
    let largest = largest_magnitude(g, x);
    let steps = full_like(g, largest, Q8_STEPS);
    let scales = g.divide(largest, steps);
    let zero = full_like(g, scales, 0.0);
    let is_zero = g.eq(scales, zero);
    let least = full_like(g, scales, Q8_MIN_SCALE);
    let scales = g.select(is_zero, least, scales);
    let by = g.broadcast_in_dim(scales, &shape, &[0]);
    let steps = g.divide(x, by);
    let whole = g.round_nearest_even(steps);
    let [low, high] = [-128.0, 127.0].map(|bound| full_like(g, whole, bound));
    let whole = g.clamp(low, whole, high);
    [g.convert(whole, Dtype::I8), scales]
}

/// Quantizes a weight, `[outputs, inputs]`, to the parts of a form, see [`decode_groups`](crate::decode::decode_groups).
pub(super) fn quantize_groups(
    g: &mut Graph,
    weight: Tensor,
    form: GroupForm,
    kernels: &mut PackingKernels,
) -> Vec<Tensor> {
    match form.scales {
        _ if form == GroupForm::Q4_0 => {
            let x = g.convert(weight, Dtype::F32);
            quantize_q4(g, x).to_vec()
        }
        Scales::Superblocks | Scales::Halves => superblocks::quantize(kernels, g, weight, form),
        _ => vec![g.fail("quantize", format!("found {}, expected a form to quantize to", form.name()))],
    }
}

/// Quantizes a weight to 4 bits: codes, `[outputs, inputs]`, and scales, `[outputs, groups]` of `f16`.
///
/// As in ggml's `quantize_row_q4_0_ref`, the value with the largest magnitude becomes -8, the first one on a tie.
fn quantize_q4(g: &mut Graph, x: Tensor) -> [Tensor; 2] {
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
    let zero = full_like(g, x, 0.0);
    let only = g.select(is_first, x, zero);
    let extreme = g.reduce(only, Reduction::Sum, &[2]);
    let eighths = full_like(g, extreme, -8.0);
    let scales = g.divide(extreme, eighths);

    let (zero, one) = (full_like(g, scales, 0.0), full_like(g, scales, 1.0));
    let inverse = g.divide(one, scales);
    let is_zero = g.eq(scales, zero);
    let inverse = g.select(is_zero, zero, inverse);
    let inverse = g.broadcast_in_dim(inverse, &shape, &[0, 1]);
    let steps = g.multiply(x, inverse);
    let offset = full_like(g, steps, 8.5);
    let steps = g.add(steps, offset);
    // Truncates, which rounds down because no value is negative.
    let steps = g.convert(steps, Dtype::I32);
    let [low, high] = [0.0, 15.0].map(|bound| full_like(g, steps, bound));
    let nibbles = g.clamp(low, steps, high);
    [g.reshape(nibbles, &[outputs, inputs]), g.convert(scales, Dtype::F16)]
}

/// Returns bytes of two codes of 4 bits, `[outputs, groups, 16]`, for codes `[outputs, inputs]`: byte `i` holds input `i` of
/// its group in the low half and input `16 + i` in the high half.
pub(super) fn nibble_bytes(g: &mut Graph, codes: Tensor) -> Tensor {
    let &[outputs, inputs] = g.shape(codes) else { return codes };
    let codes = g.reshape(codes, &[outputs, inputs / GROUP, GROUP]);
    let [low, high] = [0, GROUP / 2].map(|start| g.slice_dimension(codes, 2, start, start + GROUP / 2));
    let four = full_like(g, high, 4.0);
    let high = g.shift_left(high, four);
    let both = g.or(low, high);
    g.convert(both, Dtype::I8)
}

/// Quantizes groups of the last dimension to 8 bits, as GGUF's `Q8_0`: `i8` of the same shape, and `f16` scales,
/// `[…, groups]`.
pub(super) fn quantize_q8_groups(g: &mut Graph, x: Tensor) -> [Tensor; 2] {
    let shape = g.shape(x).to_vec();
    let grouped = grouped_shape(&shape, CacheType::Q8_GROUP_SIZE);
    let x = g.reshape(x, &grouped);
    let (steps, scales) = quantize_rows(g, x);
    let steps = g.reshape(steps, &shape);
    [g.convert(steps, Dtype::I8), g.convert(scales, Dtype::F16)]
}

/// Reverses [`quantize_q8_groups`], to `f32`.
pub(super) fn dequantize_q8_groups(g: &mut Graph, bytes: Tensor, scales: Tensor) -> Tensor {
    let shape = g.shape(bytes).to_vec();
    let grouped = grouped_shape(&shape, CacheType::Q8_GROUP_SIZE);
    let steps = g.reshape(bytes, &grouped);
    let [steps, scales] = [steps, scales].map(|x| g.convert(x, Dtype::F32));
    let values = scale_rows(g, steps, scales);
    g.reshape(values, &shape)
}

/// Returns the shape `[…, groups, size]` for `[…, groups · size]`.
fn grouped_shape(shape: &[usize], size: usize) -> Vec<usize> {
    let (last, before) = shape.split_last().map_or((0, &[][..]), |(&last, before)| (last, before));
    before.iter().copied().chain([last / size, size]).collect()
}

/// Reverses [`nibble_bytes`], to `f32`: the low halves of the groups and the high ones, `[…, groups, 16]` each.
pub(super) fn dequantize_q4_halves(g: &mut Graph, bytes: Tensor, scales: Tensor) -> [Tensor; 2] {
    let bytes = g.convert(bytes, Dtype::I32);
    let scales = g.convert(scales, Dtype::F32);
    let (mask, four) = (full_like(g, bytes, 15.0), full_like(g, bytes, 4.0));
    let upper = g.shift_right_logical(bytes, four);
    [bytes, upper].map(|nibble| {
        let nibble = g.and(nibble, mask);
        let steps = g.convert(nibble, Dtype::F32);
        let eight = full_like(g, steps, 8.0);
        let steps = g.subtract(steps, eight);
        scale_rows(g, steps, scales)
    })
}

/// Reverses [`nibble_bytes`], to rows of `shape` in `f32`. `bytes` are in their original order.
pub(super) fn dequantize_q4(g: &mut Graph, bytes: Tensor, scales: Tensor, shape: &[usize]) -> Tensor {
    let groups = g.shape(scales).to_vec();
    let halves: Vec<_> = groups.iter().copied().chain([GROUP / 2]).collect();
    let bytes = g.reshape(bytes, &halves);
    let values = dequantize_q4_halves(g, bytes, scales);
    let values = g.concatenate(&values, groups.len());
    g.reshape(values, shape)
}

/// Quantizes each row of the last dimension as `quantize.c` does: whole numbers up to 127 in magnitude, in `f32`, and the
/// rows' scales.
pub(super) fn quantize_rows(g: &mut Graph, x: Tensor) -> (Tensor, Tensor) {
    let shape = g.shape(x).to_vec();
    let largest = largest_magnitude(g, x);
    let most = full_like(g, largest, 127.0);
    let scales = g.divide(largest, most);
    let inverse = g.divide(most, largest);
    // Below this the inverse overflows. Such rows become zero.
    let least = full_like(g, largest, 2f64.powi(-120));
    let is_zero = g.lt(largest, least);
    let zero = full_like(g, largest, 0.0);
    let [scales, inverse] = [scales, inverse].map(|x| g.select(is_zero, zero, x));
    let kept: Vec<_> = (0..shape.len().saturating_sub(1)).collect();
    let inverse = g.broadcast_in_dim(inverse, &shape, &kept);
    let steps = g.multiply(x, inverse);
    (g.round_nearest_even(steps), scales)
}

/// Multiplies each row of the last dimension by its scale.
pub(super) fn scale_rows(g: &mut Graph, x: Tensor, scales: Tensor) -> Tensor {
    let shape = g.shape(x).to_vec();
    let kept: Vec<_> = (0..shape.len().saturating_sub(1)).collect();
    let scales = g.broadcast_in_dim(scales, &shape, &kept);
    g.multiply(x, scales)
}

/// Returns the largest magnitude of each row of the last dimension.
fn largest_magnitude(g: &mut Graph, x: Tensor) -> Tensor {
    let last = g.shape(x).len().saturating_sub(1);
    let magnitude = g.abs(x);
    g.reduce(magnitude, Reduction::Max, &[last])
}

/// Returns `value` in the shape and type of `x`.
fn full_like(g: &mut Graph, x: Tensor, value: f64) -> Tensor {
    let TensorType { dtype, shape } = g.type_of(x);
    g.full(value, dtype, &shape)
}
