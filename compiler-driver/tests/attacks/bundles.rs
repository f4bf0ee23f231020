//! Complete bundles of the real compiler that cannot run as asked, and invalid requests to a running engine.

use std::{fs, path::Path};

use mlxcel_artifacts::{Blob, Bundle, Digest, Machine, report};
use mlxcel_compiler_driver::{Request, WeightSource};
use mlxcel_runtime::{Error, LoadOptions, StopReason, Weights};

use crate::{
    answers::{Loaded, engine, greedy, on},
    real::{Built, Fixture, built, fixtures, request},
};

/// Builds the bundle of a fixture for one target.
///
/// It is one that other tests build too. All sizes of calls take long to compile for others than `cpu`.
fn bundle(fixture: &str, target: &str) -> Built {
    built_for(fixture, &[target], (target != "cpu").then_some(32))
}

fn built_for(fixture: &str, targets: &[&str], chunk: Option<usize>) -> Built {
    built(&Request { chunk, ..request(&fixtures().join(fixture), targets) })
}

/// Changes the manifest's text, and opens the bundle again.
fn edit(built: &mut Built, change: impl Fn(&str) -> String) {
    let path = built.bundle.path().join("manifest.toml");
    let text = fs::read_to_string(&path).unwrap();
    let changed = change(&text);
    assert_ne!(changed, text);
    fs::write(&path, changed).unwrap();
    built.bundle = Bundle::open(built.bundle.path()).unwrap();
}

/// Replaces a blob by `bytes`, with a correct digest.
fn replace_blob(built: &mut Built, old: Blob, bytes: &[u8]) {
    let digest = Digest::of(bytes);
    fs::write(built.bundle.path().join("blobs").join(digest.hex()), bytes).unwrap();
    edit(built, |text| {
        text.replace(&old.digest.to_string(), &digest.to_string())
            .replace(&format!("size = {}\n", old.size), &format!("size = {}\n", bytes.len()))
    });
}

fn vmfb(built: &Built) -> Blob {
    built.bundle.manifest().targets.values().next().unwrap().vmfb
}

fn failure(result: Result<Loaded, Error>) -> String {
    let Err(error) = result else { panic!("it was loaded") };
    report(&error)
}

/// Asserts that the answer to the shortest prompt is the recorded one.
fn assert_works(engine: &mut Loaded, fixture: &str) {
    let recorded = &Fixture::find(fixture).prompts[0];
    assert_eq!(greedy(engine, &recorded.prompt, 40).unwrap().tokens, recorded.tokens);
}

#[test]
fn a_flipped_byte_anywhere() {
    let built = bundle("gqa", "cpu");
    let manifest = built.bundle.manifest().clone();
    let (weights, vmfb) = (manifest.weights["model.safetensors"], vmfb(&built));
    for (what, blob) in [("weights file model.safetensors", weights), ("vmfb of target cpu", vmfb)] {
        let path = built.bundle.blob_path(&blob);
        let whole = fs::read(&path).unwrap();
        for at in [0, whole.len() / 2, whole.len() - 1] {
            let mut flipped = whole.clone();
            flipped[at] ^= 4;
            fs::write(&path, &flipped).unwrap();
            let error = report(&Bundle::open(built.bundle.path()).unwrap_err());
            let expected = format!(
                "error: {what} has digest {}, expected {}\n\
                 hint: the bundle is damaged: copy all of its files again, or compile it again with `mlxcel-compile`",
                Digest::of(&flipped),
                blob.digest
            );
            assert_eq!(error, expected);
        }
        fs::write(&path, whole).unwrap();
    }
    Bundle::open(built.bundle.path()).unwrap();
}

