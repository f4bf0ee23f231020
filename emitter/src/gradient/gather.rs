//! Gradients of gathers and scatters.

use safetensors::Dtype;

use super::step::Step;
use crate::{
    graph::{Graph, Tensor},
    mlir::attributes::{field, field_sizes, size},
    ops::{GatherDimensions, Reduction, ScatterDimensions},
    types::is_signed,
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

    /// Returns for each component of `indices` a number of its dimension, in their shape and type.
    fn of_components(&self, g: &mut Graph, indices: Tensor, number: impl Fn(usize) -> usize) -> Tensor {
        let numbers: Vec<_> = self.map.iter().map(|&d| number(d)).collect();
        let at = g.type_of(indices);
        let scalar = |g: &mut Graph, number: usize| {
            #[expect(clippy::cast_precision_loss, reason = "sizes of tensors are below 2^52")]
            let number = g.scalar(number as f64, at.dtype);
            number
        };
        if self.index_vector >= at.rank() {
            let number = scalar(g, numbers.first().copied().unwrap_or_default());
            return g.broadcast_like(number, indices);
        }
        let parts: Vec<_> = numbers
            .into_iter()
            .map(|number| {
                let number = scalar(g, number);
                g.reshape(number, &[1])
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
        let limits = numbers.of_components(g, indices, |d| shape[d] - sizes[d]);
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
    let places = Places { numbers: &numbers, indices, window, updates: g.shape(updates).to_vec() };
    step.send(g, 0, |g| match combine {
        Combine::Add => d,
        Combine::Replace => {
            let zeros = g.zeros_like(updates);
            g.scatter(d, indices, zeros, &numbers.scatter(), |_, _, new| new)
        }
    });
    step.send(g, 2, |g| {
        let zeros = g.zeros_like(updates);
        if [x, updates].iter().any(|&tensor| g.type_of(tensor).elements() == 0) {
            return zeros;
        }
        let gradient = places.read(g, d, 0.0);
        if combine == Combine::Add {
            return gradient;
        }
        let is_last = is_last(g, x, &places);
        g.select(is_last, gradient, zeros)
    });
    true
}

/// Returns which updates are left of those that replace the same element: those whose numbers are, if they replace too.
fn is_last(g: &mut Graph, x: Tensor, places: &Places<'_>) -> Tensor {
    let shape = g.shape(x).to_vec();
    let count: usize = places.updates.iter().product();
    let counted = g.iota(Dtype::I32, &[count], 0);
    let counted = g.reshape(counted, &places.updates);
    let none = g.full(-1.0, Dtype::I32, &shape);
    let scattered = g.scatter(none, places.indices, counted, &places.numbers.scatter(), |_, _, new| new);
    let left = places.read(g, scattered, -1.0);
    g.eq(left, counted)
}

/// Where the updates of a scatter go. Each that is outside is dropped alone, as StableHLO's specification says. XLA drops all of a
/// window that is outside in part.
struct Places<'n> {
    numbers: &'n Numbers,
    indices: Tensor,
    /// The sizes of a window in each dimension of the scatter's operand.
    window: Vec<usize>,
    /// The shape of the updates.
    updates: Vec<usize>,
}

impl Places<'_> {
    /// Returns the elements of `x` that updates go to, and `none` for updates that go nowhere.
    fn read(&self, g: &mut Graph, x: Tensor, none: f64) -> Tensor {
        let is_point = self.numbers.map.iter().all(|&d| self.window[d] == 1);
        if is_point { self.read_points(g, x, none) } else { self.read_windows(g, x, none) }
    }

    /// Reads windows that are inside or outside as a whole.
    fn read_points(&self, g: &mut Graph, x: Tensor, none: f64) -> Tensor {
        let Self { numbers, indices, window, updates } = self;
        let found = g.gather(x, *indices, &numbers.gather(), window);
        let shape = g.shape(x).to_vec();
        let limits = numbers.of_components(g, *indices, |d| shape[d] - window[d]);
        let zero = g.zeros_like(*indices);
        let (begins, ends) = (g.ge(*indices, zero), g.le(*indices, limits));
        let mut is_inside = g.and(begins, ends);
        if numbers.index_vector < g.shape(is_inside).len() {
            is_inside = g.reduce(is_inside, Reduction::And, &[numbers.index_vector]);
        }
        let batch: Vec<_> = (0..updates.len()).filter(|d| !numbers.window.contains(d)).collect();
        let is_inside = g.broadcast_in_dim(is_inside, updates, &batch);
        let other = g.full(none, g.dtype(x), updates);
        g.select(is_inside, found, other)
    }

    /// Reads windows that may be outside in part, of `x` with a margin that all windows are in.
    fn read_windows(&self, g: &mut Graph, x: Tensor, none: f64) -> Tensor {
        let Self { numbers, indices, window, .. } = self;
        let shape = g.shape(x).to_vec();
        let margin = |d: usize| if numbers.map.contains(&d) { window[d] } else { 0 };
        let margins: Vec<_> = (0..shape.len()).map(margin).collect();
        let fill = g.scalar(none, g.dtype(x));
        let framed = g.pad(x, fill, &margins, &margins, &vec![0; shape.len()]);
        // Integers of fewer bits cannot hold every place.
        let is_narrow = g.dtype(*indices).bitsize() < 32;
        let indices = if is_narrow { g.convert(*indices, Dtype::I32) } else { *indices };
        let end = numbers.of_components(g, indices, |d| shape[d]);
        let before = numbers.of_components(g, indices, |d| margins[d]);
        let begin = if is_signed(g.dtype(indices)) { g.negate(before) } else { g.zeros_like(indices) };
        let within = g.clamp(begin, indices, end);
        let within = g.add(within, before);
        g.gather(framed, within, &numbers.gather(), window)
    }
}

/// Returns the size of a scatter's window in each dimension of `x`.
fn window_sizes(g: &Graph, x: Tensor, updates: Tensor, numbers: &Numbers) -> Vec<usize> {
    let mut sizes = numbers.window.iter().map(|&d| g.shape(updates)[d]);
    let rank = g.shape(x).len();
    (0..rank).map(|d| if numbers.dropped.contains(&d) { 1 } else { sizes.next().unwrap_or(1) }).collect()
}
