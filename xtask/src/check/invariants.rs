//! The dependencies that crates must not have.

use std::{collections::BTreeSet, fs, path::Path};

use anyhow::{Context as _, Result, bail};

use crate::{parallel, shell, workspace::Workspace};

/// The crates of the workspace that each crate may depend on.
const ALLOWED: [(&str, &[&str]); 10] = [
    ("mlxcel-artifacts", &[]),
    ("mlxcel-models", &[]),
    ("mlxcel-emitter", &["mlxcel-artifacts", "mlxcel-models"]),
    ("mlxcel-compiler-driver", &["mlxcel-artifacts", "mlxcel-emitter", "mlxcel-models"]),
    ("mlxcel-runtime", &["mlxcel-artifacts"]),
    ("mlxcel-serve", &["mlxcel-artifacts", "mlxcel-runtime"]),
    ("mlxcel-python", &["mlxcel-artifacts", "mlxcel-runtime"]),
    ("mlxcel-capi", &["mlxcel-artifacts", "mlxcel-runtime"]),
    ("mlxcel-cuda-emulator", &[]),
    ("xtask", &[]),
];

/// Crates, the kinds of dependency that count, and the dependencies that they must not have.
const FORBIDDEN: [(&str, &str, &[&str]); 4] = [
    // Not even for tests: the run side builds without LLVM.
    ("mlxcel-runtime", "--edges normal,build,dev", &["mlir-sys", "melior", "tblgen"]),
    // HTTP is the server's.
    ("mlxcel-runtime", "--edges normal,build", &["axum", "hyper", "tokio", "ureq", "rustls"]),
    ("mlxcel-runtime", "--edges normal,build,dev --no-default-features", &["eerie-sys", "cmake"]),
    ("mlxcel-compiler-driver", "--edges normal,build", &["eerie-sys"]),
];

/// Forbidden names that no crate of `Cargo.lock` has. Any other such name is a mistake, and finds nothing.
const ABSENT: [(&str, &str); 1] = [("cmake", "builds native code, as build.rs does with the program itself")];

/// Returns a line for each forbidden dependency.
pub(crate) fn violations(workspace: &Workspace) -> Result<Vec<String>> {
    let mut found = compare_members(&members(&workspace.root)?);
    found.extend(unknown_names(&workspace.root)?);
    let allowed = ALLOWED.iter().map(|(name, _)| (*name, "--edges normal,build"));
    let forbidden = FORBIDDEN.iter().map(|(name, options, _)| (*name, *options));
    let wanted: Vec<(&str, &str)> = allowed.chain(forbidden).collect();
    let trees = parallel::map(&wanted, |(name, options)| tree(workspace, name, options));
    let mut trees = trees.into_iter();
    // In this order, because `zip` takes from its first iterator before it sees that the second has ended.
    for ((name, allowed), tree) in ALLOWED.iter().zip(trees.by_ref()) {
        for dependency in tree? {
            let is_own = ALLOWED.iter().any(|(own, _)| *own == dependency);
            if is_own && dependency != *name && !allowed.contains(&dependency.as_str()) {
                found.push(format!("{name} depends on {dependency}, expected {}", list(allowed)));
            }
        }
    }
    for ((name, options, forbidden), tree) in FORBIDDEN.iter().zip(trees) {
        for dependency in tree?.iter().filter(|dependency| forbidden.contains(&dependency.as_str())) {
            found.push(format!("{name} depends on {dependency} ({options}), expected not to"));
        }
    }
    Ok(found)
}

fn list(allowed: &[&str]) -> String {
    if allowed.is_empty() {
        "no crate of the workspace".to_owned()
    } else {
        format!("only {}", allowed.join(", "))
    }
}

