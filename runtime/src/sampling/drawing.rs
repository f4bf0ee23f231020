//! How tokens are drawn, as a command line or a request says it.

use super::{Sampler, Sampling};
use crate::error::Error;

/// The meaning of a temperature of 0, for messages.
pub const GREEDY: &str = "0 always takes the most likely token";

/// Settings of sampling. Each is `None` where nothing was said of it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Drawing {
    /// [`Sampling::temperature`], or 0 to always take the most likely token.
    pub temperature: Option<f32>,
    /// [`Sampling::top_k`].
    pub top_k: Option<usize>,
    /// [`Sampling::top_p`].
    pub top_p: Option<f32>,
    /// [`Sampling::min_p`].
    pub min_p: Option<f32>,
    /// [`Sampling::seed`].
    pub seed: Option<u64>,
}

/// A setting that is out of its range.
#[derive(Debug, PartialEq)]
pub struct OutOfRange {
    /// The field: `temperature`, `top_p`.
    pub name: &'static str,
    value: f32,
    expected: &'static str,
    hint: &'static str,
}

impl Drawing {
    /// Fills in what is not said from `default`.
    #[must_use]
    pub fn or(self, default: Self) -> Self {
        let Self { temperature, top_k, top_p, min_p, seed } = self;
        Self {
            temperature: temperature.or(default.temperature),
            top_k: top_k.or(default.top_k),
            top_p: top_p.or(default.top_p),
            min_p: min_p.or(default.min_p),
            seed: seed.or(default.seed),
        }
    }

    /// Returns the temperature. Without one it is 0, or 1 if another setting is given.
    #[must_use]
    pub fn temperature(&self) -> f32 {
        let &Self { temperature, top_k, top_p, min_p, seed } = self;
        let is_sampled = top_k.is_some() || top_p.is_some() || min_p.is_some() || seed.is_some();
        temperature.unwrap_or(if is_sampled { 1.0 } else { 0.0 })
    }

    /// Returns the settings of a sampler with this seed; `None` is greedy.
    ///
    /// # Errors
    /// A setting is out of its range.
    pub fn sampling(&self, seed: u64) -> Result<Option<Sampling>, OutOfRange> {
        let temperature = self.temperature();
        if !temperature.is_finite() || temperature < 0.0 {
            let (name, expected) = ("temperature", "0 or more");
            return Err(OutOfRange { name, value: temperature, expected, hint: GREEDY });
        }
        let all = Sampling::default();
        let settings = Sampling {
            temperature: if temperature > 0.0 { temperature } else { all.temperature },
            top_k: self.top_k.unwrap_or(all.top_k),
            top_p: self.top_p.unwrap_or(all.top_p),
            min_p: self.min_p.unwrap_or(all.min_p),
            seed,
        };
        // Settings out of range are refused even if greedy generation ignores them.
        match Sampler::new(settings) {
            Err(Error::BadSampling { name, value, expected, hint }) => {
                Err(OutOfRange { name, value, expected, hint })
            }
            _ => Ok((temperature > 0.0).then_some(settings)),
        }
    }
}

impl From<OutOfRange> for Error {
    fn from(OutOfRange { name, value, expected, hint }: OutOfRange) -> Self {
        Self::BadSampling { name, value, expected, hint }
    }
}

impl OutOfRange {
    /// Renders the message, with the name that the setting has where it was given.
    #[must_use]
    pub fn message(&self, name: &str) -> String {
        let Self { name: _, value, expected, hint } = self;
        format!("{name} is {value}, expected {expected}\nhint: {hint}")
    }
}
