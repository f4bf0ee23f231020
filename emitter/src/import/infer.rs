//! Shapes of results whose program leaves them open, from shapes of operands.
//!
//! Formulas are those of the StableHLO specification, <https://openxla.org/stablehlo/spec>.

use super::{
    ast::Op,
    attributes::{field, field_sizes, integers, size, sizes, word},
};
use crate::{
    ops::{Convolution, Window},
    types::{DYNAMIC, TensorType},
};

/// Returns the shapes of an op's results, or `None` if operands and attributes do not say them.
pub(super) fn shapes(op: &Op<'_>, operands: &[TensorType]) -> Option<Vec<Vec<usize>>> {
    let short = op.name.split_once('.').map_or(op.name, |(_, name)| name);
    let first = || operands.first().map(|ty| ty.shape.clone());
    let attribute = |name| op.attribute(name);
    let one = |shape: Vec<usize>| Some(vec![shape]);
    match short {
        "dot_general" => one(dot_general(attribute("dot_dimension_numbers")?, operands)?),
        "transpose" => {
            let x = first()?;
            one(sizes(attribute("permutation")?)?
                .into_iter()
                .map(|d| x.get(d).copied())
                .collect::<Option<_>>()?)
        }
        "reduce" => {
            let (x, dimensions) = (first()?, sizes(attribute("dimensions")?)?);
            let shape: Vec<_> = kept(&x, &dimensions).collect();
            Some(vec![shape; op.result_types.len()])
        }
        "concatenate" => {
            let (mut shape, dimension) = (first()?, size(attribute("dimension")?)?);
            *shape.get_mut(dimension)? =
                operands.iter().try_fold(0, |sum: usize, ty| sum.checked_add(*ty.shape.get(dimension)?))?;
            one(shape)
        }
        "slice" => {
            let [starts, limits, strides] =
                ["start_indices", "limit_indices", "strides"].map(|name| attribute(name).and_then(sizes));
            one(sliced(&starts?, &limits?, &strides?))
        }
        "dynamic_slice" => one(sizes(attribute("slice_sizes")?)?),
        "pad" => {
            let [low, high, inner] = ["edge_padding_low", "edge_padding_high", "interior_padding"]
                .map(|name| attribute(name).and_then(integers));
            one(padded(&first()?, &low?, &high?, &inner?)?)
        }
        "gather" => {
            one(gather(attribute("dimension_numbers")?, operands, &sizes(attribute("slice_sizes")?)?)?)
        }
        "reduce_window" => {
            let shape = Window::read(text(op)).counts(&operands.first()?.shape)?;
            Some(vec![shape; op.result_types.len()])
        }
        "convolution" => match operands {
            [x, kernel, ..] => one(Convolution::read(text(op))?.result_shape(&x.shape, &kernel.shape)?),
            _ => None,
        },
        "fft" => one(fft(op, first()?)?),
        "top_k" => {
            let mut shape = first()?;
            *shape.last_mut()? = size(attribute("k")?)?;
            Some(vec![shape.clone(), shape])
        }
        "triangular_solve" => one(operands.get(1)?.shape.clone()),
        "select" | "clamp" => one(operands.get(1)?.shape.clone()),
        // What has several operands of one shape, or one result like its operand.
        "sort" | "while" | "optimization_barrier" | "scatter" => {
            operands.iter().take(op.result_types.len()).map(|ty| Some(ty.shape.clone())).collect()
        }
        "select_and_scatter" | "dynamic_update_slice" | "map" | "cholesky" | "reverse" => one(first()?),
        _ if is_elementwise(short) => one(first()?),
        _ => None,
    }
}

