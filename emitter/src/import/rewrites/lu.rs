//! LU decomposition with exchanged rows.
//!
//! Blocks of columns go from left to right. Within one, rows are chosen column by column. What lies right of a block and below
//! it is then a product away.

use safetensors::Dtype;

use super::{
    matrices::{BLOCK, Matrices},
    triangular_solve::{substitute, triangle},
};
use crate::{
    graph::{Graph, Tensor},
    ops::Reduction,
};

/// A decomposition of square matrices.
pub(super) struct Lu {
    /// U, and below its diagonal L without its own, which is ones.
    pub(super) factors: Tensor,
    /// The row that each was exchanged with, in their order, `[batch, size]`.
    pub(super) pivots: Tensor,
    /// The row that each was at first, `[batch, size]`.
    pub(super) order: Tensor,
}

/// Decomposes square matrices, `[…, size, size]`.
pub(super) fn lu(g: &mut Graph, x: Tensor) -> Lu {
    let ty = g.type_of(x);
    let a = Matrices::new(g, x);
    let [batch, size, _] = a.shape(g);
    let width = size.min(BLOCK);
    let padded = size.next_multiple_of(width);
    let a = a.enlarged(g, padded);
    let pivots = g.full(0.0, Dtype::I32, &[batch, padded]);
    let order = g.iota(Dtype::I32, &[batch, padded, 1], 1);
    let [pivots, order] = [pivots, order].map(|numbers| repeated(numbers, &a));
    let found = Matrices::for_rows(g, padded, width, &[a, pivots, order], |g, start, state| {
        let [a, pivots, order] = state else { return Vec::new() };
        let panel = Panel::factor(g, a, width, pivots.parts()[0], start);
        let pivots = repeated(panel.pivots, a);
        let [rows, order] = [a, order].map(|rows| exchanged(g, rows, panel.order));
        vec![eliminated(g, &rows, &panel.columns, start), pivots, order]
    });
    let factors = found[0].cut(g, size, size).tensor(g, &ty);
    let [pivots, order] = [1, 2].map(|index| {
        let numbers = g.reshape(found[index].parts()[0], &[batch, padded]);
        g.slice_dimension(numbers, 1, 0, size)
    });
    Lu { factors, pivots, order }
}

/// Returns numbers as often as matrices have parts, because all state of a loop has the same number of them.
fn repeated(numbers: Tensor, like: &Matrices) -> Matrices {
    Matrices::from_state(&vec![numbers; like.parts().len()])
}

/// A block of columns.
struct Panel {
    columns: Matrices,
    /// The number of the row that each was, `[batch, rows]`.
    order: Tensor,
    pivots: Tensor,
}

impl Panel {
    fn factor(g: &mut Graph, a: &Matrices, width: usize, pivots: Tensor, start: Tensor) -> Self {
        let [batch, rows, _] = a.shape(g);
        let zero = g.scalar(0.0, Dtype::I32);
        let columns = a.window(g, [zero, start], [rows, width]);
        let order = g.iota(Dtype::I32, &[batch, rows], 1);
        let state = [columns, repeated(order, a), repeated(pivots, a)];
        let found = Matrices::for_rows(g, width, 1, &state, |g, column, state| {
            let [columns, order, pivots] = state else { return Vec::new() };
            let [next, order, pivots] =
                step(g, columns, [order.parts()[0], pivots.parts()[0]], [start, column]);
            vec![next, order, pivots]
        });
        Self { columns: found[0].clone(), order: found[1].parts()[0], pivots: found[2].parts()[0] }
    }
}