#[test]
fn a_module_that_is_cut_off_or_something_else() {
    for kept in [1, 64, 5000] {
        let mut built = bundle("gqa", "cpu");
        let old = vmfb(&built);
        let bytes = fs::read(built.bundle.blob_path(&old)).unwrap();
        replace_blob(&mut built, old, &bytes[..kept]);
        let refusal = built.refusal("local-task");
        assert!(refusal.starts_with("error: the vmfb of target cpu is damaged: "), "{kept}: {refusal}");
    }
    let mut built = bundle("gqa", "cpu");
    let old = vmfb(&built);
    replace_blob(&mut built, old, b"just a text, and no module");
    assert!(built.refusal("local-task").starts_with("error: the vmfb of target cpu is damaged: "));
}

#[test]
fn a_bit_that_changed_before_the_digest_was_computed() {
    // Positions spread over the file: the module, the CPU's code, which IREE does not verify, and the rest.
    const PLACES: usize = 60;
    let mut built = bundle("gqa", "cpu");
    let old = vmfb(&built);
    let bytes = fs::read(built.bundle.blob_path(&old)).unwrap();
    let manifest = built.bundle.path().join("manifest.toml");
    let whole = fs::read(&manifest).unwrap();
    let mut refused = 0;
    for place in 1..=PLACES {
        fs::write(&manifest, &whole).unwrap();
        let mut changed = bytes.clone();
        let at = bytes.len() * place / (PLACES + 1);
        changed[at] ^= 1 << (place % 8);
        replace_blob(&mut built, old, &changed);
        match engine(&built.bundle, None, &on("local-task")) {
            // Padding between the parts of the file is never read.
            Ok(mut engine) => assert_works(&mut engine, "gqa"),
            Err(error) => {
                let error = report(&error);
                assert!(error.starts_with("error: the vmfb of target cpu is damaged: "), "{at}: {error}");
                refused += 1;
            }
        }
    }
    assert!(refused > PLACES * 9 / 10, "{refused} of {PLACES}");
}

#[test]
fn a_cpu_that_is_not_this_one() {
    let machine = Machine::host();
    let other = if machine.arch == "aarch64" { "cpu-x86-64-v3" } else { "cpu-aarch64" };
    let mut built = bundle("gqa", other);
    let its = built.bundle.manifest().targets[other].arch.clone();
    for (device, place) in
        [("auto", "here"), ("local-task", "on local-task"), ("local-sync", "on local-sync")]
    {
        assert_eq!(
            built.refusal(device),
            format!(
                "error: no target of this bundle runs {place}\n  \
                 {other}: compiled for {its}, the cpu is {}\n\
                 hint: compile the bundle for this machine, e.g. with --target cpu",
                machine.arch
            )
        );
    }
    // A manifest with a wrong architecture.
    let features = built.bundle.manifest().targets[other].cpu_features.clone();
    edit(&mut built, |text| {
        let text = text.replace(&format!("arch = \"{its}\""), &format!("arch = \"{}\"", machine.arch));
        let list = features.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
        text.replace(&format!("cpu_features = [{list}]\n"), "")
    });
    assert!(built.refusal("local-task").starts_with("error: cannot load the packing module: "));
}

#[test]
fn instructions_that_this_cpu_lacks() {
    let machine = Machine::host();
    let built = bundle("gqa", "cpu-x86-64-v4");
    if machine.cpu_features.contains("avx512vl") {
        return assert_works(&mut built.engine("local-task").unwrap(), "gqa");
    }
    let message = built.refusal("local-task");
    let reason = if machine.arch == "x86_64" { "the cpu lacks avx512bw, " } else { "compiled for x86_64, " };
    assert!(message.contains(&format!("\n  cpu-x86-64-v4: {reason}")), "{message}");
    assert!(message.ends_with("\nhint: compile the bundle for this machine, e.g. with --target cpu"));
}

