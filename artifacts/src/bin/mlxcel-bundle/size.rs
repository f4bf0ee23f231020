//! `size`: which files and tensors take up space.

use std::collections::{BTreeMap, HashSet};

use anyhow::Result;
use clap::Args;
use mlxcel_artifacts::{Bundle, ByteCount, Digest, entry::Parameter};

use crate::{
    arguments::{Source, StoreArguments},
    outcome::Outcome,
};

/// Show which files and tensors of a bundle take up space
#[derive(Args)]
pub(crate) struct Size {
    #[command(flatten)]
    source: Source,
}

impl Size {
    pub(crate) fn run(&self, store: &StoreArguments) -> Result<Outcome> {
        Ok(sizes(&self.source.open_without_weights(store)?).into())
    }
}

/// Lists the bundle's files, then the checkpoint's tensors grouped by name, each with the largest first.
fn sizes(bundle: &Bundle) -> String {
    let manifest = bundle.manifest();
    let mut seen: HashSet<Digest> = HashSet::new();
    let mut rows: Vec<(u64, String)> = vec![(bundle.manifest_size(), "manifest.toml".into())];
    let mut shared = 0;
    for (role, blob) in manifest.blobs() {
        if seen.insert(blob.digest) {
            rows.push((blob.size, role.to_string()));
        } else {
            shared += blob.size;
        }
    }
    let total: u64 = rows.iter().map(|(size, _)| size).sum();
    rows.sort_by(|a, b| b.cmp(a));
    let mut text = table(&rows, total);
    text += &format!("\ntotal {}\n", ByteCount(total));
    if shared > 0 {
        text += &format!("{} are listed twice and stored once\n", ByteCount(shared));
    }
    let tensors = group_by_name(&manifest.parameters);
    if !tensors.is_empty() {
        let total = tensors.iter().map(|(size, _)| size).sum();
        text += &format!("\nthe checkpoint's tensors, {}\n", ByteCount(total));
        text += &table(&tensors, total);
    }
    text
}

fn table(rows: &[(u64, String)], total: u64) -> String {
    let row = |(size, what): &(u64, String)| {
        let share = *size as f64 / total.max(1) as f64 * 100.0;
        format!("{share:5.1} %  {:>12}  {what}\n", ByteCount::short(*size))
    };
    rows.iter().map(row).collect()
}

/// Sums the bytes of parameters whose names differ only in numbers, such as `model.layers.*.mlp.weight`.
fn group_by_name(parameters: &[Parameter]) -> Vec<(u64, String)> {
    let mut groups: BTreeMap<String, u64> = BTreeMap::new();
    for parameter in parameters {
        let parts = parameter.name.split('.');
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let name: Vec<_> = parts.map(|part| if is_number(part) { "*" } else { part }).collect();
        // A validated manifest's sizes do not overflow.
        *groups.entry(name.join(".")).or_default() += parameter.bytes().unwrap_or(0) as u64;
    }
    let mut rows: Vec<_> = groups.into_iter().map(|(name, size)| (size, name)).collect();
    rows.sort_by(|a, b| b.cmp(a));
    rows
}
