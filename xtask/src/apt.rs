//! Debian packages through apt.

use std::{fs, os::unix::fs::MetadataExt as _, path::Path, process::Command};

use anyhow::{Context as _, Result, bail};

use crate::shell;

/// Installs what is not installed yet of `packages`; as root or with a sudo that asks for no password.
pub(crate) fn install(packages: &[&str]) -> Result<()> {
    if shell::output(Command::new("dpkg-query").arg("--version")).is_err() {
        bail!(
            "this is no Debian system: found no dpkg-query\nhint: install what Debian calls {}",
            packages.join(" ")
        );
    }
    let missing: Vec<&str> = packages.iter().copied().filter(|package| !is_installed(package)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let Some(prefix) = privilege() else {
        bail!(
            "packages are missing and this user may not install them: {}\nhint: sudo apt-get install --no-install-recommends {}",
            missing.join(" "),
            missing.join(" ")
        );
    };
    have_candidates(&missing, Some(prefix))?;
    eprintln!("installing {}", missing.join(" "));
    let mut arguments = vec!["install", "--yes", "--no-install-recommends"];
    arguments.extend(&missing);
    shell::run_aside(&mut apt_get(prefix, &arguments))
}

/// Unpacks a package into a folder, without installing it: nothing that it would start is started.
pub(crate) fn unpack(package: &str, to: &Path) -> Result<()> {
    have_candidates(&[package], privilege())?;
    eprintln!("unpacking {package}");
    let folder = to.with_extension("incoming");
    _ = fs::remove_dir_all(&folder);
    let root = folder.join("root");
    fs::create_dir_all(&root).with_context(|| format!("cannot write {}", root.display()))?;
    shell::run_aside(apt_get(&[], &["download", package]).current_dir(&folder))?;
    let mut files = fs::read_dir(&folder)?.filter_map(|entry| Some(entry.ok()?.path()));
    let Some(file) = files.find(|path| path.extension().is_some_and(|extension| extension == "deb")) else {
        bail!("apt-get download left no package in {}", folder.display());
    };
    shell::run_aside(Command::new("dpkg-deb").arg("-x").arg(file).arg(&root))?;
    _ = fs::remove_dir_all(to);
    fs::rename(&root, to).with_context(|| format!("cannot write {}", to.display()))?;
    fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))
}

/// Makes sure that apt knows a version of each, by asking its sources again where it does not and this user may.
fn have_candidates(packages: &[&str], prefix: Option<&'static [&'static str]>) -> Result<()> {
    if !without_candidate(packages).is_empty() {
        if let Some(prefix) = prefix {
            eprintln!("apt-get update");
            shell::run_aside(&mut apt_get(prefix, &["update"]))?;
        }
        let unknown = without_candidate(packages);
        if !unknown.is_empty() {
            bail!(
                "no such package in the configured apt sources: {}{}",
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

/// What goes before `apt-get`: nothing for root, `sudo` where it works. `None` where neither is the case.
fn privilege() -> Option<&'static [&'static str]> {
    let is_root = fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    if is_root {
        return Some(&[]);
    }
    let sudo = Command::new("sudo").args(["-n", "true"]).output();
    sudo.is_ok_and(|result| result.status.success()).then_some(&["sudo", "-n"])
}

fn apt_get(prefix: &[&str], arguments: &[&str]) -> Command {
    // sudo drops the environment, so the variable is set behind it.
    let words = [prefix, &["env", "DEBIAN_FRONTEND=noninteractive", "apt-get"], arguments].concat();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    command
}

fn without_candidate<'a>(packages: &[&'a str]) -> Vec<&'a str> {
    let policy = shell::output(Command::new("apt-cache").env("LC_ALL", "C").arg("policy").args(packages));
    let policy = policy.unwrap_or_default();
    packages.iter().copied().filter(|package| !has_candidate(&policy, package)).collect()
}

/// Whether `apt-cache policy` knows a version of the package that could be installed.
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
    fn a_candidate_is_read_from_the_policy_of_its_own_package() {
        assert!(has_candidate(POLICY, "ninja-build"));
        assert!(!has_candidate(POLICY, "virtual"));
        assert!(!has_candidate(POLICY, "llvm-22-dev"));
    }

    #[test]
    fn sudo_is_put_before_the_environment() {
        let command = apt_get(&["sudo", "-n"], &["update"]);
        assert_eq!(shell::line(&command), "sudo -n env DEBIAN_FRONTEND=noninteractive apt-get update");
        assert_eq!(
            shell::line(&apt_get(&[], &["update"])),
            "env DEBIAN_FRONTEND=noninteractive apt-get update"
        );
    }
}
