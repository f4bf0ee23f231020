//! `list`, `remove` and `gc`: the store.

use anyhow::Result;
use bytesize::ByteSize;
use clap::Args;
use mlxcel_artifacts::{ByteCount, Error, GcSummary, Manifest, Name, StoredBundle, report};
use serde::Serialize;

use crate::{arguments::StoreArguments, outcome::Outcome};

/// List the bundles in the store
#[derive(Args)]
pub(crate) struct List {
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

impl List {
    pub(crate) fn run(&self, store: &StoreArguments) -> Result<Outcome> {
        let store = store.open()?;
        let bundles = store.list()?;
        let rows: Vec<_> = bundles.iter().map(Row::new).collect();
        if self.json {
            return Ok((serde_json::to_string_pretty(&rows)? + "\n").into());
        }
        if rows.is_empty() {
            eprintln!("the store {} has no bundles", store.path().display());
        }
        Ok(table(&rows).into())
    }
}

/// A bundle in the store, as JSON has it.
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
    fn new(stored: &'s StoredBundle) -> Self {
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

/// Formats rows as a table with a heading. `unique` are the bytes that removing the bundle frees.
fn table(rows: &[Row<'_>]) -> String {
    let width = rows.iter().map(|row| row.name.len()).max().unwrap_or_default().max(4);
    let mut text = String::new();
    if !rows.is_empty() {
        text += &format!("{:width$}  {:>12}  {:>12}  targets\n", "name", "size", "unique");
    }
    for Row { name, targets, bytes, own_bytes, error, .. } in rows {
        let rest = error.as_ref().map_or_else(|| targets.join(" "), |e| e.replace('\n', "; "));
        let (bytes, own_bytes) = (ByteCount::short(*bytes), ByteCount::short(*own_bytes));
        text += &format!("{name:width$}  {bytes:>12}  {own_bytes:>12}  {rest}\n");
    }
    text
}

/// Remove bundles from the store
///
/// Also removes the files that no other bundle needs. Removes nothing if one of the names does not exist.
#[derive(Args)]
pub(crate) struct Remove {
    /// The bundles' names in the store
    #[arg(required = true, value_name = "NAME")]
    names: Vec<Name>,
}

impl Remove {
    pub(crate) fn run(&self, store: &StoreArguments) -> Result<Outcome> {
        let store = store.open()?;
        self.names.iter().try_for_each(|name| store.require(name))?;
        self.names.iter().try_for_each(|name| store.remove(name))?;
        match store.gc(None, false) {
            Err(Error::StoreInUse { .. }) => Ok(String::from(
                "removed the names; the store is in use: run `mlxcel-bundle gc` later to remove their files\n",
            )
            .into()),
            collected => Ok(describe_collected(collected?, false).into()),
        }
    }
}

/// Remove unused files from the store
///
/// Keeps the files of every bundle that has a name. With a limit, also removes compiled code that was not used for
/// longest.
#[derive(Args)]
pub(crate) struct Gc {
    /// Remove compiled code until the store is no larger than this, such as 20GB [default: $MLXCEL_STORE_LIMIT, or no
    /// limit]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    max_size: Option<ByteSize>,
    /// Print how much would be removed, and remove nothing
    #[arg(long)]
    dry_run: bool,
}

impl Gc {
    pub(crate) fn run(&self, store: &StoreArguments) -> Result<Outcome> {
        let limit = self.max_size.map(|size| size.as_u64());
        let collected = store.open()?.gc(limit, self.dry_run)?;
        Ok(describe_collected(collected, self.dry_run).into())
    }
}

fn parse_size(text: &str) -> Result<ByteSize, &'static str> {
    text.parse().map_err(|_| "expected a size such as 20GB or 500MiB")
}

fn describe_collected(collected: GcSummary, dry_run: bool) -> String {
    let GcSummary { files, bytes, kept_bytes, limit_bytes } = collected;
    let removed = if dry_run { "would remove" } else { "removed" };
    let (bytes, kept) = (ByteCount(bytes), ByteCount(kept_bytes));
    let mut text = format!("{removed} {files} files, {bytes}; {kept} remain\n");
    if let Some(limit) = limit_bytes.filter(|&limit| limit < kept_bytes) {
        text += &format!(
            "that exceeds the limit of {}: bundles with a name stay until `mlxcel-bundle remove NAME`\n",
            ByteCount::short(limit)
        );
    }
    text
}
