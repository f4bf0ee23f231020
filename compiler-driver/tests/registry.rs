//! A bundle that is pushed to a registry, pulled into an empty store, and run there.

#[allow(dead_code, unreachable_pub, reason = "this test uses its own part of it")]
#[path = "../../artifacts/tests/common/registry.rs"]
mod server;

use crate::{
    answers::{engine, greedy, on},
    real::{Fixture, built, fixtures, request},
};
use mlxcel_artifacts::{DockerConfig, Registry, Store, StoreWriter};

const FIXTURE: &str = "gqa";

#[test]
fn a_pulled_bundle_answers_as_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let server = server::Registry::start(folder.path(), false);
    let built = built(&request(&fixtures().join(FIXTURE), &["cpu"]));
    let registry = Registry::new(&server.reference("models/gqa:1"), &DockerConfig::default(), false).unwrap();
    let pushed = registry.push(&built.bundle, &mut |_| ()).unwrap();
    assert!(pushed.starts_with("sha256:"), "{pushed}");
    let manifest = built.bundle.manifest().clone();
    drop(built);
    let store = Store::new(folder.path().join("fresh"), None).unwrap();
    let to = StoreWriter::new(&store, &"gqa".parse().unwrap()).unwrap();
    let pulled = registry.pull(to, &mut |_| ()).unwrap();
    assert_eq!(*pulled.manifest(), manifest);
    let recorded = &Fixture::find(FIXTURE).prompts[0];
    let mut engine = engine(&pulled, None, &on("local-task")).unwrap();
    assert_eq!(greedy(&mut engine, &recorded.prompt, 40).unwrap().tokens, recorded.tokens);
}
