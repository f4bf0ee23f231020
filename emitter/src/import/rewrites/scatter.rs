//! Scatters of rows at indices that are checked.
//!
//! iree-compile takes few forms of a scatter, and writes wherever an index says, outside of the tensor too. So all become
//! one form: the operand is a matrix, an index is the number of a row, and updates at places that do not exist change nothing.

use safetensors::Dtype;

use super::{
    super::{
        ast::{Attributes, Op, Region},
        attributes::{field, field_sizes},
        replay::Replay,
    },
    reshape::reshape,
};
use crate::{
    error::Error,
    graph::{Graph, Tensor},
    types::{TensorType, is_float, is_signed},
};

/// Where updates go, with the names of the StableHLO specification.
struct Dimensions {
    update_window: Vec<usize>,
    inserted_window: Vec<usize>,
    input_batching: Vec<usize>,
    indices_batching: Vec<usize>,
    scatter_to_operand: Vec<usize>,
    index_vector: usize,
}

/// What an update is combined to if its place does not exist.
enum Outside {
    /// It is a number that changes nothing, at the first row.
    Neutral(Tensor),
    /// It goes to a row that is dropped.
    ExtraRow,
}

/// Returns what stands for a scatter of one tensor.
pub(super) fn rewrite(
    replay: &mut Replay<'_, '_>,
    op: &Op<'_>,
    operands: &[Tensor],
) -> Result<Option<Vec<Tensor>>, Error> {
    let (&[x, indices, updates], [region]) = (operands, op.regions.as_slice()) else { return Ok(None) };
    let Some(dims) = op.attribute("scatter_dimension_numbers").and_then(dimensions) else { return Ok(None) };
    let (ty, update) = (replay.graph.type_of(x), replay.graph.type_of(updates));
    if ty.elements() == 0 || update.elements() == 0 {
        return Ok(Some(vec![x]));
    }
    let Some(layout) = Layout::new(&ty, &update, &dims) else { return Ok(None) };
    if layout.count == 1
        && let Some(updated) = single(replay, region, [x, indices, updates], (&layout, &dims))?
    {
        return Ok(Some(vec![updated]));
    }
    let is_unique = op.attribute("unique_indices") == Some("true");
    let outside = if is_unique { None } else { neutral(region, &ty) };
    let body = replay.region(op, region, operands)?;
    let g = &mut replay.graph;
    let outside = outside.map_or(Outside::ExtraRow, |number| {
        Outside::Neutral(g.full(number, ty.dtype, &[layout.count, layout.width]))
    });
    let (rows, exists) = layout.rows(g, indices, &dims);
    let matrix = g.transpose(x, &layout.operand_order);
    let mut matrix = reshape(g, matrix, &[layout.rows, layout.width]);
    let updates = g.transpose(updates, &layout.update_order);
    let mut updates = reshape(g, updates, &[layout.count, layout.width]);
    let last = match outside {
        Outside::Neutral(number) => {
            let exists = g.broadcast_in_dim(exists, &[layout.count, layout.width], &[0]);
            updates = g.select(exists, updates, number);
            0
        }
        Outside::ExtraRow => {
            let row = g.full(0.0, ty.dtype, &[1, layout.width]);
            matrix = g.concatenate(&[matrix, row], 0);
            layout.rows
        }
    };
    let other = g.full_like(rows, last);
    let rows = g.select(exists, rows, other);
    let rows = reshape(g, rows, &[layout.count, 1]);
    let (rows, updates) = apart(g, rows, updates);
    let mut attributes: Attributes<'_> = op.attributes.clone();
    attributes.insert("scatter_dimension_numbers", ROWS);
    attributes.insert("indices_are_sorted", "false");
    let result = g.type_of(matrix);
    let scattered = replay.add(op.name, &[matrix, rows, updates], &attributes, vec![body], vec![result]);
    let g = &mut replay.graph;
    let kept = g.slice_dimension(scattered[0], 0, 0, layout.rows);
    Ok(Some(vec![layout.restored(g, kept, &ty)]))
}

