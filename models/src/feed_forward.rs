//! What a block computes of each token alone: an mlp, or a mixture of them.

use crate::Linear;

/// What a block computes of each token alone.
#[derive(Debug, Clone, PartialEq)]
pub enum FeedForward {
    /// One mlp for all tokens.
    Mlp(Box<Mlp>),
    /// Some of several, which the token chooses.
    Experts(Box<Experts>),
}

/// A mixture of experts (Shazeer et al., arXiv 1701.06538): `Σ weight_e(x) · expert_e(x)` over the `active` experts of
/// which the router gives the largest logits.
#[derive(Debug, Clone, PartialEq)]
pub struct Experts {
    /// `hidden → experts`.
    pub router: Linear,
    /// How many experts compute a token.
    pub active: usize,
    /// Whether weights are a softmax of the active experts' logits alone, so that they sum to one, or of all logits.
    pub normalised: bool,
    /// The experts, alike but for their weights.
    pub experts: Vec<Mlp>,
    /// An mlp that computes every token, beside them.
    pub shared: Option<Shared>,
}

/// An expert for every token: `sigmoid(gate(x)) · mlp(x)`.
#[derive(Debug, Clone, PartialEq)]
pub struct Shared {
    /// The mlp.
    pub mlp: Mlp,
    /// `hidden → 1`.
    pub gate: Option<Linear>,
}

/// An mlp: `down(activation(gate(x)) · (up(x) + up_offset))`, or `down(activation(up(x)))` without a gate.
#[derive(Debug, Clone, PartialEq)]
pub struct Mlp {
    /// The activation.
    pub activation: Activation,
    /// What gate is at most, and up in magnitude.
    pub limit: Option<f64>,
    /// Added to up, where there is a gate.
    pub up_offset: f64,
    /// `hidden → intermediate`.
    pub gate: Option<Linear>,
    /// `hidden → intermediate`.
    pub up: Linear,
    /// `intermediate → hidden`.
    pub down: Linear,
}

/// An elementwise activation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Activation {
    /// `x · sigmoid(x)` (Elfwing et al., arXiv 1702.03118).
    Silu,
    /// `x · sigmoid(beta · x)` (Ramachandran et al., arXiv 1710.05941).
    Swish {
        /// How steep it is.
        beta: f64,
    },
    /// `x · Φ(x)`, with the error function (Hendrycks and Gimpel, arXiv 1606.08415).
    Gelu,
    /// Its approximation with `tanh` in the same paper.
    GeluTanh,
}

impl FeedForward {
    /// Its linear layers, those of all experts too, in the order of use.
    pub fn linears(&self) -> Box<dyn Iterator<Item = &Linear> + '_> {
        match self {
            Self::Mlp(mlp) => Box::new(mlp.linears()),
            Self::Experts(experts) => {
                let Experts { router, experts, shared, .. } = &**experts;
                let of_experts = experts.iter().flat_map(Mlp::linears);
                let of_shared = shared.iter().flat_map(|Shared { mlp, gate }| mlp.linears().chain(gate));
                Box::new(std::iter::once(router).chain(of_experts).chain(of_shared))
            }
        }
    }

    /// Those of them that are never quantised: few weights, on which much depends.
    pub fn exact_linears(&self) -> impl Iterator<Item = &Linear> {
        let experts = match self {
            Self::Mlp(_) => None,
            Self::Experts(experts) => Some(experts),
        };
        experts.into_iter().flat_map(|experts| {
            let gate = experts.shared.iter().flat_map(|shared| &shared.gate);
            std::iter::once(&experts.router).chain(gate)
        })
    }

    pub(crate) fn linears_mut(&mut self) -> Vec<&mut Linear> {
        match self {
            Self::Mlp(mlp) => mlp.linears_mut().collect(),
            Self::Experts(experts) => {
                let Experts { router, experts, shared, .. } = &mut **experts;
                let of_experts = experts.iter_mut().flat_map(Mlp::linears_mut);
                let of_shared =
                    shared.iter_mut().flat_map(|Shared { mlp, gate }| mlp.linears_mut().chain(gate));
                std::iter::once(router).chain(of_experts).chain(of_shared).collect()
            }
        }
    }
}

impl Mlp {
    /// Its linear layers, in the order of use.
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
