//! Detects each part of the toolchain.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use super::{
    iree::IREE_VERSION,
    part::{Detection, LIBCLANG, LLVM_PREFIX},
    venv,
    version::{numbers, release, version_in},
    wheels,
};
use crate::{shell, workspace::Workspace};

const CMAKE_VERSION: [u32; 2] = [3, 26];
const QEMU_VERSION: [u32; 2] = [7, 2];
/// The wheel that has ptxas.
const PTXAS_WHEEL: &str = "nvidia-cuda-nvcc-cu12";
const SIMDE_VERSION: [u32; 3] = [0, 7, 4];
/// A `malloc` that takes less of iree-compile's time than libc's.
pub(crate) const JEMALLOC: &str = "libjemalloc.so.2";

pub(crate) fn compiler(workspace: &Workspace) -> Detection {
    match detect_program(workspace, Path::new("c++"), |_| true) {
        Detection::Found { .. } => detect_program(workspace, Path::new("cc"), |_| true),
        other => other,
    }
}

pub(crate) fn mlir(workspace: &Workspace) -> Detection {
    let is_llvm_22 = |version: &str| numbers(version).first() == Some(&22);
    let [tablegen, folder] =
        ["TABLEGEN_220_PREFIX", "MLIR_SYS_220_PREFIX"].map(|name| prefix(workspace, name));
    let mut version = String::new();
    for prefix in [tablegen, folder.clone()] {
        match detect_program(workspace, &prefix.join("bin/llvm-config"), is_llvm_22) {
            Detection::Found { version: found, .. } => version = found,
            other => return other,
        }
    }
    // Debian's static archives, or the shared libraries of an LLVM that was built so.
    let sets: [&[&str]; 2] = [&["libMLIRIR.a", "libPolly.a"], &["libMLIR.so", "libMLIR-C.so"]];
    let is_absent = |file: &&&str| !folder.join("lib").join(file).exists();
    let first_absent = |set: &[&str]| set.iter().find(is_absent).map(|file| folder.join("lib").join(file));
    if let (Some(path), Some(_)) = (first_absent(sets[0]), first_absent(sets[1])) {
        return Detection::Missing { path };
    }
    let header = folder.join("include/mlir-c/IR.h");
    if !header.is_file() {
        return Detection::Missing { path: header };
    }
    Detection::Found { version, path: folder }
}

/// Detects clang in LLVM's own folder: kernels are cross-compiled, so any other clang may lack a target.
pub(crate) fn clang(workspace: &Workspace) -> Detection {
    let is_22 = |version: &str| numbers(version).first() == Some(&22);
    let clang = clang_path(workspace);
    match detect_program(workspace, &clang.with_file_name("llvm-nm"), is_22) {
        Detection::Found { .. } => detect_program(workspace, &clang, is_22),
        other => other,
    }
}

/// Returns the path of the clang that the build uses, installed or not.
pub(crate) fn clang_path(workspace: &Workspace) -> PathBuf {
    prefix(workspace, "MLIR_SYS_220_PREFIX").join("bin/clang")
}

pub(crate) fn libclang(workspace: &Workspace) -> Detection {
    let folder = workspace.variable("LIBCLANG_PATH").unwrap_or_else(|| LIBCLANG.into());
    let is_libclang = |name: &str| name.starts_with("libclang.so") || name.starts_with("libclang-22.so");
    match names_in(&folder).into_iter().find(|name| is_libclang(name)) {
        Some(name) => Detection::Found { version: String::new(), path: folder.join(name) },
        None => Detection::Missing { path: folder.join("libclang.so") },
    }
}

