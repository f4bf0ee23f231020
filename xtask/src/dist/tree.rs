//! The folders that are packed: what a prefix such as `/usr` gets.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};

use super::build::{Build, COMPILER, PROGRAMS};
use crate::{
    files::{copy_file, copy_folder},
    shell,
    toolchain::detect::clang_path,
};

/// Where shells look for completions, and what they call them.
const SHELLS: [(&str, &str, &str, &str); 3] = [
    ("bash", "share/bash-completion/completions", "", ""),
    ("zsh", "share/zsh/site-functions", "_", ""),
    ("fish", "share/fish/vendor_completions.d", "", ".fish"),
];

/// Where the demo model is below a prefix, for `mlxcel-run demo` to find it.
pub(super) const DEMO: &str = "share/mlxcel/demo.bundle";

/// A folder on the way to an archive.
struct Tree<'a> {
    build: &'a Build<'a>,
    host: &'a Build<'a>,
    root: PathBuf,
}

/// Lays out `mlxcel`, which runs bundles and has the demo model, and for this CPU `mlxcel-compile`. Returns their folders.
///
/// The programs of `host` write the completions and the manual pages.
pub(super) fn lay_out(build: &Build<'_>, host: &Build<'_>, demo: &Path, sbom: &Path) -> Result<Vec<PathBuf>> {
    let run = Tree::new(build, host, "mlxcel")?;
    for program in PROGRAMS {
        run.program(program)?;
    }
    run.c_interface()?;
    copy_folder(demo, &run.root.join(DEMO))?;
    let mut trees = vec![run];
    if build.is_for_host() {
        let compile = Tree::new(build, host, COMPILER)?;
        compile.program(COMPILER)?;
        trees.push(compile);
    }
    for tree in &trees {
        let doc = format!("share/doc/{}", tree.root.file_name().unwrap_or_default().to_string_lossy());
        for file in ["LICENSE", "README.md", "CHANGELOG.md"] {
            copy_file(&build.workspace.root.join(file), &tree.root.join(format!("{doc}/{file}")), 0o644)?;
        }
        copy_file(sbom, &tree.root.join(format!("{doc}/sbom.cdx.json")), 0o644)?;
    }
    Ok(trees.into_iter().map(|tree| tree.root).collect())
}

impl<'a> Tree<'a> {
    /// Starts an empty folder of [`Build::trees`].
    fn new(build: &'a Build<'a>, host: &'a Build<'a>, name: &str) -> Result<Self> {
        let root = build.trees().join(name);
        if root.exists() {
            fs::remove_dir_all(&root).with_context(|| root.display().to_string())?;
        }
        Ok(Self { build, host, root })
    }

    /// Makes the folder of a path in the tree, and returns the whole path.
    fn place(&self, path: &str) -> Result<PathBuf> {
        let path = self.root.join(path);
        let folder = path.parent().unwrap_or(&self.root);
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        Ok(path)
    }

    /// Writes a text.
    fn text(&self, path: &str, text: &str) -> Result<()> {
        let path = self.place(path)?;
        fs::write(&path, text).with_context(|| path.display().to_string())
    }

    /// Copies a program, with its completions and manual pages.
    fn program(&self, name: &str) -> Result<()> {
        copy_file(&self.build.built(name), &self.root.join(format!("bin/{name}")), 0o755)?;
        let built = self.host.built(name);
        for (shell, folder, before, after) in SHELLS {
            let command = &mut self.build.workspace.command(&built);
            let completions = shell::output(command.args(["--completions", shell]))?;
            self.text(&format!("{folder}/{before}{name}{after}"), &completions)?;
        }
        let pages = self.place("share/man/man1/page")?.with_file_name("");
        shell::output(self.build.workspace.command(&built).arg("--man-pages").arg(pages)).map(drop)
    }

    /// Copies what C programs are built with, and the example.
    fn c_interface(&self) -> Result<()> {
        let sources = self.build.workspace.root.join("runtime/capi");
        // Programs ask for the name with the number, which `runtime/capi/build.rs` gives the library, and linkers for the other.
        let major = self.build.version().split('.').next().unwrap_or_default();
        let named = format!("libmlxcel.so.{major}");
        copy_file(&self.build.built("libmlxcel.so"), &self.root.join(format!("lib/{named}")), 0o644)?;
        let link = self.place("lib/libmlxcel.so")?;
        symlink(named, &link).with_context(|| link.display().to_string())?;
        let archive = "lib/libmlxcel.a";
        copy_file(&self.build.built("libmlxcel.a"), &self.root.join(archive), 0o644)?;
        // Three quarters of it are for links by rustc alone.
        let llvm_strip = clang_path(self.build.workspace).with_file_name("llvm-strip");
        let mut strip = self.build.workspace.command(llvm_strip);
        strip.args(["--strip-unneeded", "--remove-section=.llvmbc", "--remove-section=.llvmcmd"]);
        shell::output(strip.arg(self.root.join(archive)))?;
        copy_file(&sources.join("include/mlxcel.h"), &self.root.join("include/mlxcel.h"), 0o644)?;
        let example = sources.join("examples/generate.c");
        copy_file(&example, &self.root.join("share/doc/mlxcel/examples/generate.c"), 0o644)?;
        let template = sources.join("mlxcel.pc.in");
        let template = fs::read_to_string(&template).with_context(|| template.display().to_string())?;
        self.text("lib/pkgconfig/mlxcel.pc", &template.replace("@VERSION@", self.build.version()))
    }
}
