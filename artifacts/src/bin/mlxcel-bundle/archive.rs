//! `export` and `import`: bundles as single files.

use std::{
    ffi::OsStr,
    fs::File,
    io::{self, BufReader, BufWriter},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};
use clap::Args;
use mlxcel_artifacts::Bundle;

use crate::{
    arguments::{Source, StoreArguments, Target},
    outcome::Outcome,
};

/// The file name that stands for stdin or stdout.
const STANDARD_STREAM: &str = "-";

/// Write a bundle to a tar archive
///
/// Equal bundles give equal archives.
#[derive(Args)]
pub(crate) struct Export {
    #[command(flatten)]
    source: Source,
    /// The archive to write, or `-` for stdout [default: BUNDLE.tar]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Export {
    pub(crate) fn run(&self, store: &StoreArguments) -> Result<Outcome> {
        let bundle = self.source.open_without_weights(store)?;
        if self.out.as_deref() == Some(Path::new(STANDARD_STREAM)) {
            let mut to = BufWriter::with_capacity(1 << 20, io::stdout().lock());
            bundle.export_to(&mut to, Path::new("standard output"))?;
            return Ok(String::new().into());
        }
        let out = self.out.clone().unwrap_or_else(|| default_archive(&self.source.bundle));
        bundle.export(&out)?;
        Ok(format!("{}\n", out.display()).into())
    }
}

/// Returns the archive's path when none is given: the bundle's name with `.tar`, in the current folder.
fn default_archive(bundle: &Path) -> PathBuf {
    let mut name = bundle.file_name().unwrap_or_else(|| OsStr::new("bundle")).to_os_string();
    name.push(".tar");
    name.into()
}

/// Create a bundle from an archive that `export` wrote
#[derive(Args)]
pub(crate) struct Import {
    /// The archive to read, or `-` for stdin
    #[arg(value_name = "FILE")]
    archive: PathBuf,
    #[command(flatten)]
    target: Target,
}

impl Import {
    pub(crate) fn run(&self, store: &StoreArguments) -> Result<Outcome> {
        let Self { archive, target } = self;
        if archive == Path::new(STANDARD_STREAM) {
            let name = Path::new("standard input");
            return Ok(target.write(store, |to| Bundle::import(&mut io::stdin().lock(), name, to))?.into());
        }
        if archive.is_dir() {
            bail!(
                "{0} is a folder, expected an archive that `mlxcel-bundle export` wrote\n\
                 hint: to copy a bundle's folder, run `mlxcel-bundle copy {0} --out FOLDER`",
                archive.display()
            );
        }
        let file = File::open(archive).with_context(|| {
            format!(
                "cannot read {}\nhint: create an archive with `mlxcel-bundle export BUNDLE --out FILE`",
                archive.display()
            )
        })?;
        let mut from = BufReader::with_capacity(1 << 20, file);
        Ok(target.write(store, |to| Bundle::import(&mut from, archive, to))?.into())
    }
}
