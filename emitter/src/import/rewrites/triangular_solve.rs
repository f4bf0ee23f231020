//! Systems of equations with triangular matrices, which iree-compile does not have.
//!
//! Rows of the solution are computed from top to bottom, or from bottom to top for upper triangles. Large matrices have blocks on the diagonal, which are inverted all
//! together. What the inverse leaves as error, a second product removes.

use safetensors::Dtype;

use super::{
    super::{ast::Op, attributes::word},
    matrices::{BLOCK, Flip, Matrices},
};
use crate::{
    graph::{Graph, Tensor},
    ops::Reduction,
};

/// What a system is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Form {
    /// Whether the matrix stands left of the unknowns.
    pub(super) is_left: bool,
    /// Whether the lower triangle of the matrix is read.
    pub(super) is_lower: bool,
    /// Whether its diagonal is ones, whatever the tensor has.
    pub(super) has_unit_diagonal: bool,
    /// What is done to the matrix.
    pub(super) flip: Option<Flip>,
}

/// Returns what stands for `triangular_solve`.
pub(super) fn rewrite(g: &mut Graph, op: &Op<'_>, operands: &[Tensor]) -> Option<Tensor> {
    let &[a, b] = operands else { return None };
    let is = |name| op.attribute(name) == Some("true");
    let form = Form {
        is_left: is("left_side"),
        is_lower: is("lower"),
        has_unit_diagonal: is("unit_diagonal"),
        flip: match op.attribute("transpose_a").and_then(word) {
            Some("TRANSPOSE") => Some(Flip::Transpose),
            Some("ADJOINT") => Some(Flip::Adjoint),
            _ => None,
        },
    };
    Some(triangular_solve(g, a, b, form))
}

/// Returns `x` with `op(a) · x = b`, or `x · op(a) = b`.
pub(super) fn triangular_solve(g: &mut Graph, a: Tensor, b: Tensor, form: Form) -> Tensor {
    let ty = g.type_of(b);
    if ty.elements() == 0 {
        return b;
    }
    let (mut a, mut b) = (Matrices::new(g, a), Matrices::new(g, b));
    let Form { is_left, mut is_lower, has_unit_diagonal, flip } = form;
    if !is_left {
        b = b.flip(g, Flip::Transpose);
    }
    if flip == Some(Flip::Adjoint) {
        a = a.conjugate(g);
    }
    if flip.is_some() == is_left {
        a = a.flip(g, Flip::Transpose);
        is_lower = !is_lower;
    }
    let size = a.shape(g)[1];
    a = triangle(g, &a, is_lower, has_unit_diagonal);
    let mut x = if size <= BLOCK { substitute(g, &a, &b, is_lower) } else { blocked(g, &a, &b, is_lower) };
    if !is_left {
        x = x.flip(g, Flip::Transpose);
    }
    x.tensor(g, &ty)
}

/// Returns a triangle of matrices, with zeros elsewhere.
pub(super) fn triangle(g: &mut Graph, a: &Matrices, is_lower: bool, has_unit_diagonal: bool) -> Matrices {
    let shape = a.shape(g);
    let (row, column) = (g.iota(Dtype::I32, &shape, 1), g.iota(Dtype::I32, &shape, 2));
    let is_inside = if is_lower { g.ge(row, column) } else { g.le(row, column) };
    let a = a.masked(g, is_inside);
    if !has_unit_diagonal {
        return a;
    }
    let (is_diagonal, one) = (g.eq(row, column), g.full(1.0, a.dtype(g), &shape));
    a.with_real(g, is_diagonal, one)
}

/// Returns the row that a loop has come to, which begins with the first row or, for upper triangles, with the last.
fn reached(g: &mut Graph, at: Tensor, last: usize, is_lower: bool) -> Tensor {
    if is_lower {
        return at;
    }
    let last = g.full_like(at, last);
    g.subtract(last, at)
}

/// Solves systems with small triangles, row by row.
pub(super) fn substitute(g: &mut Graph, a: &Matrices, b: &Matrices, is_lower: bool) -> Matrices {
    let ([_, size, _], [batch, _, columns]) = (a.shape(g), b.shape(g));
    let zeros = a.zeros(g, [batch, size, columns]);
    let x = Matrices::for_rows(g, size, 1, &[zeros], |g, at, state| {
        let [x] = state else { return Vec::new() };
        let at = reached(g, at, size - 1, is_lower);
        let zero = g.scalar(0.0, Dtype::I32);
        let known = a.window(g, [at, zero], [1, size]).product(g, x, None);
        let rest = b.window(g, [at, zero], [1, columns]).subtract(g, &known);
        let pivot = a.window(g, [at, at], [1, 1]);
        let next = rest.divide(g, &pivot);
        vec![x.updated(g, &next, [at, zero])]
    });
    x[0].clone()
}

