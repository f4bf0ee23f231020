//! Gradients of convolutions.

use super::step::Step;
use crate::{
    graph::{Graph, Tensor},
    ops::{Convolution, ConvolutionDimensions, Steps},
};

/// Adds the gradients of the operands of a convolution: convolutions of the gradient with the other operand.
pub(super) fn pull(g: &mut Graph, step: &mut Step<'_>) -> bool {
    if step.name() != "stablehlo.convolution" {
        return false;
    }
    let Some(convolution) = Convolution::read(|name| step.attribute(name)) else { return false };
    let (input, kernel, d) = (step.operand(0), step.operand(1), step.gradient());
    let (input_shape, kernel_shape) = (g.shape(input).to_vec(), g.shape(kernel).to_vec());
    let extents = Extents::new(&convolution, &input_shape, &kernel_shape, g.shape(d));
    let is_reversed = step.attribute("window_reversal").contains("true");
    let spatial = convolution.dimensions.kernel_spatial.clone();
    step.send(g, 0, |g| {
        let kernel = if is_reversed { kernel } else { g.reverse(kernel, &spatial) };
        of_input(g, d, kernel, &convolution, &extents)
    });
    step.send(g, 1, |g| {
        let gradient = of_kernel(g, d, input, &convolution, &extents);
        if is_reversed { g.reverse(gradient, &spatial) } else { gradient }
    });
    true
}

/// How many places operands and result cover, with their gaps, in each spatial dimension.
struct Extents {
    input: Vec<i64>,
    kernel: Vec<i64>,
    output: Vec<i64>,
}

impl Extents {
    fn new(convolution: &Convolution, input: &[usize], kernel: &[usize], output: &[usize]) -> Self {
        let Convolution { dimensions, strides, input_dilation, kernel_dilation, .. } = convolution;
        let all = |shape: &[usize], spatial: &[usize], dilations: &[usize]| {
            let extent =
                |(&d, &dilation): (&usize, &usize)| Steps { size: shape[d], dilation }.signed_extent();
            spatial.iter().zip(dilations).map(extent).collect()
        };
        Self {
            input: all(input, &dimensions.input_spatial, input_dilation),
            kernel: all(kernel, &dimensions.kernel_spatial, kernel_dilation),
            output: all(output, &dimensions.output_spatial, strides),
        }
    }
}

/// Returns the gradient of the input: a convolution of `d` with the reversed kernel, whose features change places.
fn of_input(g: &mut Graph, d: Tensor, kernel: Tensor, forward: &Convolution, extents: &Extents) -> Tensor {
    let own = &forward.dimensions;
    let groups = forward.feature_groups.max(forward.batch_groups);
    let kernel = move_groups(g, kernel, groups, own.kernel_output_feature, own.kernel_input_feature);
    let padding = forward.padding.iter().enumerate().map(|(d, (low, _))| {
        let before = extents.kernel[d] - 1 - low;
        (before, extents.input[d] + extents.kernel[d] - 1 - extents.output[d] - before)
    });
    let convolution = Convolution {
        dimensions: ConvolutionDimensions {
            input_batch: own.output_batch,
            input_feature: own.output_feature,
            input_spatial: own.output_spatial.clone(),
            kernel_input_feature: own.kernel_output_feature,
            kernel_output_feature: own.kernel_input_feature,
            kernel_spatial: own.kernel_spatial.clone(),
            output_batch: own.input_batch,
            output_feature: own.input_feature,
            output_spatial: own.input_spatial.clone(),
        },
        strides: forward.input_dilation.clone(),
        padding: padding.collect(),
        input_dilation: forward.strides.clone(),
        kernel_dilation: forward.kernel_dilation.clone(),
        feature_groups: groups,
        batch_groups: 1,
    };
    let gradient = g.convolution(d, kernel, &convolution);
    move_groups(g, gradient, forward.batch_groups, own.input_feature, own.input_batch)
}

/// Returns the gradient of the kernel: a convolution of the input with `d`, which sums over examples.
fn of_kernel(g: &mut Graph, d: Tensor, input: Tensor, forward: &Convolution, extents: &Extents) -> Tensor {
    let own = &forward.dimensions;
    let padding = forward
        .padding
        .iter()
        .enumerate()
        .map(|(d, &(low, _))| (low, extents.kernel[d] + extents.output[d] - 1 - extents.input[d] - low));
    let convolution = Convolution {
        dimensions: ConvolutionDimensions {
            input_batch: own.input_feature,
            input_feature: own.input_batch,
            input_spatial: own.input_spatial.clone(),
            kernel_input_feature: own.output_batch,
            kernel_output_feature: own.output_feature,
            kernel_spatial: own.output_spatial.clone(),
            output_batch: own.kernel_input_feature,
            output_feature: own.kernel_output_feature,
            output_spatial: own.kernel_spatial.clone(),
        },
        strides: forward.kernel_dilation.clone(),
        padding: padding.collect(),
        input_dilation: forward.input_dilation.clone(),
        kernel_dilation: forward.strides.clone(),
        // Groups of features divide what is now the examples, and the other way round.
        feature_groups: forward.batch_groups,
        batch_groups: forward.feature_groups,
    };
    g.convolution(input, d, &convolution)
}

/// Divides dimension `from` into groups, and makes those the outer part of dimension `to`.
fn move_groups(g: &mut Graph, x: Tensor, groups: usize, from: usize, to: usize) -> Tensor {
    if groups == 1 {
        return x;
    }
    let mut shape = g.shape(x).to_vec();
    let mut split = shape.clone();
    split[from] /= groups;
    split.insert(from, groups);
    let divided = g.reshape(x, &split);
    // Dimensions from `from` on have moved up by one.
    let mut order: Vec<_> = (0..split.len()).filter(|&dimension| dimension != from).collect();
    order.insert(to, from);
    let moved = g.transpose(divided, &order);
    shape[from] /= groups;
    shape[to] *= groups;
    g.reshape(moved, &shape)
}
