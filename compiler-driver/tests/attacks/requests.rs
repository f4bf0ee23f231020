//! Wrong requests.

use std::{fs, path::Path};

use mlxcel_compiler_driver::{Float, ModelSource, Precision, WeightSource};

use crate::common::{CONFIG, Place, names};

/// The refusal of a request after `change`; the compiler must not have compiled.
fn refusal(change: impl FnOnce(&mut Place)) -> String {
    let mut place = Place::new("works");
    change(&mut place);
    let refusal = place.refusal();
    assert!(place.calls() <= 1, "the compiler was started");
    refusal
}

#[test]
fn targets() {
    assert_eq!(
        refusal(|place| place.request.targets.clear()),
        "error: found no target, expected at least one\nhint: --list-targets says what each target is"
    );
    for name in ["../targets/cpu", "cuda\0", "cuda-sm_9000"] {
        let message = refusal(|place| place.request.targets.push(name.into()));
        let expected = format!("error: found no target `{}`, expected one of cpu, ", name.escape_default());
        assert!(message.starts_with(&expected), "{message}");
    }
    assert_eq!(
        refusal(|place| {
            place.request.targets.push("vulkan".into());
            place.request.precision = Precision::Float(Float::Bf16);
        }),
        "error: target vulkan cannot compute in bf16, expected f32\n\
         hint: choose --precision f32, or make a bundle of its own for this target"
    );
}

#[test]
fn contexts() {
    for context in [0, 129, usize::MAX] {
        assert_eq!(
            refusal(|place| place.request.context = Some(context)),
            format!(
                "error: context of {context} tokens, expected 1 to 128 for model\n\
                 hint: choose --ctx between 1 and 128"
            )
        );
    }
}

/// What a rope could do beyond its limit is named.
#[test]
fn contexts_that_a_rope_is_not_exact_for() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../models/oracle/fixtures/phi3-longrope");
    let refused = refusal(|place| {
        place.request.model = ModelSource::Folder(fixture);
        place.request.context = Some(500);
    });
    let expected = "error: context of 500 tokens, expected 1 to 384 for phi3-longrope\n\
        not supported: sequences of 385 to 768 positions, for which longrope uses its `long_factor`\n\
        hint: choose --ctx between 1 and 384";
    assert_eq!(refused, expected);
}

#[test]
fn configs() {
    let with = |text: &[u8]| refusal(|place| fs::write(place.at("model/config.json"), text).unwrap());
    let message = with(CONFIG.replace("llama", "mamba").as_bytes());
    assert!(message.starts_with("error: cannot describe the model of …/model/config.json: "), "{message}");
    assert!(message.contains("mamba") && message.contains("llama"), "{message}");
    let message = with(b"{");
    assert!(message.contains("config.json is not valid JSON"), "{message}");
    let message = with(b"\xff\xfe");
    assert!(message.starts_with("error: …/model/config.json is damaged: invalid utf-8"), "{message}");
    let message = with(&vec![b' '; 2 << 20]);
    assert_eq!(
        message,
        "error: …/model/config.json is damaged: found more than 1048576 bytes, expected fewer\n\
         hint: download or copy the checkpoint again"
    );
    assert_eq!(
        refusal(|place| fs::remove_file(place.at("model/config.json")).unwrap()),
        "error: found no config.json in …/model, expected a checkpoint in Hugging Face's form\n\
         hint: --model names the folder that config.json and the weights lie in"
    );
    // A pipe that nobody writes to would be waited for without end.
    assert_eq!(
        refusal(|place| {
            let path = place.at("model/config.json");
            fs::remove_file(&path).unwrap();
            assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        }),
        "error: cannot read …/model/config.json: not a regular file"
    );
}

#[test]
fn destinations() {
    let message = refusal(|place| {
        fs::create_dir(place.at("out")).unwrap();
        fs::write(place.at("out/thesis.tex"), "precious").unwrap();
    });
    assert!(message.starts_with("error: …/out exists and is a folder with other files"), "{message}");
    let message = refusal(|place| fs::write(place.at("out"), "precious").unwrap());
    assert!(message.starts_with("error: …/out exists and is a file"), "{message}");
}

#[test]
fn small_files() {
    for (name, text) in [("tokenizer.json", "{\"model\": {"), ("generation_config.json", "[]")] {
        let message = refusal(|place| fs::write(place.at("model").join(name), text).unwrap());
        let expected = format!("error: …/model/{name} is damaged: ");
        assert!(message.starts_with(&expected), "{message}");
        assert!(message.ends_with("\nhint: download or copy the checkpoint again"), "{message}");
    }
}

#[test]
fn compilers() {
    let message = refusal(|place| place.request.compiler = Some(place.at("none")));
    assert!(message.starts_with("error: found no iree-compile at …/none\nhint: "), "{message}");
    let message = Place::new("older").refusal();
    assert!(message.starts_with("error: …/older is version 3.12.1, expected 3.13.0\nhint: "), "{message}");
}

#[test]
fn a_folder_without_weights() {
    assert_eq!(
        refusal(|place| place.request.weights = WeightSource::Folder(place.at("model"))),
        "error: found no weights in …/model, expected model.safetensors or model.safetensors.index.json\n\
         hint: choose --weights none or --weights random to compile without them"
    );
}

#[test]
fn a_refusal_leaves_an_older_bundle_alone() {
    let mut place = Place::new("works");
    place.build().0.unwrap();
    place.request.context = Some(0);
    place.refusal();
    assert_eq!(names(&place.at("")), ["model", "out", "works"]);
    mlxcel_artifacts::Bundle::open(&place.at("out")).unwrap();
}
