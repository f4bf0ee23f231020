//! Windows and reversals of unsigned numbers, and the gradient of pooling.

use safetensors::Dtype;

use super::{
    super::{
        ast::{Attributes, Op},
        attributes::{integers, sizes},
        replay::Replay,
    },
    scatter::ROWS,
};
use crate::{
    error::Error,
    graph::{self, Tensor},
    types::{TensorType, ValueType, signed_type},
};

/// Returns what stands for a reduction of windows.
///
/// iree-compile cannot pad unsigned numbers. So they come with the types of signed ones, and are unsigned where they are combined.
/// Nor can it leave out what does not fit into a window, if there is one window alone.
pub(super) fn reduce_window(
    replay: &mut Replay<'_, '_>,
    op: &Op<'_>,
    operands: &[Tensor],
) -> Result<Option<Vec<Tensor>>, Error> {
    let dtypes: Vec<_> = operands.iter().map(|operand| replay.graph.dtype(*operand)).collect();
    let [region] = op.regions.as_slice() else { return Ok(None) };
    let results = replay.result_types(op, operands, &[])?;
    let Some(windows) = results.first().map(|ty| ty.shape.clone()) else { return Ok(None) };
    let crop = Crop::new(op, replay.graph.shape(operands[0]), &windows);
    if crop.is_none() && dtypes.iter().all(|dtype| *dtype == signed_type(*dtype)) {
        return Ok(None);
    }
    let mut attributes: Attributes<'_> = op.attributes.clone();
    let mut signed_operands: Vec<_> =
        operands.iter().map(|operand| to(replay, *operand, signed_type)).collect();
    if let Some(crop) = &crop {
        signed_operands.iter_mut().take(results.len()).for_each(|x| *x = crop.cut(&mut replay.graph, *x));
        attributes.insert("padding", &crop.padding);
    }
    let types: Vec<ValueType> =
        dtypes.iter().map(|dtype| TensorType::new(signed_type(*dtype), []).into()).collect();
    // Half of the operands are initial values, so that there are as many as arguments.
    let body = region_of(replay, &types, |replay, arguments| {
        let arguments: Vec<_> = arguments
            .iter()
            .zip(&dtypes)
            .map(|(argument, dtype)| to(replay, *argument, |_| *dtype))
            .collect();
        let results = replay.inlined(region, &arguments)?;
        Ok(results.into_iter().map(|result| to(replay, result, signed_type)).collect())
    })?;
    let signed_types =
        results.iter().map(|ty| TensorType::new(signed_type(ty.dtype), ty.shape.clone())).collect();
    let found = replay.add(op.name, &signed_operands, &attributes, vec![body], signed_types);
    let back = found.into_iter().zip(results).map(|(found, ty)| to(replay, found, |_| ty.dtype)).collect();
    Ok(Some(back))
}

/// Returns what stands for `reverse`, which iree-compile has not for unsigned numbers.
pub(super) fn reverse(replay: &mut Replay<'_, '_>, op: &Op<'_>, x: Tensor) -> Option<Tensor> {
    let ty = replay.graph.type_of(x);
    if ty.dtype == signed_type(ty.dtype) {
        return None;
    }
    let x = to(replay, x, signed_type);
    let result = TensorType::new(signed_type(ty.dtype), ty.shape);
    let found = replay.add(op.name, &[x], &op.attributes, Vec::new(), vec![result]);
    Some(to(replay, found[0], |_| ty.dtype))
}

/// Returns what stands for `select_and_scatter`: windows are reduced to the place of what they select, and what belongs to a
/// window is scattered there.
pub(super) fn select_and_scatter(
    replay: &mut Replay<'_, '_>,
    op: &Op<'_>,
    operands: &[Tensor],
) -> Result<Option<Vec<Tensor>>, Error> {
    let (&[x, source, initial], [select, scatter]) = (operands, op.regions.as_slice()) else {
        return Ok(None);
    };
    let (ty, windows) = (replay.graph.type_of(x), replay.graph.type_of(source));
    let rows = ty.elements();
    if rows == 0 || i32::try_from(rows).is_err() {
        return Ok(None);
    }
    let chosen = selected(replay, op, x, &windows.shape)?;
    let body = replay.region(op, scatter, operands)?;
    let _ = select;
    let g = &mut replay.graph;
    // Windows that are padding alone have no place.
    let (none, extra) = (g.full_like(chosen, 0), g.full_like(chosen, rows));
    let has_none = g.lt(chosen, none);
    let chosen = g.select(has_none, extra, chosen);
    let count = windows.elements();
    let (chosen, source) = (g.reshape(chosen, &[count, 1]), g.reshape(source, &[count, 1]));
    let result = TensorType::new(ty.dtype, [rows + 1, 1]);
    let initial = g.broadcast_in_dim(initial, &result.shape, &[]);
    let attributes: Attributes<'_> =
        [("scatter_dimension_numbers", ROWS), ("indices_are_sorted", "false"), ("unique_indices", "false")]
            .into();
    let name = "stablehlo.scatter";
    let found = replay.add(name, &[initial, chosen, source], &attributes, vec![body], vec![result]);
    let kept = replay.graph.slice_dimension(found[0], 0, 0, rows);
    Ok(Some(vec![replay.graph.reshape(kept, &ty.shape)]))
}

