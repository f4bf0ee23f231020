//! Calls of LAPACK and of what stands for it on other devices, as frameworks export them.

use safetensors::Dtype;

use super::{
    super::{
        ast::{Attributes, Op},
        attributes::integer,
        parse::attributes,
        replay::Replay,
    },
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
    let config = Config::new(op)?;
    let is_square =
        |g: &Graph, x: Tensor| matches!(g.shape(x), [.., rows, columns] if rows == columns && *rows > 0);
    let routine = target.strip_prefix("lapack_").and_then(|name| name.strip_suffix("_ffi"));
    let routine = routine.and_then(|name| name.get(1..)).unwrap_or(target);
    let is_cholesky = routine == "potrf" || routine == "cusolver_potrf_ffi";
    let is_lower = is_cholesky.then(|| config.is_lower(replay, op)).transpose()?;
    let form = (routine == "trsm").then(|| config.form(replay, op)).transpose()?;
    let g = &mut replay.graph;
    Ok(match (routine, operands) {
        ("potrf" | "cusolver_potrf_ffi", &[x]) if is_square(g, x) => is_lower.map(|is_lower| {
            let factor = cholesky(g, x, is_lower);
            let info = first_zero(g, factor);
            vec![factor, info]
        }),
        ("trsm", &[a, b]) if is_square(g, a) => form.map(|form| vec![triangular_solve(g, a, b, form)]),
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

/// The attributes of a call.
struct Config<'t> {
    attributes: Attributes<'t>,
}

impl<'t> Config<'t> {
    /// Reads the attributes, in the place where JAX writes them now or in that of before.
    fn new(op: &Op<'t>) -> Result<Self, Error> {
        let both =
            ["backend_config", "mhlo.backend_config"].into_iter().filter_map(|name| op.attribute(name));
        let mut all = Attributes::new();
        for text in both.filter(|text| text.starts_with('{')) {
            all.extend(attributes(text)?);
        }
        Ok(Self { attributes: all })
    }

    /// Returns a letter that says what is computed. Letters are numbers: `uplo = 76 : ui8` is L.
    ///
    /// A call without it, or with another, would be computed in another form than it was written for.
    fn letter(&self, replay: &Replay<'_, '_>, op: &Op<'_>, name: &str, known: &str) -> Result<char, Error> {
        let found = self.attributes.get(name).copied();
        let letter = found.and_then(integer).and_then(|number| u8::try_from(number).ok()).map(char::from);
        letter.filter(|letter| known.contains(*letter)).ok_or_else(|| {
            let letters: Vec<_> =
                known.chars().map(|letter| format!("{} ({letter})", u32::from(letter))).collect();
            let problem =
                format!("found {name} = {}, expected {}", found.unwrap_or("nothing"), letters.join(" or "));
            replay.refused(op, problem, "export the program again, with a current version of the framework")
        })
    }

    /// Returns whether the lower triangle is read: cuSOLVER's calls say so, LAPACK's have a letter.
    fn is_lower(&self, replay: &Replay<'_, '_>, op: &Op<'_>) -> Result<bool, Error> {
        match self.attributes.get("lower") {
            Some(&"true") => Ok(true),
            Some(&"false") => Ok(false),
            _ => Ok(self.letter(replay, op, "uplo", "LU")? == 'L'),
        }
    }

    /// Returns the form of a system.
    fn form(&self, replay: &Replay<'_, '_>, op: &Op<'_>) -> Result<Form, Error> {
        Ok(Form {
            is_left: self.letter(replay, op, "side", "LR")? == 'L',
            is_lower: self.is_lower(replay, op)?,
            has_unit_diagonal: self.letter(replay, op, "diag", "NU")? == 'U',
            flip: match self.letter(replay, op, "trans_x", "NTC")? {
                'T' => Some(Flip::Transpose),
                'C' => Some(Flip::Adjoint),
                _ => None,
            },
        })
    }
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
            r#"{of_results} = "stablehlo.custom_call"({}) <{{call_target_name = "{target}", {config}}}>
                : ({}) -> {results} loc("solve.py":3:4)
            %r = "stablehlo.reshape"({last}) : ({first}) -> {first}"#,
            names.join(", "),
            operands.join(", ")
        );
        replayed(operands, &lines, first)
    }

    const SQUARE: &str = "tensor<3x3xf32>";

    /// Returns what becomes of a decomposition.
    fn cholesky(target: &str, config: &str) -> Result<String, String> {
        call(target, config, &[SQUARE], "(tensor<3x3xf32>, tensor<i32>)", SQUARE)
    }

    /// Returns what becomes of a system with these letters.
    fn solve(letters: &str) -> Result<String, String> {
        let config = format!("mhlo.backend_config = {{{letters}}}");
        call("lapack_strsm_ffi", &config, &[SQUARE, SQUARE], SQUARE, SQUARE)
    }

    #[test]
    fn letters_say_which_triangle_is_read() {
        let transposed = |mlir: String| {
            assert!(!mlir.contains("custom_call"), "{mlir}");
            lines_with(&mlir, "stablehlo.transpose").len()
        };
        // JAX wrote them into an attribute of its own before.
        for place in ["backend_config", "mhlo.backend_config"] {
            let of = |target: &str, config: &str| {
                transposed(cholesky(target, &format!("{place} = {{{config}}}")).unwrap())
            };
            assert_eq!(of("lapack_spotrf_ffi", "uplo = 76 : ui8"), 0);
            assert_eq!(of("lapack_spotrf_ffi", "uplo = 85 : ui8"), 2);
            assert_eq!(of("cusolver_potrf_ffi", "lower = true"), 0);
            assert_eq!(of("cusolver_potrf_ffi", "lower = false"), 2);
        }
        let letters = "diag = 78 : ui8, side = 76 : ui8, trans_x = 84 : ui8, uplo = 76 : ui8";
        assert_eq!(transposed(solve(letters).unwrap()), 1);
    }

    #[test]
    fn calls_without_their_letters_are_refused() {
        let error = cholesky("lapack_spotrf_ffi", "backend_config = \"\"").unwrap_err();
        assert_eq!(
            error,
            "main: custom_call at solve.py:3: found uplo = nothing, expected 76 (L) or 85 (U)\n\
             hint: export the program again, with a current version of the framework"
        );
        let error = cholesky("cusolver_potrf_ffi", "backend_config = {}").unwrap_err();
        assert!(error.contains("found uplo = nothing"), "{error}");
        let error = solve("diag = 78 : ui8, side = 76 : ui8, trans_x = 84 : ui8").unwrap_err();
        assert!(error.contains("found uplo = nothing"), "{error}");
        let error =
            solve("diag = 78 : ui8, side = 77 : ui8, trans_x = 84 : ui8, uplo = 76 : ui8").unwrap_err();
        assert!(error.contains("found side = 77 : ui8, expected 76 (L) or 82 (R)"), "{error}");
    }

    #[test]
    fn matrices_that_are_not_square_are_refused() {
        let wide = "tensor<3x4xf32>";
        let results = "(tensor<3x4xf32>, tensor<3xi32>, tensor<i32>)";
        assert_eq!(
            call("lapack_sgetrf_ffi", "backend_config = {}", &[wide], results, wide).unwrap_err(),
            "main: custom_call at solve.py:3: found a call of LAPACK, @lapack_sgetrf_ffi, expected ops that are compiled\n\
             hint: replace the decomposition: cholesky, lu, solve, inv, det and triangular solves are compiled, of square matrices"
        );
    }
}
