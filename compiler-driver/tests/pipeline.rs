//! Builds of bundles with a fake compiler.

use std::{fs, path::Path};

use crate::sandbox::{CONFIG, Sandbox, names};
use mlxcel_artifacts::Store;
use mlxcel_compiler_driver::{
    Cancel, Error, Event, Float, ModelSource, Precision, WeightSource, emit, write_random_weights,
};
use safetensors::{Dtype, SafeTensors, tensor::TensorView};

#[test]
fn a_bundle_contains_what_the_request_names() {
    let mut sandbox = Sandbox::with_weights();
    for (name, text) in [("tokenizer.json", "{}"), ("generation_config.json", "{ }"), ("README.md", "no")] {
        fs::write(sandbox.at("model").join(name), text).unwrap();
    }
    sandbox.request.targets = ["cuda", "cpu-aarch64", "cuda"].map(Into::into).to_vec();
    sandbox.request.context = Some(100);
    let (bundle, events) = sandbox.build();
    let bundle = bundle.unwrap();
    assert_eq!(bundle.path(), sandbox.at("out"));
    // Only the store of the build knows that the bundle was built here.
    for (store, built_here) in [("store", true), ("another", false)] {
        let store = Store::new(sandbox.at(store), None).unwrap();
        assert_eq!(store.open(bundle.path()).unwrap().was_built_here(), built_here);
    }
    let bundle = mlxcel_artifacts::Bundle::open(bundle.path()).unwrap();
    assert!(!bundle.was_built_here());

    let manifest = bundle.manifest();
    assert_eq!((manifest.model.as_str(), manifest.family.as_str()), ("model", "llama"));
    let plan = manifest.model_spec().unwrap();
    assert_eq!(plan.precision, Float::F32);
    assert_eq!((plan.batch, plan.context, plan.vocab), (None, 100, 64));
    assert_eq!(manifest.compiler.version, "3.13.0");
    assert_eq!(
        manifest.files.keys().collect::<Vec<_>>(),
        ["config.json", "generation_config.json", "tokenizer.json"]
    );
    assert_eq!(manifest.weights.keys().collect::<Vec<_>>(), ["model.safetensors"]);
    assert_eq!(manifest.parameters.len(), 20);
    assert!(!manifest.targets["cuda"].entries.is_empty());

    assert_eq!(manifest.targets.keys().collect::<Vec<_>>(), ["cpu-aarch64", "cuda"]);
    let arm = &manifest.targets["cpu-aarch64"];
    assert_eq!((arm.arch.as_str(), arm.cpu_features.join(" ")), ("aarch64", "dotprod fullfp16 neon".into()));
    let vmfb = fs::read_to_string(bundle.blob_path(&arm.vmfb)).unwrap();
    assert!(vmfb.contains(&arm.flags.join(" ")), "{vmfb}");

    let compiled = events.iter().filter(|event| matches!(event, Event::Compiled { .. })).count();
    // The CPU has a second module, which packs weights. One more call asked for the compiler's version.
    assert_eq!((compiled, sandbox.calls()), (3, 4), "a target named twice is compiled once");
    assert!(arm.packing.is_some() && manifest.targets["cuda"].packing.is_none());
    assert!(!events.iter().any(|event| matches!(event, Event::Warning(_))), "{events:?}");
}

#[test]
fn modules_in_the_store_are_not_compiled_again() {
    let mut sandbox = Sandbox::new("works");
    sandbox.request.weights = WeightSource::None;
    let first = sandbox.build().0.unwrap().manifest().clone();
    let calls = sandbox.calls();
    let (bundle, events) = sandbox.build();
    assert_eq!(*bundle.unwrap().manifest(), first);
    // The compiler of tests is a script, which is asked for its version every time.
    assert_eq!(sandbox.calls(), calls + 1);
    assert!(matches!(&events[..], [Event::Emitted { .. }, Event::Cached { target, .. }] if target == "cuda"));

    // A changed module is compiled.
    sandbox.request.precision = Precision::Float(Float::Bf16);
    sandbox.build().0.unwrap();
    sandbox.request.context = Some(64);
    sandbox.build().0.unwrap();
    assert_eq!(sandbox.calls(), calls + 5);

    // A damaged entry counts as missing.
    for blob in fs::read_dir(sandbox.at("store/blobs")).unwrap() {
        let path = blob.unwrap().path();
        fs::remove_file(&path).unwrap();
        fs::write(path, "damaged").unwrap();
    }
    sandbox.build().0.unwrap();
    assert_eq!(sandbox.calls(), calls + 7, "once for the version, once for the module");
}

