//! llama.cpp, built for this machine's CPU.
//!
//! Its source comes from the package llama-cpp-python.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};

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
pub(super) const GGUF: &str = "gguf==0.19.0";

/// The variable that names a folder with llama.cpp's executables, which are then not built.
const LLAMA_CPP: &str = "MLXCEL_LLAMA_CPP";

/// Returns a Python with the package gguf.
pub(super) fn python(workspace: &Workspace, folder: &Path) -> Result<PathBuf> {
    venv::python(workspace, &folder.join("venv"), Packages::Named(&[GGUF]))
}

/// Returns the folder that the variable names, which is relative to the caller's folder.
fn given(workspace: &Workspace) -> Result<Option<PathBuf>> {
    let here = env::current_dir()?;
    Ok(workspace.variable(LLAMA_CPP).map(|given| here.join(given)))
}

/// Returns what the files of weights depend on: the version of llama.cpp, or the folder that stands for it, and that of the package
/// that writes them.
pub(super) fn versions(workspace: &Workspace) -> Result<[String; 2]> {
    let (version, _) = LLAMA_CPP_PYTHON;
    let version = given(workspace)?.map_or(version.to_owned(), |given| given.display().to_string());
    Ok([version, GGUF.to_owned()])
}

/// Refuses a folder without one of these executables.
fn check(folder: &Path, tools: &[&str]) -> Result<()> {
    for tool in tools {
        ensure!(
            folder.join(tool).is_file(),
            "{LLAMA_CPP}: found no {tool} in {}, expected {}\nhint: unset {LLAMA_CPP}, and they are built",
            folder.display(),
            tools.join(", ")
        );
    }
    Ok(())
}

/// Returns the folder of llama.cpp's executables, and builds those of `tools` that are missing.
pub(super) fn tools(workspace: &Workspace, folder: &Path, tools: &[&str]) -> Result<PathBuf> {
    if let Some(given) = given(workspace)? {
        check(&given, tools)?;
        return Ok(given);
    }
    let source = bindings(workspace, folder)?.join("vendor/llama.cpp");
    let build = source.join("build");
    let bin = build.join("bin");
    if tools.iter().all(|tool| bin.join(tool).is_file()) {
        return Ok(bin);
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

/// Returns the folder of llama-cpp-python, which has the module `llama_cpp` and the source of llama.cpp.
pub(super) fn bindings(workspace: &Workspace, folder: &Path) -> Result<PathBuf> {
    let (version, sha256) = LLAMA_CPP_PYTHON;
    let whole = folder.join(format!("llama_cpp_python-{version}"));
    if !whole.is_dir() {
        unpack(workspace, folder, version, sha256)?;
    }
    Ok(whole)
}

/// Fetches the source and unpacks it into a folder of its own, which is then renamed: an archive that was unpacked in part looks
/// whole.
fn unpack(workspace: &Workspace, folder: &Path, version: &str, sha256: &str) -> Result<()> {
    let mut pip = workspace.command("python3");
    pip.args(["-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", "llama-cpp-python", "--dest"]);
    shell::run_to_stderr(pip.arg(folder).arg(format!("llama-cpp-python=={version}")))?;
    let name = format!("llama_cpp_python-{version}");
    let archive = folder.join(format!("{name}.tar.gz"));
    wheels::verify(&archive, sha256)?;
    let (part, whole) = (folder.join(format!("{name}.part")), folder.join(&name));
    // An interrupted run may have left them.
    for left in [&part, &whole] {
        _ = fs::remove_dir_all(left);
    }
    fs::create_dir_all(&part).with_context(|| part.display().to_string())?;
    shell::run_to_stderr(workspace.command("tar").arg("-xzf").arg(&archive).arg("-C").arg(&part))?;
    fs::rename(part.join(&name), &whole).with_context(|| whole.display().to_string())?;
    fs::remove_dir_all(&part).with_context(|| part.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_ones_own_has_every_executable() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("llama-bench"), "").unwrap();
        let given = folder.path().as_os_str().to_owned();
        let environment = move |name: &str| (name == LLAMA_CPP).then(|| given.clone());
        let workspace = Workspace::at("/".into(), Box::new(environment));
        let of = |names: &[&str]| tools(&workspace, Path::new("/nowhere"), names);
        assert_eq!(of(&["llama-bench"]).unwrap(), folder.path());
        assert_eq!(
            of(&["llama-bench", "llama-quantize"]).unwrap_err().to_string(),
            format!(
                "MLXCEL_LLAMA_CPP: found no llama-quantize in {}, expected llama-bench, llama-quantize\n\
                 hint: unset MLXCEL_LLAMA_CPP, and they are built",
                folder.path().display()
            )
        );
        assert_eq!(versions(&workspace).unwrap()[0], folder.path().display().to_string());
    }

    #[test]
    fn the_folder_is_relative_to_the_callers() {
        let workspace = Workspace::at("/elsewhere".into(), Box::new(|_| Some("x".into())));
        assert_eq!(given(&workspace).unwrap(), Some(env::current_dir().unwrap().join("x")));
    }
}
