//! `cargo xtask dist`: what the page of a release holds, the same bytes in every folder.

mod archive;
mod build;
mod bundles;
mod deb;
mod sbom;
mod sums;
mod tree;
pub(crate) mod trial;
pub(crate) mod wheel;

use std::{fs, path::PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::Args;

use self::{build::Build, sums::Signer};
use crate::{shell, toolchain::setup::setup, workspace::Workspace};

/// The options of `cargo xtask dist`.
#[derive(Args)]
pub(crate) struct Dist {
    /// The folder for the files, empty or new [default: target/release-files/VERSION]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Sign every file, and the bundles in them, with this secret key of minisign
    #[arg(long, value_name = "FILE")]
    sign: Option<PathBuf>,
    /// Read the key's password from the first line of this file [default: the key has none]
    #[arg(long, requires = "sign", value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// The presets whose code becomes a bundle for all targets, separated by commas
    #[arg(long, value_delimiter = ',', value_name = "NAMES", default_value = "llama-3.2-1b")]
    preset: Vec<String>,
    /// Leave out programs for ARM, which are built on x86-64, too
    #[arg(long)]
    host_only: bool,
}

/// Makes the files of a release. Prints the path of each.
pub(crate) fn dist(workspace: &Workspace, options: &Dist) -> Result<()> {
    // What links programs for ARM and what signs are parts that tests need.
    setup(workspace)?;
    let build = Build::new(workspace)?;
    let password = options.password_file.as_deref();
    let signer = options.sign.as_ref().map(|key| Signer::new(workspace, key, password)).transpose()?;
    let version = build.version();
    let out = match &options.out {
        Some(folder) => std::env::current_dir()?.join(folder),
        None => build.work().join(version),
    };
    fs::create_dir_all(&out).with_context(|| out.display().to_string())?;
    let mut old = fs::read_dir(&out).with_context(|| out.display().to_string())?;
    if old.next().is_some() {
        // Other files would get sums and signatures, too. Only what an earlier run made there is removed.
        if options.out.is_some() {
            bail!(
                "{}: found files in it, expected an empty folder or none\nhint: remove them, or name another folder",
                out.display()
            );
        }
        fs::remove_dir_all(&out)
            .and_then(|()| fs::create_dir(&out))
            .with_context(|| out.display().to_string())?;
    }

    let arm = if options.host_only { None } else { build.for_arm()? };
    let builds: Vec<&Build<'_>> = [&build].into_iter().chain(&arm).collect();
    for build in &builds {
        build.programs()?;
    }
    let named = |name: &str, end: &str| out.join(format!("{name}-{version}{end}"));
    sbom::write(&build, &named("mlxcel", ".cdx.json"))?;
    let demo = bundles::demo(&build, signer.as_ref())?;
    for each in &builds {
        for tree in tree::lay_out(each, &build, &demo, &named("mlxcel", ".cdx.json"))? {
            archive::write(each, &tree, &out)?;
        }
        deb::write(each, &out)?;
        wheel::write(each, &demo, &out)?;
    }
    bundles::export(&build, &demo, &named("demo", ".bundle.tar"))?;
    for preset in &options.preset {
        bundles::preset(&build, preset, signer.as_ref(), &out)?;
    }
    let mut files = sums::write(&out)?;
    match &signer {
        Some(signer) => files.extend(signer.sign(&files, version)?),
        None => {
            eprintln!("warning: the files are not signed\nhint: --sign KEY, made by `mlxcel-bundle keygen`")
        }
    }
    files.sort();
    shell::print(&files.iter().map(|file| format!("{}\n", file.display())).collect::<String>())
}
