//! The documents of a bundle: an SBOM, which lists its parts, and its provenance.
//!
//! Both follow from the manifest and the inputs of the build. They contain no times and no paths, so the same build
//! gives the same bytes.

pub(crate) mod provenance;

mod program;
mod sbom;

use std::collections::BTreeMap;

use mlxcel_artifacts::{Blob, BundleWriter, Manifest, PROVENANCE, SBOM, with_file_list};

use crate::{error::Error, hub::snapshot::Snapshot};
use provenance::SourceFile;

/// Adds the documents about `manifest` to a bundle. `options` are those that the
/// manifest does not say, `sources` the files that were read, `snapshot` where they are on the hub.
pub(crate) fn write(
    writer: &mut BundleWriter,
    manifest: &Manifest,
    options: BTreeMap<&'static str, String>,
    sources: &[SourceFile],
    snapshot: Option<&Snapshot>,
) -> Result<BTreeMap<String, Blob>, Error> {
    let provenance = provenance::statement(manifest, options, sources, snapshot);
    let documents = [
        (PROVENANCE, serde_json::to_vec(&provenance).map_err(Error::document)?),
        (SBOM, sbom::document(manifest)?),
    ];
    let mut blobs = BTreeMap::new();
    for (name, bytes) in documents {
        let bytes = with_file_list(name, bytes, manifest)?;
        blobs.insert(name.to_owned(), writer.add_bytes(&bytes)?);
    }
    Ok(blobs)
}
