//! The tasks that build the other crates and start them.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;

use crate::{
    setup::{setup, setup_to_build},
    shell,
    workspace::Workspace,
};

const DEMO: &str = "models/demo";
const DEMO_PROMPT: &str = "And it came to pass";
/// The best next word of a model this small is soon the one before: it has to be sampled. The seed makes it repeatable.
const DEMO_SAMPLING: [&str; 6] = ["--temp", "0.7", "--top-p", "0.9", "--seed", "1"];

/// What the demo is asked for.
#[derive(Args)]
pub(crate) struct Demo {
    /// What the text begins with.
    #[arg(short, long, default_value = DEMO_PROMPT)]
    prompt: String,
    /// How many tokens to write.
    #[arg(short, long, default_value_t = 96)]
    number: usize,
}

/// From a fresh checkout to text on stdout.
pub(crate) fn demo(workspace: &Workspace, demo: &Demo) -> Result<()> {
    setup_to_build(workspace)?;
    shell::run_aside(&mut workspace.cargo(
        "build --release -p mlxcel-compiler-driver -p mlxcel-runtime --bin mlxcel-compile --bin mlxcel-pack --bin mlxcel-run",
    ))?;
    let bundle = bundle_of(DEMO);
    let mut compile = workspace.command(workspace.release("mlxcel-compile")?);
    // Its result is a path, which here is only a step on the way.
    shell::run_aside(compile.args(["--model", DEMO, "--target", "cpu", "--out", &bundle]))?;
    let mut run = workspace.command(workspace.release("mlxcel-run")?);
    run.args([&bundle, "-p", &demo.prompt, "-n", &demo.number.to_string()]).args(DEMO_SAMPLING);
    Err(shell::become_program(&mut run))
}

/// Every test of the workspace, or what the arguments choose of it.
pub(crate) fn test(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    setup(workspace)?;
    Err(shell::become_program(workspace.cargo(test_command(arguments)).args(arguments)))
}

fn test_command(arguments: &[String]) -> &'static str {
    let own = arguments.iter().take_while(|argument| *argument != "--");
    let chooses = own.into_iter().any(|argument| {
        argument.starts_with("-p") || argument.starts_with("--package") || argument == "--manifest-path"
    });
    if chooses { "test" } else { "test --workspace" }
}

/// Sets up, builds mlxcel-compile and what it starts, and says where it is.
pub(crate) fn build_compiler(workspace: &Workspace) -> Result<PathBuf> {
    setup_to_build(workspace)?;
    shell::run_aside(
        &mut workspace.cargo(
            "build --quiet --release -p mlxcel-compiler-driver -p mlxcel-runtime --bin mlxcel-compile --bin mlxcel-pack",
        ),
    )?;
    Ok(workspace.release("mlxcel-compile")?)
}

/// mlxcel-compile with the arguments, and an output folder where they name none.
pub(crate) fn compile(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let mut compile = workspace.command(build_compiler(workspace)?);
    // Paths in the arguments are relative to where this was called.
    compile.current_dir(std::env::current_dir()?);
    compile.args(arguments);
    if let Some(model) = needs_output(arguments) {
        compile.arg("--out").arg(workspace.root.join(bundle_of(model)));
    }
    Err(shell::become_program(&mut compile))
}

/// The model whose bundle has no folder named yet.
fn needs_output(arguments: &[String]) -> Option<&str> {
    let needs_none = |argument: &String| {
        ["--out", "--name", "--emit", "--help", "--version"].iter().any(|option| {
            argument == option || argument.strip_prefix(option).is_some_and(|rest| rest.starts_with('='))
        }) || ["-h", "-V", "-o"].contains(&argument.as_str())
    };
    if arguments.iter().any(needs_none) {
        return None;
    }
    let joined = arguments.iter().find_map(|argument| argument.strip_prefix("--model="));
    let apart = || {
        let position = arguments.iter().position(|argument| argument == "--model")?;
        arguments.get(position + 1).map(String::as_str)
    };
    joined.or_else(apart)
}

/// Where the bundle of a preset or a model's folder goes.
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
    fn an_output_folder_is_only_added_where_none_is_named() {
        assert_eq!(needs_output(&words("--model a/b --target cpu")), Some("a/b"));
        assert_eq!(needs_output(&words("--target cpu --model=llama-3.2-1b")), Some("llama-3.2-1b"));
        assert_eq!(needs_output(&words("--model a --out x")), None);
        assert_eq!(needs_output(&words("--model a --out=x")), None);
        assert_eq!(needs_output(&words("--model a --name x")), None);
        assert_eq!(needs_output(&words("--model a --emit mlir")), None);
        assert_eq!(needs_output(&words("--help")), None);
        assert_eq!(needs_output(&words("--model")), None);
    }

    #[test]
    fn a_bundle_is_named_after_its_model() {
        assert_eq!(bundle_of("llama-3.2-1b"), "target/bundles/llama-3.2-1b");
        assert_eq!(bundle_of("../checkpoints/SmolLM2/"), "target/bundles/SmolLM2");
    }

    #[test]
    fn a_chosen_package_replaces_the_workspace() {
        assert_eq!(test_command(&words("")), "test --workspace");
        assert_eq!(test_command(&words("--no-fail-fast -- -p")), "test --workspace");
        assert_eq!(test_command(&words("-p mlxcel-models config")), "test");
    }
}