/// Returns whether each element of the only result depends on those at the same place alone.
fn is_elementwise(name: &str) -> bool {
    matches!(
        name,
        "abs"
            | "acos"
            | "acosh"
            | "add"
            | "and"
            | "asin"
            | "asinh"
            | "atan"
            | "atan2"
            | "atanh"
            | "bessel_i1e"
            | "bitcast_convert"
            | "cbrt"
            | "ceil"
            | "compare"
            | "complex"
            | "conj"
            | "convert"
            | "cosh"
            | "cosine"
            | "count_leading_zeros"
            | "digamma"
            | "divide"
            | "erf"
            | "erf_inv"
            | "erfc"
            | "exponential"
            | "exponential_minus_one"
            | "floor"
            | "imag"
            | "is_finite"
            | "is_inf"
            | "is_neg_inf"
            | "is_pos_inf"
            | "lgamma"
            | "log"
            | "log_plus_one"
            | "logistic"
            | "maximum"
            | "minimum"
            | "mulhi"
            | "multiply"
            | "negate"
            | "next_after"
            | "not"
            | "or"
            | "polygamma"
            | "popcnt"
            | "power"
            | "real"
            | "reduce_precision"
            | "remainder"
            | "round_nearest_afz"
            | "round_nearest_even"
            | "rsqrt"
            | "shift_left"
            | "shift_right_arithmetic"
            | "shift_right_logical"
            | "sign"
            | "sine"
            | "sinh"
            | "sqrt"
            | "square"
            | "subtract"
            | "tan"
            | "tanh"
            | "xor"
            | "zeta"
    )
}

/// Returns the sizes of the dimensions that are not among `dropped`.
fn kept<'s>(shape: &'s [usize], dropped: &'s [usize]) -> impl Iterator<Item = usize> + 's {
    shape.iter().enumerate().filter(|(d, _)| !dropped.contains(d)).map(|(_, &size)| size)
}

fn dot_general(numbers: &str, operands: &[TensorType]) -> Option<Vec<usize>> {
    let [x, y, ..] = operands else { return None };
    let [batch, batch_y, contracted, contracted_y] = [
        "lhs_batching_dimensions",
        "rhs_batching_dimensions",
        "lhs_contracting_dimensions",
        "rhs_contracting_dimensions",
    ]
    .map(|name| field_sizes(numbers, name));
    let mut shape: Vec<_> = batch.iter().map(|&d| x.shape.get(d).copied()).collect::<Option<_>>()?;
    shape.extend(kept(&x.shape, &[batch, contracted].concat()));
    shape.extend(kept(&y.shape, &[batch_y, contracted_y].concat()));
    Some(shape)
}

/// Returns the shape between starts and limits.
pub(super) fn sliced(starts: &[usize], limits: &[usize], strides: &[usize]) -> Vec<usize> {
    let bounds = starts.iter().zip(limits).zip(strides);
    bounds.map(|((start, limit), stride)| limit.saturating_sub(*start).div_ceil((*stride).max(1))).collect()
}

/// Returns a shape with padding around it and between its elements; padding around can be negative.
pub(super) fn padded(shape: &[usize], low: &[i64], high: &[i64], inner: &[i64]) -> Option<Vec<usize>> {
    let padding = low.iter().zip(high).zip(inner);
    shape
        .iter()
        .zip(padding)
        .map(|(&size, ((low, high), inner))| {
            let size = i64::try_from(size).ok()?;
            let between = (size - 1).max(0).checked_mul(*inner)?;
            usize::try_from(size.checked_add(between)?.checked_add(*low)?.checked_add(*high)?.max(0)).ok()
        })
        .collect()
}

/// Returns the shape of a gather's result.
pub(super) fn gather(numbers: &str, operands: &[TensorType], slices: &[usize]) -> Option<Vec<usize>> {
    let indices = &operands.get(1)?.shape;
    let [offset, collapsed, batching] = ["offset_dims", "collapsed_slice_dims", "operand_batching_dims"]
        .map(|name| field_sizes(numbers, name));
    let vector = field(numbers, "index_vector_dim").and_then(size).unwrap_or(0);
    let mut batch = kept(indices, std::slice::from_ref(&vector));
    let dropped = [collapsed, batching].concat();
    let mut slice = kept(slices, &dropped);
    let rank = offset.len() + indices.len() - usize::from(vector < indices.len());
    (0..rank).map(|d| if offset.contains(&d) { slice.next() } else { batch.next() }).collect()
}

