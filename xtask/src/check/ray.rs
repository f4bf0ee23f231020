//! `cargo xtask ray`: a cluster of Ray with several nodes on this machine, in full.

use anyhow::Result;
use clap::Args;

use crate::{shell, tasks::WHOLE, toolchain::setup::setup, workspace::Workspace};

/// The test that runs them.
const TEST: &str = "python::ray_passes_its_tests";

/// What to run.
#[derive(Args)]
pub(crate) struct Ray {
    /// Run only tests whose names this expression of pytest selects
    #[arg(long, value_name = "EXPRESSION")]
    only: Option<String>,
}

/// Runs the tests of `mlxcel.ray` with all prompts and all of their kills. Prints what each found.
pub(crate) fn ray(workspace: &Workspace, options: &Ray) -> Result<()> {
    setup(workspace)?;
    shell::run_to_stderr(&mut workspace.cargo(&format!("build --quiet {WHOLE}")))?;
    // With the features of that build, or dependencies are compiled again.
    let tests = format!("--test bundles -- --nocapture --exact {TEST}");
    let mut command = workspace.cargo(&format!("test --quiet {WHOLE} {tests}"));
    command.env("MLXCEL_RAY", "full");
    if let Some(only) = &options.only {
        command.env("MLXCEL_RAY_ONLY", only);
    }
    shell::run(&mut command)
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    #[test]
    fn the_test_exists_because_a_name_that_fits_none_passes() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../compiler-driver/tests");
        let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
        let (module, name) = TEST.split_once("::").unwrap();
        assert!(read("main.rs").contains(&format!("\nmod {module};\n")));
        assert!(read(&format!("{module}.rs")).contains(&format!("\nfn {name}() {{")));
    }
}