/// Asks the C compiler for every library that LLVM links with, because only it knows the linker's search path.
pub(crate) fn system_libraries(workspace: &Workspace) -> Detection {
    let llvm_config = prefix(workspace, "MLIR_SYS_220_PREFIX").join("bin/llvm-config");
    let flags = shell::output(Command::new(llvm_config).args(["--link-static", "--system-libs"]));
    let flags = flags.unwrap_or_else(|_| "-lz -lzstd".to_owned());
    for flag in flags.split_whitespace() {
        let found = match flag.strip_prefix("-l") {
            Some(name) => ["so", "a"].iter().any(|kind| linker_finds(&format!("lib{name}.{kind}"))),
            None => Path::new(flag).exists(),
        };
        if !found {
            return Detection::Missing { path: flag.into() };
        }
    }
    Detection::Found { version: String::new(), path: flags.trim().into() }
}

pub(crate) fn linker_finds(file: &str) -> bool {
    // The answer is a path if the file exists, otherwise the bare name.
    let answer = shell::output(Command::new("cc").arg(format!("-print-file-name={file}")));
    answer.is_ok_and(|path| path.trim().contains('/'))
}

pub(crate) fn ninja(workspace: &Workspace) -> Detection {
    detect_program(workspace, Path::new("ninja"), |_| true)
}

pub(crate) fn cmake(workspace: &Workspace) -> Detection {
    let is_new_enough = |version: &str| numbers(version).as_slice() >= CMAKE_VERSION.as_slice();
    match workspace.variable("CMAKE") {
        Some(path) => detect_program(workspace, &path, is_new_enough),
        None => detect_wheel_program(workspace, "cmake", "cmake/data/bin/cmake", is_new_enough),
    }
}

pub(crate) fn iree_compile(workspace: &Workspace) -> Detection {
    let is_pinned = |version: &str| release(version) == IREE_VERSION;
    match workspace.variable("MLXCEL_IREE_COMPILE") {
        Some(path) => detect_program(workspace, &path, is_pinned),
        None => detect_wheel_program(workspace, "iree", wheels::IREE_COMPILE, is_pinned),
    }
}

/// Returns the path of the iree-compile that the build uses, installed or not.
pub(crate) fn iree_compile_path(workspace: &Workspace) -> PathBuf {
    let installed = || workspace.toolchain.join("iree").join(wheels::IREE_COMPILE);
    workspace.variable("MLXCEL_IREE_COMPILE").unwrap_or_else(installed)
}

pub(crate) fn iree_source(workspace: &Workspace) -> Detection {
    let Some(folder) = workspace.variable("MLXCEL_IREE_SOURCE") else {
        let lock = workspace.root.join("Cargo.lock");
        let text = fs::read_to_string(&lock).unwrap_or_default();
        let version = text
            .split_once("name = \"eerie-sys\"\nversion = \"")
            .and_then(|(_, rest)| rest.split('"').next());
        return match version {
            Some(version) => Detection::Found { version: format!("crate eerie-sys {version}"), path: lock },
            None => Detection::Missing { path: lock },
        };
    };
    let path = folder.join("runtime/version.json");
    let text = fs::read_to_string(&path).unwrap_or_default();
    let Some(version) = text.split('"').skip_while(|word| *word != "package-version").nth(2) else {
        return Detection::Missing { path };
    };
    let version = version.to_owned();
    if numbers(&version) == numbers(IREE_VERSION) {
        Detection::Found { version, path: folder }
    } else {
        Detection::WrongVersion { found: version, path: folder }
    }
}

pub(crate) fn cuda(workspace: &Workspace) -> Detection {
    if workspace.variable("MLXCEL_NO_CUDA").is_some_and(|value| value != Path::new("0")) {
        return Detection::Found { version: "disabled".to_owned(), path: PathBuf::new() };
    }
    let named = workspace.variable("IREE_CUDA_DEPS_DIR");
    let folder = named.clone().unwrap_or_else(|| workspace.toolchain.join("cuda"));
    for file in ["include/cuda.h", "nvvm/libdevice/libdevice.10.bc"] {
        if !folder.join(file).is_file() {
            return Detection::Missing { path: folder.join(file) };
        }
    }
    if named.is_none() && wheels::is_outdated(workspace, "cuda") {
        return Detection::WrongVersion {
            found: "the wheels of an earlier toolchain.toml".to_owned(),
            path: folder,
        };
    }
    let header = fs::read_to_string(folder.join("include/cuda.h")).unwrap_or_default();
    let number = header.split("#define CUDA_VERSION").nth(1).and_then(|rest| rest.split_whitespace().next());
    let number = number.and_then(|number| number.parse::<u32>().ok()).unwrap_or_default();
    let version = format!("{}.{}", number / 1000, number % 1000 / 10);
    if number / 1000 == 12 {
        Detection::Found { version, path: folder }
    } else {
        Detection::WrongVersion { found: version, path: folder }
    }
}

