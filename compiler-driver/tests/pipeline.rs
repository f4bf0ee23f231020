//! From a request to a bundle, with a compiler that only pretends.
#![allow(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

mod common;

use std::{fs, path::Path};

use common::{CONFIG, Place, names};
use mlxcel_compiler_driver::{
    Cancel, Error, Event, Float, ModelSource, Precision, WeightSource, emit, write_random_weights,
};
use safetensors::{Dtype, SafeTensors, tensor::TensorView};

#[test]
fn a_bundle_has_what_was_asked_for() {
    let mut place = Place::with_weights();
    for (name, text) in [("tokenizer.json", "{}"), ("generation_config.json", "{ }"), ("README.md", "no")] {
        fs::write(place.at("model").join(name), text).unwrap();
    }
    place.request.targets = ["cuda", "cpu-aarch64", "cuda"].map(Into::into).to_vec();
    place.request.context = Some(100);
    let (bundle, events) = place.build();
    let bundle = bundle.unwrap();
    assert_eq!(bundle.path(), place.at("out"));
    let bundle = mlxcel_artifacts::Bundle::open(bundle.path()).unwrap();

    let manifest = bundle.manifest();
    assert_eq!((manifest.model.as_str(), manifest.family.as_str()), ("model", "llama"));
    assert_eq!(manifest.plan.precision, Float::F32);
    assert_eq!((manifest.plan.batch, manifest.plan.context, manifest.plan.vocab), (1, 100, 64));
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
    // The CPU has a second module, which packs its weights; and the compiler was asked for its version.
    assert_eq!((compiled, place.calls()), (3, 4), "a target named twice is compiled once");
    assert!(arm.packing.is_some() && manifest.targets["cuda"].packing.is_none());
    assert!(!events.iter().any(|event| matches!(event, Event::Warning(_))), "{events:?}");
}

#[test]
fn what_is_in_the_store_is_not_compiled() {
    let mut place = Place::new("works");
    place.request.weights = WeightSource::None;
    let first = place.build().0.unwrap().manifest().clone();
    let calls = place.calls();
    let (bundle, events) = place.build();
    assert_eq!(*bundle.unwrap().manifest(), first);
    assert_eq!(place.calls(), calls);
    assert!(matches!(&events[..], [Event::Emitted { .. }, Event::Stored { target, .. }] if target == "cuda"));

    // Of what changes the module, anything makes it another.
    place.request.precision = Precision::Float(Float::Bf16);
    place.build().0.unwrap();
    place.request.context = Some(64);
    place.build().0.unwrap();
    assert_eq!(place.calls(), calls + 2);

    // A damaged entry is made again.
    for blob in fs::read_dir(place.at("store/blobs")).unwrap() {
        let path = blob.unwrap().path();
        fs::remove_file(&path).unwrap();
        fs::write(path, "damaged").unwrap();
    }
    place.build().0.unwrap();
    assert_eq!(place.calls(), calls + 4, "its version, and the module");
}

/// What the module's kernels are in, without which it does not compile.
const KERNELS: [&str; 4] = [
    "cuda_argmax-sm_80.ptx",
    "cuda_attention_combine-sm_80.ptx",
    "cuda_attention_f32-sm_80.ptx",
    "cuda_matvec_f32-sm_80.ptx",
];

#[test]
fn intermediates_are_kept_where_asked() {
    let mut place = Place::new("works");
    place.request.keep = Some(place.at("keep/here"));
    for _ in ["compiled", "from the store"] {
        let bundle = place.build().0.unwrap();
        let keep = place.at("keep/here");
        assert_eq!(names(&keep), [&["cuda.flags", "cuda.mlir", "cuda.vmfb"][..], &KERNELS].concat());
        let cuda = &bundle.manifest().targets["cuda"];
        let flags = fs::read_to_string(keep.join("cuda.flags")).unwrap();
        assert_eq!(flags.lines().collect::<Vec<_>>(), cuda.flags);
        assert_eq!(
            fs::read(keep.join("cuda.vmfb")).unwrap(),
            fs::read(bundle.blob_path(&cuda.vmfb)).unwrap()
        );
        let mlir = emit(&place.request, &mut |_| {}).unwrap().mlir;
        assert_eq!(fs::read_to_string(keep.join("cuda.mlir")).unwrap(), mlir);
        fs::remove_dir_all(keep).unwrap();
    }
}

#[test]
fn random_weights_are_the_same_in_a_bundle_and_a_folder() {
    let mut place = Place::new("works");
    place.request.weights = WeightSource::Random(5);
    let bundle = place.build().0.unwrap();
    let (_, in_bundle) = bundle.weights().unwrap().remove(0);
    write_random_weights(&place.request.model, 5, &place.at("random"), &Cancel::new()).unwrap();
    assert_eq!(names(&place.at("random")), ["config.json", "model.safetensors"]);
    assert_eq!(fs::read_to_string(place.at("random/config.json")).unwrap(), CONFIG);
    let in_folder = fs::read(place.at("random/model.safetensors")).unwrap();
    assert!(fs::read(in_bundle).unwrap() == in_folder);

    let error =
        write_random_weights(&place.request.model, 6, &place.at("random"), &Cancel::new()).unwrap_err();
    assert!(matches!(error, Error::Occupied { .. }));
    assert!(fs::read(place.at("random/model.safetensors")).unwrap() == in_folder);
}