#[test]
fn a_device_that_the_bundle_is_not_for() {
    let built = bundle("gqa", "vulkan");
    for device in ["local-task", "local-sync"] {
        assert_eq!(
            built.refusal(device),
            format!(
                "error: no target of this bundle is for the device {device}: found vulkan (vulkan), expected one of the \
                 driver local\n\
                 hint: leave out --device, or compile the bundle again with --target cpu"
            )
        );
    }
    let built = bundle("gqa", "cpu");
    assert_eq!(
        built.refusal("vulkan"),
        "error: no target of this bundle is for the device vulkan: found cpu (local), expected one of the driver vulkan\n\
         hint: leave out --device, or compile the bundle again with --target vulkan"
    );
}

#[test]
fn no_such_device() {
    let built = bundle("gqa", "vulkan");
    let message = built.refusal("vulkan:99");
    assert!(message.starts_with("error: cannot use the device vulkan:99: "), "{message}");
    assert!(message.contains("\nhint: there is vulkan:0 ("), "{message}");

    let both = built_for("gqa", &["cpu", "cuda"], Some(32));
    match both.engine("cuda") {
        // This machine has a CUDA device.
        Ok(mut engine) => assert_works(&mut engine, "gqa"),
        Err(error) => {
            let message = both.shown(&error);
            assert!(message.starts_with("error: cannot use the device cuda: "), "{message}");
            assert!(message.contains("\nhint: ") && message.contains("--device local-task"), "{message}");
            assert_works(&mut both.engine("auto").unwrap(), "gqa");
        }
    }
}

#[test]
fn tokens_that_do_not_fit() {
    let built = bundle("gqa", "cpu");
    let mut loaded = built.engine("local-task").unwrap();
    let mut refused = |prompt: &[u32]| report(&greedy(&mut loaded, prompt, 1).unwrap_err());
    assert_eq!(
        refused(&[]),
        "error: the prompt has no tokens, expected at least one\n\
         hint: give a text with -p, -f or on standard input, or ids with --tokens"
    );
    let hint = "hint: give ids of the model's own tokenizer";
    assert_eq!(
        refused(&[1, 131]),
        format!("error: token 2 of the prompt has the id 131, expected 0 to 130\n{hint}")
    );
    assert_eq!(
        refused(&[u32::MAX]),
        format!("error: token 1 of the prompt has the id 4294967295, expected 0 to 130\n{hint}")
    );
    assert!(
        refused(&[1; 513])
            .starts_with("error: 513 tokens, expected at most 512, the size of the context\nhint: ")
    );
    assert!(matches!(loaded.runner().logits(0), Err(Error::NoLogits)));
    assert!(loaded.is_idle());

    let full = greedy(&mut loaded, &[1; 512], 9).unwrap();
    assert_eq!((full.tokens.len(), full.stop_reason), (1, StopReason::Context));
    assert_works(&mut loaded, "gqa");
    // Requests that the cache never holds are refused, and others go on.
    let small = LoadOptions { cache: "64KiB".parse().unwrap(), ..on("local-task") };
    let mut small = engine(&built.bundle, None, &small).unwrap();
    let pages = small.limits().pools[0].pages;
    assert!(pages < 8, "{pages}");
    let refused = report(&greedy(&mut small, &[1; 512], 1).unwrap_err());
    assert_eq!(
        refused,
        format!(
            "error: the request needs 8 pages, expected at most {pages}\n\
             hint: shorten the prompt, lower the largest number of tokens, or give a larger --cache-size"
        )
    );
    assert_works(&mut small, "gqa");

    let weights = || Weights::from_bundle(&built.bundle).unwrap();
    for context in [0, 513] {
        let options = LoadOptions { context: Some(context), ..on("local-task") };
        assert!(failure(engine(&built.bundle, Some(weights()), &options)).starts_with(&format!(
            "error: context of {context} tokens, expected 1 to 512\nhint: the bundle was compiled for 512"
        )));
    }
    let options = LoadOptions { context: Some(40), ..on("local-task") };
    let mut short = engine(&built.bundle, Some(weights()), &options).unwrap();
    let error = greedy(&mut short, &[1; 41], 1).unwrap_err();
    assert!(matches!(error, Error::TooLong { tokens: 41, context: 40 }));
}