/// Detects the assembler for GPUs, of the version that the table of registers is of.
pub(crate) fn ptxas(workspace: &Workspace) -> Detection {
    let path = ptxas_path(workspace);
    let Some(version) = version_of_ptxas(workspace) else { return Detection::Missing { path } };
    let pinned = wheels::pinned("cuda").unwrap_or_default();
    if pinned.iter().any(|wheel| wheel.name == PTXAS_WHEEL && wheel.version == version) {
        Detection::Found { version, path }
    } else {
        Detection::WrongVersion { found: version, path }
    }
}

/// Returns the path of the ptxas that checks use, installed or not.
pub(crate) fn ptxas_path(workspace: &Workspace) -> PathBuf {
    let installed = || workspace.toolchain.join("cuda/bin/ptxas");
    workspace.variable("MLXCEL_PTXAS").unwrap_or_else(installed)
}

/// Asks ptxas for its version.
pub(crate) fn version_of_ptxas(workspace: &Workspace) -> Option<String> {
    let text = shell::output(workspace.command(ptxas_path(workspace)).arg("--version")).ok()?;
    Some(ptxas_version(&text).to_owned())
}

/// Returns `12.9.86` of `release 12.9, V12.9.86`.
fn ptxas_version(text: &str) -> &str {
    let number = |word: &'_ str| word.starts_with(|c: char| c.is_ascii_digit());
    let mut words = text.split_whitespace().filter_map(|word| word.strip_prefix('V'));
    words.find(|word| number(word)).unwrap_or("an unknown version")
}

pub(crate) fn vulkan(workspace: &Workspace) -> Detection {
    let drivers = match workspace.variable("VK_DRIVER_FILES") {
        Some(path) => path,
        None => {
            let folder = Path::new("/usr/share/vulkan/icd.d");
            match names_in(folder).into_iter().find(|name| name.starts_with("lvp_")) {
                Some(name) => folder.join(name),
                None => return Detection::Missing { path: folder.join("lvp_icd.json") },
            }
        }
    };
    if !linker_finds("libvulkan.so.1") {
        return Detection::Missing { path: "libvulkan.so.1".into() };
    }
    Detection::Found { version: String::new(), path: drivers }
}

pub(crate) fn jemalloc(_: &Workspace) -> Detection {
    let path = PathBuf::from(JEMALLOC);
    if linker_finds(JEMALLOC) {
        Detection::Found { version: String::new(), path }
    } else {
        Detection::Missing { path }
    }
}

pub(crate) fn valgrind(workspace: &Workspace) -> Detection {
    detect_program(workspace, Path::new("valgrind"), |_| true)
}

pub(crate) fn pkg_config(workspace: &Workspace) -> Detection {
    detect_program(workspace, Path::new("pkg-config"), |_| true)
}

pub(crate) fn faketime(workspace: &Workspace) -> Detection {
    detect_program(workspace, Path::new("faketime"), |_| true)
}

/// Detects the installed program, or the one that setup unpacked.
pub(crate) fn docker_registry(workspace: &Workspace) -> Detection {
    let unpacked = workspace.toolchain.join("docker-registry/usr/bin/docker-registry");
    let name = if unpacked.is_file() { unpacked } else { "docker-registry".into() };
    detect_program(workspace, &name, |_| true)
}