#[test]
fn weights_may_lie_elsewhere_and_bring_their_tokenizer() {
    let place = Place::new("works");
    let source = ModelSource::find("smollm2-135m").unwrap();
    assert!(matches!(source, ModelSource::Preset(_)));
    write_random_weights(&place.request.model, 0, &place.at("elsewhere"), &Cancel::new()).unwrap();
    fs::write(place.at("elsewhere/tokenizer.json"), "{}").unwrap();
    let mut place = place;
    place.request.weights = WeightSource::Folder(place.at("elsewhere"));
    let bundle = place.build().0.unwrap();
    assert!(bundle.manifest().files.contains_key("tokenizer.json"));
    assert!(bundle.manifest().weights.contains_key("model.safetensors"));
    place.request.weights = WeightSource::None;
    let bundle = place.build().0.unwrap();
    assert!(bundle.manifest().weights.is_empty());
}

#[test]
fn types_are_the_files_not_the_configs() {
    let place = Place::new("works");
    let bf16 = CONFIG.replace("float32", "bfloat16");
    fs::write(place.at("model/config.json"), bf16).unwrap();
    write_random_weights(&place.request.model, 0, &place.at("random"), &Cancel::new()).unwrap();
    fs::rename(place.at("random/model.safetensors"), place.at("model/model.safetensors")).unwrap();
    fs::write(place.at("model/config.json"), CONFIG).unwrap();
    let bundle = place.build().0.unwrap();
    assert!(bundle.manifest().parameters.iter().all(|parameter| parameter.dtype == Dtype::BF16));
    assert_eq!(bundle.manifest().plan.precision, Float::Bf16, "auto follows the weights");
}

#[test]
fn shards_go_into_the_bundle_with_their_index() {
    let place = Place::with_weights();
    let whole = fs::read(place.at("model/model.safetensors")).unwrap();
    let tensors = SafeTensors::deserialize(&whole).unwrap();
    let mut map = serde_json::Map::new();
    let mut shards = [Vec::new(), Vec::new()];
    for (i, (name, tensor)) in tensors.tensors().into_iter().enumerate() {
        map.insert(name.clone(), format!("model-{}.safetensors", i % 2).into());
        shards[i % 2].push((name, tensor));
    }
    for (i, shard) in shards.into_iter().enumerate() {
        let path = place.at("model").join(format!("model-{i}.safetensors"));
        safetensors::serialize_to_file(shard, None, &path).unwrap();
    }
    let index = serde_json::json!({ "metadata": { "total_size": 1 }, "weight_map": map });
    fs::write(place.at("model/model.safetensors.index.json"), index.to_string()).unwrap();
    fs::remove_file(place.at("model/model.safetensors")).unwrap();

    let bundle = place.build().0.unwrap();
    assert_eq!(
        bundle.manifest().weights.keys().collect::<Vec<_>>(),
        ["model-0.safetensors", "model-1.safetensors", "model.safetensors.index.json"]
    );
}

#[test]
fn a_failing_compiler_leaves_the_old_bundle() {
    let mut place = Place::new("works");
    let old = place.build().0.unwrap().manifest().clone();
    place.request.compiler = Place::new("works").request.compiler;
    let other = Place::new("fails");
    place.request.compiler = other.request.compiler.clone();
    place.request.context = Some(32);
    let (failed, _) = place.build();
    let Err(Error::Compile { folder, .. }) = failed else { panic!("it was built") };
    fs::remove_dir_all(folder).unwrap();
    assert_eq!(*mlxcel_artifacts::Bundle::open(&place.at("out")).unwrap().manifest(), old);
    assert_eq!(names(&place.at("")), ["model", "out", "works"]);
}

#[test]
fn a_failing_target_ends_the_others() {
    let mut place = Place::new("either");
    place.request.targets = vec!["vulkan".into(), "cuda".into()];
    let (failed, _) = place.build();
    // That of the target that failed, not of the one that was stopped on its account.
    let Err(Error::Compile { target, reason, folder, .. }) = failed else { panic!("it was built") };
    assert_eq!((target.as_str(), reason.as_str()), ("cuda", "module.mlir:1:1: error: no cuda"));
    fs::remove_dir_all(folder).unwrap();
    assert_eq!(names(&place.at("")), ["either", "model"]);
}

#[test]
fn a_cancelled_build_leaves_nothing() {
    let mut place = Place::new("works");
    place.request.weights = WeightSource::Random(5);
    place.build().0.unwrap();
    fs::remove_dir_all(place.at("out")).unwrap();
    // What was compiled is in the store by now: it is the weights that are given up.
    place.request.cancel.cancel();
    assert!(place.build().0.is_err());
    assert_eq!(names(&place.at("")), ["model", "works"]);
}

