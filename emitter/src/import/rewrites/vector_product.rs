//! Products of a matrix and a vector, by kernels for CPUs.
//!
//! iree-compile 3.13 makes tiles of sizes that divide those of the matrix, and transposes each in registers: a product with rows of
//! 1000 × 100 takes five times as long as to read the matrix from a cache.

use safetensors::Dtype;

use super::super::{ast::Op, replay::Replay};
use crate::{
    graph::Tensor,
    kernels::{Call, Grid, Isa, Kernel, LANES, ProductOfColumns, ProductOfRows},
    mlir::attributes::field_sizes,
    types::TensorType,
};

/// The fewest elements of a matrix. With fewer, it is faster to compute the product together with what comes after it.
const ELEMENTS_MIN: usize = 1 << 14;

/// Elements of a workgroup, if there are as many: fewer would not be worth a thread.
const WORKGROUP_ELEMENTS: usize = 1 << 17;

/// An operand of a product.
struct Side {
    tensor: Tensor,
    ty: TensorType,
    /// The dimensions that are summed over.
    summed: Vec<usize>,
}

impl Side {
    /// Returns whether it has one element beside the dimensions that are summed over.
    fn is_vector(&self) -> bool {
        let mut dimensions = self.ty.shape.iter().enumerate();
        dimensions.all(|(dimension, size)| *size == 1 || self.summed.contains(&dimension))
    }
}

/// Returns what stands for a product, if there is a kernel for it.
pub(super) fn rewrite(replay: &mut Replay<'_, '_>, op: &Op<'_>, operands: &[Tensor]) -> Option<Tensor> {
    let isa = replay.options.isa.filter(|isa| !isa.is_gpu())?;
    let numbers = op.attribute("dot_dimension_numbers")?;
    let &[left, right] = operands else { return None };
    let [left, right] = [(left, "lhs"), (right, "rhs")].map(|(tensor, side)| Side {
        tensor,
        ty: replay.graph.type_of(tensor),
        summed: field_sizes(numbers, &format!("{side}_contracting_dimensions")),
    });
    let has_batches = !field_sizes(numbers, "lhs_batching_dimensions").is_empty();
    let fits = |side: &Side| side.ty.dtype == Dtype::F32 && side.summed.is_sorted();
    if has_batches || !fits(&left) || !fits(&right) {
        return None;
    }
    let (matrix, vector) = if right.is_vector() { (left, right) } else { (right, left) };
    let (ty, summed, count) = (&matrix.ty, &matrix.summed, vector.ty.elements());
    let rest = ty.elements().checked_div(count)?;
    // Dimensions that are summed over stand at the end, or at the beginning.
    let is_of_rows = summed.iter().copied().eq(ty.rank() - summed.len()..ty.rank());
    let is_of_columns = summed.iter().copied().eq(0..summed.len());
    let (rows, columns) = if is_of_rows { (rest, count) } else { (count, rest) };
    if !vector.is_vector()
        || !(is_of_rows || is_of_columns)
        || columns < LANES
        || ty.elements() < ELEMENTS_MIN
    {
        return None;
    }
    let result = replay.result_types(op, operands, &[]).ok()?.pop()?;
    // Sums of another type are made in it.
    if result.dtype != Dtype::F32 {
        return None;
    }
    let a = replay.graph.reshape(matrix.tensor, &[rows, columns]);
    let x = replay.graph.reshape(vector.tensor, &[count]);
    let out = TensorType::new(Dtype::F32, [rest]);
    let found = if is_of_rows {
        let grain = (WORKGROUP_ELEMENTS / columns).clamp(1, rows);
        call(replay, isa, ProductOfRows { a, x, out, rows, columns }, Grid { items: rows, grain })
    } else {
        let items = columns.div_ceil(LANES);
        let grain = (WORKGROUP_ELEMENTS / (rows * LANES)).clamp(1, items);
        call(replay, isa, ProductOfColumns { a, x, out, rows, columns }, Grid { items, grain })
    };
    Some(replay.graph.reshape(found, &result.shape))
}