/// Solves systems with large triangles.
fn blocked(g: &mut Graph, a: &Matrices, b: &Matrices, is_lower: bool) -> Matrices {
    let ([batch, size, _], [.., columns]) = (a.shape(g), b.shape(g));
    let padded = size.next_multiple_of(BLOCK);
    let a = a.enlarged(g, padded);
    let b = b.map(|part| g.pad_end(part, 1, padded));
    let inverses = inverses(g, &a, is_lower);
    let zeros = a.zeros(g, [batch, padded, columns]);
    let x = Matrices::for_rows(g, padded, BLOCK, &[zeros], |g, start, state| {
        let [x] = state else { return Vec::new() };
        let start = reached(g, start, padded - BLOCK, is_lower);
        let zero = g.scalar(0.0, Dtype::I32);
        let known = a.window(g, [start, zero], [BLOCK, padded]).product(g, x, None);
        let rest = b.window(g, [start, zero], [BLOCK, columns]).subtract(g, &known);
        let inverse = inverses.window(g, [start, zero], [BLOCK, BLOCK]);
        let first = inverse.product(g, &rest, None);
        let product = a.window(g, [start, start], [BLOCK, BLOCK]).product(g, &first, None);
        let error = rest.subtract(g, &product);
        let change = inverse.product(g, &error, None);
        let next = first.add(g, &change);
        vec![x.updated(g, &next, [start, zero])]
    });
    x[0].cut(g, size, columns)
}

/// Returns the inverses of the blocks on the diagonal, one below the other.
fn inverses(g: &mut Graph, a: &Matrices, is_lower: bool) -> Matrices {
    let [batch, size, _] = a.shape(g);
    let count = size / BLOCK;
    let shape = [batch, count, BLOCK, count, BLOCK];
    let (row, column) = (g.iota(Dtype::I32, &shape, 1), g.iota(Dtype::I32, &shape, 3));
    let is_diagonal = g.eq(row, column);
    let zeros = g.full(0.0, a.dtype(g), &shape);
    let blocks = a.map(|part| {
        let part = g.reshape(part, &shape);
        let part = g.select(is_diagonal, part, zeros);
        let part = g.reduce(part, Reduction::Sum, &[3]);
        g.reshape(part, &[batch * count, BLOCK, BLOCK])
    });
    let shape = [batch * count, BLOCK, BLOCK];
    let (row, column) = (g.iota(Dtype::I32, &shape, 1), g.iota(Dtype::I32, &shape, 2));
    let (is_diagonal, one) = (g.eq(row, column), g.full(1.0, a.dtype(g), &shape));
    let identity = a.zeros(g, shape).with_real(g, is_diagonal, one);
    substitute(g, &blocks, &identity, is_lower).map(|part| g.reshape(part, &[batch, size, BLOCK]))
}

#[cfg(test)]
mod tests {
    use crate::import::replayed::{lines_with, replayed};

    fn solve(size: usize, is_left: bool, transpose: &str) -> String {
        let (a, b) = (format!("tensor<{size}x{size}xf32>"), format!("tensor<{size}x{size}xf32>"));
        let line = format!(
            r#"%r = "stablehlo.triangular_solve"(%0, %1) <{{left_side = {is_left}, lower = true,
                transpose_a = #stablehlo<transpose {transpose}>, unit_diagonal = false}}> : ({a}, {b}) -> {b}"#
        );
        replayed(&[&a, &b], &line, &b).unwrap()
    }

    #[test]
    fn a_matrix_is_transposed_where_its_rows_are_needed() {
        let transposed = |is_left, transpose| {
            let mlir = solve(3, is_left, transpose);
            lines_with(&mlir, "stablehlo.transpose").len()
        };
        assert_eq!(transposed(true, "NO_TRANSPOSE"), 0);
        assert_eq!(transposed(true, "ADJOINT"), 1);
        assert_eq!(transposed(false, "NO_TRANSPOSE"), 3);
        assert_eq!(transposed(false, "TRANSPOSE"), 2);
    }

    #[test]
    fn code_does_not_grow_with_matrices() {
        let lines = |size| solve(size, true, "TRANSPOSE").lines().count();
        assert_eq!(lines(33), lines(3000));
    }
}
