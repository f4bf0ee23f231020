//! The store, shown.

use mlxcel_artifacts::{Collected, Manifest, Stored, report};
use serde::Serialize;

use crate::show::Size;

/// A bundle in the store as JSON.
#[derive(Serialize)]
struct Row<'s> {
    name: &'s str,
    manifest: String,
    model: Option<&'s str>,
    targets: Vec<&'s str>,
    bytes: u64,
    own_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl<'s> Row<'s> {
    fn new(stored: &'s Stored) -> Self {
        let manifest = stored.manifest.as_ref();
        Self {
            name: stored.name.as_str(),
            manifest: stored.digest.to_string(),
            model: manifest.ok().map(|manifest| manifest.model.as_str()),
            targets: manifest.iter().flat_map(|m| m.targets.keys()).map(String::as_str).collect(),
            bytes: manifest.map_or(0, Manifest::bytes),
            own_bytes: stored.own_bytes,
            error: manifest.err().map(|error| report(error)),
        }
    }
}

/// The bundles of a store for a person, under a heading.
pub(crate) fn text(all: &[Stored]) -> String {
    let rows: Vec<_> = all.iter().map(Row::new).collect();
    let width = rows.iter().map(|row| row.name.len()).max().unwrap_or_default().max(4);
    let mut out = String::new();
    if !rows.is_empty() {
        out += &format!("{:width$}  {:>12}  {:>12}  targets\n", "name", "size", "its own");
    }
    for Row { name, targets, bytes, own_bytes, error, .. } in &rows {
        let rest = error.as_ref().map_or_else(|| targets.join(" "), |e| e.replace('\n', "; "));
        out +=
            &format!("{name:width$}  {:>12}  {:>12}  {rest}\n", Size::short(*bytes), Size::short(*own_bytes));
    }
    out
}

/// The same for a program.
pub(crate) fn json(all: &[Stored]) -> serde_json::Result<String> {
    Ok(serde_json::to_string_pretty(&all.iter().map(Row::new).collect::<Vec<_>>())? + "\n")
}

/// What was removed, or would be.
pub(crate) fn collected(collected: Collected, dry: bool) -> String {
    let Collected { files, bytes, kept_bytes, limit_bytes } = collected;
    let removed = if dry { "would remove" } else { "removed" };
    let mut out = format!("{removed} {files} files, {}; {} stay\n", Size(bytes), Size(kept_bytes));
    if let Some(limit) = limit_bytes.filter(|&limit| limit < kept_bytes) {
        out += &format!(
            "that is more than {}: bundles that have a name stay until they are removed\n",
            Size::short(limit)
        );
    }
    out
}
