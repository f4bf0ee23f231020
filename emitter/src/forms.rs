//! The forms that weights and the cache are held in.

use std::{fmt, str::FromStr};

use safetensors::Dtype;

/// Dimensions that share a scale in [`Kv::Q8`].
pub(crate) const CACHE_GROUP: usize = 32;

/// How the weights of matrix products are quantised: linear layers, embedding and head. Norms and biases are not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Quant {
    /// Not at all: as they are in the checkpoint.
    #[default]
    None,
    /// To 8 bits with a scale for each output, as compressed-tensors does for W8A8. Inputs are quantised in the same way,
    /// a row at a time, and products are summed in whole numbers.
    Q8,
    /// To 4 bits with a scale for each 32 inputs of an output: GGUF's `Q4_0`. Inputs are quantised to 8 bits in the same
    /// groups, as for GGUF's `Q8_0`.
    Q4,
}

impl Quant {
    /// Inputs that are packed together, of which a weight has a whole number.
    pub(crate) fn inputs(self) -> usize {
        match self {
            Self::None => 1,
            Self::Q8 => 4,
            Self::Q4 => 32,
        }
    }

    /// Bytes of a matrix of this many elements, `inputs` for each output, scales included. Where it is not quantised it is
    /// in `dtype`. `u64::MAX` where that does not fit.
    #[must_use]
    pub fn bytes(self, elements: u64, inputs: u64, dtype: Dtype) -> u64 {
        match self {
            Self::None => elements.saturating_mul(dtype.bitsize() as u64 / 8),
            // A scale of 4 bytes for each output.
            Self::Q8 => elements.saturating_add((elements / inputs.max(1)).saturating_mul(4)),
            // 32 halves of a byte, and a scale of 2 bytes.
            Self::Q4 => (elements / 32).saturating_mul(16 + 2),
        }
    }
}

impl fmt::Display for Quant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::None => "none",
            Self::Q8 => "q8",
            Self::Q4 => "q4",
        })
    }
}

impl FromStr for Quant {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = [Self::None, Self::Q8, Self::Q4];
        let found = all.into_iter().find(|quant| quant.to_string() == text);
        found.ok_or_else(|| format!("found {text:?}, expected none, q8 or q4"))
    }
}

/// What the key/value cache holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kv {
    /// Floats: `F32`, `BF16` or `F16`.
    Float(Dtype),
    /// GGUF's `Q8_0`: groups of 32 of a head's dimensions in 8 bits, with an `f16` scale each.
    Q8,
}

impl Kv {
    /// Dimensions of a head that are stored together, of which it has a whole number.
    pub(crate) fn dimensions(self) -> usize {
        match self {
            Self::Float(_) => 1,
            Self::Q8 => CACHE_GROUP,
        }
    }

    /// Bytes that this many elements take, scales included; `u64::MAX` where that does not fit.
    #[must_use]
    pub fn bytes(self, elements: u64) -> u64 {
        match self {
            Self::Float(dtype) => Quant::None.bytes(elements, 1, dtype),
            Self::Q8 => elements.saturating_add((elements / CACHE_GROUP as u64).saturating_mul(2)),
        }
    }
}

impl fmt::Display for Kv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Float(dtype) => f.pad(&format!("{dtype:?}").to_lowercase()),
            Self::Q8 => f.pad("q8"),
        }
    }
}

impl FromStr for Kv {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let floats = [Dtype::F32, Dtype::BF16, Dtype::F16].map(Self::Float);
        let found = floats.into_iter().chain([Self::Q8]).find(|kv| kv.to_string() == text);
        found.ok_or_else(|| format!("found {text:?}, expected f32, bf16, f16 or q8"))
    }
}
