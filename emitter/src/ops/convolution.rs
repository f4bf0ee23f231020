//! Convolutions.

use super::{
    attributes::{are_distinct, i64_array, i64_attribute, padding_pairs},
    window::{Steps, read_padding, window_count},
};
use crate::{
    graph::{Graph, Tensor},
    mlir::attributes::{size, sizes},
    types::{TensorType, is_complex, is_float, is_integer},
};

/// The dimensions of the operands and the result of a convolution, as in the StableHLO specification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConvolutionDimensions {
    /// The input's dimension of examples.
    pub input_batch: usize,
    /// The input's dimension of features.
    pub input_feature: usize,
    /// The input's spatial dimensions.
    pub input_spatial: Vec<usize>,
    /// The kernel's dimension of input features, of one group.
    pub kernel_input_feature: usize,
    /// The kernel's dimension of output features, of all groups.
    pub kernel_output_feature: usize,
    /// The kernel's spatial dimensions.
    pub kernel_spatial: Vec<usize>,
    /// The result's dimension of examples.
    pub output_batch: usize,
    /// The result's dimension of features.
    pub output_feature: usize,
    /// The result's spatial dimensions.
    pub output_spatial: Vec<usize>,
}

/// How a convolution moves its kernel, and what the dimensions of its operands are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Convolution {
    /// The dimensions of operands and result.
    pub dimensions: ConvolutionDimensions,
    /// The steps of the kernel.
    pub strides: Vec<usize>,
    /// The zeros before and after the input. A negative number cuts elements away.
    pub padding: Vec<(i64, i64)>,
    /// The steps between elements of the input, with zeros between them.
    pub input_dilation: Vec<usize>,
    /// The steps between elements of the kernel.
    pub kernel_dilation: Vec<usize>,
    /// The number of groups that features are divided into.
    pub feature_groups: usize,
    /// The number of groups that examples are divided into.
    pub batch_groups: usize,
}

impl Convolution {
    /// Returns a convolution with steps of 1 and no padding of `[examples, spatial…, features]` by a kernel
    /// `[spatial…, input features, output features]`.
    #[must_use]
    pub fn channels_last(spatial: usize) -> Self {
        let inner: Vec<_> = (1..=spatial).collect();
        let dimensions = ConvolutionDimensions {
            input_batch: 0,
            input_feature: spatial + 1,
            input_spatial: inner.clone(),
            kernel_input_feature: spatial,
            kernel_output_feature: spatial + 1,
            kernel_spatial: (0..spatial).collect(),
            output_batch: 0,
            output_feature: spatial + 1,
            output_spatial: inner,
        };
        Self {
            dimensions,
            strides: vec![1; spatial],
            padding: vec![(0, 0); spatial],
            input_dilation: vec![1; spatial],
            kernel_dilation: vec![1; spatial],
            feature_groups: 1,
            batch_groups: 1,
        }
    }

    /// Reads a convolution from the attributes of its op. Absent attributes have the defaults of the specification.
    pub(crate) fn read<'a>(attribute: impl Fn(&str) -> &'a str) -> Option<Self> {
        let dimensions = ConvolutionDimensions::read(attribute("dimension_numbers"))?;
        let spatial = dimensions.input_spatial.len();
        let ones = || vec![1; spatial];
        let steps = |name| sizes(attribute(name)).filter(|sizes| !sizes.is_empty()).unwrap_or_else(ones);
        let count = |name| size(attribute(name)).unwrap_or(1);
        Some(Self {
            strides: steps("window_strides"),
            padding: read_padding(attribute("padding"), spatial),
            input_dilation: steps("lhs_dilation"),
            kernel_dilation: steps("rhs_dilation"),
            feature_groups: count("feature_group_count"),
            batch_groups: count("batch_group_count"),
            dimensions,
        })
    }
}

