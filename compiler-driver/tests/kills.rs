//! Builds and packing, killed at random moments.

#[path = "../../artifacts/tests/common/kill.rs"]
mod kill;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::sandbox::Sandbox;
use crate::{
    answers::on,
    real::{built, fixtures, request},
};
use kill::kill_at_random;
use mlxcel_artifacts::{Bundle, Digest, report};
use mlxcel_compiler_driver::write_random_weights;
use mlxcel_runtime::{Cancel, pack};

#[test]
fn compiling() {
    let sandbox = Sandbox::with_weights();
    let random = sandbox.at("large");
    // Weights of some megabytes take time to copy.
    let config = crate::sandbox::CONFIG.replace("\"vocab_size\": 64", "\"vocab_size\": 60000");
    fs::write(sandbox.at("model/config.json"), config).unwrap();
    write_random_weights(&sandbox.request.model, 1, &random, &Cancel::new()).unwrap();
    let (out, store) = (sandbox.at("out"), sandbox.at("store"));
    let command = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mlxcel-compile"));
        command.args(["--model", "large", "--target", "cuda", "--out", "out", "--store", "store"]);
        command
            .current_dir(sandbox.at(""))
            .env("MLXCEL_STORE", &store)
            .env("MLXCEL_IREE_COMPILE", sandbox.at("works"));
        command
    };
    let first = command().output().unwrap();
    assert!(first.status.success(), "{}", String::from_utf8_lossy(&first.stderr));
    let expected = Bundle::open(&out).unwrap().manifest().clone();
    let before = || {
        _ = fs::remove_dir_all(&out);
        _ = fs::remove_dir_all(&store);
    };
    kill_at_random(command, before, || {
        for blob in fs::read_dir(store.join("blobs")).into_iter().flatten() {
            let path = blob.unwrap().path();
            let (digest, _) = Digest::of_file(&path).unwrap();
            assert_eq!(path.file_name().unwrap().to_str().unwrap(), digest.hex());
        }
        let there = out.exists();
        if there {
            assert_eq!(*Bundle::open(&out).unwrap().manifest(), expected);
        }
        there
    });
}

/// Name of the environment variable that tells `packing_child` which bundle to pack.
const CHILD: &str = "MLXCEL_TEST_PACK";

#[test]
fn packing() {
    let built = built(&request(&fixtures().join("gqa"), &["cpu"]));
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("bundle");
    let packed = pack_at(built.bundle.path()).manifest().clone();
    // The manifest before packing.
    let mut plain = packed.clone();
    plain.targets.values_mut().filter_map(|target| target.packing.as_mut()).for_each(|packing| {
        packing.weights = None;
        packing.made_from.clear();
    });
    let before = || {
        _ = fs::remove_dir_all(&out);
        let mut copy = Command::new("cp");
        assert!(copy.arg("-r").arg(built.bundle.path()).arg(&out).status().unwrap().success());
        fs::write(out.join("manifest.toml"), plain.render().unwrap()).unwrap();
    };
    let command = || {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", "kills::packing_child"]).env(CHILD, &out);
        command
    };
    kill_at_random(command, before, || {
        let found = Bundle::open(&out).unwrap();
        assert!(*found.manifest() == packed || *found.manifest() == plain);
        *found.manifest() == packed
    });
}

#[test]
fn packing_child() {
    if let Some(path) = env::var_os(CHILD).map(PathBuf::from) {
        pack_at(&path);
    }
}

fn pack_at(path: &Path) -> Bundle {
    let bundle = Bundle::open_without_weights(path).unwrap();
    let packed = pack(bundle, None, &on("local-sync"), None, &Cancel::new(), &mut |_, _| ());
    packed.map_err(|error| report(&error)).unwrap().1
}
