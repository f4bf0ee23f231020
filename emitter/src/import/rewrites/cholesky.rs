//! Cholesky decomposition, which iree-compile does not have.
//!
//! Blocks of columns are computed from left to right: from what is left of them once the product of the columns so far is
//! subtracted. The block on the diagonal is decomposed column by column.

use safetensors::Dtype;

use super::{
    super::ast::Op,
    matrices::{BLOCK, Flip, Matrices},
};
use crate::graph::{Graph, Tensor};

/// Returns what stands for `cholesky`.
pub(super) fn rewrite(g: &mut Graph, op: &Op<'_>, x: Tensor) -> Tensor {
    cholesky(g, x, op.attribute("lower") == Some("true"))
}

/// Returns the factors of matrices, of which one triangle is read: `L · Lᴴ` if that is the lower one, otherwise `Uᴴ · U`. The
/// other triangle of a factor is zero. Where a matrix is not positive definite, its factor has NaN.
pub(super) fn cholesky(g: &mut Graph, x: Tensor, is_lower: bool) -> Tensor {
    let ty = g.type_of(x);
    if ty.elements() == 0 {
        return x;
    }
    let mut a = Matrices::new(g, x);
    if !is_lower {
        a = a.flip(g, Flip::Adjoint);
    }
    let size = a.shape(g)[1];
    let mut l = if size <= BLOCK { factor(g, &a).0 } else { blocked(g, &a) };
    if !is_lower {
        l = l.flip(g, Flip::Adjoint);
    }
    l.tensor(g, &ty)
}

/// Decomposes large matrices.
fn blocked(g: &mut Graph, a: &Matrices) -> Matrices {
    let [batch, size, _] = a.shape(g);
    let padded = size.next_multiple_of(BLOCK);
    let a = a.enlarged(g, padded);
    let zeros = a.zeros(g, [batch, padded, padded]);
    let l = Matrices::for_rows(g, padded, BLOCK, &[zeros], |g, start, state| {
        let [l] = state else { return Vec::new() };
        let zero = g.scalar(0.0, Dtype::I32);
        let rows = l.window(g, [start, zero], [BLOCK, padded]);
        let done = l.product(g, &rows, Some(Flip::Adjoint));
        let panel = a.window(g, [zero, start], [padded, BLOCK]).subtract(g, &done);
        let diagonal = panel.window(g, [start, zero], [BLOCK, BLOCK]);
        let (factor, inverse) = factor(g, &diagonal);
        let columns = panel.product(g, &inverse, Some(Flip::Adjoint));
        let row = g.iota(Dtype::I32, &[batch, padded, BLOCK], 1);
        let first = g.broadcast_like(start, row);
        let is_below = g.ge(row, first);
        let columns = columns.masked(g, is_below).updated(g, &factor, [start, zero]);
        vec![l.updated(g, &columns, [zero, start])]
    });
    l[0].cut(g, size, size)
}

/// Returns the lower factors of small matrices, and their inverses.
fn factor(g: &mut Graph, a: &Matrices) -> (Matrices, Matrices) {
    let [batch, size, _] = a.shape(g);
    let zeros = a.zeros(g, [batch, size, size]);
    let results = Matrices::for_rows(g, size, 1, &[zeros.clone(), zeros], |g, at, state| {
        let [l, inverse] = state else { return Vec::new() };
        let zero = g.scalar(0.0, Dtype::I32);
        let row = l.window(g, [at, zero], [1, size]);
        let done = l.product(g, &row, Some(Flip::Adjoint));
        let column = a.window(g, [zero, at], [size, 1]).subtract(g, &done);
        let mut pivot = column.window(g, [at, zero], [1, 1]);
        pivot = pivot.real(g, Graph::sqrt);
        let index = g.iota(Dtype::I32, &[batch, size, 1], 1);
        let at_all = g.broadcast_like(at, index);
        let (is_below, is_pivot) = (g.gt(index, at_all), g.eq(index, at_all));
        let pivots = g.broadcast_in_dim(pivot.parts()[0], &[batch, size, 1], &[0, 1, 2]);
        let next = column.divide(g, &pivot).masked(g, is_below).with_real(g, is_pivot, pivots);
        let l_next = l.updated(g, &next, [zero, at]);
        // A row of the inverse follows from the rows above it.
        let known = row.product(g, inverse, None);
        let index = g.iota(Dtype::I32, &[batch, 1, size], 2);
        let at_all = g.broadcast_like(at, index);
        let is_pivot = g.eq(index, at_all);
        let (one, zeros) = (g.full(1.0, a.dtype(g), &[batch, 1, size]), a.zeros(g, [batch, 1, size]));
        let unit = zeros.with_real(g, is_pivot, one);
        let next = unit.subtract(g, &known).divide(g, &pivot);
        vec![l_next, inverse.updated(g, &next, [at, zero])]
    });
    (results[0].clone(), results[1].clone())
}

#[cfg(test)]
mod tests {
    use crate::import::replayed::replayed;

    fn cholesky(ty: &str, is_lower: bool) -> String {
        let line = format!(r#"%r = "stablehlo.cholesky"(%0) <{{lower = {is_lower}}}> : ({ty}) -> {ty}"#);
        replayed(&[ty], &line, ty).unwrap()
    }

    #[test]
    fn code_does_not_grow_with_matrices() {
        let lines = |size: usize| cholesky(&format!("tensor<2x{size}x{size}xf32>"), true).lines().count();
        assert_eq!(lines(33), lines(3000));
        assert!(lines(3) < lines(33));
        assert!(!cholesky("tensor<33x33xf64>", false).contains("cholesky"));
    }

    #[test]
    fn complex_matrices_are_two_real_ones() {
        let mlir = cholesky("tensor<40x40xcomplex<f32>>", true);
        let complex: Vec<_> = mlir.lines().filter(|line| line.contains("complex<f32>")).collect();
        assert_eq!(complex.len(), 5, "{complex:#?}");
    }
}