impl Convolution {
    /// Returns the shape of the result, or `None` if operands of these shapes do not have its dimensions.
    pub(crate) fn result_shape(&self, x: &[usize], kernel: &[usize]) -> Option<Vec<usize>> {
        let Self { dimensions, strides, padding, input_dilation, kernel_dilation, batch_groups, .. } = self;
        let mut shape = vec![0; x.len()];
        *shape.get_mut(dimensions.output_batch)? =
            x.get(dimensions.input_batch)?.checked_div(*batch_groups)?;
        *shape.get_mut(dimensions.output_feature)? = *kernel.get(dimensions.kernel_output_feature)?;
        for (d, output) in dimensions.output_spatial.iter().enumerate() {
            let size = *kernel.get(*dimensions.kernel_spatial.get(d)?)?;
            let window = Steps { size, dilation: *kernel_dilation.get(d)? };
            let size = *x.get(*dimensions.input_spatial.get(d)?)?;
            let base = Steps { size, dilation: *input_dilation.get(d)? };
            let stride = *strides.get(d).filter(|stride| **stride > 0)?;
            *shape.get_mut(*output)? = window_count(base, window, stride, *padding.get(d)?);
        }
        Some(shape)
    }

    /// Returns the padding without what the kernel does not reach where it has one place alone, or `None` if that is nothing.
    ///
    /// Elements beyond the last place change nothing, but IREE 3.13 gives wrong results if there is one place and they are there.
    pub(crate) fn padding_in_reach(&self, x: &[usize], kernel: &[usize]) -> Option<String> {
        let dimensions = &self.dimensions;
        let mut padding = self.padding.clone();
        for (d, pair) in padding.iter_mut().enumerate() {
            let size = *kernel.get(*dimensions.kernel_spatial.get(d)?)?;
            let window = Steps { size, dilation: *self.kernel_dilation.get(d)? };
            let size = *x.get(*dimensions.input_spatial.get(d)?)?;
            let base = Steps { size, dilation: *self.input_dilation.get(d)? };
            if window_count(base, window, *self.strides.get(d)?, *pair) == 1 {
                pair.1 = window.signed_extent() - base.signed_extent() - pair.0;
            }
        }
        (padding != self.padding).then(|| padding_pairs(&padding))
    }
}

impl ConvolutionDimensions {
    /// Returns StableHLO's attribute.
    fn text(&self) -> String {
        let side = |first: (usize, &str), second: (usize, &str), spatial: &[usize]| {
            let mut names = vec![String::new(); spatial.len() + 2];
            names[first.0] = first.1.to_owned();
            names[second.0] = second.1.to_owned();
            for (index, &dimension) in spatial.iter().enumerate() {
                names[dimension] = index.to_string();
            }
            names.join(", ")
        };
        format!(
            "#stablehlo.conv<[{}]x[{}]->[{}]>",
            side((self.input_batch, "b"), (self.input_feature, "f"), &self.input_spatial),
            side((self.kernel_input_feature, "i"), (self.kernel_output_feature, "o"), &self.kernel_spatial),
            side((self.output_batch, "b"), (self.output_feature, "f"), &self.output_spatial)
        )
    }

    /// Reads StableHLO's attribute.
    fn read(text: &str) -> Option<Self> {
        let mut sides = text.split('[').skip(1).map(|side| {
            let names = side.split(']').next().unwrap_or_default();
            names.split(',').map(|name| name.trim().to_owned()).collect::<Vec<_>>()
        });
        let (input, kernel, output) = (sides.next()?, sides.next()?, sides.next()?);
        let place = |side: &[String], name: &str| side.iter().position(|found| found == name);
        let spatial = |side: &[String]| -> Option<Vec<_>> {
            (0..side.len().saturating_sub(2)).map(|index| place(side, &index.to_string())).collect()
        };
        Some(Self {
            input_batch: place(&input, "b")?,
            input_feature: place(&input, "f")?,
            input_spatial: spatial(&input)?,
            kernel_input_feature: place(&kernel, "i")?,
            kernel_output_feature: place(&kernel, "o")?,
            kernel_spatial: spatial(&kernel)?,
            output_batch: place(&output, "b")?,
            output_feature: place(&output, "f")?,
            output_spatial: spatial(&output)?,
        })
    }

