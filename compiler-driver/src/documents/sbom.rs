//! SBOM of a bundle in CycloneDX's format: its parts, and those of the programs that made it.

use cyclonedx_bom::{
    models::{
        bom::{Bom, SpecVersion},
        component::{Classification, Component, Components, Scope},
        hash::{Hash, HashAlgorithm, HashValue, Hashes},
        metadata::Metadata,
        tool::Tools,
    },
    prelude::{NormalizedString, Purl},
};
use mlxcel_artifacts::{BundleKind, Compiler, Manifest};

use crate::{
    documents::program::{CRATES, REPOSITORY, VERSION},
    error::Error,
};

/// Returns the SBOM of the bundle that `manifest` describes.
///
/// # Errors
/// The document cannot be serialized, which no valid manifest causes.
pub(super) fn document(manifest: &Manifest) -> Result<Vec<u8>, Error> {
    let Manifest { kind, model, compiler: Compiler { version, digest }, .. } = manifest;
    let class = match kind {
        BundleKind::Model => Classification::MachineLearningModel,
        BundleKind::Program => Classification::Application,
    };
    let mut bundle = Component::new(class, model, "", None);
    bundle.version = None;
    let mut ours = Component::new(Classification::Application, "mlxcel-compile", VERSION, None);
    ours.publisher = Some(NormalizedString::new(REPOSITORY));
    let mut iree = Component::new(Classification::Application, "iree-compile", version, None);
    iree.purl = Some(Purl::new("pypi", "iree-base-compiler", version).map_err(Error::document)?);
    iree.hashes = Some(hashes(HashAlgorithm::BLAKE3, &digest.hex()));
    // `mlxcel_artifacts::with_file_list` adds the bundle's files.
    let mut components = Vec::new();
    for (name, version, sha256) in CRATES {
        let mut library = Component::new(Classification::Library, name, version, None);
        library.purl = Some(Purl::new("cargo", name, version).map_err(Error::document)?);
        library.hashes = Some(hashes(HashAlgorithm::SHA_256, sha256));
        // It was used to make the bundle, but is not part of it.
        library.scope = Some(Scope::Excluded);
        components.push(library);
    }
    let bom = Bom {
        version: 1,
        serial_number: None,
        metadata: Some(Metadata {
            component: Some(bundle),
            tools: Some(Tools::Object { services: None, components: Some(Components(vec![ours, iree])) }),
            ..Metadata::default()
        }),
        components: Some(Components(components)),
        spec_version: SpecVersion::V1_5,
        ..Bom::default()
    };
    let mut text = Vec::new();
    bom.output_as_json_v1_5(&mut text).map_err(Error::document)?;
    Ok(text)
}

fn hashes(alg: HashAlgorithm, content: &str) -> Hashes {
    Hashes(vec![Hash { alg, content: HashValue(content.to_owned()) }])
}
