//! Presets: well-known models by name, which compile without any file of theirs.

use crate::{
    config::ModelConfig,
    error::Error,
    head::{Head, Pooling},
};

/// A published model: its name, and its config.json reduced to the keys of the architecture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    /// Name, such as `llama-3.2-1b`.
    pub name: &'static str,
    /// Text of its config.json.
    pub config: &'static str,
    /// Text of the pooling's config.json of sentence-transformers. Embeddings are then normalized.
    pub pooling: Option<&'static str>,
}

/// All presets, sorted by name: the files in `presets/`.
pub const PRESETS: &[Preset] = include!(concat!(env!("OUT_DIR"), "/presets.rs"));

impl Preset {
    /// Returns the preset called `name`.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        PRESETS.iter().find(|preset| preset.name == name)
    }

    /// Returns the description of the model.
    ///
    /// # Errors
    ///
    /// The config.json is invalid, which a test rules out for [`PRESETS`].
    pub fn model(&self) -> Result<ModelConfig, Error> {
        let mut model = ModelConfig::from_json(self.config)?;
        if let Some(pooling) = self.pooling {
            model.head = Head::Pooling(Pooling::from_json(pooling, true, model.hidden)?);
        }
        Ok(model)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_parameters_are_those_published() {
        let published: Vec<_> = include_str!("../tests/fixtures/parameters.txt").lines().collect();
        assert!(published.is_sorted(), "models/tests/fixtures/parameters.txt is not sorted");
        let ours = PRESETS.iter().map(|preset| {
            let parameters = preset.model().unwrap().parameters();
            format!("{} {parameters}", preset.name)
        });
        let ours: Vec<_> = ours.collect();
        let lacking: Vec<_> = ours.iter().filter(|line| !published.contains(&line.as_str())).collect();
        let more: Vec<_> = published.iter().filter(|line| !ours.iter().any(|ours| ours == *line)).collect();
        assert!(
            lacking.is_empty() && more.is_empty(),
            "models/tests/fixtures/parameters.txt lacks {lacking:#?} and has {more:#?} that no preset has\n\
             hint: compare the number with the one that the model's authors publish, then add the line in order"
        );
    }

    #[test]
    fn presets_have_end_tokens_or_a_pooling() {
        for preset in PRESETS {
            let model = preset.model().unwrap();
            let generates = matches!(model.head, Head::Logits(_));
            assert_eq!(generates, !model.eos.is_empty(), "{}", preset.name);
            assert_eq!(generates, preset.pooling.is_none(), "{}", preset.name);
        }
        let model = Preset::find("llama-3.2-1b").unwrap().model().unwrap();
        // 16 layers · (keys + values) · 8 heads · 64 · 2 bytes.
        assert_eq!(model.cache_elements_per_token(), [(None, 16_384)].into());
        let windows = Preset::find("gemma-2-2b").unwrap().model().unwrap().cache_elements_per_token();
        // 13 layers of each kind · (keys + values) · 4 heads · 256.
        assert_eq!(windows, [(None, 26_624), (Some(4096), 26_624)].into());
    }

    #[test]
    fn an_unknown_name_finds_nothing() {
        assert_eq!(Preset::find("llama-3.2-1B"), None);
        assert_eq!(Preset::find(""), None);
    }
}