/// Objects with the kernels of the module.
const KERNELS: [&str; 15] = [
    "cuda_append_f32-sm_80.ptx",
    "cuda_argmax-sm_80.ptx",
    "cuda_copy_f32-sm_80.ptx",
    "cuda_decode_attention_f32_64-sm_80.ptx",
    "cuda_embed_f32-sm_80.ptx",
    "cuda_gather-sm_80.ptx",
    "cuda_matmul_f32_medium_1-sm_80.ptx",
    "cuda_matvec_add_f32-sm_80.ptx",
    "cuda_norm_gated_f32-sm_80.ptx",
    "cuda_norm_matvec_f32_1-sm_80.ptx",
    "cuda_norm_matvec_f32_3-sm_80.ptx",
    "cuda_norm_rows-sm_80.ptx",
    "cuda_prefill_attention_f32_64-sm_80.ptx",
    "cuda_rotation-sm_80.ptx",
    "cuda_stage-sm_80.ptx",
];

#[test]
fn intermediates_are_saved_in_the_dump_dir() {
    let mut sandbox = Sandbox::new("works");
    sandbox.request.dump_dir = Some(sandbox.at("dump/here"));
    for _ in ["compiled", "from the store"] {
        let bundle = sandbox.build().0.unwrap();
        let dump_dir = sandbox.at("dump/here");
        assert_eq!(names(&dump_dir), [&["cuda.flags", "cuda.mlir", "cuda.vmfb"][..], &KERNELS].concat());
        let cuda = &bundle.manifest().targets["cuda"];
        let flags = fs::read_to_string(dump_dir.join("cuda.flags")).unwrap();
        assert_eq!(flags.lines().collect::<Vec<_>>(), cuda.flags);
        assert_eq!(
            fs::read(dump_dir.join("cuda.vmfb")).unwrap(),
            fs::read(bundle.blob_path(&cuda.vmfb)).unwrap()
        );
        let mlir = emit(&sandbox.request, &mut |_| {}).unwrap().mlir;
        assert_eq!(fs::read_to_string(dump_dir.join("cuda.mlir")).unwrap(), mlir);
        fs::remove_dir_all(dump_dir).unwrap();
    }
}

#[test]
fn random_weights_are_equal_in_a_bundle_and_a_folder() {
    let mut sandbox = Sandbox::new("works");
    sandbox.request.weights = WeightSource::Random(5);
    let bundle = sandbox.build().0.unwrap();
    let (_, in_bundle) = bundle.weights().unwrap().remove(0);
    write_random_weights(&sandbox.request.model, 5, &sandbox.at("random"), &Cancel::new()).unwrap();
    assert_eq!(names(&sandbox.at("random")), ["config.json", "model.safetensors"]);
    assert_eq!(fs::read_to_string(sandbox.at("random/config.json")).unwrap(), CONFIG);
    let in_folder = fs::read(sandbox.at("random/model.safetensors")).unwrap();
    assert!(fs::read(in_bundle).unwrap() == in_folder);

    let error =
        write_random_weights(&sandbox.request.model, 6, &sandbox.at("random"), &Cancel::new()).unwrap_err();
    assert!(matches!(error, Error::Occupied { .. }));
    assert!(fs::read(sandbox.at("random/model.safetensors")).unwrap() == in_folder);
}

#[test]
fn weights_in_another_folder_bring_their_tokenizer() {
    let sandbox = Sandbox::new("works");
    let source = ModelSource::find("smollm2-135m").unwrap();
    assert!(matches!(source, ModelSource::Preset(_)));
    write_random_weights(&sandbox.request.model, 0, &sandbox.at("elsewhere"), &Cancel::new()).unwrap();
    fs::write(sandbox.at("elsewhere/tokenizer.json"), "{}").unwrap();
    let mut sandbox = sandbox;
    sandbox.request.weights = WeightSource::Folder(sandbox.at("elsewhere"));
    let bundle = sandbox.build().0.unwrap();
    assert!(bundle.manifest().files.contains_key("tokenizer.json"));
    assert!(bundle.manifest().weights.contains_key("model.safetensors"));
    sandbox.request.weights = WeightSource::None;
    let bundle = sandbox.build().0.unwrap();
    assert!(bundle.manifest().weights.is_empty());
}

#[test]
fn element_types_come_from_the_files_not_from_the_config() {
    let sandbox = Sandbox::new("works");
    let bf16 = CONFIG.replace("float32", "bfloat16");
    fs::write(sandbox.at("model/config.json"), bf16).unwrap();
    write_random_weights(&sandbox.request.model, 0, &sandbox.at("random"), &Cancel::new()).unwrap();
    fs::rename(sandbox.at("random/model.safetensors"), sandbox.at("model/model.safetensors")).unwrap();
    fs::write(sandbox.at("model/config.json"), CONFIG).unwrap();
    let bundle = sandbox.build().0.unwrap();
    assert!(bundle.manifest().parameters.iter().all(|parameter| parameter.dtype == Dtype::BF16));
    assert_eq!(bundle.manifest().model_spec().unwrap().precision, Float::Bf16, "auto follows the weights");
}

