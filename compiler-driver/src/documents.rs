//! What a bundle says of its own making: the list of its parts, and how it was made.
//!
//! Both are made of the manifest and of what went into it, and of nothing else: the same build gives the same bytes, so
//! that neither has a time or a place in it.

mod provenance;
mod sbom;

use std::collections::BTreeMap;

use mlxcel_artifacts::{Blob, BundleWriter, Digest, Manifest, PROVENANCE, SBOM, with_file_list};

use crate::{Error, pipeline::Request, source::WeightSource};

/// Name, version and sha256 of the crates that this program is built from.
const CRATES: &[(&str, &str, &str)] = include!(concat!(env!("OUT_DIR"), "/crates.rs"));

/// Of the program that makes bundles.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Where its source is.
const REPOSITORY: &str = env!("CARGO_PKG_REPOSITORY");

/// Something that a bundle was made from.
#[derive(Debug, Clone)]
pub(crate) struct Material {
    /// Its file's name.
    pub(crate) name: String,
    /// The digest of the file as it was found.
    pub(crate) digest: Digest,
}

/// Adds the documents about `manifest` to a bundle; `weights` are the files that its weights were made from.
pub(crate) fn add(
    writer: &mut BundleWriter,
    manifest: &Manifest,
    request: &Request,
    weights: &[Material],
) -> Result<BTreeMap<String, Blob>, Error> {
    let provenance = provenance::statement(manifest, &asked(request), weights);
    let documents = [
        (PROVENANCE, serde_json::to_vec(&provenance).map_err(Error::document)?),
        (SBOM, sbom::document(manifest)?),
    ];
    let mut added = BTreeMap::new();
    for (name, bytes) in documents {
        let bytes = with_file_list(name, bytes, manifest)?;
        added.insert(name.to_owned(), writer.add_bytes(&bytes)?);
    }
    Ok(added)
}

/// What was asked for and does not say where on this machine anything lies.
fn asked(request: &Request) -> BTreeMap<&'static str, String> {
    let weights = match &request.weights {
        WeightSource::None => "none".to_owned(),
        WeightSource::Random(seed) => format!("random:{seed}"),
        WeightSource::Folder(_) | WeightSource::Model => "files".to_owned(),
    };
    let mut asked = BTreeMap::from([("weights", weights), ("targets", request.targets.join(","))]);
    let chunk = request.chunk.map(|chunk| chunk.to_string());
    asked.extend(chunk.map(|chunk| ("chunk", chunk)));
    asked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crates_are_those_that_build() {
        let has = |name: &str| CRATES.iter().any(|(found, ..)| *found == name);
        for name in ["melior", "safetensors", "blake3", "serde", "cargo-lock", "cc"] {
            assert!(has(name), "{name}");
        }
        // Those of tests, of other programs and of features that are off.
        for name in ["insta", "tokenizers", "oci-client", "mlxcel-emitter"] {
            assert!(!has(name), "{name}");
        }
        assert!(CRATES.iter().all(|(_, _, sha256)| sha256.len() == 64));
        assert!(CRATES.is_sorted());
    }
}
