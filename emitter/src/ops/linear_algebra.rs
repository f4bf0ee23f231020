//! Decompositions and solvers of linear equations.

use crate::{
    graph::{Graph, Tensor},
    types::{TensorType, is_complex, is_float},
};

/// How [`Graph::triangular_solve`] reads its matrix, `A`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TriangularSolve {
    /// Whether `A · x = b` is solved, and otherwise `x · A = b`.
    pub left_side: bool,
    /// Whether the lower triangle of `A` is read, and otherwise the upper one.
    pub lower: bool,
    /// Whether the diagonal is taken to be ones, without reading it.
    pub unit_diagonal: bool,
    /// Whether `A` is transposed, after its triangle was read.
    pub transpose: bool,
}

impl Graph {
    /// Returns the Cholesky decomposition of symmetric matrices `[…, n, n]`: the lower factor, or the upper one. The other
    /// triangle of the result has no meaning.
    pub fn cholesky(&mut self, a: Tensor, lower: bool) -> Tensor {
        const OP: &str = "stablehlo.cholesky";
        let ty = self.type_of(a);
        if !Self::poisoned(&[a]) && !is_square(&ty) {
            return self.fail(OP, format!("found {ty}, expected square matrices of floats"));
        }
        self.op(OP, &[a], vec![("lower", lower.to_string())], ty)
    }

    /// Solves linear equations whose matrices are triangular: `A` is `[…, n, n]`, `b` and the result `[…, n, m]`, or
    /// `[…, m, n]` from the right side.
    pub fn triangular_solve(&mut self, a: Tensor, b: Tensor, options: TriangularSolve) -> Tensor {
        const OP: &str = "stablehlo.triangular_solve";
        let (matrix, right) = (self.type_of(a), self.type_of(b));
        if Self::poisoned(&[a, b]) {
            return Self::poison();
        }
        let TriangularSolve { left_side, lower, unit_diagonal, transpose } = options;
        let rank = right.rank();
        let fits = is_square(&matrix) && matrix.dtype == right.dtype && matrix.rank() == rank && {
            let solved = if left_side { rank - 2 } else { rank - 1 };
            matrix.shape[..rank - 2] == right.shape[..rank - 2]
                && matrix.shape[rank - 1] == right.shape[solved]
        };
        if !fits {
            return self.fail(OP, format!("found {matrix} and {right}, expected them to fit {options:?}"));
        }
        let transpose = if transpose { "TRANSPOSE" } else { "NO_TRANSPOSE" };
        let attributes = vec![
            ("left_side", left_side.to_string()),
            ("lower", lower.to_string()),
            ("unit_diagonal", unit_diagonal.to_string()),
            ("transpose_a", format!("#stablehlo<transpose {transpose}>")),
        ];
        self.op(OP, &[a, b], attributes, right)
    }
}

/// Returns whether tensors of a type are square matrices of numbers.
fn is_square(ty: &TensorType) -> bool {
    let [.., rows, columns] = *ty.shape else { return false };
    rows == columns && (is_float(ty.dtype) || is_complex(ty.dtype))
}

#[cfg(test)]
mod tests {
    use safetensors::Dtype;

    use super::*;

    #[test]
    fn matrices_must_be_square_and_fit() {
        let error = |build: fn(&mut Graph, Tensor, Tensor)| {
            let mut g = Graph::new();
            let (a, b) = (g.argument(Dtype::F32, &[3, 3]), g.argument(Dtype::F32, &[3, 2]));
            build(&mut g, a, b);
            g.finish("f", &[]).map_or_else(|error| error.to_string(), |_| "accepted".to_owned())
        };
        let left = TriangularSolve { left_side: true, lower: true, unit_diagonal: false, transpose: false };
        assert_eq!(
            error(|g, _, b| {
                g.cholesky(b, true);
            }),
            "graph: stablehlo.cholesky: found tensor<3x2xf32>, expected square matrices of floats"
        );
        let solve = |options: TriangularSolve| {
            let mut g = Graph::new();
            let (a, b) = (g.argument(Dtype::F32, &[3, 3]), g.argument(Dtype::F32, &[3, 2]));
            g.triangular_solve(a, b, options);
            g.finish("f", &[]).is_ok()
        };
        assert!(solve(left));
        assert!(!solve(TriangularSolve { left_side: false, ..left }));
    }
}