/// Returns the text of an attribute, or an empty one.
fn text<'o>(op: &'o Op<'_>) -> impl Fn(&str) -> &'o str {
    |name| op.attribute(name).unwrap_or_default()
}

fn fft(op: &Op<'_>, mut shape: Vec<usize>) -> Option<Vec<usize>> {
    let length = sizes(op.attribute("fft_length")?)?;
    let last = shape.last_mut()?;
    match word(op.attribute("fft_type")?)? {
        "RFFT" => *last = if *last == 0 { 0 } else { length.last()? / 2 + 1 },
        "IRFFT" => *last = *length.last()?,
        _ => {}
    }
    Some(shape)
}

/// Returns whether a shape is the one that is written, whose sizes can be open.
pub(super) fn is_written(shape: &[usize], written: &[usize]) -> bool {
    shape.len() == written.len()
        && shape.iter().zip(written).all(|(size, written)| [*size, DYNAMIC].contains(written))
}

/// Returns whether every size is known.
pub(super) fn is_static(shape: &[usize]) -> bool {
    !shape.contains(&DYNAMIC)
}

#[cfg(test)]
mod tests {
    use super::super::parse::parse;
    use super::*;
    use crate::import::attributes::tensor_type;

    /// Returns the shapes of an op's results in MLIR's words, from its line.
    fn of(line: &str, operands: &[&str]) -> Vec<Vec<usize>> {
        let text = format!(
            "\"builtin.module\"() ({{ \"func.func\"() <{{function_type = () -> (), sym_name = \"f\"}}> ({{ {line} }}) : () -> () }}) : () -> ()"
        );
        let module = parse(&text).unwrap();
        let operands: Vec<_> = operands.iter().map(|ty| tensor_type(ty).unwrap()).collect();
        shapes(&module.functions[0].body.ops[0], &operands).unwrap()
    }

    #[test]
    fn a_convolution_has_the_windows_that_fit() {
        let line = r#"%0 = "stablehlo.convolution"(%a, %b) <{batch_group_count = 1 : i64,
            dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64,
            padding = dense<[[1, 1], [0, 2]]> : tensor<2x2xi64>, window_strides = array<i64: 2, 1>}>
            : (tensor<?x?x?x3xf32>, tensor<3x3x3x8xf32>) -> tensor<?x?x?x8xf32>"#;
        assert_eq!(of(line, &["tensor<5x9x7x3xf32>", "tensor<3x3x3x8xf32>"]), [[5, 5, 7, 8]]);
    }

    #[test]
    fn products_have_batch_rows_and_columns() {
        let line = r#"%0 = "stablehlo.dot_general"(%a, %b) <{dot_dimension_numbers = #stablehlo.dot<
            lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2],
            rhs_contracting_dimensions = [1]>}> : (tensor<?x?x?xf32>, tensor<?x?x?xf32>) -> tensor<?x?x?xf32>"#;
        assert_eq!(of(line, &["tensor<2x3x4xf32>", "tensor<2x4x5xf32>"]), [[2, 3, 5]]);
    }

    #[test]
    fn gathered_slices_stand_where_the_offsets_say() {
        let line = r#"%0 = "stablehlo.gather"(%a, %b) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
            collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1, 7>}>
            : (tensor<?x7xf32>, tensor<?x4x1xi32>) -> tensor<?x7x4xf32>"#;
        assert_eq!(of(line, &["tensor<9x7xf32>", "tensor<6x4x1xi32>"]), [[6, 7, 4]]);
    }

    #[test]
    fn slices_and_padding_can_be_cut() {
        assert_eq!(padded(&[4, 0], &[-1, 2], &[-1, 1], &[2, 5]), Some(vec![8, 3]));
        assert_eq!(sliced(&[1, 0], &[6, 4], &[2, 4]), [3, 1]);
    }
}