    /// Returns whether these are all dimensions of tensors of `rank` dimensions.
    fn fit(&self, rank: usize) -> bool {
        let all = |first, second, spatial: &[usize]| {
            let dimensions = [&[first, second], spatial].concat();
            dimensions.len() == rank && are_distinct(&dimensions, rank)
        };
        all(self.input_batch, self.input_feature, &self.input_spatial)
            && all(self.kernel_input_feature, self.kernel_output_feature, &self.kernel_spatial)
            && all(self.output_batch, self.output_feature, &self.output_spatial)
    }
}

impl Graph {
    /// Returns the convolution of `input` with `kernel`.
    pub fn convolution(&mut self, input: Tensor, kernel: Tensor, convolution: &Convolution) -> Tensor {
        const OP: &str = "stablehlo.convolution";
        if Self::poisoned(&[input, kernel]) {
            return Self::poison();
        }
        let (x, k) = (self.type_of(input), self.type_of(kernel));
        let result = match result_type(&x, &k, convolution) {
            Ok(result) => result,
            Err(problem) => return self.fail(OP, problem),
        };
        let in_reach = convolution.padding_in_reach(&x.shape, &k.shape);
        let Convolution {
            dimensions,
            strides,
            padding,
            input_dilation,
            kernel_dilation,
            feature_groups,
            batch_groups,
        } = convolution;
        let attributes = vec![
            ("window_strides", i64_array(strides)),
            ("padding", in_reach.unwrap_or_else(|| padding_pairs(padding))),
            ("lhs_dilation", i64_array(input_dilation)),
            ("rhs_dilation", i64_array(kernel_dilation)),
            ("dimension_numbers", dimensions.text()),
            ("feature_group_count", i64_attribute(*feature_groups)),
            ("batch_group_count", i64_attribute(*batch_groups)),
        ];
        self.op(OP, &[input, kernel], attributes, result)
    }
}

