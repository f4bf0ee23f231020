//! Products of quantized weights in StableHLO: the reference for the kernels, and the code for targets without them.

use mlxcel_models::Weight;
use safetensors::Dtype;

use crate::{
    form::Form,
    graph::{Graph, Tensor},
    group_form::{GROUP, GroupForm},
    kernels::CudaGroups,
    layers::{
        builder::Builder,
        gpu_groups,
        quantization::{
            dequantize_q4, dequantize_q4_halves, nibble_bytes, quantize_q8, quantize_rows, scale_rows,
        },
        weights::{Matrix, Weights},
    },
    ops::DotDimensions,
};

/// Looks up rows of a weight: `[…]` to `[…, inputs]` in `f32`.
pub(super) fn rows(b: &mut Builder<'_>, weight: &Weight, rows: Tensor) -> Tensor {
    let [bytes, scales] = packed_with_barrier(b, weight.into());
    let form = b.form(weight);
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
    match form {
        Form::Groups(GroupForm::Q4_0) => return dequantize_q4(g, parts[0], parts[1], &whole),
        Form::Groups(form) => {
            let parts = parts.map(|part| {
                let &width = g.shape(part).last().unwrap_or(&1);
                let count = shape.iter().product();
                g.reshape(part, &[count, width])
            });
            let found = gpu_groups::unpacked(g, parts, CudaGroups { form, inputs });
            return g.reshape(found, &whole);
        }
        Form::Floats | Form::Rows => {}
    }
    let bytes = g.convert(parts[0], Dtype::F32);
    let scales = g.reshape(parts[1], &shape);
    scale_rows(g, bytes, scales)
}

/// Computes `x · weightᵀ`, `[rows, inputs]` to `[rows, outputs]`, of weights in [`Form::Rows`].
pub(super) fn q8_product(b: &mut Builder<'_>, weight: Matrix<'_>, x: Tensor) -> Tensor {
    let [bytes, scales] = packed_with_barrier(b, weight);
    // Integers up to 128 are exact in every float type.
    let operand = b.operand_dtype();
    let g = &mut b.graph;
    let (steps, row_scales) = quantize_rows(g, x);
    let [steps, bytes] = [steps, bytes].map(|integers| g.convert(integers, operand));
    let product = dot(g, steps, bytes);
    let product = scale_rows(g, product, row_scales);
    let shape = g.shape(product).to_vec();
    let scales = g.broadcast_in_dim(scales, &shape, &[1]);
    g.multiply(product, scales)
}

/// Computes the same of weights in other groups, which become floats at each call: kernels multiply nearly all of them.
pub(super) fn groups_product(b: &mut Builder<'_>, weight: Matrix<'_>, x: Tensor, form: GroupForm) -> Tensor {
    let parts = packed_with_barrier(b, weight);
    let (_, inputs) = weight.size();
    let weight = gpu_groups::unpacked(&mut b.graph, parts, CudaGroups { form, inputs });
    dot(&mut b.graph, x, weight)
}

/// Computes the same of weights in [`GroupForm::Q4_0`].
///
/// Multiplies in `f32` whatever the plan's precision, because scaled weights are not exact in less.
pub(super) fn q4_product(b: &mut Builder<'_>, weight: Matrix<'_>, x: Tensor) -> Tensor {
    let [bytes, scales] = packed_with_barrier(b, weight);
    let g = &mut b.graph;
    let &[rows, inputs] = g.shape(x) else {
        return x;
    };
    let groups = inputs / GROUP;
    let x = g.reshape(x, &[rows, groups, GROUP]);
    let (steps, row_scales) = quantize_rows(g, x);
    let x = scale_rows(g, steps, row_scales);
    let mut part = 0;
    let [low, high] = dequantize_q4_halves(g, bytes, scales).map(|weight| {
        let outputs = g.shape(weight).first().copied().unwrap_or(1);
        let weight = g.reshape(weight, &[outputs, inputs / 2]);
        let x = g.slice_dimension(x, 2, part, part + GROUP / 2);
        part += GROUP / 2;
        let x = g.reshape(x, &[rows, inputs / 2]);
        dot(g, x, weight)
    });
    g.add(low, high)
}

/// Returns [`packed`] weights behind a barrier. Without it, the compiler keeps a widened copy of the whole weight.
fn packed_with_barrier(b: &mut Builder<'_>, weight: Matrix<'_>) -> [Tensor; 2] {
    packed(b, Weights::Layers(&[weight])).map(|part| b.graph.barrier(part))
}

/// Returns the codes and the scales of weights, see [`quantize_q8`], [`nibble_bytes`] and [`gpu_groups`].
pub(in crate::layers) fn packed(b: &mut Builder<'_>, weights: Weights<'_>) -> [Tensor; 2] {
    let form = weights.layers().first().map_or(Form::Rows, |first| b.form(first.weight));
    let made = match form {
        Form::Groups(GroupForm::Q4_0) => {
            // Generated code does not permute inputs.
            let may_permute = b.numerics.gpu.is_some();
            b.packed_groups("q4", weights, 1, (GroupForm::Q4_0, may_permute), |g, parts| match *parts {
                [codes, scales] => vec![nibble_bytes(g, codes), scales],
                _ => parts.to_vec(),
            })
        }
        Form::Groups(form) => b.packed_groups(&form.name(), weights, 1, (form, true), |g, parts| {
            gpu_groups::packed(g, parts, form)
        }),
        Form::Floats | Form::Rows => {
            b.packed("q8", weights, 1, &["scales"], |g, _, weight| quantize_q8(g, weight).to_vec())
        }
    };
    [made[0], made[1]]
}

/// Loads a weight, `[outputs, inputs]`, with its scales if it is quantized. Floats are packed only if they are stored the other way
/// round.
pub(super) fn stored(b: &mut Builder<'_>, matrix: Matrix<'_>, weight: &Weight) -> (Tensor, Option<Tensor>) {
    match b.form(weight) {
        Form::Floats if matrix.transposed => {
            let made = b.packed("rows", Weights::Layers(&[matrix]), 1, &[], |_, _, weight| vec![weight]);
            (made[0], None)
        }
        Form::Floats => (b.stored(weight), None),
        Form::Rows | Form::Groups(_) => {
            let [weight, scales] = packed(b, Weights::Layers(&[matrix]));
            (weight, Some(scales))
        }
    }
}

/// Computes `[rows, inputs] · [outputs, inputs]ᵀ`.
pub(super) fn dot(g: &mut Graph, x: Tensor, weight: Tensor) -> Tensor {
    let dims = DotDimensions { lhs_contract: &[1], rhs_contract: &[1], ..DotDimensions::default() };
    g.dot_general(x, weight, &dims, Dtype::F32)
}
