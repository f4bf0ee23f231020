//! Gradients of decompositions and solvers of linear equations.

use safetensors::Dtype;

use super::step::Step;
use crate::{
    graph::{Graph, Tensor},
    ops::TriangularSolve,
    types::is_complex,
};

/// Adds the gradients of the operands of an op of matrices.
pub(super) fn pull(g: &mut Graph, step: &mut Step<'_>) -> bool {
    if is_complex(g.dtype(step.operand(0))) {
        return false;
    }
    match step.name() {
        "stablehlo.cholesky" => cholesky(g, step),
        "stablehlo.triangular_solve" => triangular_solve(g, step),
        _ => return false,
    }
    true
}

/// The part of a matrix that is kept.
#[derive(Clone, Copy, PartialEq)]
enum Triangle {
    Lower,
    Upper,
}

fn cholesky(g: &mut Graph, step: &mut Step<'_>) {
    let lower = step.attribute("lower") == "true";
    let (z, d) = (step.result(), step.gradient());
    step.send(g, 0, |g| {
        let [factor, d] = if lower { [z, d] } else { [z, d].map(|upper| transposed(g, upper)) };
        let [factor, d] = [factor, d].map(|matrix| triangle(g, matrix, Triangle::Lower, 1.0));
        let left = transposed(g, factor);
        let product = g.matmul(left, d);
        let inner = triangle(g, product, Triangle::Lower, 0.5);
        let options = TriangularSolve { left_side: true, lower: true, unit_diagonal: false, transpose: true };
        let outer = g.triangular_solve(factor, inner, options);
        let options = TriangularSolve { left_side: false, transpose: false, ..options };
        let gradient = g.triangular_solve(factor, outer, options);
        // The matrix is symmetric, so both of its triangles have a half.
        let mirrored = transposed(g, gradient);
        let sum = g.add(gradient, mirrored);
        g.scale(sum, 0.5)
    });
}

fn triangular_solve(g: &mut Graph, step: &mut Step<'_>) {
    let is_true = |name| step.attribute(name) == "true";
    let options = TriangularSolve {
        left_side: is_true("left_side"),
        lower: is_true("lower"),
        unit_diagonal: is_true("unit_diagonal"),
        transpose: !step.attribute("transpose_a").contains("NO_TRANSPOSE"),
    };
    let (a, x, d) = (step.operand(0), step.result(), step.gradient());
    let back = g.triangular_solve(a, d, TriangularSolve { transpose: !options.transpose, ..options });
    step.send(g, 1, |_| back);
    step.send(g, 0, |g| {
        // For `A · x = b` the gradient of `A` is `-back · xᵀ`, for `x · A = b` it is `-xᵀ · back`.
        let (first, second) = if options.left_side { (back, x) } else { (x, back) };
        let product = if options.left_side {
            let second = transposed(g, second);
            g.matmul(first, second)
        } else {
            let first = transposed(g, first);
            g.matmul(first, second)
        };
        let product = if options.transpose { transposed(g, product) } else { product };
        let kept = if options.lower { Triangle::Lower } else { Triangle::Upper };
        let diagonal = if options.unit_diagonal { 0.0 } else { 1.0 };
        let gradient = triangle(g, product, kept, diagonal);
        g.negate(gradient)
    });
}

/// Returns one triangle of matrices, with the diagonal times a factor.
fn triangle(g: &mut Graph, x: Tensor, kept: Triangle, diagonal: f64) -> Tensor {
    let ty = g.type_of(x);
    let Some(column) = ty.rank().checked_sub(1) else { return x };
    let rows = g.iota(Dtype::I32, &ty.shape, column - 1);
    let columns = g.iota(Dtype::I32, &ty.shape, column);
    let is_diagonal = g.eq(rows, columns);
    let is_kept = if kept == Triangle::Lower { g.gt(rows, columns) } else { g.lt(rows, columns) };
    let zero = g.zeros_like(x);
    let scaled = if diagonal == 0.0 { zero } else { g.scale(x, diagonal) };
    let rest = g.select(is_kept, x, zero);
    g.select(is_diagonal, scaled, rest)
}

/// Swaps the last two dimensions.
fn transposed(g: &mut Graph, x: Tensor) -> Tensor {
    let rank = g.shape(x).len();
    let mut order: Vec<_> = (0..rank).collect();
    order.swap(rank - 1, rank - 2);
    g.transpose(x, &order)
}
