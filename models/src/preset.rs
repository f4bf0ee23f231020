//! Well-known models by name, so that none of their files need be at hand to compile for them.

use crate::{Error, ModelConfig};

/// A published model: its name and its config.json, reduced to what describes the architecture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    /// What it is asked for by: `llama-3.2-1b`.
    pub name: &'static str,
    /// Its config.json.
    pub config: &'static str,
}

/// All presets, in the order a list shows them.
pub const PRESETS: &[Preset] = &[
    Preset { name: "llama-3.1-8b", config: include_str!("../presets/llama-3.1-8b.json") },
    Preset { name: "llama-3.2-1b", config: include_str!("../presets/llama-3.2-1b.json") },
    Preset { name: "llama-3.2-3b", config: include_str!("../presets/llama-3.2-3b.json") },
    Preset { name: "smollm2-135m", config: include_str!("../presets/smollm2-135m.json") },
    Preset { name: "smollm2-360m", config: include_str!("../presets/smollm2-360m.json") },
    Preset { name: "smollm2-1.7b", config: include_str!("../presets/smollm2-1.7b.json") },
    Preset { name: "tinyllama-1.1b", config: include_str!("../presets/tinyllama-1.1b.json") },
];

impl Preset {
    /// The preset called `name`.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        PRESETS.iter().find(|preset| preset.name == name)
    }

    /// Its description.
    ///
    /// # Errors
    ///
    /// When its config.json is at fault, which a test rules out for [`PRESETS`].
    pub fn model(&self) -> Result<ModelConfig, Error> {
        ModelConfig::from_json(self.config)
    }
}

#[cfg(test)]
mod tests {
    use safetensors::Dtype;

    use super::*;

    #[test]
    fn parameters_are_as_published() {
        let published = [
            ("llama-3.1-8b", 8_030_261_248),
            ("llama-3.2-1b", 1_235_814_400),
            ("llama-3.2-3b", 3_212_749_824),
            ("smollm2-135m", 134_515_008),
            ("smollm2-360m", 361_821_120),
            ("smollm2-1.7b", 1_711_376_384),
            ("tinyllama-1.1b", 1_100_048_384),
        ];
        let ours: Vec<_> = PRESETS.iter().map(|p| (p.name, p.model().unwrap().parameters())).collect();
        assert_eq!(ours, published);
    }

    #[test]
    fn presets_carry_what_a_generation_needs() {
        for preset in PRESETS {
            let model = preset.model().unwrap();
            assert!(!model.eos.is_empty(), "{} has no eos id", preset.name);
            assert_eq!(model.dtype, Dtype::BF16, "{}", preset.name);
            assert_eq!(
                model.tied(),
                !matches!(preset.name, "llama-3.1-8b" | "tinyllama-1.1b"),
                "{}",
                preset.name
            );
        }
        let model = Preset::find("llama-3.2-1b").unwrap().model().unwrap();
        // 16 layers · (keys + values) · 8 heads · 64 · 2 bytes.
        assert_eq!(model.cache_elements_per_token(), 16_384);
    }

    #[test]
    fn an_unknown_name_finds_nothing() {
        assert_eq!(Preset::find("llama-3.2-1B"), None);
        assert_eq!(Preset::find(""), None);
    }
}