#[test]
fn a_bundle_contains_shards_and_their_index() {
    let sandbox = Sandbox::with_weights();
    let whole = fs::read(sandbox.at("model/model.safetensors")).unwrap();
    let tensors = SafeTensors::deserialize(&whole).unwrap();
    let mut map = serde_json::Map::new();
    let mut shards = [Vec::new(), Vec::new()];
    for (i, (name, tensor)) in tensors.tensors().into_iter().enumerate() {
        map.insert(name.clone(), format!("model-{}.safetensors", i % 2).into());
        shards[i % 2].push((name, tensor));
    }
    for (i, shard) in shards.into_iter().enumerate() {
        let path = sandbox.at("model").join(format!("model-{i}.safetensors"));
        safetensors::serialize_to_file(shard, None, &path).unwrap();
    }
    let index = serde_json::json!({ "metadata": { "total_size": 1 }, "weight_map": map });
    fs::write(sandbox.at("model/model.safetensors.index.json"), index.to_string()).unwrap();
    fs::remove_file(sandbox.at("model/model.safetensors")).unwrap();

    let bundle = sandbox.build().0.unwrap();
    assert_eq!(
        bundle.manifest().weights.keys().collect::<Vec<_>>(),
        ["model-0.safetensors", "model-1.safetensors", "model.safetensors.index.json"]
    );
}

#[test]
fn a_failing_compiler_keeps_the_old_bundle() {
    let mut sandbox = Sandbox::new("works");
    let old = sandbox.build().0.unwrap().manifest().clone();
    sandbox.request.compiler = Sandbox::new("works").request.compiler;
    let other = Sandbox::new("fails");
    sandbox.request.compiler = other.request.compiler.clone();
    sandbox.request.context = Some(32);
    let (failed, _) = sandbox.build();
    let Err(Error::Compile { folder, .. }) = failed else { panic!("it was built") };
    fs::remove_dir_all(folder).unwrap();
    assert_eq!(*mlxcel_artifacts::Bundle::open(&sandbox.at("out")).unwrap().manifest(), old);
    assert_eq!(names(&sandbox.at("")), ["model", "out", "works"]);
}

#[test]
fn a_failing_target_stops_the_others() {
    let mut sandbox = Sandbox::new("either");
    sandbox.request.targets = vec!["vulkan".into(), "cuda".into()];
    let (failed, _) = sandbox.build();
    // The error is that of the failing target, not of the one that was stopped.
    let Err(Error::Compile { target, reason, folder, .. }) = failed else { panic!("it was built") };
    assert_eq!((target.as_str(), reason.as_str()), ("cuda", "module.mlir:1:1: error: no cuda"));
    fs::remove_dir_all(folder).unwrap();
    assert_eq!(names(&sandbox.at("")), ["either", "model"]);
}

#[test]
fn a_cancelled_build_leaves_no_files() {
    let mut sandbox = Sandbox::new("works");
    sandbox.request.weights = WeightSource::Random(5);
    sandbox.build().0.unwrap();
    fs::remove_dir_all(sandbox.at("out")).unwrap();
    // The store has the modules, so writing the weights is cancelled.
    sandbox.request.cancel.cancel();
    assert!(sandbox.build().0.is_err());
    assert_eq!(names(&sandbox.at("")), ["model", "works"]);
}

#[test]
fn a_folder_without_weights_gives_a_warning() {
    let sandbox = Sandbox::new("works");
    let (bundle, events) = sandbox.build();
    assert!(bundle.unwrap().manifest().weights.is_empty());
    let warning = format!(
        "found no weights in {}: the bundle will have none, name them with mlxcel-run --weights",
        sandbox.at("model").display()
    );
    assert_eq!(events.iter().filter(|event| **event == Event::Warning(warning.clone())).count(), 1);
}

/// Rewrites the model's tensors: `change` returns the tensors that replace the one of this name and these bytes.
fn rewrite(sandbox: &Sandbox, change: impl Fn(&str, Vec<u8>) -> Vec<(String, Vec<u8>)>) {
    let path = sandbox.at("model/model.safetensors");
    let bytes = fs::read(&path).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let mut changed = Vec::new();
    for (name, tensor) in tensors.tensors() {
        for (new, data) in change(&name, tensor.data().to_vec()) {
            changed.push((new, tensor.dtype(), tensor.shape().to_vec(), data));
        }
    }
    let views = changed.iter().map(|(name, dtype, shape, data)| {
        (name.as_str(), TensorView::new(*dtype, shape.clone(), data).unwrap())
    });
    safetensors::serialize_to_file(views.collect::<Vec<_>>(), None, &path).unwrap();
}

