//! Rotary position embedding: the description and its frequencies.

/// Rotary position embedding of the first `width` dimensions of each head (RoFormer: Su et al., arXiv 2104.09864).
#[derive(Debug, Clone, PartialEq)]
pub struct Rope {
    /// Base of the frequencies.
    pub theta: f64,
    /// Number of rotated dimensions per head, which is even.
    pub width: usize,
    /// Layout of the pairs of dimensions that are rotated together.
    pub pairs: Pairs,
    /// Scaling of the frequencies for contexts beyond the original one.
    pub scaling: RopeScaling,
}

/// A layout of the pairs of dimensions that are rotated together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pairs {
    /// `(i, i + width / 2)`, Hugging Face's layout.
    Halves,
    /// `(2i, 2i + 1)`, RoFormer's layout.
    Interleaved,
}

/// A scaling of rotary frequencies.
#[derive(Debug, Clone, PartialEq)]
pub enum RopeScaling {
    /// No scaling: `theta^(-2i/d)`.
    Default,
    /// Linear scaling: every frequency is divided by `factor`.
    Linear {
        /// Divisor of all frequencies.
        factor: f64,
    },
    /// Scaling of Llama 3: low frequencies are divided by `factor`, high ones kept, and those between interpolated.
    Llama3 {
        /// Divisor of low frequencies.
        factor: f64,
        /// Frequencies with wavelengths above `original_max_positions / low_freq_factor` are divided.
        low_freq_factor: f64,
        /// Frequencies with wavelengths below `original_max_positions / high_freq_factor` are kept.
        high_freq_factor: f64,
        /// Context length before the extension.
        original_max_positions: f64,
    },
    /// YaRN (Peng et al., arXiv 2309.00071): pairs up to `first` are kept, pairs from `last` on divided by `factor`, and
    /// pairs between interpolated.
    Yarn {
        /// Divisor of low frequencies.
        factor: f64,
        /// Pair where the interpolation begins; it need not be a whole number.
        first: f64,
        /// Pair where the interpolation ends.
        last: f64,
        /// Factor of cosines and sines.
        amplitude: f64,
    },
    /// LongRoPE (Ding et al., arXiv 2402.13753): each pair is divided by a factor of its own.
    PerPair {
        /// One divisor per pair.
        factors: Vec<f64>,
        /// Factor of cosines and sines.
        amplitude: f64,
    },
}

impl Rope {
    /// Returns the frequencies of the `width / 2` pairs in radians per position, highest first.
    ///
    /// The formulas come from RoFormer (section 3.2.2), position interpolation (Chen et al., arXiv 2306.15595), Llama 3.1's
    /// reference code (`apply_scaling`) and the papers that [`RopeScaling`] names. Their form is that of transformers'
    /// `modeling_rope_utils.py`.
    ///
    /// Positions multiply rounding errors, so every operation is rounded to f32 in the order of transformers. Only the power
    /// is computed in f64, because machines round it differently in f32. Results are within one unit in the last place of
    /// transformers'.
    #[must_use]
    pub fn inverse_frequencies(&self) -> Vec<f32> {
        let power = |pair: usize| {
            let exponent = (2 * pair) as f32 / self.width as f32;
            f64::from(self.theta as f32).powf(f64::from(exponent)) as f32
        };
        (0..self.width / 2).map(|pair| self.scaling.apply(pair, power(pair))).collect()
    }

    /// Returns the factor of cosines and sines. Scores grow by its square.
    #[must_use]
    pub fn amplitude(&self) -> f64 {
        match self.scaling {
            RopeScaling::Default | RopeScaling::Linear { .. } | RopeScaling::Llama3 { .. } => 1.0,
            RopeScaling::Yarn { amplitude, .. } | RopeScaling::PerPair { amplitude, .. } => amplitude,
        }
    }
}

