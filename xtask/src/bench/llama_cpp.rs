//! llama.cpp, built for this machine's CPU.
//!
//! Its source comes from the package llama-cpp-python.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::{
    shell,
    toolchain::{
        detect,
        venv::{self, Packages},
        wheels,
    },
    workspace::Workspace,
};

/// The version and sha256 of llama.cpp's source on PyPI.
const LLAMA_CPP_PYTHON: (&str, &str) =
    ("0.3.36", "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e");

/// The package that writes its files of weights.
const GGUF: &str = "gguf==0.19.0";

/// The variable that names a folder with llama.cpp's executables, which are then not built.
const LLAMA_CPP: &str = "MLXCEL_LLAMA_CPP";

/// Returns a Python with the package gguf.
pub(super) fn python(workspace: &Workspace, folder: &Path) -> Result<PathBuf> {
    venv::python(workspace, &folder.join("venv"), Packages::Named(&[GGUF]))
}

/// Returns the folder of llama.cpp's executables, and builds those of `tools` that are missing.
pub(super) fn tools(workspace: &Workspace, folder: &Path, tools: &[&str]) -> Result<PathBuf> {
    if let Some(given) = workspace.variable(LLAMA_CPP) {
        return Ok(given);
    }
    let (version, sha256) = LLAMA_CPP_PYTHON;
    let source = folder.join(format!("llama_cpp_python-{version}/vendor/llama.cpp"));
    let build = source.join("build");
    let bin = build.join("bin");
    if tools.iter().all(|tool| bin.join(tool).is_file()) {
        return Ok(bin);
    }
    if !source.is_dir() {
        let python = python(workspace, folder)?;
        let mut pip = workspace.command(python);
        pip.args([
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--no-binary",
            "llama-cpp-python",
            "--dest",
        ]);
        shell::run_to_stderr(pip.arg(folder).arg(format!("llama-cpp-python=={version}")))?;
        let archive = folder.join(format!("llama_cpp_python-{version}.tar.gz"));
        wheels::verify(&archive, sha256)?;
        shell::run_to_stderr(workspace.command("tar").arg("-xzf").arg(&archive).arg("-C").arg(folder))?;
    }
    let cmake = workspace.toolchain.join("cmake/cmake/data/bin/cmake");
    let mut configure = workspace.command(&cmake);
    configure.arg("-S").arg(&source).arg("-B").arg(&build).args([
        "-G",
        "Ninja",
        "-DCMAKE_BUILD_TYPE=Release",
    ]);
    // gcc 12 omits half of the AMX tile configuration, so that 8 and 4-bit products end with SIGILL.
    let clang = detect::clang_path(workspace);
    configure.env("CC", &clang).env("CXX", clang.with_file_name("clang++"));
    let unused = ["CURL", "OPENSSL", "BUILD_UI", "USE_PREBUILT_UI", "BUILD_TESTS", "BUILD_EXAMPLES"];
    for option in unused {
        configure.arg(format!("-DLLAMA_{option}=OFF"));
    }
    // A folder of an earlier version may be configured without.
    configure.arg("-DLLAMA_BUILD_SERVER=ON");
    shell::run_to_stderr(&mut configure)?;
    let mut compile = workspace.command(&cmake);
    shell::run_to_stderr(compile.arg("--build").arg(&build).arg("--target").args(tools))?;
    Ok(bin)
}