/// Counts the bundle's parameters called `name`. Returns the warnings too.
fn parameters(sandbox: &Sandbox, name: &str) -> (usize, Vec<String>) {
    let (bundle, events) = sandbox.build();
    let warnings = events.into_iter().filter_map(|event| match event {
        Event::Warning(text) => Some(text),
        _ => None,
    });
    let manifest = bundle.unwrap().manifest().clone();
    (manifest.parameters.iter().filter(|parameter| parameter.name == name).count(), warnings.collect())
}

const EMBEDDING: &str = "model.embed_tokens.weight";
const HEAD: &str = "lm_head.weight";

/// Adds a head to the tied model. `make` computes its bytes from the embedding's.
fn add_head(sandbox: &Sandbox, make: impl Fn(Vec<u8>) -> Vec<u8>) {
    rewrite(sandbox, |name, data| {
        let head = (name == EMBEDDING).then(|| (HEAD.into(), make(data.clone())));
        [(name.into(), data)].into_iter().chain(head).collect()
    });
}

#[test]
fn a_head_of_its_own_is_used_even_if_the_config_ties_it() {
    let sandbox = Sandbox::with_weights();
    add_head(&sandbox, |data| data.into_iter().rev().collect());
    let warning =
        "config.json ties the head to the embedding, but the checkpoint has a head of its own: using that";
    assert_eq!(parameters(&sandbox, HEAD), (1, vec![warning.into()]));
    let untied = CONFIG.replace(r#""tie_word_embeddings": true"#, r#""tie_word_embeddings": false"#);
    fs::write(sandbox.at("model/config.json"), untied).unwrap();
    assert_eq!(parameters(&sandbox, HEAD), (1, vec![]));
}

#[test]
fn a_missing_head_is_the_embedding() {
    let sandbox = Sandbox::with_weights();
    assert_eq!(parameters(&sandbox, HEAD), (0, vec![]));
    let untied = CONFIG.replace(r#""tie_word_embeddings": true"#, r#""tie_word_embeddings": false"#);
    fs::write(sandbox.at("model/config.json"), untied).unwrap();
    let warning = "the checkpoint has no head of its own: using the embedding, as if they were tied";
    assert_eq!(parameters(&sandbox, HEAD), (0, vec![warning.into()]));
}

#[test]
fn a_copy_of_the_embedding_is_a_tied_head() {
    let sandbox = Sandbox::with_weights();
    add_head(&sandbox, |data| data);
    let warning = "1 tensor of the checkpoint is not used: lm_head.weight";
    assert_eq!(parameters(&sandbox, HEAD), (0, vec![warning.into()]));
    // If config.json does not tie them, the head stays a parameter.
    let untied = CONFIG.replace(r#""tie_word_embeddings": true"#, r#""tie_word_embeddings": false"#);
    fs::write(sandbox.at("model/config.json"), untied).unwrap();
    assert_eq!(parameters(&sandbox, HEAD), (1, vec![]));
}

#[test]
fn names_of_tensors_may_lack_the_familys_prefix() {
    const PREFIX: &str = "transformer.";
    let sandbox = Sandbox::new("works");
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../models/oracle/fixtures/gpt2-hub");
    for file in ["config.json", "model.safetensors"] {
        fs::copy(fixture.join(file), sandbox.at("model").join(file)).unwrap();
    }
    let (bare, prefixed) = ("wte.weight", "transformer.wte.weight");
    let found = [bare, prefixed].map(|name| parameters(&sandbox, name).0);
    assert!(found == [1, 0] || found == [0, 1], "{found:?}");
    // Old files contain masks, which are not weights.
    let is_mask = |name: &str| name.ends_with(".attn.bias");
    let bare_name = |name: &str| name.trim_start_matches(PREFIX).to_owned();
    rewrite(&sandbox, |name, data| if is_mask(name) { vec![] } else { vec![(bare_name(name), data)] });
    assert_eq!(parameters(&sandbox, bare), (1, vec![]));
    rewrite(&sandbox, |name, data| vec![(format!("{PREFIX}{name}"), data)]);
    assert_eq!(parameters(&sandbox, prefixed), (1, vec![]));
    // Both kinds of names in one checkpoint are not ambiguous.
    rewrite(&sandbox, |name, data| {
        let is_norm = name.contains(".ln_f.");
        vec![(if is_norm { bare_name(name) } else { name.into() }, data)]
    });
    assert_eq!(parameters(&sandbox, prefixed), (1, vec![]));
    assert_eq!(parameters(&sandbox, "ln_f.weight"), (1, vec![]));
}
