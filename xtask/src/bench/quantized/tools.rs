//! The tools that quantize checkpoints, and our programs.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::{
    bench::llama_cpp::GGUF,
    shell,
    toolchain::venv::{self, Packages},
    workspace::Workspace,
};

/// What quantizes a checkpoint and runs it.
#[derive(Clone, Copy)]
pub(super) enum Tool {
    Mlx,
    /// transformers, with bitsandbytes for its forms.
    Transformers,
    /// llama.cpp, with the type of its file.
    LlamaCpp(&'static str),
}

/// Packages of `make_mlx.py`.
const MLX: [&str; 5] = ["mlx[cpu]==0.32.4", "mlx-lm==0.32.2", "transformers==5.24.0", "torch==2.15.0", GGUF];
/// Packages of `make_bitsandbytes.py` and `make_fp8.py`, and what llama-cpp-python imports.
const TRANSFORMERS: [&str; 8] = [
    "bitsandbytes==0.50.2",
    "transformers==5.23.0",
    "accelerate==1.15.0",
    "torch==2.15.0",
    GGUF,
    "diskcache==5.6.3",
    "jinja2==3.1.6",
    "typing-extensions==4.15.0",
];

/// What quantizes checkpoints and measures tools.
const SCRIPT: &str = "models/oracle/quantized_checkpoints/divergence.py";

/// What a run needs.
pub(super) struct Bench<'a> {
    pub(super) workspace: &'a Workspace,
    /// The folder of what is made.
    pub(super) folder: PathBuf,
}

impl Bench<'_> {
    /// Has a tool quantize the checkpoint `source` into a folder of `folder`, and, if there is a text, predict it. Returns what
    /// the script prints. `prepare` changes its environment.
    pub(super) fn tool(
        &self,
        tool: Tool,
        name: &str,
        [source, folder]: [&Path; 2],
        text: Option<&str>,
        prepare: impl FnOnce(&mut Command),
    ) -> Result<Value> {
        let (environment, packages) = match tool {
            Tool::Mlx => ("mlx", MLX.as_slice()),
            Tool::Transformers | Tool::LlamaCpp(_) => ("transformers", TRANSFORMERS.as_slice()),
        };
        let environment = self.folder.join(environment);
        let python = venv::python(self.workspace, &environment, Packages::Named(packages))?;
        let mut command = self.workspace.command(python);
        command.args([SCRIPT, name]).arg(source).arg(folder).args(text);
        prepare(&mut command);
        let printed = shell::output(&mut command)?;
        serde_json::from_str(&printed).with_context(|| shell::command_line(&command))
    }

    /// Compiles a checkpoint for this CPU with these options. Returns the bundle.
    pub(super) fn bundle(&self, checkpoint: &Path, to: PathBuf, options: &[&str]) -> Result<PathBuf> {
        let mut compile = self.command("mlxcel-compile")?;
        compile.arg("--model").arg(checkpoint).args(["--target", "cpu"]).args(options);
        shell::run_to_stderr(compile.arg("--out").arg(&to))?;
        Ok(to)
    }

    /// Returns a command that runs one of our programs.
    pub(super) fn command(&self, program: &str) -> Result<Command> {
        Ok(self.workspace.command(self.workspace.release_binary(program)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_have_the_versions_of_the_scripts_that_call_them() {
        const SCRIPTS: [(&[&str], &str); 3] = [
            (&MLX, include_str!("../../../../models/oracle/quantized_checkpoints/make_mlx.py")),
            (&TRANSFORMERS, include_str!("../../../../models/oracle/quantized_checkpoints/make_fp8.py")),
            (
                &TRANSFORMERS,
                include_str!("../../../../models/oracle/quantized_checkpoints/make_bitsandbytes.py"),
            ),
        ];
        for (packages, script) in SCRIPTS {
            let (_, versions) = script.split_once("\nVERSIONS = ").unwrap();
            let versions: Value = serde_json::from_str(versions.lines().next().unwrap()).unwrap();
            for (name, version) in versions.as_object().unwrap() {
                let pinned = format!("=={}", version.as_str().unwrap());
                let is_pinned = |package: &&str| {
                    package.strip_suffix(&pinned).is_some_and(|found| found.starts_with(name.as_str()))
                };
                assert!(packages.iter().any(is_pinned), "{name}{pinned}");
            }
        }
    }
}
