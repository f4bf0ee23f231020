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

/// The parts of a target's file that say what runs it, and what it computes in.
#[derive(Deserialize)]
struct Target {
    driver: String,
    run: String,
    #[serde(default)]
    precisions: Vec<String>,
}

/// What the file of a target says whose driver the programs lack.
const NEVER_RUN: &str = "compiles; never run by us";

/// The target that iree-compile 3.13 compiles models with small vocabularies for: it keeps indices in memory of a workgroup,
/// which it cannot do for Apple's GPUs.
const SMALL_MODELS_ONLY: &str = "metal";

/// The targets of a kind, each sorted by name.
#[derive(Default)]
struct Targets {
    /// Those that compute in bf16.
    narrow: Vec<String>,
    /// The others.
    wide: Vec<String>,
}

/// Compiles the demo model for every target that the programs run and that means the same everywhere.
pub(super) fn demo(build: &Build<'_>, signer: Option<&Signer<'_>>) -> Result<PathBuf> {
    let bundle = build.work().join("demo.bundle");
    let Targets { narrow, wide } = targets(&build.workspace.root, |target| target.run != NEVER_RUN)?;
    // Packed weights would be for this machine's CPU alone, and a release from another machine would differ.
    let arguments = ["--model", "models/demo", "--precision", "f32", "--no-pack"];
    compile(build, &arguments, &[narrow, wide].concat(), &bundle)?;
    signer.map_or(Ok(()), |signer| signer.sign_bundle(build, &bundle))?;
    Ok(bundle)
}

/// Compiles a preset without weights, once for the targets that compute in 16 bits and once for the others.
pub(super) fn preset(build: &Build<'_>, name: &str, signer: Option<&Signer<'_>>, out: &Path) -> Result<()> {
    let Targets { narrow, wide } =
        targets(&build.workspace.root, |target| target.driver != SMALL_MODELS_ONLY)?;
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

/// Lists the chosen targets. `cpu` is left out, which differs from machine to machine.
fn targets(root: &Path, is_chosen: impl Fn(&Target) -> bool) -> Result<Targets> {
    let folder = root.join("compiler-driver/targets");
    let mut targets = Targets::default();
    for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let target: Target =
            toml::from_str(&fs::read_to_string(&path)?).with_context(|| path.display().to_string())?;
        if name == "cpu" || !is_chosen(&target) {
            continue;
        }
        let has_bf16 = target.precisions.is_empty() || target.precisions.iter().any(|float| float == "bf16");
        if has_bf16 { targets.narrow.push(name) } else { targets.wide.push(name) }
    }
    targets.narrow.sort();
    targets.wide.sort();
    Ok(targets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Workspace;

    #[test]
    fn the_demo_is_for_every_target_that_programs_run() {
        let run = targets(&Workspace::find().root, |target| target.run != NEVER_RUN).unwrap();
        let all = [run.narrow, run.wide].concat();
        let has = |part: &str| all.iter().any(|name| name.starts_with(part));
        assert!(["cpu-aarch64", "cpu-x86-64-v2", "cuda", "vulkan"].into_iter().all(has), "{all:?}");
        assert!(!["rocm", "metal"].into_iter().any(has), "{all:?}");
    }
}
