//! `inspect`: the contents of a bundle.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use mlxcel_artifacts::{Bundle, Manifest, describe};
use serde::Serialize;

use crate::{
    arguments::{Source, StoreArguments},
    outcome::Outcome,
};

/// Show what is in a bundle
#[derive(Args)]
pub(crate) struct Inspect {
    #[command(flatten)]
    source: Source,
    /// Print one JSON object: the manifest's fields, and the bundle's path
    #[arg(long)]
    json: bool,
    /// Print one of the bundle's files: config.json, sbom.cdx.json, provenance.intoto.json, ...
    #[arg(long, value_name = "NAME", conflicts_with = "json")]
    file: Option<String>,
}

impl Inspect {
    pub(crate) fn run(&self, store: &StoreArguments) -> Result<Outcome> {
        let text = match &self.file {
            Some(name) => read_text(&self.source.open_without_weights(store)?, name)?,
            None if self.json => json(&self.source.open(store)?)?,
            None => describe(&self.source.open(store)?),
        };
        Ok(text.into())
    }
}

/// Formats the manifest's fields and `path` as one JSON object.
fn json(bundle: &Bundle) -> serde_json::Result<String> {
    #[derive(Serialize)]
    struct Inspected<'a> {
        path: String,
        #[serde(flatten)]
        manifest: &'a Manifest,
    }
    let path = bundle.path().display().to_string();
    Ok(serde_json::to_string_pretty(&Inspected { path, manifest: bundle.manifest() })? + "\n")
}

/// Returns the text of one of the checkpoint's small files or documents.
fn read_text(bundle: &Bundle, name: &str) -> Result<String> {
    let Manifest { files, documents, .. } = bundle.manifest();
    let bytes = match bundle.read_file(name)? {
        None => bundle.read_document(name)?,
        file => file,
    };
    let Some(bytes) = bytes else {
        let names: Vec<_> = files.keys().chain(documents.keys()).map(String::as_str).collect();
        bail!(
            "{bundle} has no file `{}`, expected one of {}\n\
             hint: run `mlxcel-bundle inspect {bundle}` to see all of its files",
            name.escape_debug(),
            names.join(", "),
            bundle = bundle.display_name()
        );
    };
    String::from_utf8(bytes).with_context(|| {
        let blob = files.get(name).or_else(|| documents.get(name));
        let path = blob.map_or_else(PathBuf::new, |blob| bundle.blob_path(blob));
        format!("cannot print {name}, expected UTF-8 text\nhint: read its bytes in {}", path.display())
    })
}