impl RopeScaling {
    /// Returns the scaled frequency of a pair, where `power` is the inverse of the unscaled frequency.
    fn apply(&self, pair: usize, power: f32) -> f32 {
        let frequency = 1.0 / power;
        match *self {
            Self::Default => frequency,
            Self::Linear { factor } => frequency / factor as f32,
            Self::Llama3 { factor, low_freq_factor, high_freq_factor, original_max_positions } => {
                // PyTorch divides a number by a tensor as `reciprocal · number`, which rounds twice.
                let over = |number: f64, x: f32| (1.0 / x) * number as f32;
                let wavelength = over(2.0 * std::f64::consts::PI, frequency);
                if wavelength > (original_max_positions / low_freq_factor) as f32 {
                    return frequency / factor as f32;
                }
                if wavelength < (original_max_positions / high_freq_factor) as f32 {
                    return frequency;
                }
                let turns = over(original_max_positions, wavelength);
                let smooth = (turns - low_freq_factor as f32) / (high_freq_factor - low_freq_factor) as f32;
                (1.0 - smooth) * frequency / factor as f32 + smooth * frequency
            }
            Self::Yarn { factor, first, last, .. } => {
                let ramp = ((pair as f32 - first as f32) / (last - first) as f32).clamp(0.0, 1.0);
                let kept = 1.0 - ramp;
                1.0 / (factor as f32 * power) * (1.0 - kept) + frequency * kept
            }
            Self::PerPair { ref factors, .. } => {
                1.0 / (factors.get(pair).copied().unwrap_or(1.0) as f32 * power)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frequencies(theta: f64, width: usize, scaling: RopeScaling) -> Vec<f32> {
        Rope { theta, width, pairs: Pairs::Halves, scaling }.inverse_frequencies()
    }

    #[test]
    fn default_frequencies_decrease_from_one() {
        assert_eq!(frequencies(10_000.0, 8, RopeScaling::Default), [1.0, 0.1, 0.01, 0.001]);
    }

    #[test]
    fn linear_divides_every_frequency() {
        let scaling = RopeScaling::Linear { factor: 4.0 };
        assert_eq!(frequencies(10_000.0, 8, scaling), [0.25, 0.025, 0.0025, 0.00025]);
    }

    #[test]
    fn llama3_keeps_high_frequencies_and_divides_low_ones() {
        let scaling = RopeScaling::Llama3 {
            factor: 32.0,
            low_freq_factor: 1.0,
            high_freq_factor: 4.0,
            original_max_positions: 8192.0,
        };
        let plain = frequencies(500_000.0, 64, RopeScaling::Default);
        let scaled = frequencies(500_000.0, 64, scaling);
        let kept = plain.iter().zip(&scaled).take_while(|(a, b)| a == b).count();
        let divided = plain.iter().zip(&scaled).rev().take_while(|(a, b)| **a / 32.0 == **b).count();
        assert_eq!((kept, divided), (15, 14));
        assert!(scaled.windows(2).all(|pair| pair[0] > pair[1]), "the order of the pairs stays");
    }

    #[test]
    fn yarn_keeps_high_frequencies_and_divides_low_ones() {
        let scaling = RopeScaling::Yarn { factor: 4.0, first: 1.0, last: 3.0, amplitude: 1.1 };
        let [a, b, c, d] = [1.0, 0.1, 0.01 * 0.625, 0.001 / 4.0];
        let found = frequencies(10_000.0, 8, scaling);
        assert!(found.iter().zip([a, b, c, d]).all(|(x, y)| (x - y).abs() < 1e-8), "{found:?}");
    }

    #[test]
    fn longrope_divides_each_pair_by_its_factor() {
        let scaling = RopeScaling::PerPair { factors: vec![1.0, 2.0, 4.0, 8.0], amplitude: 1.0 };
        assert_eq!(frequencies(10_000.0, 8, scaling), [1.0, 0.05, 0.0025, 0.000_125]);
    }
}