/// Returns the tensor after the update of one place, if it is one element or is combined by an op: a slice is computed, and the
/// rest stays.
///
/// Each thread of a workgroup would do it on GPUs, and add what is to be added once.
fn single(
    replay: &mut Replay<'_, '_>,
    region: &Region<'_>,
    [x, indices, updates]: [Tensor; 3],
    (layout, dims): (&Layout, &Dimensions),
) -> Result<Option<Tensor>, Error> {
    let ty = replay.graph.type_of(x);
    let combiner = Combiner::of(region, ty.dtype);
    if combiner.is_none() && layout.width > 1 {
        return Ok(None);
    }
    let g = &mut replay.graph;
    let (places, exists) = layout.places(g, indices, dims);
    let exists = g.reshape(exists, &[]);
    let zero = g.full(0.0, layout.dtype(), &[]);
    let (mut starts, mut sizes) = (vec![zero; ty.rank()], ty.shape.clone());
    for (&(d, _), place) in layout.row_dims.iter().zip(places) {
        let place = g.reshape(place, &[]);
        (starts[d], sizes[d]) = (g.select(exists, place, zero), 1);
    }
    let old = g.dynamic_slice(x, &starts, &sizes);
    let slice = TensorType::new(ty.dtype, sizes.clone());
    let update = g.transpose(updates, &layout.update_order);
    let update = layout.restored(g, update, &slice);
    let new = match combiner {
        Some(Combiner::Replaces) => update,
        Some(Combiner::Op(name)) => {
            replay.add(name, &[old, update], &Attributes::new(), vec![], vec![slice])[0]
        }
        None => {
            let [old, update] = [old, update].map(|one| g.reshape(one, &[]));
            let [new] = *replay.inlined(region, &[old, update])? else { return Ok(None) };
            replay.graph.reshape(new, &sizes)
        }
    };
    let g = &mut replay.graph;
    let exists = g.broadcast_in_dim(exists, &sizes, &[]);
    let new = g.select(exists, new, old);
    Ok(Some(g.dynamic_update_slice(x, new, &starts)))
}

/// How the region of a scatter combines what is there with an update.
enum Combiner<'t> {
    /// The update takes its place.
    Replaces,
    /// This op of both, in any order.
    Op(&'t str),
}

impl<'t> Combiner<'t> {
    /// Reads a region for elements of a type, unless it is another one.
    fn of(region: &Region<'t>, dtype: Dtype) -> Option<Self> {
        if let ([_, update], [end]) = (region.arguments.as_slice(), region.ops.as_slice()) {
            return (end.operands == [update.value]).then_some(Self::Replaces);
        }
        let name = combining_op(region).filter(|_| dtype != Dtype::BOOL)?;
        let is_known = match name {
            "stablehlo.add" | "stablehlo.multiply" => true,
            "stablehlo.maximum" | "stablehlo.minimum" => dtype != Dtype::C64,
            _ => false,
        };
        is_known.then_some(Self::Op(name))
    }
}

/// Returns the op that combines both arguments of a region, in any order, if there is no other.
pub(super) fn combining_op<'t>(region: &Region<'t>) -> Option<&'t str> {
    let ([x, y], [op, end]) = (region.arguments.as_slice(), region.ops.as_slice()) else { return None };
    let combines = op.operands == [x.value, y.value] || op.operands == [y.value, x.value];
    (combines && end.operands.first().copied() == op.results).then_some(op.name)
}

/// Returns rows and updates behind a barrier if they are large.
///
/// iree-compile would compute them as a part of the scatter, on its stack, which is small.
fn apart(g: &mut Graph, rows: Tensor, updates: Tensor) -> (Tensor, Tensor) {
    const LIMIT: usize = 1024;
    if g.type_of(updates).elements() <= LIMIT {
        return (rows, updates);
    }
    let types = [rows, updates].map(|tensor| g.type_of(tensor).into()).to_vec();
    let found = g.op_with_regions("stablehlo.optimization_barrier", &[rows, updates], vec![], vec![], types);
    (found[0], found[1])
}

/// A scatter of rows.
pub(super) const ROWS: &str = "#stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>";

