//! Weights packed ahead of time: they change how a bundle starts, and nothing else.

use std::{collections::HashSet, fs, path::Path};

use crate::{
    answers::{engine, greedy, on},
    real::{Built, Fixture, built, fixtures, request},
};
use mlxcel_artifacts::{Bundle, PROVENANCE, SBOM};
use mlxcel_compiler_driver::{Request, WeightSource};
use mlxcel_runtime::{Cancel, Weights, load, pack};

const FIXTURE: &str = "gqa";

fn bundle() -> Built {
    built(&request(&fixtures().join(FIXTURE), &["cpu"]))
}

/// Packs the bundle in place. Returns the fractions of the work that were reported.
fn packed(bundle: &Bundle, weights: Option<Weights>) -> (Bundle, Vec<f64>) {
    let mut told = Vec::new();
    let mut progress = |done: usize, total: usize| told.push(done as f64 / total as f64);
    let (target, bundle) =
        pack(bundle.clone(), weights, &on("local-task"), None, &Cancel::new(), &mut progress).unwrap();
    assert_eq!(target, "cpu");
    (bundle, told)
}

/// Asserts that the answer is the recorded one. Returns whether loading packed the weights.
fn answers(bundle: &Bundle) -> bool {
    answers_with(bundle, None)
}

fn answers_with(bundle: &Bundle, weights: Option<Weights>) -> bool {
    let recorded = &Fixture::find(FIXTURE).prompts[0];
    let mut engine = engine(bundle, weights, &on("local-task")).unwrap();
    assert_eq!(greedy(&mut engine, &recorded.prompt, 40).unwrap().tokens, recorded.tokens);
    engine.device().packed_at_load
}

#[test]
fn a_packed_bundle_starts_without_packing() {
    let built = bundle();
    assert!(answers(&built.bundle));
    let (once, told) = packed(&built.bundle, None);
    assert!(!answers(&once));
    assert!(told.is_sorted() && told.last() == Some(&1.0), "{told:?}");
    assert_eq!(Bundle::open(once.path()).unwrap(), once);
    // The documents list the packed weights.
    let weights = once.manifest().targets["cpu"].packing.as_ref().unwrap().weights.unwrap();
    for (name, list) in [(SBOM, "components"), (PROVENANCE, "subject")] {
        let text = once.read_document(name).unwrap().unwrap();
        let document: serde_json::Value = serde_json::from_slice(&text).unwrap();
        let parts = document[list].as_array().unwrap();
        let part = parts.iter().find(|part| part["name"] == "packed weights of target cpu").unwrap();
        assert!(part.to_string().contains(&weights.digest.hex()), "{part}");
    }
    // Blobs that are no longer named were removed.
    let named: HashSet<_> = once.manifest().blobs().map(|(_, blob)| blob.digest).collect();
    assert_eq!(fs::read_dir(once.path().join("blobs")).unwrap().count(), named.len());
    // Packing again gives the same bytes.
    assert_eq!(packed(&once, None).0.manifest(), once.manifest());
}

#[test]
fn a_bundle_without_weights_can_be_packed() {
    let folder = fixtures().join(FIXTURE);
    let built = built(&Request { weights: WeightSource::None, ..request(&folder, &["cpu"]) });
    let error = load(&built.bundle, None, &on("local-task")).err().unwrap().to_string();
    assert!(error.contains("carries no weights"), "{error}");
    let weights = || Some(Weights::open(&folder).unwrap());
    assert!(answers_with(&built.bundle, weights()), "nothing is packed yet");
    let (packed, _) = packed(&built.bundle, weights());
    assert!(!answers(&packed));
    // The same weights under another name count as packed.
    assert!(!answers_with(&packed, weights()));
    let elsewhere = tempfile::tempdir().unwrap();
    let copy = elsewhere.path().join("copy.safetensors");
    fs::copy(folder.join("model.safetensors"), &copy).unwrap();
    assert!(!answers_with(&packed, Some(Weights::open(&copy).unwrap())));
    // One changed bit makes them other weights.
    let mut bytes = fs::read(&copy).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&copy, bytes).unwrap();
    let other = load(&packed, Some(Weights::open(&copy).unwrap()), &on("local-task")).unwrap();
    assert!(other.device().packed_at_load);
}

#[test]
fn a_bundle_with_weights_takes_no_others() {
    let built = bundle();
    let (folder, cancel) = (tempfile::tempdir().unwrap(), Cancel::new());
    let other = folder.path().join("model.safetensors");
    let mut bytes = fs::read(fixtures().join(FIXTURE).join("model.safetensors")).unwrap();
    fs::write(&other, &bytes).unwrap();
    let with = |other: &Path| {
        pack(
            built.bundle.clone(),
            Some(Weights::open(other).unwrap()),
            &on("local-task"),
            None,
            &cancel,
            &mut |_, _| (),
        )
    };
    with(&other).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&other, bytes).unwrap();
    let path = built.bundle.path().display();
    assert_eq!(
        with(&other).err().unwrap().to_string(),
        format!(
            "{path} carries other weights than those given, expected none or the same\n\
             hint: leave out --weights, or compile the bundle again with these"
        )
    );
    assert!(!answers(&Bundle::open(built.bundle.path()).unwrap()));
}

#[test]
fn damaged_packed_weights_can_be_packed_again() {
    let built = bundle();
    let (whole, _) = packed(&built.bundle, None);
    let file = whole.packed_weights("cpu").unwrap().unwrap();
    for damage in [&b"short"[..], b""] {
        fs::write(&file, damage).unwrap();
        let opened = Bundle::open_without_weights(whole.path()).unwrap();
        let error = load(&opened, None, &on("local-task")).err().unwrap().to_string();
        assert!(error.starts_with("packed weights of target cpu has "), "{error}");
        let hint = "\nhint: pack the weights again with `mlxcel-pack BUNDLE`, or copy the bundle again";
        assert!(error.ends_with(hint), "{error}");
        assert!(!answers(&packed(&opened, None).0));
    }
    fs::remove_file(&file).unwrap();
    assert!(!answers(&packed(&Bundle::open_without_weights(whole.path()).unwrap(), None).0));
}

#[test]
fn cancelled_packing_does_not_change_the_bundle() {
    let built = bundle();
    let before = fs::read_to_string(built.bundle.path().join("manifest.toml")).unwrap();
    let cancel = Cancel::new();
    let mut progress = |_: usize, _: usize| cancel.cancel();
    let ended = pack(built.bundle.clone(), None, &on("local-task"), None, &cancel, &mut progress);
    assert!(ended.is_err());
    assert_eq!(fs::read_to_string(built.bundle.path().join("manifest.toml")).unwrap(), before);
    assert_eq!(fs::read_dir(built.bundle.path().parent().unwrap()).unwrap().count(), 1);
    assert!(answers(&built.bundle));
}

#[test]
fn a_target_without_packing_has_nothing_to_pack() {
    let built = built(&request(&fixtures().join(FIXTURE), &["vulkan"]));
    let refused = pack(built.bundle.clone(), None, &on("vulkan"), None, &Cancel::new(), &mut |_, _| ());
    assert_eq!(
        refused.err().unwrap().to_string(),
        "target vulkan has nothing to pack: it reads the weights as they are\nhint: run the bundle without packing"
    );
}
