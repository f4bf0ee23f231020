//! How each part of the toolchain is recognised.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    parts::{LIBCLANG, LLVM_PREFIX, Look},
    shell, wheels,
    workspace::Workspace,
};

const CMAKE_VERSION: [u32; 2] = [3, 26];
const SIMDE_VERSION: [u32; 3] = [0, 7, 4];
/// The IREE release that everything is pinned to.
const IREE_VERSION: &str = "3.13.0";

pub(crate) fn compiler(workspace: &Workspace) -> Look {
    match tool(workspace, Path::new("c++"), |_| true) {
        Look::Found { .. } => tool(workspace, Path::new("cc"), |_| true),
        other => other,
    }
}

pub(crate) fn mlir(workspace: &Workspace) -> Look {
    let is_llvm_22 = |version: &str| numbers(version).first() == Some(&22);
    let [tablegen, folder] =
        ["TABLEGEN_220_PREFIX", "MLIR_SYS_220_PREFIX"].map(|name| prefix(workspace, name));
    let mut version = String::new();
    for prefix in [tablegen, folder.clone()] {
        match tool(workspace, &prefix.join("bin/llvm-config"), is_llvm_22) {
            Look::Found { version: found, .. } => version = found,
            other => return other,
        }
    }
    // Debian's static archives, or the shared libraries of an LLVM that was built so.
    let sets: [&[&str]; 2] = [&["libMLIRIR.a", "libPolly.a"], &["libMLIR.so", "libMLIR-C.so"]];
    let is_absent = |file: &&&str| !folder.join("lib").join(file).exists();
    let first_absent = |set: &[&str]| set.iter().find(is_absent).map(|file| folder.join("lib").join(file));
    if let (Some(path), Some(_)) = (first_absent(sets[0]), first_absent(sets[1])) {
        return Look::Missing { path };
    }
    let header = folder.join("include/mlir-c/IR.h");
    if !header.is_file() {
        return Look::Missing { path: header };
    }
    Look::Found { version, path: folder }
}

/// Of LLVM's own folder: the kernels are compiled for other machines than this one.
pub(crate) fn clang(workspace: &Workspace) -> Look {
    let is_22 = |version: &str| numbers(version).first() == Some(&22);
    let clang = clang_path(workspace);
    match tool(workspace, &clang.with_file_name("llvm-nm"), is_22) {
        Look::Found { .. } => tool(workspace, &clang, is_22),
        other => other,
    }
}

/// Where it is expected.
pub(crate) fn clang_path(workspace: &Workspace) -> PathBuf {
    prefix(workspace, "MLIR_SYS_220_PREFIX").join("bin/clang")
}

pub(crate) fn libclang(workspace: &Workspace) -> Look {
    let folder = workspace.variable("LIBCLANG_PATH").unwrap_or_else(|| LIBCLANG.into());
    let is_libclang = |name: &str| name.starts_with("libclang.so") || name.starts_with("libclang-22.so");
    match names_in(&folder).into_iter().find(|name| is_libclang(name)) {
        Some(name) => Look::Found { version: String::new(), path: folder.join(name) },
        None => Look::Missing { path: folder.join("libclang.so") },
    }
}

/// Asks the C compiler for every library that LLVM wants linked, because only it knows where the linker looks.
pub(crate) fn system_libraries(workspace: &Workspace) -> Look {
    let llvm_config = prefix(workspace, "MLIR_SYS_220_PREFIX").join("bin/llvm-config");
    let flags = shell::output(Command::new(llvm_config).args(["--link-static", "--system-libs"]));
    let flags = flags.unwrap_or_else(|_| "-lz -lzstd".to_owned());
    for flag in flags.split_whitespace() {
        let found = match flag.strip_prefix("-l") {
            Some(name) => ["so", "a"].iter().any(|kind| linker_finds(&format!("lib{name}.{kind}"))),
            None => Path::new(flag).exists(),
        };
        if !found {
            return Look::Missing { path: flag.into() };
        }
    }
    Look::Found { version: String::new(), path: flags.trim().into() }
}

fn linker_finds(file: &str) -> bool {
    // The answer is a path where there is such a file, and the bare name where there is none.
    let answer = shell::output(Command::new("cc").arg(format!("-print-file-name={file}")));
    answer.is_ok_and(|path| path.trim().contains('/'))
}

pub(crate) fn ninja(workspace: &Workspace) -> Look {
    tool(workspace, Path::new("ninja"), |_| true)
}

pub(crate) fn cmake(workspace: &Workspace) -> Look {
    let is_new_enough = |version: &str| numbers(version).as_slice() >= CMAKE_VERSION.as_slice();
    match workspace.variable("CMAKE") {
        Some(path) => tool(workspace, &path, is_new_enough),
        None => wheel_tool(workspace, "cmake", "cmake/data/bin/cmake", is_new_enough),
    }
}

pub(crate) fn iree_compile(workspace: &Workspace) -> Look {
    let is_pinned = |version: &str| release(version) == IREE_VERSION;
    match workspace.variable("MLXCEL_IREE_COMPILE") {
        Some(path) => tool(workspace, &path, is_pinned),
        None => wheel_tool(workspace, "iree", wheels::IREE_COMPILE, is_pinned),
    }
}

