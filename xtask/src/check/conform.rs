//! `cargo xtask conform`: StableHLO's own tests through the whole path, against the ledger.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use clap::Args;

use crate::{shell, tasks::WHOLE, toolchain::setup::setup, workspace::Workspace};

/// The targets that have a ledger.
const TARGETS: [&str; 3] = ["cpu", "vulkan", "cuda"];

/// The test that runs all of them.
const TEST: &str = "every_test_does_what_the_ledger_says";

/// What to run.
#[derive(Args)]
pub(crate) struct Conform {
    /// Run all tests of this checkout of openxla/stablehlo instead of the committed ones
    #[arg(long, value_name = "FOLDER")]
    source: Option<PathBuf>,
    /// The target: `cpu`, `vulkan` on this machine's device, or `cuda` on the emulator
    #[arg(long, default_value = "cpu", value_parser = TARGETS)]
    target: String,
    /// Run only tests whose names contain this
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Write what becomes of tests into the ledger instead of comparing it
    #[arg(long)]
    bless: bool,
}

/// Runs StableHLO's tests, and fails if one does something else than the ledger says.
pub(crate) fn conform(workspace: &Workspace, options: &Conform) -> Result<()> {
    let Conform { source, target, only, bless } = options;
    if let Some(folder) = source.as_ref().filter(|folder| !folder.join("stablehlo/testdata").is_dir()) {
        bail!(
            "{}: found no folder stablehlo/testdata, expected a checkout of openxla/stablehlo\n\
             hint: git clone --depth 1 https://github.com/openxla/stablehlo",
            folder.display()
        );
    }
    setup(workspace)?;
    shell::run_to_stderr(&mut workspace.cargo(&format!("build --quiet {WHOLE} --bins --example cuda")))?;
    // With the features of that build, or dependencies are compiled again.
    let mut command =
        workspace.cargo(&format!("test --quiet {WHOLE} --test conform -- --nocapture --exact {TEST}"));
    if let Some(folder) = source {
        let folder = folder.canonicalize().with_context(|| folder.display().to_string())?;
        command.env("MLXCEL_CONFORM_SOURCE", folder);
    }
    command.env("MLXCEL_CONFORM_TARGET", target);
    if let Some(only) = only {
        command.env("MLXCEL_CONFORM_ONLY", only);
    }
    if *bless {
        command.env("MLXCEL_CONFORM_BLESS", "1");
    }
    shell::run(&mut command)
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use clap::{Command, FromArgMatches as _};

    use super::*;

    #[test]
    fn the_test_exists_because_a_name_that_fits_none_passes() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../compiler-driver/tests/conform");
        let text = fs::read_to_string(folder.join("main.rs")).unwrap();
        assert!(text.contains(&format!("#[test]\nfn {TEST}() {{")));
    }

    #[test]
    fn a_target_has_a_ledger() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../compiler-driver/tests/conform");
        for target in TARGETS {
            let name = if target == "cpu" { "ledger.txt".into() } else { format!("ledger_{target}.txt") };
            assert!(folder.join(name).is_file(), "{target}");
        }
        let parse = |target: &str| {
            let command = Conform::augment_args(Command::new("conform"));
            let matches = command.try_get_matches_from(["conform", "--target", target])?;
            Conform::from_arg_matches(&matches)
        };
        assert!(parse("cuda").is_ok());
        let error = parse("typo").err().unwrap().to_string();
        assert!(error.contains("invalid value 'typo'") && error.contains("cpu, vulkan, cuda"), "{error}");
    }
}