#[test]
fn weights_of_another_model() {
    let model = fixtures().join("bf16");
    let built = built(&Request { weights: WeightSource::None, ..request(&model, &["cpu"]) });
    assert_eq!(
        built.refusal("local-task"),
        "error: …/bundle carries no weights\nhint: name the checkpoint's folder, or a safetensors file, with --weights"
    );
    let with = |folder: &Path| engine(&built.bundle, Some(Weights::from_folder(folder)?), &on("local-task"));
    // It was compiled for the types in config.json.
    assert_works(&mut with(&model).unwrap(), "bf16");

    let hint = "\nhint: give the checkpoint that the bundle was compiled from, or compile it for this one";
    let parameters = built.bundle.manifest().parameters.len();
    let message = failure(with(&fixtures().join("rope-theta")));
    let first = format!("error: the weights do not fit the bundle: {parameters} of {parameters} tensors\n  ");
    assert!(message.starts_with(&first) && message.ends_with(hint), "{message}");
    // Eight tensors are listed, the rest is counted.
    assert_eq!(message.lines().count(), 1 + 8 + 1 + 1);
    assert!(message.contains(&format!("\n  and {} more\n", parameters - 8)), "{message}");
    assert!(message.contains("layernorm.weight: f32[32], expected bf16[32]\n"), "{message}");

    let message = failure(with(&fixtures().join("wide-heads")));
    assert!(message.contains(": bf16[48,30], expected bf16[32,32]\n"), "{message}");
}

#[test]
fn weights_without_tensors_that_are_needed() {
    let built = bundle("all-biases", "cpu");
    let weights = Weights::from_folder(&fixtures().join("bf16")).unwrap();
    let message = failure(engine(&built.bundle, Some(weights), &on("local-task")));
    let parameters = built.bundle.manifest().parameters.len();
    // Two layers have seven biases each.
    let first = format!("error: the weights do not fit the bundle: 14 of {parameters} tensors\n  ");
    assert!(message.starts_with(&first), "{message}");
    assert!(
        message.contains("\n  model.layers.0.mlp.up_proj.bias: missing, expected bf16[80]\n"),
        "{message}"
    );
    // Additional tensors are ignored.
    let built = bundle("bf16", "cpu");
    let weights = Weights::from_folder(&fixtures().join("all-biases")).unwrap();
    assert_eq!(weights.check(&built.bundle.manifest().parameters).unwrap().len(), 14);
    let mut engine = engine(&built.bundle, Some(weights), &on("local-task")).unwrap();
    greedy(&mut engine, &[1], 1).unwrap();
}

#[test]
fn weights_that_are_cut_off_at_run_time() {
    let folder = tempfile::tempdir().unwrap();
    let built = bundle("gqa", "cpu");
    let whole = fs::read(fixtures().join("gqa/model.safetensors")).unwrap();
    for kept in [0, 7, 8, 100, whole.len() - 1] {
        fs::write(folder.path().join("model.safetensors"), &whole[..kept]).unwrap();
        let error = report(&Weights::from_folder(folder.path()).unwrap_err());
        assert!(error.contains("model.safetensors is damaged: "), "{kept}: {error}");
    }
    fs::write(folder.path().join("model.safetensors"), &whole).unwrap();
    let weights = Weights::from_folder(folder.path()).unwrap();
    // The mapping stays valid after the file is removed.
    folder.close().unwrap();
    assert_works(&mut engine(&built.bundle, Some(weights), &on("local-task")).unwrap(), "gqa");
}

#[test]
fn another_iree() {
    let mut built = bundle("gqa", "cpu");
    edit(&mut built, |text| text.replace("version = \"3.13.0\"", "version = \"3.12.0\""));
    assert_eq!(
        built.refusal("local-task"),
        "error: the bundle was compiled by iree 3.12.0, expected iree 3.13.0\n\
         hint: compile the bundle again with this version"
    );
}
