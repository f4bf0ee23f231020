//! Rotary position embedding: the description, and its frequencies.

/// Rotary position embedding over pairs `(i, i + head_dim / 2)`, Hugging Face's layout.
#[derive(Debug, Clone, PartialEq)]
pub struct Rope {
    /// Base of the frequencies.
    pub theta: f64,
    /// How frequencies are changed for contexts beyond the original one.
    pub scaling: RopeScaling,
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
}

impl Rope {
    /// Radians per position of each of the `head_dim / 2` pairs, fastest first.
    ///
    /// The formulas are those of RoFormer (Su et al., arXiv 2104.09864, section 3.2.2), of position interpolation (Chen
    /// et al., arXiv 2306.15595) and of Llama 3.1's reference code (`apply_scaling`), in the form of transformers'
    /// `modeling_rope_utils.py`. It computes in f32, and a step of a long sequence multiplies a rounding error by the
    /// position, so the same operations are done here in the same order and each is rounded to f32. The one that two
    /// machines round differently is the power: it is done in f64 here, so the result does not depend on the machine,
    /// and is within one unit in the last place of transformers'.
    #[must_use]
    pub fn inverse_frequencies(&self, head_dim: usize) -> Vec<f32> {
        (0..head_dim / 2)
            .map(|pair| {
                let exponent = (2 * pair) as f32 / head_dim as f32;
                let power = f64::from(self.theta as f32).powf(f64::from(exponent)) as f32;
                self.scaling.apply(1.0 / power)
            })
            .collect()
    }
}

impl RopeScaling {
    /// The frequency to use in place of `frequency`.
    fn apply(&self, frequency: f32) -> f32 {
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
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_frequencies_fall_from_one() {
        let rope = Rope { theta: 10_000.0, scaling: RopeScaling::Default };
        assert_eq!(rope.inverse_frequencies(8), [1.0, 0.1, 0.01, 0.001]);
    }

    #[test]
    fn linear_divides_every_frequency() {
        let rope = Rope { theta: 10_000.0, scaling: RopeScaling::Linear { factor: 4.0 } };
        assert_eq!(rope.inverse_frequencies(8), [0.25, 0.025, 0.0025, 0.00025]);
    }

    #[test]
    fn llama3_keeps_fast_pairs_divides_slow_ones_and_blends_between() {
        let scaling = |factor| RopeScaling::Llama3 {
            factor,
            low_freq_factor: 1.0,
            high_freq_factor: 4.0,
            original_max_positions: 8192.0,
        };
        let plain = Rope { theta: 500_000.0, scaling: RopeScaling::Default }.inverse_frequencies(64);
        let scaled = Rope { theta: 500_000.0, scaling: scaling(32.0) }.inverse_frequencies(64);
        let kept = plain.iter().zip(&scaled).take_while(|(a, b)| a == b).count();
        let divided = plain.iter().zip(&scaled).rev().take_while(|(a, b)| **a / 32.0 == **b).count();
        assert_eq!((kept, divided), (15, 14));
        assert!(scaled.windows(2).all(|pair| pair[0] > pair[1]), "the order of the pairs stays");
    }
}
