//! The layers that models are built of: linear layers, norms and embeddings, with the checkpoint's weights for them.

use std::iter;

/// The most layers of a model: many times those of any that was published.
pub(crate) const MOST_LAYERS: usize = 4096;

/// A weight of the checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Weight {
    /// Name of the checkpoint's tensor.
    pub name: String,
    /// Shape of the checkpoint's tensor.
    pub shape: Vec<usize>,
}

/// A lookup of rows by token id: `norm(weight[token] · scale + positions[position] + token_types[0])`.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedding {
    /// `[vocab, hidden]`.
    pub weight: Weight,
    /// Factor of the rows.
    pub scale: f64,
    /// Learned position embeddings, `[max_positions, hidden]`.
    pub positions: Option<Weight>,
    /// Learned token type embeddings, `[types, hidden]`. Every token has the first type.
    pub token_types: Option<Weight>,
    /// Norm of the sum.
    pub norm: Option<Norm>,
}

/// A norm over the last dimension: `(x - mean) / sqrt(variance + epsilon) · (offset + weight) + bias`.
///
/// An RMS norm omits the mean, and divides by the mean square instead of the variance.
#[derive(Debug, Clone, PartialEq)]
pub struct Norm {
    /// Layer norm or RMS norm.
    pub kind: NormKind,
    /// Added to the variance or the mean square.
    pub epsilon: f64,
    /// Added to the weight.
    pub offset: f64,
    /// One weight, `[width]` or of a shape in [`Attention::query_norm`](crate::Attention::query_norm), or one per head.
    pub weights: Vec<Weight>,
    /// `[width]`.
    pub bias: Option<Weight>,
}

/// The kind of a norm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NormKind {
    /// Root mean square norm (Zhang and Sennrich, arXiv 1910.07467).
    Rms,
    /// Layer normalization (Ba et al., arXiv 1607.06450).
    Layer,
}

/// A linear layer: `x · weightᵀ + bias`.
#[derive(Debug, Clone, PartialEq)]
pub struct Linear {
    /// `[outputs, inputs]`.
    pub weight: Weight,
    /// `[outputs]`.
    pub bias: Option<Weight>,
    /// Index into a stack: the weight is then `[matrices, outputs, inputs]`, and the bias `[matrices, outputs]`.
    pub matrix: Option<usize>,
    /// The outputs of this layer in a fused weight, which several layers share.
    pub part: Option<Part>,
    /// Whether the weight is stored as `[inputs, outputs]`.
    pub transposed: bool,
}

/// Outputs of one layer in a fused weight: of each of `groups` equal groups, the `size` outputs from `first` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Number of groups.
    pub groups: usize,
    /// First output in a group.
    pub first: usize,
    /// Number of outputs in a group.
    pub size: usize,
}

impl Weight {
    /// Returns the number of elements, or `u64::MAX` on overflow.
    #[must_use]
    pub fn elements(&self) -> u64 {
        self.shape.iter().fold(1, |product, &size| product.saturating_mul(size as u64))
    }
}

impl Norm {
    /// Returns the shape of the weights as one tensor.
    #[must_use]
    pub fn shape(&self) -> Vec<usize> {
        match self.weights.as_slice() {
            [] => vec![],
            [only] => only.shape.clone(),
            [first, ..] => [&[self.weights.len()], first.shape.as_slice()].concat(),
        }
    }

    /// Returns the weights, then the bias.
    pub(crate) fn all_weights(&self) -> impl Iterator<Item = &Weight> {
        self.weights.iter().chain(&self.bias)
    }

    pub(crate) fn all_weights_mut(&mut self) -> impl Iterator<Item = &mut Weight> {
        self.weights.iter_mut().chain(&mut self.bias)
    }
}

impl Linear {
    /// Returns the width of the input.
    #[must_use]
    pub fn inputs(&self) -> usize {
        self.weight.shape[usize::from(self.matrix.is_some()) + usize::from(!self.transposed)]
    }

    /// Returns the width of the output.
    #[must_use]
    pub fn outputs(&self) -> usize {
        self.part.map_or_else(|| self.weight_outputs(), |part| part.groups * part.size)
    }

    /// Returns the outputs of the weight, which include those of other layers if it is fused.
    #[must_use]
    pub fn weight_outputs(&self) -> usize {
        self.weight.shape[usize::from(self.matrix.is_some()) + usize::from(self.transposed)]
    }

    /// Returns the weight, then the bias.
    pub(crate) fn weights(&self) -> impl Iterator<Item = &Weight> {
        iter::once(&self.weight).chain(&self.bias)
    }

    pub(crate) fn weights_mut(&mut self) -> impl Iterator<Item = &mut Weight> {
        iter::once(&mut self.weight).chain(&mut self.bias)
    }
}