/// Returns for each window the number of the element that it selects, or -1 if it has none.
fn selected(replay: &mut Replay<'_, '_>, op: &Op<'_>, x: Tensor, windows: &[usize]) -> Result<Tensor, Error> {
    let ty = replay.graph.type_of(x);
    let dtype = signed_type(ty.dtype);
    let mut values = to(replay, x, signed_type);
    let crop = Crop::new(op, &ty.shape, windows);
    let g = &mut replay.graph;
    let numbers = g.iota(Dtype::I32, &[ty.elements()], 0);
    let mut numbers = g.reshape(numbers, &ty.shape);
    let (zero, none) = (g.full(0.0, dtype, &[]), g.scalar(-1.0, Dtype::I32));
    let [value, number] = [dtype, Dtype::I32].map(|dtype| ValueType::from(TensorType::new(dtype, [])));
    let types = [value.clone(), number.clone(), value, number];
    let body = region_of(replay, &types, |replay, arguments| {
        let &[a, a_number, b, b_number] = arguments else { return Ok(Vec::new()) };
        let both = [a, b].map(|part| to(replay, part, |_| ty.dtype));
        let Some(select) = op.regions.first() else { return Ok(Vec::new()) };
        let stays = replay.inlined(select, &both)?;
        let g = &mut replay.graph;
        let zero = g.scalar(0.0, Dtype::I32);
        let (has_a, has_no_b) = (g.ge(a_number, zero), g.lt(b_number, zero));
        let stays = stays.first().map_or(has_a, |stays| g.or(*stays, has_no_b));
        let stays = g.and(stays, has_a);
        Ok(vec![g.select(stays, a, b), g.select(stays, a_number, b_number)])
    })?;
    let mut attributes: Attributes<'_> = op.attributes.clone();
    if let Some(crop) = &crop {
        [&mut values, &mut numbers].into_iter().for_each(|x| *x = crop.cut(&mut replay.graph, *x));
        attributes.insert("padding", &crop.padding);
    }
    let results = vec![TensorType::new(dtype, windows), TensorType::new(Dtype::I32, windows)];
    let name = "stablehlo.reduce_window";
    let found = replay.add(name, &[values, numbers, zero, none], &attributes, vec![body], results);
    Ok(found[1])
}

/// What is left of a tensor without what does not fit into its windows.
struct Crop {
    shape: Vec<usize>,
    padding: String,
}

impl Crop {
    /// Returns what is cut, if there is a dimension with one window and more than that.
    fn new(op: &Op<'_>, shape: &[usize], windows: &[usize]) -> Option<Self> {
        let rank = shape.len();
        let of = |name: &str| op.attribute(name).and_then(sizes).unwrap_or_else(|| vec![1; rank]);
        let (window, dilations) = (of("window_dimensions"), of("window_dilations"));
        let mut padding = op.attribute("padding").and_then(integers).unwrap_or_else(|| vec![0; 2 * rank]);
        if of("base_dilations").iter().any(|dilation| *dilation != 1) || padding.len() != 2 * rank {
            return None;
        }
        let mut kept = shape.to_vec();
        let mut is_cut = false;
        for d in 0..rank {
            let number = |size: usize| i64::try_from(size).ok();
            let used = number((window.get(d)?.checked_sub(1)?) * dilations.get(d)? + 1)?;
            let left = padding[2 * d] + number(shape[d])? + padding[2 * d + 1] - used;
            if windows.get(d) != Some(&1) || left <= 0 {
                continue;
            }
            is_cut = true;
            padding[2 * d + 1] -= left;
            if padding[2 * d + 1] < 0 {
                kept[d] = shape[d].checked_sub(usize::try_from(-padding[2 * d + 1]).ok()?)?;
                padding[2 * d + 1] = 0;
            }
        }
        let pairs: Vec<_> = padding.chunks(2).map(|pair| format!("{pair:?}")).collect();
        let padding = format!("dense<[{}]> : tensor<{rank}x2xi64>", pairs.join(", "));
        is_cut.then_some(Self { shape: kept, padding })
    }

