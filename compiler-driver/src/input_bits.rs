//! What kernels for CPUs round inputs to.

use std::{fmt, str::FromStr};

/// Bits of the inputs of weights in groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputBits {
    /// 8 bits with a scale for each 32 inputs.
    Eight,
    /// The precision of 16 bits: the sum of two rows in 8 bits.
    Sixteen,
}

impl InputBits {
    /// Returns the rows of 8 bits whose sum inputs are, see [`Plan::input_terms`](mlxcel_emitter::Plan::input_terms).
    pub(crate) fn terms(self) -> usize {
        match self {
            Self::Eight => 1,
            Self::Sixteen => 2,
        }
    }
}

impl fmt::Display for InputBits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", 8 * self.terms())
    }
}

impl FromStr for InputBits {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let all = [Self::Eight, Self::Sixteen];
        let named = all.into_iter().find(|bits| bits.to_string() == text);
        named.ok_or_else(|| format!("found {text}, expected 8 or 16"))
    }
}
