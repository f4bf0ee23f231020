//! `cargo xtask try-dist`: what is in a release, run in a Debian 12 that has nothing else.

use std::{
    env,
    env::consts::ARCH,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail};
use clap::Args;

use crate::{
    shell,
    toolchain::{apt, detect::clang_path},
    workspace::Workspace,
};

/// The prompt of every trial, and the number of tokens, as the example in C has them.
const PROMPT: &str = "And it came to pass";
const TOKENS: &str = "12";

/// A line between two answers.
const BETWEEN: &str = "\n=====\n";

/// The Debian release, by its codename.
const DEBIAN: &str = "bookworm";

/// The options of `cargo xtask try-dist`.
#[derive(Args)]
pub(crate) struct TryDist {
    /// The folder that `cargo xtask dist` made
    folder: PathBuf,
    /// The public key of the signatures [default: they are not verified]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// The mirror of Debian's packages
    #[arg(long, value_name = "URL", default_value = "http://deb.debian.org/debian")]
    mirror: String,
}

/// Files of a release, and a Debian in a folder.
struct Trial<'a> {
    workspace: &'a Workspace,
    files: PathBuf,
    mirror: &'a str,
    /// The folder for roots.
    roots: PathBuf,
}

/// Verifies the files, and runs each kind in a bare Debian. Prints a line for each.
pub(crate) fn try_dist(workspace: &Workspace, options: &TryDist) -> Result<()> {
    let files = env::current_dir()?.join(&options.folder);
    verify(&files, options.key.as_deref())?;
    shell::print(if options.key.is_some() { "verified  sums, signatures\n" } else { "verified  sums\n" })?;
    apt::install(&["debootstrap"])?;
    let roots = tempfile::Builder::new().prefix("mlxcel-try-dist-").tempdir()?;
    let trial = Trial { workspace, files, mirror: &options.mirror, roots: roots.path().into() };
    let bare = trial.debian("bare", "")?;
    let archive = trial.file(&format!("{ARCH}-linux.tar.gz"))?;
    let expected = trial.archive(&bare, &archive)?;
    said("archive", &expected)?;
    let is_same = |what: &str, answer: &str| {
        if answer != expected {
            bail!("{what}: found the answer {answer:?}, expected {expected:?}");
        }
        said(what, answer)
    };
    is_same("C example", &trial.c_example(&bare)?)?;
    is_same(".deb", &trial.deb()?)?;
    let of_wheel = trial.wheel()?;
    let (program, python) = of_wheel.split_once(BETWEEN).context("the wheel's trial gave one answer")?;
    is_same("wheel", program)?;
    is_same("Python", python)?;
    if ARCH == "x86_64"
        && let Ok(archive) = trial.file("aarch64-linux.tar.gz")
    {
        is_same("ARM", &trial.emulated(&archive)?)?;
    }
    roots.close().context("cannot remove the trial's folders")
}

fn said(what: &str, answer: &str) -> Result<()> {
    shell::print(&format!("{what:<9} {answer:?}\n"))
}

/// Compares digests, and signatures if there is a key.
fn verify(folder: &Path, key: Option<&Path>) -> Result<()> {
    let mut sums = Command::new("sha256sum");
    shell::output(sums.args(["--check", "--strict", "SHA256SUMS"]).current_dir(folder))?;
    let Some(key) = key else { return Ok(()) };
    let key = env::current_dir()?.join(key);
    for entry in fs::read_dir(folder)? {
        let file = entry?.path();
        if file.extension().is_none_or(|end| end != "minisig") {
            shell::output(Command::new("minisign").args(["-V", "-p"]).arg(&key).arg("-m").arg(file))?;
        }
    }
    Ok(())
}