/// Calls a kernel, and returns its result.
fn call(replay: &mut Replay<'_, '_>, isa: Isa, kernel: impl Kernel, grid: Grid) -> Tensor {
    let Call { executable, operands, numbers } = Call::new(&replay.graph, isa, kernel, grid);
    let results = replay.graph.dispatch(&executable, &operands, &numbers);
    replay.executables.push(executable);
    results[0]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::ProgramOptions;
    use crate::import::replayed::replayed_for;

    /// Returns what multiplies `left` and `right`: a kernel with its sizes, or `dot_general`.
    fn product(isa: Option<Isa>, [left, right]: [&str; 2], dimensions: &str, result: &str) -> String {
        let line = format!(
            r#"%r = "stablehlo.dot_general"(%0, %1) <{{dot_dimension_numbers = #stablehlo.dot<{dimensions}>}}>
                : ({left}, {right}) -> {result}"#
        );
        let options = ProgramOptions { isa, ..ProgramOptions::default() };
        let mlir = replayed_for(&options, &[left, right], &line, result).unwrap();
        let kernel =
            mlir.split("product_of_").nth(1).map(|rest| rest.split("_call").next().unwrap_or_default());
        kernel.map_or_else(|| mlir.contains("dot_general").to_string(), ToOwned::to_owned)
    }

    #[test]
    fn rows_and_columns_have_kernels() {
        let of = |types: [&str; 2], left: &str, right: &str, result: &str| {
            let dimensions =
                format!("lhs_contracting_dimensions = [{left}], rhs_contracting_dimensions = [{right}]");
            product(Some(Isa::X86_64V3), types, &dimensions, result)
        };
        let (matrix, vector) = ("tensor<1000x100xf32>", "tensor<100xf32>");
        let long = "tensor<1000xf32>";
        assert_eq!(of([matrix, vector], "1", "0", long), "rows_1000_100_1000");
        assert_eq!(of([vector, matrix], "0", "1", long), "rows_1000_100_1000");
        assert_eq!(of([matrix, long], "0", "0", vector), "columns_1000_100_7");
        assert_eq!(of([matrix, "tensor<1x100xf32>"], "1", "1", "tensor<1000x1xf32>"), "rows_1000_100_1000");
        let deep = "tensor<10x100x10x10xf32>";
        assert_eq!(
            of([deep, "tensor<10x10xf32>"], "2, 3", "0, 1", "tensor<10x100xf32>"),
            "rows_1000_100_1000"
        );
        assert_eq!(
            of([deep, "tensor<10x100xf32>"], "0, 1", "0, 1", "tensor<10x10xf32>"),
            "columns_1000_100_7"
        );
        // Sums over dimensions in between, or in another order; few elements or columns; other types.
        assert_eq!(of([deep, "tensor<100xf32>"], "1", "0", "tensor<10x10x10xf32>"), "true");
        assert_eq!(of([deep, "tensor<10x10xf32>"], "3, 2", "0, 1", "tensor<10x100xf32>"), "true");
        assert_eq!(of(["tensor<100x100xf32>", vector], "1", "0", vector), "true");
        assert_eq!(of(["tensor<9999x10xf32>", "tensor<10xf32>"], "1", "0", "tensor<9999xf32>"), "true");
        assert_eq!(of([matrix, "tensor<100x2xf32>"], "1", "0", "tensor<1000x2xf32>"), "true");
        assert_eq!(of(["tensor<1000x100xf64>", "tensor<100xf64>"], "1", "0", "tensor<1000xf64>"), "true");
        assert_eq!(of([matrix, vector], "1", "0", "tensor<1000xf64>"), "true");
    }

    #[test]
    fn other_targets_and_batches_have_none() {
        let types = ["tensor<1000x100xf32>", "tensor<100xf32>"];
        let dimensions = "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]";
        for isa in [None, Some(Isa::Sm80)] {
            assert_eq!(product(isa, types, dimensions, "tensor<1000xf32>"), "true");
        }
        let dimensions = "lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], \
            lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]";
        let types = ["tensor<1x1000x100xf32>", "tensor<1x100xf32>"];
        assert_eq!(product(Some(Isa::X86_64V3), types, dimensions, "tensor<1x1000xf32>"), "true");
    }
}
