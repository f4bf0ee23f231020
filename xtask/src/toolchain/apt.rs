//! Debian packages, installed by apt.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::Path,
    process::Command,
    sync::{Mutex, PoisonError},
};

use anyhow::{Context as _, Result, bail};

use crate::shell;

/// Held while apt's lists are read and renewed: a second `apt-get update` at the same time fails.
static LISTS: Mutex<()> = Mutex::new(());

/// Installs the missing ones of `packages`, as root or with a sudo that needs no password.
pub(crate) fn install(packages: &[&str]) -> Result<()> {
    if shell::output(Command::new("dpkg-query").arg("--version")).is_err() {
        bail!(
            "found no dpkg-query, expected a Debian system\nhint: install your system's packages for Debian's {}",
            packages.join(" ")
        );
    }
    let missing: Vec<&str> = packages.iter().copied().filter(|package| !is_installed(package)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let Some(prefix) = privilege() else {
        bail!(
            "found no permission to install the missing packages {}, expected root or a sudo without password\nhint: sudo apt-get install --no-install-recommends {}",
            missing.join(" "),
            missing.join(" ")
        );
    };
    ensure_candidates(&missing, Some(prefix))?;
    eprintln!("installing {}", missing.join(" "));
    let mut arguments = vec!["install", "--yes", "--no-install-recommends"];
    arguments.extend(&missing);
    shell::run_to_stderr(&mut apt_get(prefix, &arguments))
}

/// Unpacks a package into a folder without installing it, so that it starts no service.
pub(crate) fn unpack(package: &str, to: &Path) -> Result<()> {
    ensure_candidates(&[package], privilege())?;
    eprintln!("unpacking {package}");
    let folder = to.with_extension("incoming");
    _ = fs::remove_dir_all(&folder);
    let root = folder.join("root");
    fs::create_dir_all(&root).with_context(|| format!("cannot write {}", root.display()))?;
    shell::run_to_stderr(apt_get(&[], &["download", package]).current_dir(&folder))?;
    let mut files = fs::read_dir(&folder)?.filter_map(|entry| Some(entry.ok()?.path()));
    let Some(file) = files.find(|path| path.extension().is_some_and(|extension| extension == "deb")) else {
        bail!("found no package in {}, expected one from apt-get download", folder.display());
    };
    shell::run_to_stderr(Command::new("dpkg-deb").arg("-x").arg(file).arg(&root))?;
    _ = fs::remove_dir_all(to);
    fs::rename(&root, to).with_context(|| format!("cannot write {}", to.display()))?;
    fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))
}

/// Checks that apt knows a version of each package. Runs `apt-get update` if it does not and this user may.
fn ensure_candidates(packages: &[&str], prefix: Option<&'static [&'static str]>) -> Result<()> {
    let _lists = LISTS.lock().unwrap_or_else(PoisonError::into_inner);
    if !packages_without_candidate(packages).is_empty() {
        if let Some(prefix) = prefix {
            eprintln!("apt-get update");
            shell::run_to_stderr(&mut apt_get(prefix, &["update"]))?;
        }
        let unknown = packages_without_candidate(packages);
        if !unknown.is_empty() {
            bail!(
                "found no {} in apt's sources, expected every package{}",
                unknown.join(" "),
                hint_for(&unknown)
            );
        }
    }
    Ok(())
}

fn hint_for(unknown: &[&str]) -> &'static str {
    if !unknown.iter().any(|package| package.contains("22")) {
        return "";
    }
    "\nhint: LLVM 22 for Debian 12 is in its security archive: add the line
hint:   deb http://security.debian.org/debian-security bookworm-security main
hint: to /etc/apt/sources.list, or install LLVM and MLIR 22 elsewhere and set MLIR_SYS_220_PREFIX"
}

fn is_installed(package: &str) -> bool {
    let status =
        shell::output(Command::new("dpkg-query").args(["--show", "--showformat=${Status}", package]));
    status.is_ok_and(|status| status == "install ok installed")
}

/// Returns the words before `apt-get`: none for root, `sudo` if it needs no password. `None` if neither applies.
fn privilege() -> Option<&'static [&'static str]> {
    let is_root = fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    if is_root {
        return Some(&[]);
    }
    let sudo = Command::new("sudo").args(["-n", "true"]).output();
    sudo.is_ok_and(|result| result.status.success()).then_some(&["sudo", "-n"])
}

fn apt_get(prefix: &[&str], arguments: &[&str]) -> Command {
    // sudo clears the environment, so `env` sets the variable after it.
    let words = [prefix, &["env", "DEBIAN_FRONTEND=noninteractive", "apt-get"], arguments].concat();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    command
}

fn packages_without_candidate<'a>(packages: &[&'a str]) -> Vec<&'a str> {
    let policy = shell::output(Command::new("apt-cache").env("LC_ALL", "C").arg("policy").args(packages));
    let policy = policy.unwrap_or_default();
    packages.iter().copied().filter(|package| !has_candidate(&policy, package)).collect()
}

/// Returns whether `apt-cache policy` lists an installable version of the package.
fn has_candidate(policy: &str, package: &str) -> bool {
    let mut lines = policy.lines().skip_while(|line| line.strip_suffix(':') != Some(package)).skip(1);
    let candidate = lines
        .by_ref()
        .take_while(|line| line.starts_with(' '))
        .find_map(|line| line.trim().strip_prefix("Candidate: "));
    candidate.is_some_and(|candidate| candidate != "(none)")
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: &str = "\
ninja-build:
  Installed: (none)
  Candidate: 1.11.1-2~deb12u1
  Version table:
     1.11.1-2~deb12u1 500
virtual:
  Installed: (none)
  Candidate: (none)
  Version table:
";

    #[test]
    fn each_package_has_its_own_candidate() {
        assert!(has_candidate(POLICY, "ninja-build"));
        assert!(!has_candidate(POLICY, "virtual"));
        assert!(!has_candidate(POLICY, "llvm-22-dev"));
    }

    #[test]
    fn sudo_comes_before_the_environment() {
        let command = apt_get(&["sudo", "-n"], &["update"]);
        assert_eq!(
            shell::command_line(&command),
            "sudo -n env DEBIAN_FRONTEND=noninteractive apt-get update"
        );
        assert_eq!(
            shell::command_line(&apt_get(&[], &["update"])),
            "env DEBIAN_FRONTEND=noninteractive apt-get update"
        );
    }
}