#[test]
fn a_folder_without_weights_makes_a_bundle_without_them_and_says_so() {
    let place = Place::new("works");
    let (bundle, events) = place.build();
    assert!(bundle.unwrap().manifest().weights.is_empty());
    let warning = format!(
        "found no weights in {}: the bundle carries none, mlxcel-run --weights names them",
        place.at("model").display()
    );
    assert_eq!(events.iter().filter(|event| **event == Event::Warning(warning.clone())).count(), 1);
}

/// Writes the model's tensors anew: each as `change` makes it of its name and bytes, or not at all.
fn rewrite(place: &Place, change: impl Fn(&str, Vec<u8>) -> Vec<(String, Vec<u8>)>) {
    let path = place.at("model/model.safetensors");
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

/// The bundle's parameters called `name`, and the warnings.
fn parameters(place: &Place, name: &str) -> (usize, Vec<String>) {
    let (bundle, events) = place.build();
    let warnings = events.into_iter().filter_map(|event| match event {
        Event::Warning(text) => Some(text),
        _ => None,
    });
    let manifest = bundle.unwrap().manifest().clone();
    (manifest.parameters.iter().filter(|parameter| parameter.name == name).count(), warnings.collect())
}

const EMBEDDING: &str = "model.embed_tokens.weight";
const HEAD: &str = "lm_head.weight";

/// The tensors of the tied model with a head, whose bytes `make` makes of the embedding's.
fn add_head(place: &Place, make: impl Fn(Vec<u8>) -> Vec<u8>) {
    rewrite(place, |name, data| {
        let head = (name == EMBEDDING).then(|| (HEAD.into(), make(data.clone())));
        [(name.into(), data)].into_iter().chain(head).collect()
    });
}

#[test]
fn a_head_of_its_own_is_used_whatever_the_config_says() {
    let place = Place::with_weights();
    add_head(&place, |data| data.into_iter().rev().collect());
    let warning = "config.json ties the head to the embedding, but the checkpoint has another one: used";
    assert_eq!(parameters(&place, HEAD), (1, vec![warning.into()]));
    let untied = CONFIG.replace(r#""tie_word_embeddings": true"#, r#""tie_word_embeddings": false"#);
    fs::write(place.at("model/config.json"), untied).unwrap();
    assert_eq!(parameters(&place, HEAD), (1, vec![]));
}

#[test]
fn a_head_that_is_missing_is_the_embedding() {
    let place = Place::with_weights();
    assert_eq!(parameters(&place, HEAD), (0, vec![]));
    let untied = CONFIG.replace(r#""tie_word_embeddings": true"#, r#""tie_word_embeddings": false"#);
    fs::write(place.at("model/config.json"), untied).unwrap();
    let warning = "the checkpoint has no head of its own: the embedding is used, as if they were tied";
    assert_eq!(parameters(&place, HEAD), (0, vec![warning.into()]));
}

#[test]
fn a_copy_of_the_embedding_is_a_tied_head() {
    let place = Place::with_weights();
    add_head(&place, |data| data);
    let warning = "1 tensor of the checkpoint is not used: lm_head.weight";
    assert_eq!(parameters(&place, HEAD), (0, vec![warning.into()]));
    // Where config.json knows of the head, it is one.
    let untied = CONFIG.replace(r#""tie_word_embeddings": true"#, r#""tie_word_embeddings": false"#);
    fs::write(place.at("model/config.json"), untied).unwrap();
    assert_eq!(parameters(&place, HEAD), (1, vec![]));
}

#[test]
fn names_of_tensors_have_the_familys_prefix_or_none() {
    const PREFIX: &str = "transformer.";
    let place = Place::new("works");
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../models/oracle/fixtures/gpt2-hub");
    for file in ["config.json", "model.safetensors"] {
        fs::copy(fixture.join(file), place.at("model").join(file)).unwrap();
    }
    let (bare, prefixed) = ("wte.weight", "transformer.wte.weight");
    let found = [bare, prefixed].map(|name| parameters(&place, name).0);
    assert!(found == [1, 0] || found == [0, 1], "{found:?}");
    // The masks that old files have are no weights.
    let is_mask = |name: &str| name.ends_with(".attn.bias");
    let bare_name = |name: &str| name.trim_start_matches(PREFIX).to_owned();
    rewrite(&place, |name, data| if is_mask(name) { vec![] } else { vec![(bare_name(name), data)] });
    assert_eq!(parameters(&place, bare), (1, vec![]));
    rewrite(&place, |name, data| vec![(format!("{PREFIX}{name}"), data)]);
    assert_eq!(parameters(&place, prefixed), (1, vec![]));
    // Whatever writes a checkpoint with names of both kinds, nothing is ambiguous in it.
    rewrite(&place, |name, data| {
        let is_norm = name.contains(".ln_f.");
        vec![(if is_norm { bare_name(name) } else { name.into() }, data)]
    });
    assert_eq!(parameters(&place, prefixed), (1, vec![]));
    assert_eq!(parameters(&place, "ln_f.weight"), (1, vec![]));
}
