//! Fuzzes config.json and sentence-transformers' files: each gives a valid description or an error.
#![no_main]

use std::collections::HashSet;

use libfuzzer_sys::fuzz_target;
use mlxcel_models::{ModelConfig, Modules, Pooling};

/// Tensors of models with more layers are not listed, to keep inputs fast.
const LAYERS_MAX: usize = 64;

fuzz_target!(|text: &str| {
    _ = Modules::from_json(text);
    _ = Pooling::from_json(text, true, 64);
    let Ok(model) = ModelConfig::from_json(text) else { return };
    assert!(model.vocab > 0 && model.hidden > 0 && model.max_positions > 0 && !model.blocks.is_empty());
    _ = model.cache_elements_per_token();
    if model.blocks.len() <= LAYERS_MAX {
        let weights = model.weights();
        assert!(weights.iter().all(|weight| weight.elements() > 0));
        let names = weights.into_iter().map(|weight| weight.name.clone()).collect::<HashSet<_>>();
        _ = model.with_tensors(|name| names.contains(name));
    }
});
