//! Where a bundle's bytes are.

use std::collections::{BTreeMap, HashSet};

use mlxcel_artifacts::{Bundle, Digest, entry::Parameter};

use crate::show::Size;

/// The blobs, largest first, each with what it is for; then what the weights' tensors are, by the part of their names before
/// and after numbers.
pub(crate) fn text(bundle: &Bundle) -> String {
    let manifest = bundle.manifest();
    let mut seen: HashSet<Digest> = HashSet::new();
    let mut rows: Vec<(u64, String)> = vec![(bundle.manifest_size(), "manifest.toml".into())];
    let mut shared = 0;
    for (what, blob) in manifest.blobs() {
        if seen.insert(blob.digest) {
            rows.push((blob.size, what));
        } else {
            shared += blob.size;
        }
    }
    let total: u64 = rows.iter().map(|(size, _)| size).sum();
    rows.sort_by(|a, b| b.cmp(a));
    let mut out = table(&rows, total);
    out += &format!("\nin all {}\n", Size(total));
    if shared > 0 {
        out += &format!("{} are named twice and lie there once\n", Size(shared));
    }
    let tensors = kinds(&manifest.parameters);
    if !tensors.is_empty() {
        let total = tensors.iter().map(|(size, _)| size).sum();
        out += &format!("\nthe checkpoint's tensors, {}\n", Size(total));
        out += &table(&tensors, total);
    }
    out
}

fn table(rows: &[(u64, String)], total: u64) -> String {
    let row = |(size, what): &(u64, String)| {
        let share = *size as f64 / total.max(1) as f64 * 100.0;
        format!("{share:5.1} %  {:>12}  {what}\n", Size::short(*size))
    };
    rows.iter().map(row).collect()
}

/// Bytes of parameters whose names differ in numbers alone, largest first.
fn kinds(parameters: &[Parameter]) -> Vec<(u64, String)> {
    let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
    for parameter in parameters {
        let parts = parameter.name.split('.');
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let name: Vec<_> = parts.map(|part| if is_number(part) { "*" } else { part }).collect();
        // A validated manifest's sizes do not overflow.
        *kinds.entry(name.join(".")).or_default() += parameter.bytes().unwrap_or(0) as u64;
    }
    let mut rows: Vec<_> = kinds.into_iter().map(|(name, size)| (size, name)).collect();
    rows.sort_by(|a, b| b.cmp(a));
    rows
}
