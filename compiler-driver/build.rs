//! Generates two lists: the targets in `targets/*.toml`, and the crates that this one is built from, for a bundle's SBOM
//! and provenance.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    error::Error,
    fmt::Write as _,
    fs,
    path::Path,
};

use cargo_lock::{Lockfile, Package};

fn main() -> Result<(), Box<dyn Error>> {
    let this = env::var("CARGO_MANIFEST_DIR")?;
    let out = env::var("OUT_DIR")?;
    let folder = Path::new(&this).join("targets");
    println!("cargo:rerun-if-changed={}", folder.display());
    fs::write(Path::new(&out).join("targets.rs"), targets(&folder)?)?;
    let crates = crates(Path::new(&this), &env::var("CARGO_PKG_NAME")?)?;
    fs::write(Path::new(&out).join("crates.rs"), crates)?;
    Ok(())
}

/// Lists name and text of each target.
fn targets(folder: &Path) -> Result<String, Box<dyn Error>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "toml")
            && let Some(name) = path.file_stem().and_then(|stem| stem.to_str())
        {
            names.push(name.to_owned());
        }
    }
    names.sort();

    let mut list = String::from("&[\n");
    for name in names {
        let path = folder.join(format!("{name}.toml"));
        writeln!(list, "    ({name:?}, include_str!({path:?})),")?;
    }
    list.push_str("]\n");
    Ok(list)
}

/// Lists name, version and SHA-256 of every crate of a registry that `name` is built from, as in the lock file.
fn crates(this: &Path, name: &str) -> Result<String, Box<dyn Error>> {
    let root = this.join("..");
    // The lock file of the workspace. What cargo packages has one of its own, and the other crates are a registry's.
    let in_workspace = root.join("Cargo.lock").is_file();
    let lock = if in_workspace { root.join("Cargo.lock") } else { this.join("Cargo.lock") };
    println!("cargo:rerun-if-changed={}", lock.display());
    let lock = Lockfile::load(lock)?;
    let mut folders = vec![(name.to_owned(), this.to_owned())];
    if in_workspace {
        let others = ["artifacts", "emitter", "models"];
        folders.extend(others.map(|folder| (format!("mlxcel-{folder}"), root.join(folder))));
    }
    let mut ours = BTreeMap::new();
    for (name, folder) in folders {
        let path = folder.join("Cargo.toml");
        println!("cargo:rerun-if-changed={}", path.display());
        let manifest: toml::Table = fs::read_to_string(path)?.parse()?;
        ours.insert(name, needed(&manifest));
    }
    let mut seen: BTreeSet<&Package> = BTreeSet::new();
    let mut next: Vec<&Package> =
        lock.packages.iter().filter(|package| package.name.as_str() == name).collect();
    while let Some(package) = next.pop() {
        if !seen.insert(package) {
            continue;
        }
        // For our own crates, the lock file includes what only tests need.
        let needed = ours.get(package.name.as_str());
        let dependencies = package
            .dependencies
            .iter()
            .filter(|dependency| needed.is_none_or(|needed| needed.contains(dependency.name.as_str())));
        next.extend(
            dependencies.flat_map(|dependency| lock.packages.iter().filter(|p| dependency.matches(p))),
        );
    }
    let crates = seen.into_iter().filter_map(|package| {
        let checksum = package.checksum.as_ref()?.to_string();
        Some((package.name.as_str(), package.version.to_string(), checksum))
    });
    let mut list = String::from("&[\n");
    // As texts, in which version 0.10 comes before 0.9.
    for (name, version, checksum) in crates.collect::<BTreeSet<_>>() {
        writeln!(list, "    ({name:?}, {version:?}, {checksum:?}),")?;
    }
    list.push_str("]\n");
    Ok(list)
}

/// Returns the names of the crates that a manifest needs for building, without optional ones.
fn needed(manifest: &toml::Table) -> BTreeSet<String> {
    let of = |table: &toml::Table| -> Vec<String> {
        let tables = ["dependencies", "build-dependencies"]
            .map(|kind| table.get(kind).and_then(|kind| kind.as_table()));
        let is_optional =
            |value: &toml::Value| value.get("optional").and_then(toml::Value::as_bool) == Some(true);
        let names = tables.into_iter().flatten().flatten();
        names.filter(|(_, value)| !is_optional(value)).map(|(name, _)| name.clone()).collect()
    };
    let targets = manifest.get("target").and_then(toml::Value::as_table).into_iter().flatten();
    let targets = targets.filter_map(|(_, table)| table.as_table());
    targets.flat_map(of).chain(of(manifest)).collect()
}