/// The compiler that is used, whether it is there or not.
pub(crate) fn iree_compile_path(workspace: &Workspace) -> PathBuf {
    let installed = || workspace.toolchain.join("iree").join(wheels::IREE_COMPILE);
    workspace.variable("MLXCEL_IREE_COMPILE").unwrap_or_else(installed)
}

pub(crate) fn iree_source(workspace: &Workspace) -> Look {
    let Some(folder) = workspace.variable("MLXCEL_IREE_SOURCE") else {
        let lock = workspace.root.join("Cargo.lock");
        let text = fs::read_to_string(&lock).unwrap_or_default();
        let version = text
            .split_once("name = \"eerie-sys\"\nversion = \"")
            .and_then(|(_, rest)| rest.split('"').next());
        return match version {
            Some(version) => Look::Found { version: format!("crate eerie-sys {version}"), path: lock },
            None => Look::Missing { path: lock },
        };
    };
    let path = folder.join("runtime/version.json");
    let text = fs::read_to_string(&path).unwrap_or_default();
    let Some(version) = text.split('"').skip_while(|word| *word != "package-version").nth(2) else {
        return Look::Missing { path };
    };
    let version = version.to_owned();
    if numbers(&version).get(..2) == numbers(IREE_VERSION).get(..2) {
        Look::Found { version, path: folder }
    } else {
        Look::Wrong { found: version, path: folder }
    }
}

pub(crate) fn cuda(workspace: &Workspace) -> Look {
    if workspace.variable("MLXCEL_NO_CUDA").is_some_and(|value| value != Path::new("0")) {
        return Look::Found { version: "not wanted".to_owned(), path: PathBuf::new() };
    }
    let named = workspace.variable("IREE_CUDA_DEPS_DIR");
    let folder = named.clone().unwrap_or_else(|| workspace.toolchain.join("cuda"));
    for file in ["include/cuda.h", "nvvm/libdevice/libdevice.10.bc"] {
        if !folder.join(file).is_file() {
            return Look::Missing { path: folder.join(file) };
        }
    }
    if named.is_none() && wheels::is_outdated(workspace, "cuda") {
        return Look::Wrong { found: "an earlier pin".to_owned(), path: folder };
    }
    let header = fs::read_to_string(folder.join("include/cuda.h")).unwrap_or_default();
    let number = header.split("#define CUDA_VERSION").nth(1).and_then(|rest| rest.split_whitespace().next());
    let number = number.and_then(|number| number.parse::<u32>().ok()).unwrap_or_default();
    let version = format!("{}.{}", number / 1000, number % 1000 / 10);
    if number / 1000 == 12 {
        Look::Found { version, path: folder }
    } else {
        Look::Wrong { found: version, path: folder }
    }
}

pub(crate) fn vulkan(workspace: &Workspace) -> Look {
    let drivers = match workspace.variable("VK_DRIVER_FILES") {
        Some(path) => path,
        None => {
            let folder = Path::new("/usr/share/vulkan/icd.d");
            match names_in(folder).into_iter().find(|name| name.starts_with("lvp_")) {
                Some(name) => folder.join(name),
                None => return Look::Missing { path: folder.join("lvp_icd.json") },
            }
        }
    };
    if !linker_finds("libvulkan.so.1") {
        return Look::Missing { path: "libvulkan.so.1".into() };
    }
    Look::Found { version: String::new(), path: drivers }
}

pub(crate) fn faketime(workspace: &Workspace) -> Look {
    tool(workspace, Path::new("faketime"), |_| true)
}

/// Installed, or where setup unpacks it.
pub(crate) fn docker_registry(workspace: &Workspace) -> Look {
    let unpacked = workspace.toolchain.join("docker-registry/usr/bin/docker-registry");
    let name = if unpacked.is_file() { unpacked } else { "docker-registry".into() };
    tool(workspace, &name, |_| true)
}

/// It knows no `--version`.
pub(crate) fn minisign(workspace: &Workspace) -> Look {
    let path = on_path(workspace, Path::new("minisign"));
    match shell::output(workspace.command(&path).arg("-v")) {
        Ok(text) => Look::Found { version: version_in(&text), path },
        Err(_) => Look::Missing { path },
    }
}

pub(crate) fn minilm(workspace: &Workspace) -> Look {
    let path = workspace.toolchain.join("minilm/model.safetensors");
    if !path.is_file() || wheels::is_outdated(workspace, "minilm") {
        return Look::Missing { path };
    }
    Look::Found { version: String::new(), path }
}