impl Trial<'_> {
    /// Finds the file of the release with this end.
    fn file(&self, end: &str) -> Result<PathBuf> {
        let entries = fs::read_dir(&self.files).with_context(|| self.files.display().to_string())?;
        let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let is_it = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            // `mlxcel-compile-…` is another archive.
            name.ends_with(end) && name.starts_with("mlxcel") && !name.starts_with("mlxcel-compile")
        };
        paths.find(is_it).with_context(|| format!("{}: found no mlxcel…{end}", self.files.display()))
    }

    /// Makes a Debian with its required packages and these besides, separated by commas.
    fn debian(&self, name: &str, packages: &str) -> Result<PathBuf> {
        let root = self.roots.join(name);
        let mut command = Command::new("debootstrap");
        command.arg("--variant=minbase");
        command.args((!packages.is_empty()).then(|| format!("--include={packages}")));
        eprintln!("making a bare Debian: {}", root.display());
        shell::output(command.arg(DEBIAN).arg(&root).arg(self.mirror))?;
        Ok(root)
    }

    /// Runs a script in a root, with nothing of this environment. Returns its stdout.
    fn run(&self, root: &Path, script: &str) -> Result<String> {
        // Programs find their own folder by `/proc`, whose mount ends with the script.
        let enter = "mount -t proc proc \"$0/proc\" && exec chroot \"$0\" /bin/sh -ec \"$1\"";
        let mut command = Command::new("unshare");
        command.args(["--mount", "/bin/sh", "-ec", enter]).arg(root).arg(script);
        command.current_dir("/").env_clear();
        command.env("PATH", "/usr/local/bin:/usr/bin:/usr/sbin:/bin:/sbin").env("HOME", "/root");
        Ok(shell::output(&mut command)?.trim_end().to_owned())
    }

    /// Copies a file of the release into a root's `/srv`. Returns its name.
    fn copy(&self, file: &Path, root: &Path) -> Result<String> {
        let name = file.file_name().unwrap_or_default();
        fs::copy(file, root.join("srv").join(name)).with_context(|| file.display().to_string())?;
        Ok(name.to_string_lossy().into_owned())
    }

    fn archive(&self, root: &Path, archive: &Path) -> Result<String> {
        let name = self.copy(archive, root)?;
        self.run(
            root,
            &format!(
                "! command -v cc gcc clang python3 iree-compile >&2
                mkdir /opt/mlxcel; tar -xzf /srv/{name} -C /opt/mlxcel --strip-components=1
                cd /opt/mlxcel/bin
                for program in *; do ./$program --version >&2; done
                ./mlxcel-bundle verify ../share/mlxcel/demo.bundle >&2
                ./mlxcel-run demo -p '{PROMPT}' -n {TOKENS}"
            ),
        )
    }

    /// Runs the archive for ARM on a CPU that qemu emulates.
    fn emulated(&self, archive: &Path) -> Result<String> {
        let folder = self.roots.join("arm");
        fs::create_dir(&folder).with_context(|| folder.display().to_string())?;
        let mut tar = Command::new("tar");
        shell::output(tar.arg("-xzf").arg(archive).arg("--strip-components=1").arg("-C").arg(&folder))?;
        let mut qemu = self.workspace.command("qemu-aarch64");
        qemu.args(["-cpu", "neoverse-n1", "-L", "/usr/aarch64-linux-gnu"]).arg(folder.join("bin/mlxcel-run"));
        let answer = shell::output(qemu.args(["demo", "-p", PROMPT, "-n", TOKENS]))?;
        Ok(answer.trim_end().to_owned())
    }

    /// Builds the example with this machine's compiler, and runs it where the archive was unpacked.
    fn c_example(&self, root: &Path) -> Result<String> {
        let unpacked = root.join("opt/mlxcel");
        let program = root.join("srv/generate");
        let mut clang = self.workspace.command(clang_path(self.workspace));
        clang.arg(unpacked.join("share/doc/mlxcel/examples/generate.c")).arg("-o").arg(&program);
        clang.arg("-I").arg(unpacked.join("include")).arg("-L").arg(unpacked.join("lib")).arg("-lmlxcel");
        shell::output(clang.arg("-Wl,-rpath,/opt/mlxcel/lib"))?;
        let answers = self.run(root, "/srv/generate /opt/mlxcel/share/mlxcel/demo.bundle")?;
        let (first, _) = answers.split_once("\nended by ").context("the example in C ended early")?;
        Ok(first.to_owned())
    }

    fn deb(&self) -> Result<String> {
        let root = self.debian("deb", "")?;
        let debian_arch = if ARCH == "x86_64" { "amd64" } else { "arm64" };
        let name = self.copy(&self.file(&format!("_{debian_arch}.deb"))?, &root)?;
        self.run(&root, &format!("dpkg -i /srv/{name} >&2; cd /; mlxcel-run demo -p '{PROMPT}' -n {TOKENS}"))
    }

    /// Installs the wheel without a network: NumPy is downloaded before.
    fn wheel(&self) -> Result<String> {
        let root = self.debian("python", "python3,python3-venv")?;
        let name = self.copy(&self.file(&format!("_{ARCH}.whl"))?, &root)?;
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "download", "--quiet", "--only-binary=:all:", "--python-version", "3.11"]);
        shell::run_to_stderr(pip.args(["numpy>=1.25", "--dest"]).arg(root.join("srv")))?;
        let script = "import mlxcel, sys
engine = mlxcel.Engine('demo')
print(engine.generate(sys.argv[1], max_tokens=int(sys.argv[2])).text)";
        fs::write(root.join("srv/trial.py"), script)?;
        self.run(
            &root,
            &format!(
                "! command -v cc gcc clang >&2
                python3 -m venv /srv/venv
                /srv/venv/bin/pip install --quiet --no-index --find-links /srv /srv/{name} >&2
                /srv/venv/bin/mlxcel-run demo -p '{PROMPT}' -n {TOKENS}
                echo =====
                /srv/venv/bin/python3 /srv/trial.py '{PROMPT}' {TOKENS}"
            ),
        )
    }
}
