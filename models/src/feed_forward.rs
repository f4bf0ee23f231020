//! Feed-forward networks, which transform each token by itself: an MLP, or a mixture of experts.

use std::iter;

use crate::layers::Linear;

/// The feed-forward network of a block.
#[derive(Debug, Clone, PartialEq)]
pub enum FeedForward {
    /// One MLP for all tokens.
    Mlp(Box<Mlp>),
    /// A mixture of experts: a router chooses some MLPs for each token.
    Experts(Box<Experts>),
}

/// A mixture of experts (Shazeer et al., arXiv 1701.06538): `Σ weight_e(x) · expert_e(x)`.
///
/// The sum is over the `active` experts with the largest router logits.
#[derive(Debug, Clone, PartialEq)]
pub struct Experts {
    /// Router, `hidden → experts`.
    pub router: Linear,
    /// Number of experts per token.
    pub active: usize,
    /// Whether the softmax is over the logits of the active experts, so that weights sum to one, rather than over all.
    pub normalized: bool,
    /// The experts, which differ only in their weights.
    pub experts: Vec<Mlp>,
    /// Shared expert, which every token uses in addition.
    pub shared: Option<Shared>,
}

/// A shared expert: `sigmoid(gate(x)) · mlp(x)`.
#[derive(Debug, Clone, PartialEq)]
pub struct Shared {
    /// MLP of the expert.
    pub mlp: Mlp,
    /// Gate of the expert, `hidden → 1`.
    pub gate: Option<Linear>,
}

/// An MLP: `down(activation(gate(x)) · (up(x) + up_offset))`, or `down(activation(up(x)))` without a gate.
#[derive(Debug, Clone, PartialEq)]
pub struct Mlp {
    /// Activation function.
    pub activation: Activation,
    /// Clamp: the upper bound of `gate(x)`, and the bound of the magnitude of `up(x)`.
    pub limit: Option<f64>,
    /// Added to `up(x)` if there is a gate.
    pub up_offset: f64,
    /// Gate projection, `hidden → intermediate`.
    pub gate: Option<Linear>,
    /// Up projection, `hidden → intermediate`.
    pub up: Linear,
    /// Down projection, `intermediate → hidden`.
    pub down: Linear,
}

/// An elementwise activation function.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Activation {
    /// `x · sigmoid(x)` (Elfwing et al., arXiv 1702.03118).
    Silu,
    /// `x · sigmoid(beta · x)` (Ramachandran et al., arXiv 1710.05941).
    Swish {
        /// Steepness of the sigmoid.
        beta: f64,
    },
    /// `x · Φ(x)`, with the error function (Hendrycks and Gimpel, arXiv 1606.08415).
    Gelu,
    /// GELU approximated with `tanh`, from the same paper.
    GeluTanh,
}

impl FeedForward {
    /// Returns the linear layers in the order of use, those of all experts included.
    pub fn linears(&self) -> Box<dyn Iterator<Item = &Linear> + '_> {
        match self {
            Self::Mlp(mlp) => Box::new(mlp.linears()),
            Self::Experts(experts) => {
                let Experts { router, experts, shared, .. } = &**experts;
                let expert_linears = experts.iter().flat_map(Mlp::linears);
                let shared_linears = shared.iter().flat_map(|Shared { mlp, gate }| mlp.linears().chain(gate));
                Box::new(iter::once(router).chain(expert_linears).chain(shared_linears))
            }
        }
    }

    /// Returns the linear layers that are never quantized: routers and gates, which are small and sensitive.
    pub fn unquantized_linears(&self) -> impl Iterator<Item = &Linear> {
        let experts = match self {
            Self::Mlp(_) => None,
            Self::Experts(experts) => Some(experts),
        };
        experts.into_iter().flat_map(|experts| {
            let gate = experts.shared.iter().flat_map(|shared| &shared.gate);
            iter::once(&experts.router).chain(gate)
        })
    }

    pub(crate) fn linears_mut(&mut self) -> Vec<&mut Linear> {
        match self {
            Self::Mlp(mlp) => mlp.linears_mut().collect(),
            Self::Experts(experts) => {
                let Experts { router, experts, shared, .. } = &mut **experts;
                let expert_linears = experts.iter_mut().flat_map(Mlp::linears_mut);
                let shared_linears =
                    shared.iter_mut().flat_map(|Shared { mlp, gate }| mlp.linears_mut().chain(gate));
                iter::once(router).chain(expert_linears).chain(shared_linears).collect()
            }
        }
    }
}

impl Mlp {
    /// Returns the linear layers in the order of use.
    pub fn linears(&self) -> impl Iterator<Item = &Linear> {
        self.gate.iter().chain([&self.up, &self.down])
    }

    fn linears_mut(&mut self) -> impl Iterator<Item = &mut Linear> {
        self.gate.iter_mut().chain([&mut self.up, &mut self.down])
    }
}

impl From<Mlp> for FeedForward {
    fn from(mlp: Mlp) -> Self {
        Self::Mlp(Box::new(mlp))
    }
}

impl From<Experts> for FeedForward {
    fn from(experts: Experts) -> Self {
        Self::Experts(Box::new(experts))
    }
}
