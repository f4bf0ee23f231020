//! Defaults and old spellings against transformers: a config.json and what transformers makes of it describe one model.
//!
//! `models/oracle/expand_configs.py` writes the expanded configurations.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::{collections::BTreeSet, fs, path::Path};

use mlxcel_models::{FAMILIES, ModelConfig};
use serde_json::Value;

#[test]
fn every_fixture_means_what_transformers_reads() {
    let oracle = Path::new(env!("CARGO_MANIFEST_DIR")).join("oracle");
    let expanded: Value =
        serde_json::from_str(&fs::read_to_string(oracle.join("expanded.json")).unwrap()).unwrap();
    let expanded = expanded["cases"].as_object().unwrap();
    let (mut cases, mut families) = (BTreeSet::new(), BTreeSet::new());
    for entry in fs::read_dir(oracle.join("fixtures")).unwrap() {
        let folder = entry.unwrap().path();
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        let text = fs::read_to_string(folder.join("config.json")).unwrap();
        let found = ModelConfig::from_json(&text).unwrap();
        let expected = ModelConfig::from_json(&expanded[&name].to_string())
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(found, expected, "{name}");
        families.insert(found.family);
        cases.insert(name);
    }
    assert_eq!(cases, expanded.keys().cloned().collect(), "expand_configs.py writes one case a fixture");
    let generating = FAMILIES.iter().map(|family| family.name.to_owned()).filter(|name| name != "bert");
    assert_eq!(families, generating.collect(), "every family that generates has a fixture");
    assert!(cases.len() >= 100);
}
