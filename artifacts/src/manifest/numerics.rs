//! Number formats: what products are computed in, and what weights and caches are stored in.

use std::{fmt, str::FromStr};

use safetensors::Dtype;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A floating-point type that products are computed in and caches hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Float {
    /// IEEE single precision.
    #[default]
    F32,
    /// bfloat16.
    Bf16,
    /// IEEE half precision.
    F16,
}

/// The quantization of the matrices of linear layers, embedding and head. Norms and biases are never quantized.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Quant {
    /// Floats: weights of few bits are decoded, others stay as they are in the checkpoint.
    None,
    /// Weights stay in the few bits that the checkpoint has where a kernel reads them, and are floats elsewhere. Inputs of
    /// weights in few bits are quantized to 8 bits in groups of 32, as for GGUF's `Q8_0`.
    #[default]
    Auto,
    /// 8 bits with a scale for each output, as compressed-tensors does for W8A8. Inputs are quantized in the same way, a row
    /// at a time, and products are summed in integers.
    Q8,
    /// 4 bits with a scale for each 32 inputs of an output: GGUF's `Q4_0`. Inputs are quantized to 8 bits in the same groups,
    /// as for GGUF's `Q8_0`.
    Q4,
    /// 4 bits with a scale and a minimum for each 32 inputs, in superblocks of 256 as in GGUF's `Q4_K`. The matrices that gain
    /// most have 5 or 6 bits, within 4.85 bits a weight. Inputs are quantized as for [`Self::Q4`].
    Q4K,
}

/// The type of the key/value cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CacheType {
    /// Floats.
    Float(Float),
    /// GGUF's `Q8_0`: groups of 32 of a head's dimensions in 8 bits, with an `f16` scale each.
    Q8,
}

/// The pooling that turns the hidden states of a text's tokens into one vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pooling {
    /// The mean over all tokens.
    Mean,
    /// The first token's hidden state.
    Cls,
}

impl Float {
    /// Every type.
    pub const ALL: [Self; 3] = [Self::F32, Self::Bf16, Self::F16];

    /// Returns the element type of such numbers.
    #[must_use]
    pub const fn dtype(self) -> Dtype {
        match self {
            Self::F32 => Dtype::F32,
            Self::Bf16 => Dtype::BF16,
            Self::F16 => Dtype::F16,
        }
    }

    /// Returns the type whose element type is `dtype`, if products can be computed in it.
    #[must_use]
    pub fn of_dtype(dtype: Dtype) -> Option<Self> {
        Self::ALL.into_iter().find(|float| float.dtype() == dtype)
    }
}

impl Quant {
    /// Every quantization.
    pub const ALL: [Self; 5] = [Self::None, Self::Auto, Self::Q8, Self::Q4, Self::Q4K];

    /// Returns how many inputs are packed together. A matrix has a whole number of such groups.
    #[must_use]
    pub const fn group_size(self) -> usize {
        match self {
            Self::None | Self::Auto => 1,
            Self::Q8 => 4,
            Self::Q4 | Self::Q4K => 32,
        }
    }
}

impl CacheType {
    /// Every type.
    pub const ALL: [Self; 4] =
        [Self::Float(Float::F32), Self::Float(Float::Bf16), Self::Float(Float::F16), Self::Q8];

    /// How many of a head's dimensions share a scale in [`CacheType::Q8`].
    pub const Q8_GROUP_SIZE: usize = 32;

    /// Returns how many of a head's dimensions are stored together. A head has a whole number of such groups.
    #[must_use]
    pub const fn group_size(self) -> usize {
        match self {
            Self::Float(_) => 1,
            Self::Q8 => Self::Q8_GROUP_SIZE,
        }
    }

    /// Returns the bytes of `elements` elements, scales included. A size that does not fit is `u64::MAX`.
    #[must_use]
    pub fn bytes(self, elements: u64) -> u64 {
        match self {
            Self::Float(float) => elements.saturating_mul(float.dtype().bitsize() as u64 / 8),
            Self::Q8 => elements.saturating_add((elements / Self::Q8_GROUP_SIZE as u64).saturating_mul(2)),
        }
    }
}

impl Pooling {
    /// Every pooling.
    pub const ALL: [Self; 2] = [Self::Mean, Self::Cls];
}

