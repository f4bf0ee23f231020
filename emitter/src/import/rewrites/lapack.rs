//! Calls of LAPACK and of what stands for it on other devices, as frameworks export them.

use safetensors::Dtype;

use super::{
    super::{ast::Op, parse::dictionaries, replay::Replay},
    cholesky::cholesky,
    lu::{Lu, lu},
    matrices::Flip,
    triangular_solve::{Form, triangular_solve},
};
use crate::{
    error::Error,
    graph::{Graph, Tensor},
    ops::Reduction,
    types::TensorType,
};

/// Returns the results of a call of a decomposition, if it is one of these.
pub(in super::super) fn replay(
    replay: &mut Replay<'_, '_>,
    op: &Op<'_>,
    target: &str,
    operands: &[Tensor],
) -> Result<Option<Vec<Tensor>>, Error> {
    let config = op.attribute("mhlo.backend_config").map(|text| format!("[{text}]"));
    let config = config.as_deref().map(dictionaries).transpose()?.and_then(|mut all| all.pop());
    let config = config.unwrap_or_default();
    // Letters are numbers: `uplo = 76 : ui8` is L.
    let is = |name: &str, letter: u8| {
        config.get(name).and_then(|text| super::super::attributes::integer(text)) == Some(i64::from(letter))
    };
    let g = &mut replay.graph;
    let is_square =
        |g: &Graph, x: Tensor| matches!(g.shape(x), [.., rows, columns] if rows == columns && *rows > 0);
    let routine = target.strip_prefix("lapack_").and_then(|name| name.strip_suffix("_ffi"));
    let routine = routine.and_then(|name| name.get(1..)).unwrap_or(target);
    Ok(match (routine, operands) {
        ("potrf" | "cusolver_potrf_ffi", &[x]) if is_square(g, x) => {
            let is_lower = is("uplo", b'L') || config.get("lower") == Some(&"true");
            let factor = cholesky(g, x, is_lower);
            let info = first_zero(g, factor);
            Some(vec![factor, info])
        }
        ("trsm", &[a, b]) if is_square(g, a) => {
            let flip = match () {
                () if is("trans_x", b'T') => Some(Flip::Transpose),
                () if is("trans_x", b'C') => Some(Flip::Adjoint),
                () => None,
            };
            let form = Form {
                is_left: is("side", b'L'),
                is_lower: is("uplo", b'L'),
                has_unit_diagonal: is("diag", b'U'),
                flip,
            };
            Some(vec![triangular_solve(g, a, b, form)])
        }
        ("getrf" | "cusolver_getrf_ffi", &[x]) if is_square(g, x) => {
            let Lu { factors, pivots, .. } = lu(g, x);
            let one = g.full_like(pivots, 1);
            let pivots = g.add(pivots, one);
            let info = first_zero(g, factors);
            Some(vec![factors, of_batch(g, x, pivots), info])
        }
        ("LuDecomposition", &[x]) if is_square(g, x) => {
            let Lu { factors, pivots, order } = lu(g, x);
            Some(vec![factors, of_batch(g, x, pivots), of_batch(g, x, order)])
        }
        _ => None,
    })
}

/// Returns numbers of rows, `[batch, size]`, with the dimensions of matrices.
fn of_batch(g: &mut Graph, x: Tensor, numbers: Tensor) -> Tensor {
    let mut shape = g.shape(x).to_vec();
    shape.pop();
    g.reshape(numbers, &shape)
}

/// Returns for each matrix the number of the first element of the diagonal that is zero or NaN, counted from 1, or 0.
fn first_zero(g: &mut Graph, x: Tensor) -> Tensor {
    let TensorType { dtype, shape } = g.type_of(x);
    let part = if dtype == Dtype::C64 { Dtype::F32 } else { dtype };
    let sizes: Vec<_> = if dtype == Dtype::C64 {
        ["stablehlo.real", "stablehlo.imag"]
            .map(|name| g.op(name, &[x], vec![], TensorType::new(part, shape.clone())))
            .to_vec()
    } else {
        vec![x]
    };
    let last = shape.len() - 1;
    let (row, column) = (g.iota(Dtype::I32, &shape, last - 1), g.iota(Dtype::I32, &shape, last));
    let (is_diagonal, zeros) = (g.eq(row, column), g.full(0.0, part, &shape));
    let sizes: Vec<_> = sizes
        .into_iter()
        .map(|part| {
            let part = g.abs(part);
            let diagonal = g.select(is_diagonal, part, zeros);
            g.reduce(diagonal, Reduction::Sum, &[last])
        })
        .collect();
    let size = sizes.into_iter().reduce(|sum, size| g.add(sum, size)).unwrap_or(x);
    let zero = g.full_like(size, 0);
    let has_size = g.gt(size, zero);
    let has_none = g.not(has_size);
    let first = g.first_true(has_none);
    let (one, none) = (g.full_like(first, 1), g.full_like(first, 0));
    let end = g.full_like(first, shape[last]);
    let (number, is_regular) = (g.add(first, one), g.eq(first, end));
    g.select(is_regular, none, number)
}

#[cfg(test)]
mod tests {
    use crate::import::replayed::{lines_with, replayed};

    fn call(
        target: &str,
        config: &str,
        operands: &[&str],
        results: &str,
        first: &str,
    ) -> Result<String, String> {
        let names: Vec<_> = (0..operands.len()).map(|index| format!("%{index}")).collect();
        let count = results.matches("tensor").count();
        let (of_results, last) =
            if count > 1 { (format!("%c:{count}"), "%c#0") } else { ("%c".into(), "%c") };
        let lines = format!(
            r#"{of_results} = "stablehlo.custom_call"({}) <{{call_target_name = "{target}"}}> {{mhlo.backend_config = {{{config}}}}}
                : ({}) -> {results} loc("solve.py":3:4)
            %r = "stablehlo.reshape"({last}) : ({first}) -> {first}"#,
            names.join(", "),
            operands.join(", ")
        );
        replayed(operands, &lines, first)
    }

    #[test]
    fn letters_say_which_triangle_is_read() {
        let square = "tensor<3x3xf32>";
        let results = "(tensor<3x3xf32>, tensor<i32>)";
        let transposed = |target: &str, config: &str| {
            let mlir = call(target, config, &[square], results, square).unwrap();
            assert!(!mlir.contains("custom_call"), "{mlir}");
            lines_with(&mlir, "stablehlo.transpose").len()
        };
        assert_eq!(transposed("lapack_spotrf_ffi", "uplo = 76 : ui8"), 0);
        assert_eq!(transposed("lapack_spotrf_ffi", "uplo = 85 : ui8"), 2);
        assert_eq!(transposed("cusolver_potrf_ffi", "lower = true"), 0);
        let config = "diag = 78 : ui8, side = 76 : ui8, trans_x = 84 : ui8, uplo = 76 : ui8";
        let mlir = call("lapack_strsm_ffi", config, &[square, square], square, square).unwrap();
        assert_eq!(lines_with(&mlir, "stablehlo.transpose").len(), 1);
    }

    #[test]
    fn matrices_that_are_not_square_are_refused() {
        let wide = "tensor<3x4xf32>";
        let results = "(tensor<3x4xf32>, tensor<3xi32>, tensor<i32>)";
        assert_eq!(
            call("lapack_sgetrf_ffi", "", &[wide], results, wide).unwrap_err(),
            "main: custom_call at solve.py:3: found a call of LAPACK, @lapack_sgetrf_ffi, expected ops that are compiled\n\
             hint: replace the decomposition: cholesky, lu, solve, inv, det and triangular solves are compiled, of square matrices"
        );
    }
}
