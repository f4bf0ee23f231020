//! The origin of code: notes about unsigned bundles, and signatures that are required before code runs.

// Clippy allows unwrap in tests, but not in their helpers.
#![allow(clippy::unwrap_used)]

use std::{
    collections::BTreeMap,
    fs,
    path::PathBuf,
    process::{Command, Output},
};

use mlxcel_artifacts::{
    Bundle, BundleWriter, Digest, Packing, SecretKey, Store,
    entry::{PackStep, Parameter},
};
use safetensors::Dtype;

mod bundle;

const RUN: (&str, &[&str]) = (env!("CARGO_BIN_EXE_mlxcel-run"), &["--tokens", "1"]);
const BENCH: (&str, &[&str]) = (env!("CARGO_BIN_EXE_mlxcel-bench"), &["-p", "1", "-n", "0"]);
const PACK: (&str, &[&str]) = (env!("CARGO_BIN_EXE_mlxcel-pack"), &["--device", "local-sync"]);

/// The error of a program that may run the code of a bundle, whose module is not a vmfb.
const AT_ITS_CODE: &str = if cfg!(feature = "iree") {
    "error: the vmfb of target cpu is damaged: "
} else {
    "error: built without the IREE runtime\n"
};

const NOT_SIGNED: &str = "found no signature, expected a signature of this bundle by the key ";

const TOKENIZER: &str =
    r#"{"version": "1.0", "model": {"type": "WordLevel", "vocab": {"?": 0, "a": 1}, "unk_token": "?"}}"#;

/// A folder with a store, keys and bundles.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Makes a complete bundle, whose weights can be packed.
    fn bundle(&self, name: &str) -> Bundle {
        let header = r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#;
        let length = String::from_utf8((header.len() as u64).to_le_bytes().to_vec()).unwrap();
        let weights = format!("{length}{header}{}", "\0".repeat(8));
        let plain = tempfile::tempdir().unwrap();
        let files = [("tokenizer.json", TOKENIZER)];
        let plain = bundle::write(&plain.path().join("b"), &files, &[("model.safetensors", &weights)]);
        let mut manifest = plain.manifest().clone();
        let a = Parameter::new("a", Dtype::F32, &[2]);
        let cpu = manifest.targets.get_mut("cpu").unwrap();
        cpu.packing = Some(Packing {
            build_key: Digest::of(b"packing"),
            vmfb: cpu.vmfb,
            weights: None,
            made_from: BTreeMap::new(),
            calibrated_by: None,
            calibration: None,
            steps: vec![PackStep::copy("a", a)],
        });
        let mut writer = BundleWriter::create(&self.at(name)).unwrap();
        for (_, blob) in plain.manifest().blobs() {
            writer.add_bytes(&fs::read(plain.blob_path(blob)).unwrap()).unwrap();
        }
        writer.finish(&manifest).unwrap()
    }

    /// Makes such a bundle, which the store records as compiled here.
    fn bundle_from_here(&self, name: &str) {
        Store::new(self.at("store"), None).unwrap().remember_built(&self.bundle(name));
    }

    /// Generates the keys `name` and `name.pub`; returns their id.
    fn key(&self, name: &str) -> String {
        SecretKey::generate(&self.at(name), &self.at(&format!("{name}.pub")), None).unwrap().id()
    }

    fn sign(&self, bundle: &Bundle, key: &str) {
        let secret = SecretKey::open(&self.at(key), || unreachable!("it has no password")).unwrap();
        bundle.sign(&secret, "").unwrap();
    }

    /// Runs a program on the bundle `b`; returns its exit code and stderr.
    fn ends(&self, (program, arguments): (&str, &[&str]), more: &[&str]) -> (Option<i32>, String) {
        let Output { status, stderr, .. } =
            self.command(program).args(arguments).args(more).output().unwrap();
        (status.code(), String::from_utf8(stderr).unwrap())
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.arg("b").current_dir(self.0.path());
        command.env_remove("MLXCEL_REQUIRE_SIGNATURE").env("MLXCEL_STORE", self.at("store"));
        command
    }
}

#[test]
fn code_from_elsewhere_is_noted() {
    let place = Place::new();
    let bundle = place.bundle("b");
    let note = |origin: &str| {
        format!(
            "note: the bundle b was not compiled here and {origin}: its code runs with your rights\n\
             hint: --require-signature KEY runs only bundles that are signed with the key\n"
        )
    };
    for program in [RUN, BENCH, PACK] {
        let (_, message) = place.ends(program, &[]);
        assert!(message.starts_with(&(note("is not signed") + AT_ITS_CODE)), "{message}");
    }
    let key = place.key("k");
    place.sign(&bundle, "k");
    for program in [RUN, BENCH] {
        let (_, message) = place.ends(program, &[]);
        let expected = note(&format!("says that the key {key} signed it, which was not checked"));
        assert!(message.starts_with(&(expected + AT_ITS_CODE)), "{message}");
    }
    let here = Place::new();
    here.bundle_from_here("b");
    for program in [RUN, BENCH, PACK] {
        let (_, message) = here.ends(program, &[]);
        assert!(message.starts_with(AT_ITS_CODE), "{message}");
    }
}