/// Checks operands, and returns the type of the result.
fn result_type(x: &TensorType, k: &TensorType, convolution: &Convolution) -> Result<TensorType, String> {
    let Convolution { dimensions, strides, padding, input_dilation, kernel_dilation, .. } = convolution;
    let (groups, batches) = (convolution.feature_groups, convolution.batch_groups);
    if x.dtype != k.dtype || !(is_float(x.dtype) || is_integer(x.dtype) || is_complex(x.dtype)) {
        return Err(format!("found {x} and {k}, expected one number type"));
    }
    let spatial = dimensions.input_spatial.len();
    let lengths = [strides.len(), padding.len(), input_dilation.len(), kernel_dilation.len()];
    if x.rank() != k.rank() || !dimensions.fit(x.rank()) || lengths != [spatial; 4] {
        return Err(format!("found {x} and {k}, expected them to fit {convolution:?}"));
    }
    if [strides, input_dilation, kernel_dilation].into_iter().flatten().any(|&step| step == 0) {
        return Err(format!("found a step of 0 in {convolution:?}, expected at least 1"));
    }
    let (examples, features) = (x.shape[dimensions.input_batch], x.shape[dimensions.input_feature]);
    let (inputs, outputs) =
        (k.shape[dimensions.kernel_input_feature], k.shape[dimensions.kernel_output_feature]);
    let divides = |count: usize, size: usize| count > 0 && size.is_multiple_of(count);
    let fits = divides(groups, features) && divides(groups, outputs) && features / groups == inputs;
    if !fits || !divides(batches, examples) || !divides(batches, outputs) || (groups > 1 && batches > 1) {
        return Err(format!(
            "found {x} and {k} in {groups} groups of features and {batches} of examples, expected {} input features in \
             the kernel, and groups of one kind that divide features and examples",
            features / groups.max(1)
        ));
    }
    Ok(TensorType::new(x.dtype, convolution.result_shape(&x.shape, &k.shape).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use safetensors::Dtype;

    use super::*;

    /// Returns the type of a convolution's result, as text, or the error.
    fn result(input: &[usize], kernel: &[usize], convolution: &Convolution) -> String {
        let mut g = Graph::new();
        let (input, kernel) = (g.argument(Dtype::F32, input), g.argument(Dtype::F32, kernel));
        let result = g.convolution(input, kernel, convolution);
        let ty = g.type_of(result).to_string();
        g.finish("f", &[result]).map_or_else(|error| error.to_string(), |_| ty)
    }

    #[test]
    fn windows_that_fit_are_counted() {
        let plain = Convolution::channels_last(2);
        assert_eq!(result(&[2, 8, 7, 3], &[3, 2, 3, 5], &plain), "tensor<2x6x6x5xf32>");
        let strided = Convolution { strides: vec![2, 3], padding: vec![(1, 1), (0, -1)], ..plain.clone() };
        assert_eq!(result(&[2, 8, 7, 3], &[3, 2, 3, 5], &strided), "tensor<2x4x2x5xf32>");
        let dilated =
            Convolution { input_dilation: vec![2, 1], kernel_dilation: vec![1, 3], ..plain.clone() };
        assert_eq!(result(&[2, 8, 7, 3], &[3, 2, 3, 5], &dilated), "tensor<2x13x4x5xf32>");
        let grouped = Convolution { feature_groups: 3, ..plain.clone() };
        assert_eq!(result(&[2, 8, 7, 3], &[3, 2, 1, 6], &grouped), "tensor<2x6x6x6xf32>");
        assert_eq!(result(&[2, 2, 7, 3], &[3, 2, 3, 5], &plain), "tensor<2x0x6x5xf32>");
    }

    #[test]
    fn padding_ends_with_the_only_window() {
        let of = |padding: (i64, i64), size: usize, input_dilation: usize| {
            let convolution = Convolution {
                padding: vec![padding],
                strides: vec![7],
                input_dilation: vec![input_dilation],
                ..Convolution::channels_last(1)
            };
            convolution.padding_in_reach(&[1, size, 1], &[3, 1, 1])
        };
        assert_eq!(of((2, 3), 4, 1).unwrap(), "dense<[[2, -3]]> : tensor<1x2xi64>");
        assert_eq!(of((0, 1), 3, 2).unwrap(), "dense<[[0, -2]]> : tensor<1x2xi64>");
        assert_eq!((of((0, 0), 3, 1), of((0, 0), 11, 1), of((0, 0), 2, 1)), (None, None, None));
    }

    #[test]
    fn operands_that_do_not_fit_are_refused() {
        let plain = Convolution::channels_last(1);
        let message = result(&[2, 8, 3], &[3, 2, 5], &plain);
        assert_eq!(
            message,
            "graph: stablehlo.convolution: found tensor<2x8x3xf32> and tensor<3x2x5xf32> in 1 groups of features and 1 of \
             examples, expected 3 input features in the kernel, and groups of one kind that divide features and examples"
        );
        let message = result(&[2, 8], &[3, 2], &plain);
        assert!(message.starts_with("graph: stablehlo.convolution: found tensor<2x8xf32>"), "{message}");
        let message = result(&[2, 8, 3], &[3, 3, 5], &Convolution { strides: vec![0], ..plain });
        assert!(message.starts_with("graph: stablehlo.convolution: found a step of 0"), "{message}");
    }

    #[test]
    fn dimensions_are_read_as_they_are_written() {
        let mut convolution = Convolution::channels_last(2);
        assert_eq!(convolution.dimensions.text(), "#stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>");
        assert_eq!(
            ConvolutionDimensions::read(&convolution.dimensions.text()).unwrap(),
            convolution.dimensions
        );
        std::mem::swap(&mut convolution.dimensions.input_batch, &mut convolution.dimensions.input_feature);
        assert_eq!(convolution.dimensions.text(), "#stablehlo.conv<[f, 0, 1, b]x[0, 1, i, o]->[b, 0, 1, f]>");
        assert_eq!(ConvolutionDimensions::read("#stablehlo.conv<raw>"), None);
    }
}