/// Detects the browser without windows, which takes half the time of the whole one.
pub(crate) fn chromium(workspace: &Workspace) -> Detection {
    detect_program(workspace, Path::new("chromium-headless-shell"), |_| true)
}

/// Detects the installed nginx, or the one that setup unpacked, by `nginx -v`, which writes to stderr.
pub(crate) fn nginx(workspace: &Workspace) -> Detection {
    let unpacked = workspace.toolchain.join("nginx/usr/sbin/nginx");
    let path = if unpacked.is_file() { unpacked } else { on_path(workspace, Path::new("nginx")) };
    match workspace.command(&path).arg("-v").output() {
        Ok(output) if output.status.success() => Detection::Found {
            version: version_in(&String::from_utf8_lossy(&output.stderr).replace("nginx/", "")),
            path,
        },
        _ => Detection::Missing { path },
    }
}

/// Detects the environment with clients of the server.
pub(crate) fn clients(workspace: &Workspace) -> Detection {
    environment(workspace, "clients")
}

/// Detects the environment with Ray.
pub(crate) fn ray(workspace: &Workspace) -> Detection {
    environment(workspace, "ray")
}

/// Detects an environment of Python, and checks that it has the packages that are pinned now.
fn environment(workspace: &Workspace, part: &str) -> Detection {
    let (path, is_ready) = venv::installed(workspace, part);
    // Its Python is a link to one that may be gone.
    if is_ready { detect_program(workspace, &path, |_| true) } else { Detection::Missing { path } }
}

/// Detects the emulators of ARM and x86-64 CPUs. An ARM CPU runs the code for it, and needs none.
pub(crate) fn qemu(workspace: &Workspace) -> Detection {
    let is_new = |version: &str| numbers(version).as_slice() >= QEMU_VERSION.as_slice();
    if cfg!(target_arch = "aarch64") {
        return Detection::Found { version: String::new(), path: "this CPU".into() };
    }
    match detect_program(workspace, Path::new("qemu-x86_64"), is_new) {
        Detection::Found { .. } => detect_program(workspace, Path::new("qemu-aarch64"), is_new),
        other => other,
    }
}

/// Asks clang for the files that it links programs for 64-bit ARM with, and looks for the linker.
pub(crate) fn arm64_libraries(workspace: &Workspace) -> Detection {
    if cfg!(target_arch = "aarch64") {
        return Detection::Found { version: String::new(), path: "this CPU's own".into() };
    }
    for file in ["crt1.o", "libgcc.a", "libstdc++.so"] {
        let asked = format!("-print-file-name={file}");
        let answer =
            shell::output(Command::new(clang_path(workspace)).args(["--target=aarch64-linux-gnu", &asked]));
        // clang answers with the bare name if there is none.
        let path = PathBuf::from(answer.unwrap_or_default().trim());
        if !path.is_absolute() || !path.exists() {
            return Detection::Missing { path: file.into() };
        }
    }
    detect_program(workspace, Path::new("aarch64-linux-gnu-ld"), |_| true)
}

/// Runs `minisign -v`, because minisign has no `--version`.
pub(crate) fn minisign(workspace: &Workspace) -> Detection {
    let path = on_path(workspace, Path::new("minisign"));
    match shell::output(workspace.command(&path).arg("-v")) {
        Ok(text) => Detection::Found { version: version_in(&text), path },
        Err(_) => Detection::Missing { path },
    }
}

pub(crate) fn minilm(workspace: &Workspace) -> Detection {
    let path = workspace.toolchain.join("minilm/model.safetensors");
    if !path.is_file() || wheels::is_outdated(workspace, "minilm") {
        return Detection::Missing { path };
    }
    Detection::Found { version: String::new(), path }
}

