//! Rotary position embedding: the description, and its frequencies.

/// Rotary position embedding of the first `width` dimensions of each head (RoFormer: Su et al., arXiv 2104.09864).
#[derive(Debug, Clone, PartialEq)]
pub struct Rope {
    /// Base of the frequencies.
    pub theta: f64,
    /// How many dimensions of a head are rotated: an even number.
    pub width: usize,
    /// Which of them are a pair.
    pub pairs: Pairs,
    /// How frequencies are changed for contexts beyond the original one.
    pub scaling: RopeScaling,
}

/// Which dimensions are rotated together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pairs {
    /// `(i, i + width / 2)`, Hugging Face's layout.
    Halves,
    /// `(2i, 2i + 1)`, RoFormer's.
    Neighbours,
}

/// A scaling of rotary frequencies.
#[derive(Debug, Clone, PartialEq)]
pub enum RopeScaling {
    /// `theta^(-2i/d)`, unchanged.
    Default,
    /// Every frequency divided by `factor`.
    Linear {
        /// The divisor.
        factor: f64,
    },
    /// Llama 3's: low frequencies divided by `factor`, high ones kept, those between blended.
    Llama3 {
        /// The divisor of low frequencies.
        factor: f64,
        /// Wavelengths above `original_max_positions / low_freq_factor` are divided.
        low_freq_factor: f64,
        /// Wavelengths below `original_max_positions / high_freq_factor` are kept.
        high_freq_factor: f64,
        /// The context the checkpoint was first trained for.
        original_max_positions: f64,
    },
    /// YaRN (Peng et al., arXiv 2309.00071): pairs up to `first` kept, from `last` on divided by `factor`, those between
    /// blended.
    Yarn {
        /// The divisor of slow pairs.
        factor: f64,
        /// Where blending begins, in pairs.
        first: f64,
        /// Where it ends.
        last: f64,
        /// What cosines and sines are multiplied by.
        amplitude: f64,
    },
    /// LongRoPE (Ding et al., arXiv 2402.13753): each pair divided by a factor of its own.
    PerPair {
        /// The divisors, one for each pair.
        factors: Vec<f64>,
        /// What cosines and sines are multiplied by.
        amplitude: f64,
    },
}

impl Rope {
    /// Radians per position of each of the `width / 2` pairs, fastest first.
    ///
    /// The formulas are those of RoFormer (section 3.2.2), of position interpolation (Chen et al., arXiv 2306.15595), of
    /// Llama 3.1's reference code (`apply_scaling`) and of the papers that [`RopeScaling`] names, in the form of
    /// transformers' `modeling_rope_utils.py`. It computes in f32, and a step of a long sequence multiplies a rounding
    /// error by the position, so the same operations are done here in the same order and each is rounded to f32. The one
    /// that two machines round differently is the power: it is done in f64 here, so the result does not depend on the
    /// machine, and is within one unit in the last place of transformers'.
    #[must_use]
    pub fn inverse_frequencies(&self) -> Vec<f32> {
        let power = |pair: usize| {
            let exponent = (2 * pair) as f32 / self.width as f32;
            f64::from(self.theta as f32).powf(f64::from(exponent)) as f32
        };
        (0..self.width / 2).map(|pair| self.scaling.apply(pair, power(pair))).collect()
    }

    /// What cosines and sines are multiplied by, so that scores grow by its square.
    #[must_use]
    pub fn amplitude(&self) -> f64 {
        match self.scaling {
            RopeScaling::Default | RopeScaling::Linear { .. } | RopeScaling::Llama3 { .. } => 1.0,
            RopeScaling::Yarn { amplitude, .. } | RopeScaling::PerPair { amplitude, .. } => amplitude,
        }
    }
}

impl RopeScaling {
    /// The frequency of a pair whose unscaled period is `power`.
    fn apply(&self, pair: usize, power: f32) -> f32 {
        let frequency = 1.0 / power;
        match *self {
            Self::Default => frequency,
            Self::Linear { factor } => frequency / factor as f32,
            Self::Llama3 { factor, low_freq_factor, high_freq_factor, original_max_positions } => {
                // PyTorch divides a number by a tensor as `reciprocal · number`: two roundings, kept here.
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
    fn default_frequencies_fall_from_one() {
        assert_eq!(frequencies(10_000.0, 8, RopeScaling::Default), [1.0, 0.1, 0.01, 0.001]);
    }

    #[test]
    fn linear_divides_every_frequency() {
        let scaling = RopeScaling::Linear { factor: 4.0 };
        assert_eq!(frequencies(10_000.0, 8, scaling), [0.25, 0.025, 0.0025, 0.00025]);
    }

    #[test]
    fn llama3_keeps_fast_pairs_divides_slow_ones_and_blends_between() {
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
    fn yarn_keeps_fast_pairs_and_divides_slow_ones() {
        let scaling = RopeScaling::Yarn { factor: 4.0, first: 1.0, last: 3.0, amplitude: 1.1 };
        let [a, b, c, d] = [1.0, 0.1, 0.01 * 0.625, 0.001 / 4.0];
        let found = frequencies(10_000.0, 8, scaling);
        assert!(found.iter().zip([a, b, c, d]).all(|(x, y)| (x - y).abs() < 1e-8), "{found:?}");
    }

    #[test]
    fn pairs_have_divisors_of_their_own() {
        let scaling = RopeScaling::PerPair { factors: vec![1.0, 2.0, 4.0, 8.0], amplitude: 1.0 };
        assert_eq!(frequencies(10_000.0, 8, scaling), [1.0, 0.05, 0.0025, 0.000_125]);
    }
}
