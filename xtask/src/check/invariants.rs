//! What the crates must not depend on.

use anyhow::{Result, bail};

use crate::{shell, workspace::Workspace};

/// The crates of this workspace that each may be linked with. DESIGN's arrows, and no others.
const ALLOWED: [(&str, &[&str]); 6] = [
    ("mlxcel-artifacts", &[]),
    ("mlxcel-models", &[]),
    ("mlxcel-emitter", &["mlxcel-artifacts", "mlxcel-models"]),
    ("mlxcel-compiler-driver", &["mlxcel-artifacts", "mlxcel-emitter", "mlxcel-models"]),
    ("mlxcel-runtime", &["mlxcel-artifacts"]),
    ("xtask", &[]),
];

/// A crate, the kinds of dependency that count, and what must not be among them.
const FORBIDDEN: [(&str, &str, &[&str]); 3] = [
    // Not even for tests: whoever works on the run side needs no LLVM.
    ("mlxcel-runtime", "--edges normal,build,dev", &["mlir-sys", "melior", "tblgen"]),
    ("mlxcel-runtime", "--edges normal,build,dev --no-default-features", &["eerie-sys", "cmake"]),
    ("mlxcel-compiler-driver", "--edges normal,build", &["eerie-sys"]),
];

/// Lists every dependency that should not be there.
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

/// The names of everything that the crate depends on, itself among them.
fn tree(workspace: &Workspace, name: &str, options: &str) -> Result<Vec<String>> {
    let mut command = workspace.cargo("tree --prefix none --format {p} --target all");
    let text = shell::output(command.args(["--package", name]).args(options.split_whitespace()))?;
    let mut names: Vec<String> =
        text.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect();
    names.sort();
    names.dedup();
    if !names.iter().any(|found| found == name) {
        bail!("cargo tree lists no {name} among its own dependencies:\n{text}");
    }
    Ok(names)
}