/// A type whose values are words, in the manifest and on command lines.
pub(super) trait Word: Copy + 'static {
    /// The manifest's field.
    const FIELD: &str;
    /// Every value.
    const VALUES: &[Self];

    fn word(self) -> &'static str;

    fn find(text: &str) -> Option<Self> {
        Self::VALUES.iter().copied().find(|value| value.word() == text)
    }

    /// Returns all words with `last` before the last one.
    fn words(last: &str) -> String {
        let words: Vec<_> = Self::VALUES.iter().map(|value| value.word()).collect();
        match words.split_last() {
            Some((end, [])) => (*end).to_owned(),
            Some((end, start)) => format!("{}{last}{end}", start.join(", ")),
            None => String::new(),
        }
    }
}

impl Word for Float {
    const FIELD: &str = "precision";
    const VALUES: &[Self] = &Self::ALL;

    fn word(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
            Self::F16 => "f16",
        }
    }
}

impl Word for Quant {
    const FIELD: &str = "quant";
    const VALUES: &[Self] = &Self::ALL;

    fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Auto => "auto",
            Self::Q8 => "q8",
            Self::Q4 => "q4",
            Self::Q4K => "q4k",
        }
    }
}

impl Word for CacheType {
    const FIELD: &str = "kv";
    const VALUES: &[Self] = &Self::ALL;

    fn word(self) -> &'static str {
        match self {
            Self::Float(float) => float.word(),
            Self::Q8 => "q8",
        }
    }
}

impl Word for Pooling {
    const FIELD: &str = "embedding.pooling";
    const VALUES: &[Self] = &Self::ALL;

    fn word(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::Cls => "cls",
        }
    }
}

/// A text that is none of the words of its type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("found {found:?}, expected {expected}")]
pub struct ParseWordError {
    found: String,
    expected: String,
}

fn parse<W: Word>(text: &str) -> Result<W, ParseWordError> {
    W::find(text).ok_or_else(|| ParseWordError { found: text.to_owned(), expected: W::words(" or ") })
}

/// Reads a word of the manifest's plan. An error names the word's field.
pub(super) fn of_plan<'de, W: Word, D: Deserializer<'de>>(deserializer: D) -> Result<W, D::Error> {
    let text = String::deserialize(deserializer)?;
    W::find(&text).ok_or_else(|| {
        let (found, expected) = (text.escape_default(), W::words(", "));
        de::Error::custom(format_args!("plan.{} is `{found}`, expected one of {expected}", W::FIELD))
    })
}

/// Implements a word's text form.
macro_rules! text_form {
    ($($word:ident),*) => {$(
        impl fmt::Display for $word {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.word())
            }
        }

        impl FromStr for $word {
            type Err = ParseWordError;

            fn from_str(text: &str) -> Result<Self, ParseWordError> {
                parse(text)
            }
        }

        impl Serialize for $word {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.word())
            }
        }

        impl<'de> Deserialize<'de> for $word {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                parse(&String::deserialize(deserializer)?).map_err(de::Error::custom)
            }
        }
    )*};
}

text_form!(Float, Quant, CacheType, Pooling);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_have_names_and_sizes() {
        for (name, bytes) in [("f32", 256), ("bf16", 128), ("f16", 128), ("q8", 68)] {
            let cache: CacheType = name.parse().unwrap();
            assert_eq!((cache.to_string().as_str(), cache.bytes(64)), (name, bytes));
            assert_eq!(cache.bytes(u64::MAX), u64::MAX, "{name}");
        }
        let refused = "i8".parse::<CacheType>().unwrap_err().to_string();
        assert_eq!(refused, "found \"i8\", expected f32, bf16, f16 or q8");
    }

    #[test]
    fn words_round_trip() {
        fn round_trip<W: Word + FromStr + fmt::Display + fmt::Debug + PartialEq>() {
            for value in W::VALUES {
                assert_eq!(value.to_string().parse::<W>().ok().as_ref(), Some(value));
            }
        }
        round_trip::<Float>();
        round_trip::<Quant>();
        round_trip::<CacheType>();
        round_trip::<Pooling>();
        assert_eq!(
            "q5".parse::<Quant>().unwrap_err().to_string(),
            "found \"q5\", expected none, auto, q8, q4 or q4k"
        );
    }
}
