//! The tasks that build the other crates and run them.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;

use crate::{shell, toolchain::setup::setup_for_build, workspace::Workspace};

const DEMO: &str = "models/demo";
const DEMO_PROMPT: &str = "And it came to pass";
/// Greedy decoding of a model this small soon repeats one word. The seed makes sampling repeatable.
const DEMO_SAMPLING: [&str; 6] = ["--temp", "0.7", "--top-p", "0.9", "--seed", "1"];

/// The options of `cargo xtask demo`.
#[derive(Args)]
pub(crate) struct Demo {
    /// The prompt
    #[arg(short, long, default_value = DEMO_PROMPT)]
    prompt: String,
    /// The number of tokens to generate
    #[arg(short, long, default_value_t = 96)]
    number: usize,
}

/// Builds the programs, compiles the demo model and generates text.
pub(crate) fn demo(workspace: &Workspace, demo: &Demo) -> Result<()> {
    setup_for_build(workspace)?;
    shell::run_to_stderr(&mut workspace.cargo(
        "build --release -p mlxcel-compiler-driver -p mlxcel-runtime --bin mlxcel-compile --bin mlxcel-pack --bin mlxcel-run",
    ))?;
    let bundle = bundle_of(DEMO);
    let mut compile = workspace.command(workspace.release_binary("mlxcel-compile")?);
    // The bundle's path on its stdout is not a result of this task.
    shell::run_to_stderr(compile.args(["--model", DEMO, "--target", "cpu", "--out", &bundle]))?;
    let mut run = workspace.command(workspace.release_binary("mlxcel-run")?);
    run.args([&bundle, "-p", &demo.prompt, "-n", &demo.number.to_string()]).args(DEMO_SAMPLING);
    Err(shell::exec(&mut run))
}

/// The workspace with the features that no default has, as its tests cover it.
pub(crate) const WHOLE: &str = "--workspace --features mlxcel-serve/otel";

/// Builds mlxcel-compile and mlxcel-pack, which it runs. Returns the path of mlxcel-compile.
pub(crate) fn build_compiler(workspace: &Workspace) -> Result<PathBuf> {
    build_release(
        workspace,
        "-p mlxcel-compiler-driver -p mlxcel-runtime --bin mlxcel-compile --bin mlxcel-pack",
    )
}

fn build_release(workspace: &Workspace, programs: &str) -> Result<PathBuf> {
    setup_for_build(workspace)?;
    shell::run_to_stderr(&mut workspace.cargo(&format!("build --release {programs}")))?;
    Ok(workspace.release_binary("mlxcel-compile")?)
}

/// Runs mlxcel-compile with the arguments, and `--out` if they name no output.
pub(crate) fn compile(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let compiler = if has_subcommand(arguments) {
        // Subcommands pack nothing.
        build_release(workspace, "-p mlxcel-compiler-driver --bin mlxcel-compile")?
    } else {
        build_compiler(workspace)?
    };
    let mut compile = workspace.command(compiler);
    // Paths in the arguments are relative to the caller's folder.
    compile.current_dir(std::env::current_dir()?);
    compile.args(arguments);
    if let Some(model) = model_without_output(arguments) {
        compile.arg("--out").arg(workspace.root.join(bundle_of(model)));
    }
    Err(shell::exec(&mut compile))
}

/// Returns whether the arguments name a subcommand, such as `explain`.
fn has_subcommand(arguments: &[String]) -> bool {
    // A subcommand comes first, and mlxcel-compile takes no other word without an option.
    arguments.first().is_some_and(|argument| !argument.starts_with('-'))
}

/// Returns the model if the arguments compile one and name no output.
fn model_without_output(arguments: &[String]) -> Option<&str> {
    let has_output = |argument: &String| {
        ["--out", "--name", "--emit", "--help", "--version"].iter().any(|option| {
            argument == option || argument.strip_prefix(option).is_some_and(|rest| rest.starts_with('='))
        }) || ["-h", "-V", "-o"].contains(&argument.as_str())
    };
    if has_subcommand(arguments) || arguments.iter().any(has_output) {
        return None;
    }
    let joined = arguments.iter().find_map(|argument| argument.strip_prefix("--model="));
    let apart = || {
        let position = arguments.iter().position(|argument| argument == "--model")?;
        arguments.get(position + 1).map(String::as_str)
    };
    joined.or_else(apart)
}

/// Returns the bundle's folder for a preset or a checkpoint's folder.
fn bundle_of(model: &str) -> String {
    let name = Path::new(model).file_name().and_then(|name| name.to_str()).unwrap_or("model");
    format!("target/bundles/{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn an_output_folder_is_added_only_if_none_is_named() {
        assert_eq!(model_without_output(&words("--model a/b --target cpu")), Some("a/b"));
        assert_eq!(model_without_output(&words("--target cpu --model=llama-3.2-1b")), Some("llama-3.2-1b"));
        assert_eq!(model_without_output(&words("--model a --out x")), None);
        assert_eq!(model_without_output(&words("--model a --out=x")), None);
        assert_eq!(model_without_output(&words("--model a --name x")), None);
        assert_eq!(model_without_output(&words("--model a --emit mlir")), None);
        assert_eq!(model_without_output(&words("--help")), None);
        assert_eq!(model_without_output(&words("--model")), None);
        assert_eq!(model_without_output(&words("explain llama-3.2-1b")), None);
        assert_eq!(model_without_output(&words("random-weights --model a --seed 1")), None);
    }

    #[test]
    fn a_subcommand_comes_first() {
        assert!(has_subcommand(&words("explain llama-3.2-1b")));
        assert!(has_subcommand(&words("targets")));
        assert!(!has_subcommand(&words("--model explain")));
        assert!(!has_subcommand(&words("--help")));
    }

    #[test]
    fn a_bundle_is_named_after_its_model() {
        assert_eq!(bundle_of("llama-3.2-1b"), "target/bundles/llama-3.2-1b");
        assert_eq!(bundle_of("../checkpoints/SmolLM2/"), "target/bundles/SmolLM2");
    }
}
