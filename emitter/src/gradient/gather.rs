//! Gradients of gathers and scatters.

use safetensors::Dtype;

use super::step::Step;
use crate::{
    graph::{Graph, Tensor},
    mlir::attributes::{field, field_sizes, size},
    ops::{GatherDimensions, Reduction, ScatterDimensions},
};

/// The dimension numbers that a gather and the scatter that undoes it share.
struct Numbers {
    window: Vec<usize>,
    dropped: Vec<usize>,
    map: Vec<usize>,
    index_vector: usize,
}

impl Numbers {
    /// Reads the numbers of a gather or scatter without batch dimensions.
    fn read(text: &str, [window, dropped, map]: [&str; 3]) -> Option<Self> {
        let batch = ["operand_batching_dims", "input_batching_dims"];
        batch.iter().all(|name| field_sizes(text, name).is_empty()).then(|| Self {
            window: field_sizes(text, window),
            dropped: field_sizes(text, dropped),
            map: field_sizes(text, map),
            index_vector: field(text, "index_vector_dim").and_then(size).unwrap_or_default(),
        })
    }

    fn gather(&self) -> GatherDimensions<'_> {
        GatherDimensions {
            offset: &self.window,
            collapsed_slice: &self.dropped,
            start_index_map: &self.map,
            index_vector: self.index_vector,
        }
    }

    fn scatter(&self) -> ScatterDimensions<'_> {
        ScatterDimensions {
            update_window: &self.window,
            inserted_window: &self.dropped,
            scatter_to_operand: &self.map,
            index_vector: self.index_vector,
        }
    }

    /// Returns the largest index at which a window of `sizes` is inside `shape`, in the shape of `indices`.
    fn limits(&self, g: &mut Graph, indices: Tensor, shape: &[usize], sizes: &[usize]) -> Tensor {
        let limits: Vec<_> = self.map.iter().map(|&d| shape[d] - sizes[d]).collect();
        let at = g.type_of(indices);
        let number = |g: &mut Graph, limit: usize| {
            #[expect(clippy::cast_precision_loss, reason = "sizes of tensors are below 2^52")]
            let limit = g.scalar(limit as f64, at.dtype);
            limit
        };
        if self.index_vector >= at.rank() {
            let limit = number(g, limits.first().copied().unwrap_or_default());
            return g.broadcast_like(limit, indices);
        }
        let parts: Vec<_> = limits
            .into_iter()
            .map(|limit| {
                let limit = number(g, limit);
                g.reshape(limit, &[1])
            })
            .collect();
        let vector = g.concatenate(&parts, 0);
        g.broadcast_in_dim(vector, &at.shape, &[self.index_vector])
    }
}

/// Adds the gradients of the operands of a gather or a scatter.
pub(super) fn pull(g: &mut Graph, step: &mut Step<'_>) -> bool {
    match step.name() {
        "stablehlo.gather" => gather(g, step),
        "stablehlo.scatter" => scatter(g, step),
        _ => false,
    }
}

fn gather(g: &mut Graph, step: &mut Step<'_>) -> bool {
    let names = ["offset_dims", "collapsed_slice_dims", "start_index_map"];
    let Some(numbers) = Numbers::read(step.attribute("dimension_numbers"), names) else { return false };
    let (x, indices, d) = (step.operand(0), step.operand(1), step.gradient());
    let (shape, sizes) = (g.shape(x).to_vec(), step.integers("slice_sizes"));
    step.send(g, 0, |g| {
        // A gather clamps indices, a scatter drops what is outside.
        let limits = numbers.limits(g, indices, &shape, &sizes);
        let zero = g.zeros_like(indices);
        let clamped = g.clamp(zero, indices, limits);
        let zeros = g.zeros_like(x);
        g.scatter(zeros, clamped, d, &numbers.scatter(), Graph::add)
    });
    true
}

/// How a scatter combines old and new elements.
#[derive(PartialEq)]
enum Combine {
    Add,
    Replace,
}

fn scatter(g: &mut Graph, step: &mut Step<'_>) -> bool {
    let names = ["update_window_dims", "inserted_window_dims", "scatter_dims_to_operand_dims"];
    let Some(numbers) = Numbers::read(step.attribute("scatter_dimension_numbers"), names) else {
        return false;
    };
    let Some(region) = step.op.regions.first().filter(|_| step.op.operands.len() == 3) else { return false };
    let combine = match region.ops.as_slice() {
        [] if region.results.first() == region.arguments.get(1) => Combine::Replace,
        _ if Reduction::of(region) == Some(Reduction::Sum) => Combine::Add,
        _ => return false,
    };
    let (x, indices, updates, d) = (step.operand(0), step.operand(1), step.operand(2), step.gradient());
    let window = window_sizes(g, x, updates, &numbers);
    let shape = g.shape(x).to_vec();
    step.send(g, 0, |g| match combine {
        Combine::Add => d,
        Combine::Replace => {
            let zeros = g.zeros_like(updates);
            g.scatter(d, indices, zeros, &numbers.scatter(), |_, _, new| new)
        }
    });
    step.send(g, 2, |g| {
        let gathered = g.gather(d, indices, &numbers.gather(), &window);
        let limits = numbers.limits(g, indices, &shape, &window);
        let zero = g.zeros_like(indices);
        let (begins, ends) = (g.ge(indices, zero), g.le(indices, limits));
        let mut inside = g.and(begins, ends);
        if numbers.index_vector < g.shape(inside).len() {
            inside = g.reduce(inside, Reduction::And, &[numbers.index_vector]);
        }
        let updates_shape = g.shape(updates).to_vec();
        let batch: Vec<_> = (0..updates_shape.len()).filter(|d| !numbers.window.contains(d)).collect();
        let mut is_used = g.broadcast_in_dim(inside, &updates_shape, &batch);
        if combine == Combine::Replace {
            let is_last = is_last(g, [x, indices, updates], &numbers, &window);
            is_used = g.and(is_used, is_last);
        }
        let zeros = g.zeros_like(updates);
        g.select(is_used, gathered, zeros)
    });
    true
}

/// Returns which elements of updates are left of those that replace the same one: those whose numbers are, if they replace too.
fn is_last(g: &mut Graph, [x, indices, updates]: [Tensor; 3], numbers: &Numbers, window: &[usize]) -> Tensor {
    let (shape, replaced) = (g.shape(x).to_vec(), g.shape(updates).to_vec());
    let count: usize = replaced.iter().product();
    let counted = g.iota(Dtype::I32, &[count], 0);
    let counted = g.reshape(counted, &replaced);
    let none = g.full(-1.0, Dtype::I32, &shape);
    let scattered = g.scatter(none, indices, counted, &numbers.scatter(), |_, _, new| new);
    let left = g.gather(scattered, indices, &numbers.gather(), window);
    g.eq(left, counted)
}

/// Returns the size of a scatter's window in each dimension of `x`.
fn window_sizes(g: &Graph, x: Tensor, updates: Tensor, numbers: &Numbers) -> Vec<usize> {
    let mut sizes = numbers.window.iter().map(|&d| g.shape(updates)[d]);
    let rank = g.shape(x).len();
    (0..rank).map(|d| if numbers.dropped.contains(&d) { 1 } else { sizes.next().unwrap_or(1) }).collect()
}
