//! What the examples that classify digits share.

use mlxcel_emitter::{Graph, Reduction, Tensor};
use safetensors::Dtype::{F32, I32, U8};

/// The images of scikit-learn's digits: `digits.npz` has them, 8 × 8 pixels from 0 to 16, with their labels.
pub(crate) const IMAGES: usize = 1_797;
/// The images that a network learns, in batches. It is evaluated with the others.
pub(crate) const LEARNED: usize = 1_437;
/// The images of a batch.
pub(crate) const BATCH: usize = 64;

/// A parameter with the standard deviation that it begins with.
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(crate) shape: &'static [usize],
    pub(crate) deviation: f64,
}

/// Adds arguments for all images and labels.
pub(crate) fn digits(g: &mut Graph) -> [Tensor; 2] {
    [g.named_argument("images", U8, &[IMAGES, 64]), g.named_argument("labels", U8, &[IMAGES])]
}

/// Returns a batch of what is learned: inputs from 0 to 1, and labels. After the last batch comes the first.
pub(crate) fn batch(g: &mut Graph, [images, labels]: [Tensor; 2], index: Tensor) -> [Tensor; 2] {
    let batches = g.scalar((LEARNED / BATCH) as f64, I32);
    let size = g.scalar(BATCH as f64, I32);
    let start = g.remainder(index, batches);
    let start = g.multiply(start, size);
    let zero = g.scalar(0.0, I32);
    let images = g.dynamic_slice(images, &[start, zero], &[BATCH, 64]);
    let labels = g.dynamic_slice(labels, &[start], &[BATCH]);
    [inputs(g, images), g.convert(labels, I32)]
}

/// Returns what is not learned: inputs from 0 to 1, and labels.
pub(crate) fn held_out(g: &mut Graph, [images, labels]: [Tensor; 2]) -> [Tensor; 2] {
    let images = g.slice_dimension(images, 0, LEARNED, IMAGES);
    let labels = g.slice_dimension(labels, 0, LEARNED, IMAGES);
    [inputs(g, images), g.convert(labels, I32)]
}

fn inputs(g: &mut Graph, images: Tensor) -> Tensor {
    let pixels = g.convert(images, F32);
    g.scale(pixels, 1.0 / 16.0)
}

/// Returns random parameters.
pub(crate) fn initial(g: &mut Graph, seed: Tensor, parameters: &[Parameter]) -> Vec<Tensor> {
    let mut state = seed;
    parameters
        .iter()
        .map(|Parameter { shape, deviation, .. }| {
            let (next, normal) = g.normal(state, shape);
            state = next;
            g.scale(normal, *deviation)
        })
        .collect()
}

/// Adds arguments for parameters, or for what an optimizer keeps of them. `prefix` begins their names.
pub(crate) fn arguments(g: &mut Graph, prefix: &str, parameters: &[Parameter]) -> Vec<Tensor> {
    let argument = |p: &Parameter| g.named_argument(format!("{prefix}{}", p.name), F32, p.shape);
    parameters.iter().map(argument).collect()
}

/// Returns `x · weight + bias`.
pub(crate) fn linear(g: &mut Graph, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor {
    let product = g.matmul(x, weight);
    add_bias(g, product, bias)
}

/// Adds a bias along the last dimension.
pub(crate) fn add_bias(g: &mut Graph, x: Tensor, bias: Tensor) -> Tensor {
    let shape = g.shape(x).to_vec();
    let bias = g.broadcast_in_dim(bias, &shape, &[shape.len() - 1]);
    g.add(x, bias)
}

/// Returns `max(x, 0)`.
pub(crate) fn relu(g: &mut Graph, x: Tensor) -> Tensor {
    let zero = g.scalar(0.0, F32);
    let zero = g.broadcast_like(zero, x);
    g.maximum(x, zero)
}

/// Returns the mean cross entropy of logits `[examples, classes]` and labels.
pub(crate) fn cross_entropy(g: &mut Graph, logits: Tensor, labels: Tensor) -> Tensor {
    let shape = g.shape(logits).to_vec();
    // Without the largest logit, so that no exponential overflows. It does not change the result.
    let largest = g.reduce_broadcast(logits, Reduction::Max, &[1]);
    let largest = g.stop_gradient(largest);
    let shifted = g.subtract(logits, largest);
    let exponentials = g.exponential(shifted);
    let sum = g.reduce(exponentials, Reduction::Sum, &[1]);
    let log_sum = g.log(sum);
    let class = g.iota(I32, &shape, 1);
    let label = g.broadcast_in_dim(labels, &shape, &[0]);
    let is_label = g.eq(class, label);
    let zero = g.full(0.0, F32, &shape);
    let own = g.select(is_label, shifted, zero);
    let own = g.reduce(own, Reduction::Sum, &[1]);
    let each = g.subtract(log_sum, own);
    mean(g, each)
}

/// Returns loss and accuracy.
pub(crate) fn evaluate(g: &mut Graph, logits: Tensor, labels: Tensor) -> [(&'static str, Tensor); 2] {
    [("loss", cross_entropy(g, logits, labels)), ("accuracy", accuracy(g, logits, labels))]
}

/// Returns the fraction of examples whose largest logit is that of their label.
fn accuracy(g: &mut Graph, logits: Tensor, labels: Tensor) -> Tensor {
    let predicted = g.argmax(logits);
    let right = g.eq(predicted, labels);
    let right = g.convert(right, F32);
    mean(g, right)
}

fn mean(g: &mut Graph, x: Tensor) -> Tensor {
    let count: usize = g.shape(x).iter().product();
    let all: Vec<_> = (0..g.shape(x).len()).collect();
    let sum = g.reduce(x, Reduction::Sum, &all);
    g.scale(sum, 1.0 / count as f64)
}

/// Returns the names and tensors of results.
pub(crate) fn named<'a>(names: &'a [String], tensors: &[Tensor]) -> Vec<(&'a str, Tensor)> {
    names.iter().map(String::as_str).zip(tensors.iter().copied()).collect()
}