#[test]
fn the_named_store_knows_what_was_compiled_here() {
    let place = Place::new();
    place.bundle_from_here("b");
    let note = "note: the bundle b was not compiled here and is not signed";
    for program in [RUN, BENCH, PACK] {
        let (_, message) = place.ends(program, &["--store", "store"]);
        assert!(message.starts_with(AT_ITS_CODE), "{message}");
        let (_, message) = place.ends(program, &["--store", "another"]);
        assert!(message.starts_with(note), "{message}");
        // The option overrides the environment.
        let mut command = place.command(program.0);
        command.args(program.1).args(["--store", "store"]).env("MLXCEL_STORE", place.at("another"));
        let message = String::from_utf8(command.output().unwrap().stderr).unwrap();
        assert!(message.starts_with(AT_ITS_CODE), "{message}");
    }
}

#[test]
fn bundles_that_came_with_the_programs_have_names() {
    let place = Place::new();
    for folder in ["bin", "share/mlxcel"] {
        fs::create_dir_all(place.at(folder)).unwrap();
    }
    let program = place.at("bin/mlxcel-run");
    fs::copy(RUN.0, &program).unwrap();
    place.bundle("share/mlxcel/tiny.bundle");
    let run = |bundle: &str| {
        let mut command = Command::new(&program);
        command.args([bundle, "--tokens", "1"]).current_dir(place.0.path());
        command.env_remove("MLXCEL_REQUIRE_SIGNATURE").env("MLXCEL_STORE", place.at("store"));
        String::from_utf8(command.output().unwrap().stderr).unwrap()
    };
    let found = run("tiny");
    assert!(found.starts_with("note: the bundle ") && found.contains(AT_ITS_CODE), "{found}");
    assert!(run("other").starts_with("error: other is not a bundle: it does not exist\n"));
    assert!(run("./tiny").starts_with("error: ./tiny is not a bundle: it does not exist\n"));
    // What the user has goes first.
    fs::create_dir(place.at("tiny")).unwrap();
    assert!(run("tiny").starts_with("note: the bundle "));
    place.bundle_from_here("tiny");
    assert!(run("tiny").starts_with(AT_ITS_CODE));
}

#[test]
fn a_required_signature() {
    let place = Place::new();
    place.bundle_from_here("b");
    let bundle = Bundle::open(&place.at("b")).unwrap();
    let [key, other] = ["k", "other"].map(|name| place.key(name));
    for program in [RUN, BENCH] {
        let (code, message) = place.ends(program, &["--require-signature", "k.pub"]);
        assert_eq!(code, Some(1));
        assert!(message.starts_with(&format!("error: {NOT_SIGNED}{key}\n")), "{message}");
    }
    place.sign(&bundle, "k");
    for program in [RUN, BENCH] {
        let (_, message) = place.ends(program, &["--require-signature", "k.pub"]);
        assert!(message.starts_with(AT_ITS_CODE), "{message}");
        let (code, message) = place.ends(program, &["--require-signature", "other.pub"]);
        assert_eq!(code, Some(1));
        let expected = format!("error: found one by the key {key}, expected a signature of this bundle by");
        assert!(message.starts_with(&expected) && message.contains(&other), "{message}");
    }
    for program in [RUN, BENCH, PACK] {
        let (code, message) = place.ends(program, &["--require-signature", "no key"]);
        assert_eq!(code, Some(2));
        let expected = "error: invalid value 'no key' for '--require-signature <KEY>'";
        assert!(message.starts_with(expected), "{message}");
        let required =
            place.command(program.0).args(program.1).env("MLXCEL_REQUIRE_SIGNATURE", "no key").output();
        assert_eq!(required.unwrap().status.code(), Some(2));
    }
}

#[test]
fn the_reference_of_a_comparison_needs_a_signature_too() {
    let place = Place::new();
    let bundle = place.bundle("b");
    place.bundle("reference");
    let key = place.key("k");
    place.sign(&bundle, "k");
    fs::write(place.at("text"), "a a a").unwrap();
    let compared = ["--perplexity", "text", "--reference", "reference", "--require-signature", "k.pub"];
    let (code, message) = place.ends((BENCH.0, &[]), &compared);
    assert_eq!(code, Some(1));
    // Before the other one's code runs.
    assert!(
        message.starts_with(&format!("error: cannot compare with reference: {NOT_SIGNED}{key}\n")),
        "{message}"
    );
}

#[test]
fn bundles_compiled_here_are_packed_before_they_are_signed() {
    let required = ["--require-signature", "k.pub"];
    let place = Place::new();
    let key = place.key("k");
    place.bundle("b");
    let (code, message) = place.ends(PACK, &required);
    assert_eq!(
        (code, message),
        (
            Some(1),
            format!(
                "error: the bundle was not compiled here, and its code may run only if it is signed: \
                 {NOT_SIGNED}{key}\n\
                 hint: ask its maker for a bundle that was packed before it was signed\n\
                 hint: do not run this bundle, and get it again from its maker\n"
            )
        )
    );
    let here = Place::new();
    here.key("k");
    here.bundle_from_here("b");
    let (_, message) = here.ends(PACK, &required);
    assert!(message.starts_with(AT_ITS_CODE), "{message}");
    // A signed bundle cannot be packed any more.
    for place in [&place, &here] {
        place.sign(&Bundle::open(&place.at("b")).unwrap(), "k");
        let (code, message) = place.ends(PACK, &required);
        assert_eq!(code, Some(1));
        let signed = "error: the bundle is signed by the key ";
        let expected = if cfg!(feature = "iree") { signed } else { AT_ITS_CODE };
        assert!(message.starts_with(expected), "{message}");
    }
}