/// How an operand and its updates are matrices.
struct Layout {
    /// The operand's dimensions, those that are the numbers of rows first.
    operand_order: Vec<usize>,
    /// The updates' dimensions: those of indices, of windows that are a part of a dimension, and of whole ones.
    update_order: Vec<usize>,
    /// The operand's dimensions that are the numbers of rows, with their sizes.
    row_dims: Vec<(usize, usize)>,
    /// For each of them the dimension of `places` that a window goes through, if one does.
    windows: Vec<Option<usize>>,
    /// The sizes of the updates' dimensions that say rows.
    places: Vec<usize>,
    rows: usize,
    width: usize,
    /// The number of updates.
    count: usize,
}

impl Layout {
    /// Returns the operand that a matrix of rows stands for.
    fn restored(&self, g: &mut Graph, matrix: Tensor, ty: &TensorType) -> Tensor {
        let shape: Vec<_> = self.operand_order.iter().map(|&d| ty.shape[d]).collect();
        let kept = g.reshape(matrix, &shape);
        let mut back = vec![0; ty.rank()];
        self.operand_order.iter().enumerate().for_each(|(index, &d)| back[d] = index);
        g.transpose(kept, &back)
    }

    /// Returns the layout of a scatter, unless its dimensions do not fit.
    fn new(x: &TensorType, updates: &TensorType, dims: &Dimensions) -> Option<Self> {
        let in_window = |d: &usize| !dims.inserted_window.contains(d) && !dims.input_batching.contains(d);
        let window: Vec<usize> = (0..x.rank()).filter(in_window).collect();
        if window.len() != dims.update_window.len() {
            return None;
        }
        let of_indices = (0..updates.rank()).filter(|d| !dims.update_window.contains(d));
        let mut update_order: Vec<usize> = of_indices.collect();
        let (mut whole, mut whole_updates, mut parts) = (Vec::new(), Vec::new(), Vec::new());
        for (&d, &u) in window.iter().zip(&dims.update_window) {
            if updates.shape.get(u)? == &x.shape[d] && !dims.scatter_to_operand.contains(&d) {
                whole.push(d);
                whole_updates.push(u);
            } else {
                parts.push((d, update_order.len()));
                update_order.push(u);
            }
        }
        let places: Vec<usize> =
            update_order.iter().map(|&u| updates.shape.get(u).copied()).collect::<Option<_>>()?;
        let row_dims: Vec<_> =
            (0..x.rank()).filter(|d| !whole.contains(d)).map(|d| (d, x.shape[d])).collect();
        let windows =
            row_dims.iter().map(|(d, _)| parts.iter().find(|(part, _)| part == d).map(|(_, at)| *at));
        let windows = windows.collect();
        let width = whole.iter().map(|&d| x.shape[d]).product();
        let operand_order = row_dims.iter().map(|(d, _)| *d).chain(whole).collect();
        update_order.extend(whole_updates);
        let (rows, count) = (x.elements() / width, updates.elements() / width);
        Some(Self { operand_order, update_order, row_dims, windows, places, rows, width, count })
    }

    /// Returns the type of numbers of rows.
    fn dtype(&self) -> Dtype {
        if i32::try_from(self.rows).is_ok() { Dtype::I32 } else { Dtype::I64 }
    }

    /// Returns for each update its row, and whether its place exists.
    fn rows(&self, g: &mut Graph, indices: Tensor, dims: &Dimensions) -> (Tensor, Tensor) {
        let (places, exists) = self.places(g, indices, dims);
        let mut row = g.full(0.0, self.dtype(), &self.places);
        for (&(_, size), place) in self.row_dims.iter().zip(places) {
            let scale = g.full_like(row, size);
            row = g.multiply(row, scale);
            row = g.add(row, place);
        }
        (reshape(g, row, &[self.count]), reshape(g, exists, &[self.count]))
    }

