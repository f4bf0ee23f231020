//! `cargo xtask emulate`: code for CPUs that this machine may not have, run by qemu.

use std::{path::PathBuf, process::Command};

use anyhow::{Context as _, Result, bail};
use clap::Args;
use serde_json::Value;

use crate::{
    shell,
    tasks::WHOLE,
    toolchain::{
        cross::{ARM, LINK_FOR_ARM, add_arm, for_arm},
        setup::setup,
    },
    workspace::Workspace,
};

/// The target whose code runs on ARM.
const ARM_TARGET: &str = "cpu-aarch64";

/// The targets whose code runs by qemu.
const TARGETS: [&str; 3] = [ARM_TARGET, "cpu-x86-64-v2", "cpu-x86-64-v3"];

/// What the names of the tests of kernels for ARM have, and how the names of those by qemu begin: all of them, and models.
const KERNELS: &str = "arm";
const ALL: &str = "qemu::";
const MODELS: &str = "qemu::models";

/// What to run.
#[derive(Args)]
pub(crate) struct Emulate {
    /// Run the code of this target alone
    #[arg(long, value_name = "NAME", value_parser = TARGETS)]
    target: Option<String>,
    /// Run the fixtures whose names contain one of these words, separated by commas, and no kernels alone
    #[arg(long, value_name = "WORDS")]
    only: Option<String>,
    /// Run every fixture instead of each family's smallest
    #[arg(long)]
    full: bool,
}

/// Runs kernels and whole models on emulated CPUs, and fails if one does not answer as recorded.
pub(crate) fn emulate(workspace: &Workspace, options: &Emulate) -> Result<()> {
    let Emulate { target, only, full } = options;
    if cfg!(not(all(target_os = "linux", target_arch = "x86_64"))) {
        bail!(
            "found another system, expected Linux on x86-64\nhint: cargo xtask test runs this CPU's own code"
        );
    }
    setup(workspace)?;
    let has_arm = target.as_ref().is_none_or(|target| target == ARM_TARGET);
    if has_arm {
        add_arm(workspace)?;
    }
    if has_arm && only.is_none() {
        let mut command = workspace.cargo(&format!("test --quiet {WHOLE} --test kernels {KERNELS}"));
        shell::run(command.env("MLXCEL_KERNELS", "full"))?;
    }
    // The ignored tests of the module `qemu`. Kernels that are linked are no fixture.
    let tests = if only.is_some() { MODELS } else { ALL };
    let mut command =
        workspace.cargo(&format!("test --quiet {WHOLE} --test bundles -- --ignored --nocapture {tests}"));
    if has_arm {
        let mut cargo = workspace.cargo(&build(&format!("--target {ARM}")));
        cargo.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS", LINK_FOR_ARM);
        let program = program(for_arm(workspace, &mut cargo))?;
        command.env("MLXCEL_ANSWERS_AARCH64", program);
    }
    if target.as_ref().is_none_or(|target| target != ARM_TARGET) {
        command.env("MLXCEL_ANSWERS_X86_64", program(&mut workspace.cargo(&build("")))?);
    }
    command.env("MLXCEL_EMULATED", target.as_deref().unwrap_or_default());
    command.env("MLXCEL_FIXTURES", only.as_deref().unwrap_or_default());
    command.env("MLXCEL_ORACLE", if *full { "full" } else { "" });
    shell::run(&mut command)
}

/// Returns cargo's arguments to build the program that compares the answers of a bundle.
fn build(arguments: &str) -> String {
    format!(
        "test -p mlxcel-runtime --test answers --no-run --message-format json-render-diagnostics {arguments}"
    )
}

/// Runs a build and returns the path of the test program.
fn program(command: &mut Command) -> Result<PathBuf> {
    let messages = command.stderr(std::process::Stdio::inherit()).output();
    let messages = messages.with_context(|| shell::command_line(command))?;
    if !messages.status.success() {
        bail!("{} ended with {}", shell::command_line(command), messages.status);
    }
    executable_in(&String::from_utf8_lossy(&messages.stdout))
        .with_context(|| format!("{}: found no test program, expected one", shell::command_line(command)))
}

/// Returns the path of the test `answers` that cargo's messages name.
fn executable_in(messages: &str) -> Option<PathBuf> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut answers = messages.filter(|message| message["target"]["name"] == "answers");
    answers.find_map(|message| message["executable"].as_str().map(PathBuf::from))
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    #[test]
    fn the_tests_exist_because_a_name_that_fits_none_passes() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let read = |name: &str| fs::read_to_string(root.join(name)).unwrap();
        assert!(read("emitter/tests/kernels.rs").contains(&format!("#[test] fn {KERNELS}() ")));
        assert!(read("compiler-driver/tests/main.rs").contains("\nmod qemu;\n"));
        let tests = read("compiler-driver/tests/qemu.rs");
        let models = MODELS.strip_prefix(ALL).unwrap();
        assert!(tests.contains("#[ignore = ") && tests.contains(&format!("\nfn {models}_")));
        for target in TARGETS {
            assert!(tests.contains(&format!("target: \"{target}\",")), "{target}");
        }
    }

    #[test]
    fn the_program_is_found_in_cargos_messages() {
        let messages = r#"{"reason":"compiler-artifact","target":{"name":"mlxcel-run"},"executable":"/t/mlxcel-run"}
not json
{"reason":"compiler-artifact","target":{"name":"answers"},"executable":"/t/deps/answers-1"}
{"reason":"build-finished","success":true}"#;
        assert_eq!(executable_in(messages), Some("/t/deps/answers-1".into()));
        assert_eq!(executable_in(""), None);
    }
}