/// Returns the names of the crates of the workspace.
fn members(root: &Path) -> Result<BTreeSet<String>> {
    let read = |file: &Path| -> Result<toml::Table> {
        let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
        toml::from_str(&text).with_context(|| file.display().to_string())
    };
    let manifest = read(&root.join("Cargo.toml"))?;
    let folders = manifest.get("workspace").and_then(|workspace| workspace.get("members"));
    let folders = folders.and_then(toml::Value::as_array).context("Cargo.toml: found no members")?;
    let name = |folder: &str| {
        let manifest = read(&root.join(folder).join("Cargo.toml"))?;
        let name = manifest.get("package").and_then(|package| package.get("name"));
        let name = name.and_then(toml::Value::as_str).map(str::to_owned);
        name.with_context(|| format!("{folder}/Cargo.toml: found no name of a package"))
    };
    folders.iter().filter_map(toml::Value::as_str).map(name).collect()
}

/// Returns a line for each member without a row in [`ALLOWED`], and for each row without a member.
fn compare_members(members: &BTreeSet<String>) -> Vec<String> {
    const TABLE: &str = "xtask/src/check/invariants.rs";
    let rows: BTreeSet<String> = ALLOWED.iter().map(|(name, _)| (*name).to_owned()).collect();
    let missing = members
        .difference(&rows)
        .map(|name| format!("{TABLE}: found no row for {name}, expected what it may depend on"));
    let stale = rows
        .difference(members)
        .map(|name| format!("{TABLE}: found a row for {name}, expected a member of the workspace"));
    missing.chain(stale).collect()
}

/// Returns a line for each forbidden name that is not in `Cargo.lock` and is not explained.
fn unknown_names(root: &Path) -> Result<Vec<String>> {
    let text = fs::read_to_string(root.join("Cargo.lock")).context("Cargo.lock")?;
    let locked: BTreeSet<&str> =
        text.lines().filter_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"')).collect();
    let names: BTreeSet<&str> = FORBIDDEN.iter().flat_map(|(.., names)| names.iter().copied()).collect();
    let mut found = Vec::new();
    for name in names {
        match (locked.contains(name), ABSENT.iter().find(|(absent, _)| *absent == name)) {
            (false, None) => {
                found.push(format!("Cargo.lock: found no {name}, expected the crate that is forbidden"));
            }
            (true, Some((_, what))) => found.push(format!(
                "Cargo.lock: found {name}, which {what}; expected none, or no mention in ABSENT of invariants.rs"
            )),
            (true, None) | (false, Some(_)) => {}
        }
    }
    Ok(found)
}

/// Returns the names of all dependencies of the crate, and its own.
fn tree(workspace: &Workspace, name: &str, options: &str) -> Result<Vec<String>> {
    let mut command = workspace.cargo("tree --prefix none --format {p} --target all");
    let text = shell::output(command.args(["--package", name]).args(options.split_whitespace()))?;
    let mut names: Vec<String> =
        text.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect();
    names.sort();
    names.dedup();
    if !names.iter().any(|found| found == name) {
        bail!("cargo tree: found no {name} in its own tree, expected it first:\n{text}");
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_member_has_a_row() {
        let mut members = members(&Workspace::find().root).unwrap();
        assert_eq!(compare_members(&members), [""; 0]);
        members.remove("xtask");
        members.insert("new".to_owned());
        assert_eq!(
            compare_members(&members),
            [
                "xtask/src/check/invariants.rs: found no row for new, expected what it may depend on",
                "xtask/src/check/invariants.rs: found a row for xtask, expected a member of the workspace"
            ]
        );
    }

    #[test]
    fn a_forbidden_name_is_that_of_a_crate() {
        assert_eq!(unknown_names(&Workspace::find().root).unwrap(), [""; 0]);
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("Cargo.lock"), "name = \"cmake\"\nname = \"tokio\"\n").unwrap();
        let found = unknown_names(folder.path()).unwrap().join("\n");
        assert!(found.contains("found no hyper, ") && !found.contains("found no tokio"), "{found}");
        assert!(found.contains("found cmake, which builds native code"), "{found}");
    }
}
