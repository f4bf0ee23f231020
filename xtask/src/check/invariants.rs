//! The dependencies that crates must not have.

use anyhow::{Result, bail};

use crate::{shell, workspace::Workspace};

/// The crates of the workspace that each crate may depend on.
const ALLOWED: [(&str, &[&str]); 9] = [
    ("mlxcel-artifacts", &[]),
    ("mlxcel-models", &[]),
    ("mlxcel-emitter", &["mlxcel-artifacts", "mlxcel-models"]),
    ("mlxcel-compiler-driver", &["mlxcel-artifacts", "mlxcel-emitter", "mlxcel-models"]),
    ("mlxcel-runtime", &["mlxcel-artifacts"]),
    ("mlxcel-serve", &["mlxcel-artifacts", "mlxcel-runtime"]),
    ("mlxcel-python", &["mlxcel-artifacts", "mlxcel-runtime"]),
    ("mlxcel-capi", &["mlxcel-artifacts", "mlxcel-runtime"]),
    ("xtask", &[]),
];

/// Crates, the kinds of dependency that count, and the dependencies that they must not have.
const FORBIDDEN: [(&str, &str, &[&str]); 4] = [
    // Not even for tests: the run side builds without LLVM.
    ("mlxcel-runtime", "--edges normal,build,dev", &["mlir-sys", "melior", "tblgen"]),
    // HTTP is the server's.
    ("mlxcel-runtime", "--edges normal,build", &["axum", "hyper", "tokio"]),
    ("mlxcel-runtime", "--edges normal,build,dev --no-default-features", &["eerie-sys", "cmake"]),
    ("mlxcel-compiler-driver", "--edges normal,build", &["eerie-sys"]),
];

/// Returns a line for each forbidden dependency.
pub(crate) fn violations(workspace: &Workspace) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for (name, allowed) in ALLOWED {
        for dependency in tree(workspace, name, "--edges normal,build")? {
            let is_own = ALLOWED.iter().any(|(own, _)| *own == dependency);
            if is_own && dependency != name && !allowed.contains(&dependency.as_str()) {
                found.push(format!("{name} depends on {dependency}, expected {}", list(allowed)));
            }
        }
    }
    for (name, options, forbidden) in FORBIDDEN {
        let tree = tree(workspace, name, options)?;
        for dependency in tree.iter().filter(|dependency| forbidden.contains(&dependency.as_str())) {
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