/// Asks clang, which compiles the tests with it and has folders of its own to look in.
pub(crate) fn simde(workspace: &Workspace) -> Look {
    const HEADER: &str = "simde/simde-common.h";
    let rule = shell::output(Command::new(clang_path(workspace)).args([
        "-M",
        "-include",
        HEADER,
        "-x",
        "c",
        "/dev/null",
    ]));
    let rule = rule.unwrap_or_default();
    let Some(path) = rule.split_whitespace().find(|word| word.ends_with(HEADER)).map(PathBuf::from) else {
        return Look::Missing { path: HEADER.into() };
    };
    let header = fs::read_to_string(&path).unwrap_or_default();
    let number = |part: &str| header.split_once(&format!("#define SIMDE_VERSION_{part} "))?.1.lines().next();
    let version = ["MAJOR", "MINOR", "MICRO"].map(|part| number(part).unwrap_or("0").trim()).join(".");
    if numbers(&version).as_slice() >= SIMDE_VERSION.as_slice() {
        Look::Found { version, path }
    } else {
        Look::Wrong { found: version, path }
    }
}

pub(crate) fn pip(workspace: &Workspace) -> Look {
    match shell::output(workspace.command("python3").args(["-m", "pip", "--version"])) {
        Ok(text) => Look::Found { version: version_in(&text), path: "python3 -m pip".into() },
        Err(_) => Look::Missing { path: "python3 -m pip".into() },
    }
}

/// A tool out of a wheel: also checks that it is the wheel that is pinned now.
fn wheel_tool(workspace: &Workspace, part: &str, file: &str, accept: impl Fn(&str) -> bool) -> Look {
    let path = workspace.toolchain.join(part).join(file);
    match tool(workspace, &path, accept) {
        Look::Found { version, path } if wheels::is_outdated(workspace, part) => {
            Look::Wrong { found: format!("{version} of an earlier pin"), path }
        }
        look => look,
    }
}

/// A program that answers `--version`.
fn tool(workspace: &Workspace, path: &Path, accept: impl Fn(&str) -> bool) -> Look {
    // A name without a slash is looked up on the PATH by running it; the table should say where it was found.
    let path = if path.components().count() == 1 { on_path(workspace, path) } else { path.to_path_buf() };
    let Ok(text) = shell::output(workspace.command(&path).arg("--version")) else {
        return Look::Missing { path };
    };
    let version = version_in(&text);
    if accept(&version) { Look::Found { version, path } } else { Look::Wrong { found: version, path } }
}

fn on_path(workspace: &Workspace, name: &Path) -> PathBuf {
    let folders = workspace.variable("PATH").unwrap_or_default();
    let mut candidates = std::env::split_paths(&folders).map(|folder| folder.join(name));
    candidates.find(|path| path.is_file()).unwrap_or_else(|| name.to_path_buf())
}

fn prefix(workspace: &Workspace, variable: &str) -> PathBuf {
    workspace.variable(variable).unwrap_or_else(|| LLVM_PREFIX.into())
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// The first word that looks like a version.
fn version_in(text: &str) -> String {
    let is_version = |word: &&str| {
        word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.') && !word.ends_with(')')
    };
    text.split_whitespace().find(is_version).unwrap_or("of no version").to_owned()
}

/// `3.13.0` of `3.13.0rc20261016`.
fn release(version: &str) -> &str {
    let end = version.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(version.len());
    version[..end].trim_end_matches('.')
}

fn numbers(version: &str) -> Vec<u32> {
    release(version).split('.').map_while(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    #[test]
    fn versions_are_read_out_of_what_tools_say() {
        let iree = "IREE (https://iree.dev):\n  IREE compiler version 3.13.0rc20261016 @ 89ece87b\n  LLVM version 24.0.0git";
        assert_eq!(version_in(iree), "3.13.0rc20261016");
        assert_eq!(version_in("c++ (Debian 12.2.0-14+deb12u1) 12.2.0"), "12.2.0");
        assert_eq!(release("3.13.0rc20261016"), IREE_VERSION);
        assert_eq!(release("3.13.0.dev"), IREE_VERSION);
        assert_eq!(numbers("22.1.8"), [22, 1, 8]);
        assert!(numbers("4.4.4").as_slice() >= CMAKE_VERSION.as_slice());
        assert!(numbers("3.25.1").as_slice() < CMAKE_VERSION.as_slice());
        assert_eq!(numbers("of no version"), Vec::<u32>::new());
    }

    #[test]
    fn a_tool_of_another_version_is_wrong_and_not_missing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("iree-compile");
        fs::write(&path, "#!/bin/sh\necho IREE compiler version 3.12.0\n").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&path, mode).unwrap();
        let look = tool(&Workspace::at("/".into(), Box::new(|_| None)), &path, |version| {
            release(version) == IREE_VERSION
        });
        assert_eq!(look, Look::Wrong { found: "3.12.0".to_owned(), path });
    }

    #[test]
    fn another_iree_source_must_be_of_the_same_version() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("runtime")).unwrap();
        let path = folder.path().to_path_buf();
        let text = path.to_str().unwrap().to_owned();
        let lookup = move |name: &str| (name == "MLXCEL_IREE_SOURCE").then(|| OsString::from(&text));
        let workspace = Workspace::at("/".into(), Box::new(lookup));
        assert_eq!(iree_source(&workspace), Look::Missing { path: path.join("runtime/version.json") });
        fs::write(path.join("runtime/version.json"), "{\n  \"package-version\": \"3.12.0\"\n}\n").unwrap();
        assert_eq!(iree_source(&workspace), Look::Wrong { found: "3.12.0".to_owned(), path });
    }
}
