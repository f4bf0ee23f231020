//! A temporary folder with a small model, a store and a fake compiler.
#![allow(dead_code, reason = "each test target uses its own part")]

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use mlxcel_artifacts::{Bundle, Store};
use mlxcel_compiler_driver::{
    Cancel, CompilerLocation, Error, Event, ModelSource, Precision, Quant, Request, WeightSource, build,
    write_random_weights,
};
use tempfile::TempDir;

/// A temporary folder: `model` in it is a small model, `out` does not exist.
pub(crate) struct Sandbox {
    folder: TempDir,
    /// Path of the fake compiler.
    pub(crate) compiler: PathBuf,
    /// The request to build. Tests change it.
    pub(crate) request: Request,
}

/// The config.json of the small model.
pub(crate) const CONFIG: &str = r#"{
  "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_act": "silu", "rms_norm_eps": 1e-5,
  "vocab_size": 64, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
  "num_key_value_heads": 1, "max_position_embeddings": 128, "tie_word_embeddings": true, "dtype": "float32",
  "bos_token_id": 1, "eos_token_id": 2
}"#;

impl Sandbox {
    /// Creates the small model without weights, to be compiled for `cuda` by the fake compiler of this name.
    pub(crate) fn new(compiler: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("model")).unwrap();
        fs::write(at("model/config.json"), CONFIG).unwrap();
        let link = at(compiler);
        symlink(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fakes/iree-compile"), &link).unwrap();
        let request = Request {
            model: ModelSource::Folder(at("model")),
            targets: vec!["cuda".into()],
            weights: WeightSource::Model,
            precision: Precision::Auto,
            quant: Quant::None,
            input_bits: None,
            cache_type: None,
            context: None,
            chunk: None,
            separate_kernels: false,
            pack_elements: None,
            is_lean: false,
            calibration: false,
            out: Some(at("out")),
            dump_dir: None,
            store: Some(Store::new(at("store"), None).unwrap()),
            compiler: CompilerLocation::Executable(link.clone()),
            cancel: Cancel::new(),
        };
        Self { folder, compiler: link, request }
    }

    /// Creates the small model with random weights.
    pub(crate) fn with_weights() -> Self {
        let sandbox = Self::new("works");
        write_random_weights(&sandbox.request.model, 0, &sandbox.at("random"), &Cancel::new()).unwrap();
        fs::rename(sandbox.at("random/model.safetensors"), sandbox.at("model/model.safetensors")).unwrap();
        fs::remove_dir_all(sandbox.at("random")).unwrap();
        sandbox
    }

    /// Returns a path in the folder.
    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Builds the request. Returns the bundle and the events.
    pub(crate) fn build(&self) -> (Result<Bundle, Error>, Vec<Event>) {
        let mut events = Vec::new();
        let bundle = build(&self.request, &mut |event| events.push(event));
        (bundle, events)
    }

    /// Builds the request, which must fail without leaving files. Returns the message, with the folder's path as `…`.
    pub(crate) fn refusal(&self) -> String {
        let before = names(self.folder.path());
        let (bundle, _) = self.build();
        let error = bundle.expect_err("it was built");
        let mut after = names(self.folder.path());
        after.retain(|name| name != "store" && !name.ends_with(".log"));
        assert_eq!(after, before, "something was left behind");
        mlxcel_artifacts::report(&error).replace(&self.folder.path().display().to_string(), "…")
    }

    /// Counts the starts of the compiler.
    pub(crate) fn calls(&self) -> usize {
        let log = format!("{}.log", self.compiler.display());
        fs::read_to_string(log).map_or(0, |log| log.lines().count())
    }
}

/// Returns the sorted names in a folder, without the store and the fake compiler's log.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| name != "store" && !name.ends_with(".log"));
    names.sort();
    names
}