    /// Returns for each update its place in each of the dimensions that are the numbers of rows, and whether it exists.
    fn places(&self, g: &mut Graph, indices: Tensor, dims: &Dimensions) -> (Vec<Tensor>, Tensor) {
        let (dtype, shape) = (self.dtype(), self.places.as_slice());
        let mut exists = g.full(1.0, Dtype::BOOL, shape);
        let mut places = Vec::new();
        for (&(d, size), window) in self.row_dims.iter().zip(&self.windows) {
            if let Some(at) = dims.input_batching.iter().position(|batching| *batching == d) {
                let of_indices = dims.indices_batching.get(at).copied().unwrap_or_default();
                let at = of_indices - usize::from(dims.index_vector < of_indices);
                places.push(g.iota(dtype, shape, at));
                continue;
            }
            let component = dims.scatter_to_operand.iter().position(|to| *to == d);
            let mut place = component.map(|component| {
                let index = self::component(g, indices, dims.index_vector, component);
                let index = in_range(g, index, size, dtype);
                let kept: Vec<_> = (0..g.shape(index).len()).collect();
                g.broadcast_in_dim(index, shape, &kept)
            });
            if let Some(at) = *window {
                let offset = g.iota(dtype, shape, at);
                place = Some(place.map_or(offset, |place| g.add(place, offset)));
            }
            let place = place.unwrap_or_else(|| g.full(0.0, dtype, shape));
            places.push(place);
            if component.is_some() {
                let (low, high) = (g.full_like(place, 0), g.full_like(place, size));
                let (is_above, is_below) = (g.ge(place, low), g.lt(place, high));
                let is_inside = g.and(is_above, is_below);
                exists = g.and(exists, is_inside);
            }
        }
        (places, exists)
    }
}

/// Returns a component of indices.
fn component(g: &mut Graph, indices: Tensor, index_vector: usize, component: usize) -> Tensor {
    let mut shape = g.shape(indices).to_vec();
    if index_vector >= shape.len() {
        return indices;
    }
    let index = g.slice_dimension(indices, index_vector, component, component + 1);
    shape.remove(index_vector);
    g.reshape(index, &shape)
}

/// Returns indices in a type that sums of places fit into. What is outside of a dimension stays there, and a place in a window that
/// is added to it does not bring it back.
fn in_range(g: &mut Graph, index: Tensor, size: usize, dtype: Dtype) -> Tensor {
    let found = g.dtype(index);
    // Every number of a narrower type is one of the other too.
    if found == dtype || found.bitsize() < dtype.bitsize() {
        return g.convert(index, dtype);
    }
    let high = g.full_like(index, size);
    let low = if is_signed(found) { g.negate(high) } else { g.full_like(index, 0) };
    let index = g.clamp(low, index, high);
    g.convert(index, dtype)
}

fn dimensions(text: &str) -> Option<Dimensions> {
    Some(Dimensions {
        update_window: field_sizes(text, "update_window_dims"),
        inserted_window: field_sizes(text, "inserted_window_dims"),
        input_batching: field_sizes(text, "input_batching_dims"),
        indices_batching: field_sizes(text, "scatter_indices_batching_dims"),
        scatter_to_operand: field_sizes(text, "scatter_dims_to_operand_dims"),
        index_vector: field(text, "index_vector_dim").map_or(Some(0), |text| text.parse().ok())?,
    })
}