/// Asks clang for the headers, because clang compiles the tests and has its own search path.
pub(crate) fn simde(workspace: &Workspace) -> Detection {
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
        return Detection::Missing { path: HEADER.into() };
    };
    let header = fs::read_to_string(&path).unwrap_or_default();
    let number = |part: &str| header.split_once(&format!("#define SIMDE_VERSION_{part} "))?.1.lines().next();
    let version = ["MAJOR", "MINOR", "MICRO"].map(|part| number(part).unwrap_or("0").trim()).join(".");
    if numbers(&version).as_slice() >= SIMDE_VERSION.as_slice() {
        Detection::Found { version, path }
    } else {
        Detection::WrongVersion { found: version, path }
    }
}

pub(crate) fn pip(workspace: &Workspace) -> Detection {
    match shell::output(workspace.command("python3").args(["-m", "pip", "--version"])) {
        Ok(text) => Detection::Found { version: version_in(&text), path: "python3 -m pip".into() },
        Err(_) => Detection::Missing { path: "python3 -m pip".into() },
    }
}

pub(crate) fn uv(workspace: &Workspace) -> Detection {
    detect_wheel_program(workspace, "uv", "uv", |_| true)
}

/// Detects a program unpacked from a wheel, and checks that the wheel is the one pinned now.
fn detect_wheel_program(
    workspace: &Workspace,
    part: &str,
    file: &str,
    accept: impl Fn(&str) -> bool,
) -> Detection {
    let path = workspace.toolchain.join(part).join(file);
    match detect_program(workspace, &path, accept) {
        Detection::Found { version, path } if wheels::is_outdated(workspace, part) => {
            Detection::WrongVersion { found: format!("{version} from an earlier toolchain.toml"), path }
        }
        detection => detection,
    }
}

/// Detects a program by running it with `--version`.
fn detect_program(workspace: &Workspace, path: &Path, accept: impl Fn(&str) -> bool) -> Detection {
    // A bare name would run too, but the table shows where the program is.
    let path = if path.components().count() == 1 { on_path(workspace, path) } else { path.to_path_buf() };
    let Ok(text) = shell::output(workspace.command(&path).arg("--version")) else {
        return Detection::Missing { path };
    };
    let version = version_in(&text);
    if accept(&version) {
        Detection::Found { version, path }
    } else {
        Detection::WrongVersion { found: version, path }
    }
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

#[cfg(test)]
mod tests {
    use std::{ffi::OsString, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn another_version_is_wrong_and_not_missing() {
        let folder = tempfile::tempdir().unwrap();
        // An executable that is written here could still be open in a child process of another test when it is run.
        let path = folder.path().join("older");
        symlink(
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../compiler-driver/tests/fakes/iree-compile"),
            &path,
        )
        .unwrap();
        let detection = detect_program(&Workspace::at("/".into(), Box::new(|_| None)), &path, |version| {
            release(version) == IREE_VERSION
        });
        assert_eq!(detection, Detection::WrongVersion { found: "3.12.1".to_owned(), path });
    }

    #[test]
    fn the_version_of_ptxas_is_the_whole_one() {
        let text =
            "ptxas: NVIDIA (R) Ptx optimizing assembler\nCuda compilation tools, release 12.9, V12.9.86\n";
        assert_eq!(ptxas_version(text), "12.9.86");
        assert_eq!(ptxas_version("Void"), "an unknown version");
    }

    #[test]
    fn another_iree_source_must_be_of_the_same_version() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("runtime")).unwrap();
        let path = folder.path().to_path_buf();
        let text = path.to_str().unwrap().to_owned();
        let lookup = move |name: &str| (name == "MLXCEL_IREE_SOURCE").then(|| OsString::from(&text));
        let workspace = Workspace::at("/".into(), Box::new(lookup));
        assert_eq!(iree_source(&workspace), Detection::Missing { path: path.join("runtime/version.json") });
        fs::write(path.join("runtime/version.json"), "{\n  \"package-version\": \"3.12.0\"\n}\n").unwrap();
        assert_eq!(iree_source(&workspace), Detection::WrongVersion { found: "3.12.0".to_owned(), path });
    }
}
