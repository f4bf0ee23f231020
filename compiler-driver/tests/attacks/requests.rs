//! Invalid requests.

use std::{fs, path::Path};

use mlxcel_compiler_driver::{CompilerLocation, Float, ModelSource, Precision, WeightSource};

use crate::sandbox::{CONFIG, Sandbox, names};

/// Returns the refusal of a request after `change`. The compiler must not have compiled.
fn refusal(change: impl FnOnce(&mut Sandbox)) -> String {
    let mut sandbox = Sandbox::new("works");
    change(&mut sandbox);
    let refusal = sandbox.refusal();
    assert!(sandbox.calls() <= 1, "the compiler was started");
    refusal
}

#[test]
fn targets() {
    assert_eq!(
        refusal(|sandbox| sandbox.request.targets.clear()),
        "error: found no target, expected at least one\nhint: `mlxcel-compile targets` lists the targets"
    );
    for name in ["../targets/cpu", "cuda\0", "cuda-sm_9000"] {
        let message = refusal(|sandbox| sandbox.request.targets.push(name.into()));
        let expected = format!("error: found no target `{}`, expected one such as ", name.escape_default());
        assert!(message.starts_with(&expected), "{message}");
    }
    assert_eq!(
        refusal(|sandbox| {
            sandbox.request.targets.push("vulkan".into());
            sandbox.request.precision = Precision::Float(Float::Bf16);
        }),
        "error: target vulkan cannot compute in bf16, expected f32\n\
         hint: choose --precision f32, or build a separate bundle for this target"
    );
}

#[test]
fn contexts() {
    for context in [0, 129, usize::MAX] {
        assert_eq!(
            refusal(|sandbox| sandbox.request.context = Some(context)),
            format!(
                "error: context of {context} tokens, expected 1 to 128 for model\n\
                 hint: choose --ctx-size between 1 and 128"
            )
        );
    }
}

/// The message names the unsupported feature that limits the context.
#[test]
fn contexts_beyond_the_limit_of_a_rope() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../models/oracle/fixtures/phi3-longrope");
    let refused = refusal(|sandbox| {
        sandbox.request.model = ModelSource::Folder(fixture);
        sandbox.request.context = Some(500);
    });
    let expected = "error: context of 500 tokens, expected 1 to 384 for phi3-longrope\n\
        not supported: sequences of 385 to 768 positions, for which longrope uses its `long_factor`\n\
        hint: choose --ctx-size between 1 and 384";
    assert_eq!(refused, expected);
}

#[test]
fn configs() {
    let with = |text: &[u8]| refusal(|sandbox| fs::write(sandbox.at("model/config.json"), text).unwrap());
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
        "error: …/model/config.json is damaged: found 2097152 bytes, expected at most 1048576\n\
         hint: download or copy the checkpoint again"
    );
    assert_eq!(
        refusal(|sandbox| fs::remove_file(sandbox.at("model/config.json")).unwrap()),
        "error: found no config.json in …/model, expected a checkpoint in Hugging Face's format\n\
         hint: pass the folder that contains config.json and the weights to --model"
    );
    // Reading a pipe without a writer would block forever.
    assert_eq!(
        refusal(|sandbox| {
            let path = sandbox.at("model/config.json");
            fs::remove_file(&path).unwrap();
            assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        }),
        "error: cannot read …/model/config.json: not a regular file"
    );
}

#[test]
fn destinations() {
    let message = refusal(|sandbox| {
        fs::create_dir(sandbox.at("out")).unwrap();
        fs::write(sandbox.at("out/thesis.tex"), "precious").unwrap();
    });
    assert!(message.starts_with("error: …/out exists and is a folder with other files"), "{message}");
    let message = refusal(|sandbox| fs::write(sandbox.at("out"), "precious").unwrap());
    assert!(message.starts_with("error: …/out exists and is a file"), "{message}");
}

#[test]
fn small_files() {
    for (name, text) in [("tokenizer.json", "{\"model\": {"), ("generation_config.json", "[]")] {
        let message = refusal(|sandbox| fs::write(sandbox.at("model").join(name), text).unwrap());
        let expected = format!("error: …/model/{name} is damaged: ");
        assert!(message.starts_with(&expected), "{message}");
        assert!(message.ends_with("\nhint: download or copy the checkpoint again"), "{message}");
    }
}

#[test]
fn compilers() {
    let message =
        refusal(|sandbox| sandbox.request.compiler = CompilerLocation::Executable(sandbox.at("none")));
    assert!(message.starts_with("error: found no iree-compile at …/none\nhint: "), "{message}");
    let message = Sandbox::new("older").refusal();
    assert!(message.starts_with("error: …/older is version 3.12.1, expected 3.13.0\nhint: "), "{message}");
}

#[test]
fn a_folder_without_weights() {
    assert_eq!(
        refusal(|sandbox| sandbox.request.weights = WeightSource::Folder(sandbox.at("model"))),
        "error: found no weights in …/model, expected model.safetensors or model.safetensors.index.json\n\
         hint: pass --weights none or --weights random to compile without them"
    );
}

#[test]
fn a_refusal_keeps_the_old_bundle() {
    let mut sandbox = Sandbox::new("works");
    sandbox.build().0.unwrap();
    sandbox.request.context = Some(0);
    sandbox.refusal();
    assert_eq!(names(&sandbox.at("")), ["model", "out", "works"]);
    mlxcel_artifacts::Bundle::open(&sandbox.at("out")).unwrap();
}
