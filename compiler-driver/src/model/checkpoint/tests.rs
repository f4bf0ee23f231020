use std::fs;

use mlxcel_artifacts::CONFIG_FILE;
use mlxcel_models::HF_QUANT_CONFIG_FILE;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::model::source::ModelSource;

const QUANTIZED: &str = "quantized_checkpoints/fixtures";

/// Returns a folder of the oracle.
fn oracle(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../models/oracle").join(folder)
}

/// Returns the folder of a fixture, which may be quantized.
fn fixture(name: &str) -> PathBuf {
    let folders = [QUANTIZED, "fixtures"].map(|folder| oracle(folder).join(name));
    folders.into_iter().find(|folder| folder.exists()).unwrap()
}

/// Returns a fixture's config.json.
fn config(name: &str) -> Value {
    serde_json::from_slice(&fs::read(fixture(name).join(CONFIG_FILE)).unwrap()).unwrap()
}

/// Returns the warnings for a config.json beside the tensors of a fixture.
fn warnings(config: &Value, tensors: &str) -> Result<Vec<String>, String> {
    let folder = TempDir::new().unwrap();
    fs::copy(fixture(tensors).join(SINGLE_FILE), folder.path().join(SINGLE_FILE)).unwrap();
    fs::write(folder.path().join(CONFIG_FILE), config.to_string()).unwrap();
    let model = ModelSource::Folder(folder.path().to_owned()).load().unwrap();
    let mut checkpoint = Checkpoint::open(folder.path()).unwrap().unwrap();
    let fitted = checkpoint.fit(model.config, "model", &Cancel::new());
    fitted.map(|(_, warnings)| warnings).map_err(|error| error.to_string())
}

/// Returns the first thing that is wrong with a config.json beside the tensors of a fixture.
fn problem(config: &Value, tensors: &str) -> String {
    let message = warnings(config, tensors).unwrap_err();
    message.lines().nth(1).unwrap().trim().to_owned()
}

#[test]
fn tensors_show_the_scheme_that_config_json_names() {
    let mut unknown = Vec::new();
    let mut names: Vec<_> =
        fs::read_dir(oracle(QUANTIZED)).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.retain(|folder| folder.join(SINGLE_FILE).exists());
    names.sort();
    for folder in &names {
        let name = folder.file_name().unwrap().to_str().unwrap();
        let model = ModelSource::Folder(folder.clone()).load().unwrap();
        let mut checkpoint = Checkpoint::open(folder).unwrap().unwrap();
        let shown = checkpoint.stored_tensors(&model.config).unwrap().shown_scheme();
        let claimed = model.config.scheme.as_ref().map(Scheme::name);
        if shown.is_none() {
            unknown.push(name);
        } else {
            assert_eq!(shown, claimed, "{name}");
        }
        let (_, warnings) = checkpoint.fit(model.config, name, &Cancel::new()).unwrap();
        assert!(!warnings.iter().any(|warning| warning.contains("excludes")), "{name}: {warnings:?}");
    }
    assert!(names.len() > 50);
    assert_eq!(unknown, ["ct-fp8-static", "ct-mxfp8", "fp8-auto", "modelopt-fp8", "modelopt-mxfp8"]);
}

#[test]
fn a_scheme_that_tensors_do_not_show_is_refused() {
    let [awq, gptq, mlx, fp8] = ["awq-group-32", "gptq-4bit", "mlx-4bit", "fp8-ragged"].map(config);
    let mut none = config("gptq-4bit");
    none.as_object_mut().unwrap().remove("quantization_config");
    let mut float = config("gqa");
    float["quantization_config"] = awq["quantization_config"].clone();
    assert_eq!(
        [
            problem(&awq, "gptq-4bit"),
            problem(&gptq, "awq-group-32"),
            problem(&fp8, "ct-w4a16"),
            problem(&mlx, "bnb-nf4"),
            problem(&none, "gptq-4bit"),
            problem(&float, "gqa"),
        ],
        [
            "found tensors of gptq, expected those of awq by config.json",
            "found tensors of awq, expected those of gptq by config.json",
            "found tensors of compressed-tensors, expected those of fp8 by config.json",
            "found tensors of bitsandbytes, expected those of mlx by config.json",
            "found tensors of gptq, expected no scheme by config.json",
            "no tensor is quantized, expected some, because config.json says awq",
        ]
    );
}

#[test]
fn modules_that_are_excluded_but_quantized_are_refused() {
    let mut config = config("awq-mixtral");
    config["quantization_config"]["modules_to_not_convert"] = json!(["gate", "q_proj"]);
    assert_eq!(
        problem(&config, "awq-mixtral"),
        "model.layers.0.self_attn.q_proj.weight: quantized, but config.json excludes `q_proj`, expected a float tensor"
    );
}

#[test]
fn excluded_modules_that_the_model_lacks_are_warned_of() {
    let mut config = config("awq-mixtral");
    let mut excluding = |names: Value| {
        config["quantization_config"]["modules_to_not_convert"] = names;
        warnings(&config, "awq-mixtral").unwrap()
    };
    assert_eq!(
        excluding(json!(["gate", "lm_head", "model.norm", "re:.*vision", "model.layers.*.norm"])),
        [""; 0]
    );
    assert_eq!(
        excluding(json!(["gate", "visual", "model.layers.7", "model.layers.0.self_attn.q"])),
        [
            "config.json excludes modules from quantization that the model does not have: visual, model.layers.7, \
          model.layers.0.self_attn.q"
        ]
    );
}

#[test]
fn settings_of_model_optimizer_may_have_a_file_of_their_own() {
    let folder = TempDir::new().unwrap();
    let path = |name| folder.path().join(name);
    let mut config = config("modelopt-mixed");
    let mut settings = config.as_object_mut().unwrap().remove("quantization_config").unwrap();
    settings.as_object_mut().unwrap().remove("quant_method");
    fs::copy(fixture("modelopt-mixed").join(SINGLE_FILE), path(SINGLE_FILE)).unwrap();
    fs::write(path(CONFIG_FILE), config.to_string()).unwrap();
    let load = || ModelSource::Folder(folder.path().to_owned()).load();
    assert!(load().unwrap().config.scheme.is_none());
    fs::write(path(HF_QUANT_CONFIG_FILE), json!({ "quantization": settings }).to_string()).unwrap();
    let model = load().unwrap();
    // The bundle's config.json has them too.
    assert!(model.json.contains("quantization_config"));
    let mut checkpoint = Checkpoint::open(folder.path()).unwrap().unwrap();
    checkpoint.fit(model.config, "model", &Cancel::new()).unwrap();
    fs::write(path(HF_QUANT_CONFIG_FILE), "{}").unwrap();
    let error = load().unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains("`quantization` is missing from hf_quant_config.json"), "{cause}");
}
