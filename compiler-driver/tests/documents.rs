//! SBOM and provenance of a bundle.

use crate::sandbox::Sandbox;
use cyclonedx_bom::{
    models::bom::SpecVersion,
    prelude::{Bom, Validate as _},
};
use mlxcel_artifacts::{BlobRole, Bundle, Digest};
use serde_json::Value;

fn document(bundle: &Bundle, name: &str) -> Vec<u8> {
    bundle.read_document(name).unwrap().unwrap()
}

#[test]
fn the_sbom_lists_the_parts() {
    let mut sandbox = Sandbox::with_weights();
    sandbox.request.targets = vec!["cuda".into(), "cpu-aarch64".into()];
    let bundle = sandbox.build().0.unwrap();
    let bom = Bom::parse_from_json(&document(&bundle, "sbom.cdx.json")[..]).unwrap();
    assert!(bom.validate_version(SpecVersion::V1_5).passed());
    let metadata = bom.metadata.unwrap();
    assert_eq!(metadata.component.unwrap().name.to_string(), "model");
    // No time and no random number, so that equal builds give equal bytes.
    assert!(metadata.timestamp.is_none() && bom.serial_number.is_none());
    let components = bom.components.unwrap().0;
    for (role, blob) in bundle.manifest().blobs().filter(|(role, _)| !matches!(role, BlobRole::Document(_))) {
        let component =
            components.iter().find(|component| component.name.to_string() == role.to_string()).unwrap();
        assert_eq!(component.hashes.as_ref().unwrap().0[0].content.0, blob.digest.hex(), "{role}");
    }
    let melior = components.iter().find(|component| component.name.to_string() == "melior").unwrap();
    let purl = melior.purl.as_ref().unwrap().to_string();
    assert!(purl.starts_with("pkg:cargo/melior@0."), "{purl}");
}

#[test]
fn the_provenance_names_inputs_and_options() {
    let mut sandbox = Sandbox::with_weights();
    sandbox.request.targets = vec!["cuda".into(), "cpu-aarch64".into()];
    let bundle = sandbox.build().0.unwrap();
    let manifest = bundle.manifest();
    let statement: Value = serde_json::from_slice(&document(&bundle, "provenance.intoto.json")).unwrap();
    assert_eq!(statement["_type"], "https://in-toto.io/Statement/v1");
    assert_eq!(statement["predicateType"], "https://slsa.dev/provenance/v1");
    let digest_of = |list: &Value, name: &str| {
        let found = list.as_array().unwrap().iter().find(|resource| resource["name"] == name);
        found.map(|resource| resource["digest"]["blake3"].as_str().unwrap().to_owned())
    };
    for (role, blob) in manifest.blobs().filter(|(role, _)| !matches!(role, BlobRole::Document(_))) {
        assert_eq!(digest_of(&statement["subject"], &role.to_string()), Some(blob.digest.hex()), "{role}");
    }
    let build = &statement["predicate"]["buildDefinition"];
    // The digest of the source file. The bundle's file differs, because its tensors are aligned.
    let (source, _) = Digest::of_file(&sandbox.at("model/model.safetensors")).unwrap();
    let materials = &build["resolvedDependencies"];
    assert_eq!(digest_of(materials, "model.safetensors"), Some(source.hex()));
    assert_eq!(digest_of(materials, "config.json"), Some(manifest.files["config.json"].digest.hex()));
    assert_eq!(digest_of(materials, "iree-compile"), Some(manifest.compiler.digest.hex()));
    let options = &build["externalParameters"];
    assert_eq!(
        (&options["model"], &options["targets"], &options["weights"]),
        (&"model".into(), &"cuda,cpu-aarch64".into(), &"files".into())
    );
    let flags = &build["internalParameters"]["cuda"]["flags"];
    assert_eq!(*flags, serde_json::to_value(&manifest.targets["cuda"].flags).unwrap());
    // No path of this machine is recorded.
    let text = statement.to_string();
    assert!(!text.contains(sandbox.at("").to_str().unwrap()), "{text}");
}
