//! Builds whose bytes do not depend on the folders that they are made in.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail};

use crate::{
    shell,
    toolchain::cross::{LINK_FOR_ARM, add_arm, for_arm},
    workspace::Workspace,
};

/// The programs that run bundles.
pub(super) const PROGRAMS: [&str; 5] =
    ["mlxcel-run", "mlxcel-serve", "mlxcel-bundle", "mlxcel-pack", "mlxcel-bench"];
/// The program that makes them.
pub(super) const COMPILER: &str = "mlxcel-compile";

/// The packages of the programs that run bundles, and of the library for C, as cargo's arguments.
const PACKAGES: &str = "-p mlxcel-runtime -p mlxcel-serve -p mlxcel-artifacts -p mlxcel-capi \
                        --features mlxcel-serve/otel";
/// The package of [`COMPILER`]. It links MLIR, which Debian has for this CPU alone.
const COMPILER_PACKAGE: &str = "-p mlxcel-compiler-driver";

/// The profile in Cargo.toml.
pub(super) const PROFILE: &str = "dist";

/// The separator of `CARGO_ENCODED_RUSTFLAGS`.
const BETWEEN_FLAGS: &str = "\x1f";

/// A release that is built.
pub(super) struct Build<'a> {
    pub(super) workspace: &'a Workspace,
    version: String,
    arch: &'static str,
    /// Where cargo builds.
    target: PathBuf,
    /// The time of the last commit, in seconds of Unix, which every file gets.
    pub(super) epoch: String,
}

impl<'a> Build<'a> {
    /// Finds the version, and the time of the commit.
    pub(super) fn new(workspace: &'a Workspace) -> Result<Self> {
        if cfg!(not(target_os = "linux")) {
            bail!("found another system, expected Linux, for which releases are built");
        }
        let path = workspace.root.join("Cargo.toml");
        let manifest: toml::Table = toml::from_str(&fs::read_to_string(&path)?)?;
        let version = manifest["workspace"]["package"]["version"].as_str();
        let version = version.with_context(|| format!("{}: found no version", path.display()))?.to_owned();
        let mut git = workspace.command("git");
        let epoch = match env::var("SOURCE_DATE_EPOCH") {
            Ok(epoch) => epoch,
            Err(_) => shell::output(git.args(["log", "-1", "--format=%ct"]))
                .context("hint: set SOURCE_DATE_EPOCH where there is no history of git")?,
        };
        let own = env::current_exe()?;
        let target = own.ancestors().nth(2).map_or_else(|| workspace.root.join("target"), Path::to_path_buf);
        let arch = env::consts::ARCH;
        Ok(Self { workspace, version, arch, target, epoch: epoch.trim().to_owned() })
    }

    /// Returns the same release for 64-bit ARM, where this CPU is another.
    pub(super) fn for_arm(&self) -> Result<Option<Build<'a>>> {
        if !self.is_for_host() || self.arch == "aarch64" {
            return Ok(None);
        }
        add_arm(self.workspace)?;
        let Self { workspace, version, target, epoch, .. } = self;
        let (version, target, epoch) = (version.clone(), target.clone(), epoch.clone());
        Ok(Some(Build { workspace, version, arch: "aarch64", target, epoch }))
    }

    /// Returns whether what is built runs here.
    pub(super) fn is_for_host(&self) -> bool {
        self.arch == env::consts::ARCH
    }

    /// Returns the architecture, as Rust names it.
    pub(super) fn arch(&self) -> &str {
        self.arch
    }

    pub(super) fn version(&self) -> &str {
        &self.version
    }

    pub(super) fn triple(&self) -> String {
        format!("{}-unknown-linux-gnu", self.arch)
    }

    /// Returns the folder for everything on the way.
    pub(super) fn work(&self) -> PathBuf {
        self.workspace.root.join("target/release-files")
    }

    /// Returns the folder for what is laid out for this architecture.
    pub(super) fn trees(&self) -> PathBuf {
        self.work().join(self.arch)
    }

    /// Returns the path of something that [`programs`](Self::programs) builds.
    pub(super) fn built(&self, name: &str) -> PathBuf {
        self.target.join(self.triple()).join(PROFILE).join(name)
    }

    /// Builds the programs and the libraries for C.
    pub(super) fn programs(&self) -> Result<()> {
        let compiler = if self.is_for_host() { COMPILER_PACKAGE } else { "" };
        let mut cargo = self.workspace.cargo(&format!(
            "build --locked --profile {PROFILE} --target {} --lib --bins {PACKAGES} {compiler}",
            self.triple()
        ));
        shell::run_to_stderr(self.reproducibly(&mut cargo)?)
    }

    /// Makes a command that starts compilers leave this machine's folders out of what they write.
    pub(super) fn reproducibly<'c>(&self, command: &'c mut Command) -> Result<&'c mut Command> {
        let home = match self.workspace.variable("CARGO_HOME") {
            Some(home) => home,
            None => self.workspace.variable("HOME").context("HOME is not set")?.join(".cargo"),
        };
        // Of several that fit, the last one counts.
        let folders = [
            (self.workspace.root.as_path(), "/mlxcel"),
            (&self.target, "/mlxcel/target"),
            (&self.workspace.toolchain, "/mlxcel/.toolchain"),
            (&home.join("registry/src"), "/crates"),
        ];
        let flags = |option: &str, between: &str| {
            let flags = folders.iter().map(|(from, to)| format!("{option}={}={to}", from.display()));
            flags.collect::<Vec<_>>().join(between)
        };
        let of_c = flags("-ffile-prefix-map", " ");
        let mut of_rust = flags("--remap-path-prefix", BETWEEN_FLAGS);
        if !self.is_for_host() {
            of_rust += &format!("{BETWEEN_FLAGS}{LINK_FOR_ARM}");
            for_arm(self.workspace, command);
        }
        command
            .env("CARGO_ENCODED_RUSTFLAGS", of_rust)
            .env("CARGO_TARGET_DIR", &self.target)
            .env("SOURCE_DATE_EPOCH", &self.epoch)
            .env("CFLAGS", &of_c)
            .env("CXXFLAGS", &of_c)
            .env_remove("RUSTFLAGS");
        Ok(command)
    }
}