    fn cut(&self, g: &mut graph::Graph, x: Tensor) -> Tensor {
        let starts = vec![0; self.shape.len()];
        g.slice(x, &starts, &self.shape)
    }
}

/// Builds a region of ops that combine numbers.
fn region_of(
    replay: &mut Replay<'_, '_>,
    types: &[ValueType],
    body: impl FnOnce(&mut Replay<'_, '_>, &[Tensor]) -> Result<Vec<Tensor>, Error>,
) -> Result<graph::Region, Error> {
    let arguments = replay.graph.begin_region(types);
    replay.combiners += 1;
    let results = body(replay, &arguments);
    replay.combiners -= 1;
    // Ended after an error too, so that the graph stays as it was.
    let region = replay.graph.end_region(results.as_deref().unwrap_or_default().to_vec());
    results.map(|_| region)
}

/// Returns a tensor with another element type of the same size.
fn to(replay: &mut Replay<'_, '_>, x: Tensor, dtype: impl Fn(Dtype) -> Dtype) -> Tensor {
    let dtype = dtype(replay.graph.dtype(x));
    replay.graph.bitcast_convert(x, dtype)
}

#[cfg(test)]
mod tests {
    use crate::import::replayed::{lines_with, replayed};

    fn largest(ty: &str, attributes: &str, element: &str, result: &str) -> String {
        let line = format!(
            r#"%r = "stablehlo.reduce_window"(%0, %1) <{{{attributes}}}> ({{
              ^bb0(%a: tensor<{element}>, %b: tensor<{element}>):
                %s = "stablehlo.maximum"(%a, %b) : (tensor<{element}>, tensor<{element}>) -> tensor<{element}>
                "stablehlo.return"(%s) : (tensor<{element}>) -> ()
            }}) : ({ty}, tensor<{element}>) -> {result}"#
        );
        replayed(&[ty, &format!("tensor<{element}>")], &line, result).unwrap()
    }

    #[test]
    fn unsigned_numbers_are_unsigned_where_they_are_combined() {
        let attributes = "window_dimensions = array<i64: 2>";
        let mlir = largest("tensor<4xui8>", attributes, "ui8", "tensor<3xui8>");
        assert_eq!(lines_with(&mlir, "(tensor<4xi8>, tensor<i8>) -> tensor<3xi8>").len(), 1, "{mlir}");
        assert_eq!(lines_with(&mlir, "stablehlo.maximum\"").len(), 1);
        assert!(lines_with(&mlir, "stablehlo.maximum\"")[0].contains("(tensor<ui8>, tensor<ui8>)"), "{mlir}");
    }

    #[test]
    fn unsigned_numbers_are_reversed_as_signed_ones() {
        let line = r#"%r = "stablehlo.reverse"(%0) <{dimensions = array<i64: 0>}> : (tensor<4xui64>) -> tensor<4xui64>"#;
        let mlir = replayed(&["tensor<4xui64>"], line, "tensor<4xui64>").unwrap();
        assert_eq!(lines_with(&mlir, "(tensor<4xi64>) -> tensor<4xi64>").len(), 1, "{mlir}");
    }

    #[test]
    fn what_a_single_window_leaves_is_cut() {
        let attributes = "window_dimensions = array<i64: 3>, window_strides = array<i64: 2>, padding = dense<[[1, 1]]> : tensor<1x2xi64>";
        let mlir = largest("tensor<3xf32>", attributes, "f32", "tensor<2xf32>");
        assert!(lines_with(&mlir, "stablehlo.slice").is_empty(), "{mlir}");
        let attributes = "window_dimensions = array<i64: 3>, window_strides = array<i64: 2>";
        let mlir = largest("tensor<4xf32>", attributes, "f32", "tensor<1xf32>");
        assert_eq!(lines_with(&mlir, "(tensor<4xf32>) -> tensor<3xf32>").len(), 1, "{mlir}");
    }
}