/// Chooses the row of a column, exchanges it, and eliminates the column in those below.
fn step(
    g: &mut Graph,
    columns: &Matrices,
    [order, pivots]: [Tensor; 2],
    [start, column]: [Tensor; 2],
) -> [Matrices; 3] {
    let [batch, rows, width] = columns.shape(g);
    let zero = g.scalar(0.0, Dtype::I32);
    let row = g.add(start, column);
    let index = g.iota(Dtype::I32, &[batch, rows], 1);
    let this = g.broadcast_like(row, index);
    let size = columns.window(g, [zero, column], [rows, 1]).magnitudes(g);
    let size = g.reshape(size, &[batch, rows]);
    let none = g.full(-1.0, columns.dtype(g), &[batch, rows]);
    let is_open = g.ge(index, this);
    let size = g.select(is_open, size, none);
    let chosen = g.argmax(size);
    let chosen_all = g.broadcast_in_dim(chosen, &[batch, rows], &[0]);
    let (is_this, is_chosen) = (g.eq(index, this), g.eq(index, chosen_all));
    // The order, with both exchanged.
    let at_this = g.dynamic_slice(order, &[zero, row], &[batch, 1]);
    let at_this = g.broadcast_in_dim(at_this, &[batch, rows], &[0, 1]);
    let nothing = g.full_like(order, 0);
    let at_chosen = g.select(is_chosen, order, nothing);
    let at_chosen = g.reduce_broadcast(at_chosen, Reduction::Sum, &[1]);
    let exchanged = g.select(is_this, at_chosen, order);
    let also_this = g.and(is_chosen, is_this);
    let only_chosen = g.xor(is_chosen, also_this);
    let order = g.select(only_chosen, at_this, exchanged);
    let number = g.reshape(chosen, &[batch, 1]);
    let pivots = g.dynamic_update_slice(pivots, number, &[zero, row]);
    // The columns likewise.
    let wide = |g: &mut Graph, mask: Tensor| g.broadcast_in_dim(mask, &[batch, rows, width], &[0, 1]);
    let (is_this, only_chosen, is_chosen) = (wide(g, is_this), wide(g, only_chosen), wide(g, is_chosen));
    let at_this = columns.window(g, [row, zero], [1, width]);
    let pivot_row = columns.masked(g, is_chosen).map(|part| {
        let sum = g.reduce(part, Reduction::Sum, &[1]);
        g.reshape(sum, &[batch, 1, width])
    });
    let spread = |g: &mut Graph, row: &Matrices| {
        row.map(|part| g.broadcast_in_dim(part, &[batch, rows, width], &[0, 1, 2]))
    };
    let (this_all, pivot_all) = (spread(g, &at_this), spread(g, &pivot_row));
    let columns = pivot_all.select(g, is_this, columns);
    let columns = this_all.select(g, only_chosen, &columns);
    let next = eliminate_column(g, &columns, &pivot_row, [row, column]);
    let (order, pivots) = (repeated(order, &next), repeated(pivots, &next));
    [next, order, pivots]
}

/// Divides a column below a row by the pivot, and subtracts its products with the pivot's row from the columns after it.
fn eliminate_column(
    g: &mut Graph,
    columns: &Matrices,
    pivot_row: &Matrices,
    [row, column]: [Tensor; 2],
) -> Matrices {
    let [batch, rows, width] = columns.shape(g);
    let zero = g.scalar(0.0, Dtype::I32);
    let pivot = pivot_row.window(g, [zero, column], [1, 1]);
    let old = columns.window(g, [zero, column], [rows, 1]);
    let index = g.iota(Dtype::I32, &[batch, rows, 1], 1);
    let this = g.broadcast_like(row, index);
    let is_below = g.gt(index, this);
    // A pivot of zero divides nothing.
    let size = pivot.magnitudes(g);
    let none = g.full_like(size, 0);
    let has_pivot = g.gt(size, none);
    let has_pivot = g.broadcast_in_dim(has_pivot, &[batch, rows, 1], &[0, 1, 2]);
    let divided = old.divide(g, &pivot).select(g, has_pivot, &old);
    let lower = divided.masked(g, is_below);
    let index = g.iota(Dtype::I32, &[batch, 1, width], 2);
    let this = g.broadcast_like(column, index);
    let is_right = g.gt(index, this);
    let right = pivot_row.masked(g, is_right);
    let products = lower.product(g, &right, None);
    let column_next = divided.select(g, is_below, &old);
    columns.subtract(g, &products).updated(g, &column_next, [zero, column])
}

/// Returns matrices with their rows in another order.
fn exchanged(g: &mut Graph, a: &Matrices, order: Tensor) -> Matrices {
    let [batch, rows, columns] = a.shape(g);
    let first = g.iota(Dtype::I32, &[batch, rows], 0);
    let scale = g.full_like(first, rows);
    let first = g.multiply(first, scale);
    let order = g.add(order, first);
    let order = g.reshape(order, &[batch * rows]);
    a.map(|part| {
        let part = g.reshape(part, &[batch * rows, columns]);
        let part = g.take_rows(part, order);
        g.reshape(part, &[batch, rows, columns])
    })
}

/// Returns matrices with a block of columns replaced, and eliminated in the columns right of it.
fn eliminated(g: &mut Graph, a: &Matrices, panel: &Matrices, start: Tensor) -> Matrices {
    let [batch, rows, columns] = a.shape(g);
    let width = panel.shape(g)[2];
    if width == columns {
        return panel.clone();
    }
    let zero = g.scalar(0.0, Dtype::I32);
    let block = g.full_like(start, width);
    let end = g.add(start, block);
    let a = a.updated(g, panel, [zero, start]);
    let diagonal = panel.window(g, [start, zero], [width, width]);
    let diagonal = triangle(g, &diagonal, true, true);
    let old = a.window(g, [start, zero], [width, columns]);
    let solved = substitute(g, &diagonal, &old, true);
    let after = |g: &mut Graph, shape: [usize; 3], dimension: usize| {
        let index = g.iota(Dtype::I32, &shape, dimension);
        let end = g.broadcast_like(end, index);
        g.ge(index, end)
    };
    let is_right = after(g, [batch, width, columns], 2);
    let right = solved.masked(g, is_right);
    let is_below = after(g, [batch, rows, width], 1);
    let products = panel.masked(g, is_below).product(g, &right, None);
    let next = solved.select(g, is_right, &old);
    a.subtract(g, &products).updated(g, &next, [start, zero])
}
