//! The bundles of a release: the demo model, and the code of presets.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use serde::Deserialize;

use super::{
    build::{Build, COMPILER},
    sums::Signer,
};
use crate::shell;

/// The part of a target's file that says what it computes in.
#[derive(Deserialize)]
struct Target {
    #[serde(default)]
    precisions: Vec<String>,
}

/// Compiles the demo model for every target that means the same everywhere.
pub(super) fn demo(build: &Build<'_>, signer: Option<&Signer<'_>>) -> Result<PathBuf> {
    let bundle = build.work().join("demo.bundle");
    let (narrow, wide) = targets(build)?;
    compile(build, &["--model", "models/demo", "--precision", "f32"], &[narrow, wide].concat(), &bundle)?;
    signer.map_or(Ok(()), |signer| signer.sign_bundle(build, &bundle))?;
    Ok(bundle)
}

/// Compiles a preset without weights, once for the targets that compute in 16 bits and once for the others.
pub(super) fn preset(build: &Build<'_>, name: &str, signer: Option<&Signer<'_>>, out: &Path) -> Result<()> {
    let (narrow, wide) = targets(build)?;
    for (targets, precision) in [(narrow, "bf16"), (wide, "f32")] {
        let full = format!("{name}-{precision}-{}", build.version());
        let bundle = build.work().join(format!("{full}.bundle"));
        let arguments = ["--model", name, "--weights", "none", "--precision", precision];
        compile(build, &arguments, &targets, &bundle)?;
        signer.map_or(Ok(()), |signer| signer.sign_bundle(build, &bundle))?;
        export(build, &bundle, &out.join(format!("{full}.bundle.tar")))?;
    }
    Ok(())
}

/// Packs a bundle into an archive.
pub(super) fn export(build: &Build<'_>, bundle: &Path, archive: &Path) -> Result<()> {
    let mut command = build.workspace.command(build.built("mlxcel-bundle"));
    shell::run_to_stderr(command.arg("export").arg(bundle).arg("--out").arg(archive))
}

/// Compiles a bundle into a folder that is not there afterwards if that fails.
fn compile(build: &Build<'_>, arguments: &[&str], targets: &[String], bundle: &Path) -> Result<()> {
    if bundle.exists() {
        fs::remove_dir_all(bundle).with_context(|| bundle.display().to_string())?;
    }
    let mut command = build.workspace.command(build.built(COMPILER));
    command.args(arguments).args(["--target", &targets.join(",")]).arg("--out").arg(bundle);
    // A release is made of its own sources, and not of what another build left.
    command.arg("--store").arg(build.work().join("store"));
    shell::run_to_stderr(&mut command)
}

/// Lists the targets that compute in bf16, and the others, each sorted. `cpu` is left out, which differs from machine to machine.
fn targets(build: &Build<'_>) -> Result<(Vec<String>, Vec<String>)> {
    let folder = build.workspace.root.join("compiler-driver/targets");
    let (mut narrow, mut wide) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let target: Target =
            toml::from_str(&fs::read_to_string(&path)?).with_context(|| path.display().to_string())?;
        let has_bf16 = target.precisions.is_empty() || target.precisions.iter().any(|float| float == "bf16");
        match (name.as_str(), has_bf16) {
            ("cpu", _) => (),
            (_, true) => narrow.push(name),
            (_, false) => wide.push(name),
        }
    }
    narrow.sort();
    wide.sort();
    Ok((narrow, wide))
}