/// Returns the number that changes nothing when it is combined, if there is one.
fn neutral(region: &Region<'_>, ty: &TensorType) -> Option<f64> {
    let name = combining_op(region).filter(|_| ty.dtype != Dtype::C64)?;
    let is_bool = ty.dtype == Dtype::BOOL;
    Some(match name {
        "stablehlo.add" if is_float(ty.dtype) => -0.0,
        "stablehlo.add" | "stablehlo.or" | "stablehlo.xor" => 0.0,
        "stablehlo.multiply" => 1.0,
        "stablehlo.maximum" if !is_bool => f64::NEG_INFINITY,
        "stablehlo.minimum" if !is_bool => f64::INFINITY,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use crate::import::replayed::{lines_with, replayed};

    fn scatter(x: &str, indices: &str, updates: &str, numbers: &str, combine: &str) -> String {
        let line = format!(
            r#"%r = "stablehlo.scatter"(%0, %1, %2) <{{indices_are_sorted = false, unique_indices = false,
                scatter_dimension_numbers = #stablehlo.scatter<{numbers}>}}> ({{
              ^bb0(%a: tensor<f32>, %b: tensor<f32>):
                {combine}
            }}) : ({x}, {indices}, {updates}) -> {x}"#
        );
        replayed(&[x, indices, updates], &line, x).unwrap()
    }

    const ADD: &str = r#"%s = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
        "stablehlo.return"(%s) : (tensor<f32>) -> ()"#;
    const LAST: &str = r#""stablehlo.return"(%b) : (tensor<f32>) -> ()"#;
    const OF_ROWS: &str = "update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1";

    #[test]
    fn updates_outside_add_zero_or_go_to_a_row_that_is_dropped() {
        let added = scatter("tensor<10x4xf32>", "tensor<5x1xi32>", "tensor<5x4xf32>", OF_ROWS, ADD);
        assert!(added.contains("dense<-0.000000e+00> : tensor<5x4xf32>"), "{added}");
        assert_eq!(
            lines_with(&added, "(tensor<10x4xf32>, tensor<5x1xi32>, tensor<5x4xf32>)").len(),
            1,
            "{added}"
        );
        let set = scatter("tensor<10x4xf32>", "tensor<5x1xi32>", "tensor<5x4xf32>", OF_ROWS, LAST);
        assert_eq!(
            lines_with(&set, "(tensor<11x4xf32>, tensor<5x1xi32>, tensor<5x4xf32>)").len(),
            1,
            "{set}"
        );
        for mlir in [added, set] {
            assert_eq!(lines_with(&mlir, "comparison_direction GE").len(), 1, "{mlir}");
            assert_eq!(lines_with(&mlir, "comparison_direction LT").len(), 1, "{mlir}");
        }
    }

    #[test]
    fn one_row_is_a_slice_that_is_updated() {
        let numbers = "update_window_dims = [0, 1], inserted_window_dims = [1], scatter_dims_to_operand_dims = [1], index_vector_dim = 0";
        for (combine, combined) in [(ADD, 1), (LAST, 0)] {
            let mlir = scatter("tensor<5x10x4xf32>", "tensor<1xi32>", "tensor<5x4xf32>", numbers, combine);
            let update = "(tensor<5x10x4xf32>, tensor<5x1x4xf32>, tensor<i32>, tensor<i32>, tensor<i32>)";
            assert_eq!(lines_with(&mlir, update).len(), 1, "{mlir}");
            assert_eq!(lines_with(&mlir, "stablehlo.add\"(").len(), combined, "{mlir}");
            assert!(!mlir.contains("stablehlo.scatter") && !mlir.contains("concatenate"), "{mlir}");
        }
        // What no op of tensors says is done row by row.
        let other = ADD.replace("stablehlo.add", "stablehlo.divide");
        let mlir = scatter("tensor<10x4xf32>", "tensor<1x1xi32>", "tensor<1x4xf32>", OF_ROWS, &other);
        assert!(mlir.contains("stablehlo.scatter"), "{mlir}");
    }

    #[test]
    fn batches_and_parts_of_dimensions_are_rows() {
        let numbers =
            "update_window_dims = [1, 2], input_batching_dims = [0], scatter_indices_batching_dims = [0],
            scatter_dims_to_operand_dims = [1], index_vector_dim = 1";
        let mlir = scatter("tensor<3x5x4xf32>", "tensor<3x1xui8>", "tensor<3x2x4xf32>", numbers, ADD);
        assert_eq!(
            lines_with(&mlir, "(tensor<15x4xf32>, tensor<6x1xi32>, tensor<6x4xf32>)").len(),
            1,
            "{mlir}"
        );
    }

    #[test]
    fn indices_of_64_bits_stay_outside() {
        let mlir = scatter("tensor<10x4xf32>", "tensor<5x1xui64>", "tensor<5x4xf32>", OF_ROWS, ADD);
        assert_eq!(lines_with(&mlir, "stablehlo.clamp").len(), 1, "{mlir}");
        // So many rows that the numbers of all just fit into 32 bits.
        let long = scatter("tensor<2147483646x4xf32>", "tensor<5x1xi64>", "tensor<5x4xf32>", OF_ROWS, ADD);
        assert!(long.contains("dense<2147483646> : tensor<5xi64>"), "{long}");
        let [clamp] = lines_with(&long, "stablehlo.clamp")[..] else { panic!("{long}") };
        assert!(clamp.contains("tensor<5xi64>"), "{clamp}");
        assert_eq!(lines_with(&long, "(tensor<5xi64>) -> tensor<5xi32>").len(), 1, "{long}");
    }
}
