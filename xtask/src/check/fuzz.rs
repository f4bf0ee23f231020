//! `cargo xtask fuzz`: fuzzes every reader of untrusted input with libFuzzer.
//!
//! The fuzz targets are programs of `xtask/fuzz`. A stable compiler has the flags that instrument them. `--target` keeps
//! the flags from build scripts and macros.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};
use clap::Args;

use crate::{shell, workspace::Workspace};

const CRATE: &str = "xtask/fuzz";

/// Flags that record coverage for libFuzzer.
const FLAGS: [&str; 8] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Ccodegen-units=1",
    "--cfg",
    "fuzzing",
];

/// An input that needs more memory fails.
const MEMORY_MIB: u32 = 512;

/// The maximum length of an input.
const LONGEST: usize = 1 << 16;

/// Folders of the workspace that are seeds as well, by fuzz target.
const SEEDS: [(&str, &str); 2] = [("config", "models/presets"), ("config", "models/presets/pooling")];

/// The options of `cargo xtask fuzz`.
#[derive(Args)]
pub(crate) struct Fuzz {
    /// Seconds for each fuzz target
    #[arg(long, value_name = "N", default_value_t = 60)]
    seconds: u64,
    /// Only these fuzz targets, separated by commas
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
}

/// Builds and runs the fuzz targets. Fails on the first input that crashes one.
pub(crate) fn fuzz(workspace: &Workspace, fuzz: &Fuzz) -> Result<()> {
    let targets = targets(&workspace.root)?;
    if let Some(unknown) = fuzz.only.iter().find(|name| !targets.contains(name)) {
        bail!("found no target `{unknown}`, expected one of {}", targets.join(", "));
    }
    let chosen: Vec<_> =
        targets.into_iter().filter(|name| fuzz.only.is_empty() || fuzz.only.contains(name)).collect();
    let triple = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let folder = workspace.root.join("target/fuzz");
    let mut build = workspace.cargo("build --quiet --release");
    build.args(["--manifest-path", &format!("{CRATE}/Cargo.toml"), "--target", &triple]);
    build.arg("--target-dir").arg(&folder).env("RUSTFLAGS", FLAGS.join(" "));
    shell::run_to_stderr(build.args(chosen.iter().flat_map(|name| ["--bin", name])))?;

    for name in &chosen {
        let found = folder.join("found").join(name);
        let corpus = folder.join("corpus").join(name);
        for folder in [&found, &corpus] {
            fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        }
        let mut run = workspace.command(folder.join(&triple).join("release").join(name));
        run.arg(format!("-max_total_time={}", fuzz.seconds))
            .arg(format!("-rss_limit_mb={MEMORY_MIB}"))
            .arg(format!("-max_len={LONGEST}"))
            .arg(format!("-artifact_prefix={}/", found.display()))
            .args(["-print_final_stats=1", "-verbosity=0"])
            .arg(&corpus)
            .args(seeds(&workspace.root, name));
        eprintln!("{name}: {} seconds", fuzz.seconds);
        shell::run_to_stderr(&mut run)
            .with_context(|| format!("{name} failed on the input in {}", found.display()))?;
    }
    shell::print(&format!("{} targets, {} seconds each: no failure\n", chosen.len(), fuzz.seconds))
}

/// Lists the fuzz targets: each is a file.
fn targets(root: &Path) -> Result<Vec<String>> {
    let folder = root.join(CRATE).join("src/bin");
    let entries = fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
    let name = |entry: fs::DirEntry| {
        let path = entry.path();
        (path.extension()? == "rs").then(|| path.file_stem()?.to_str().map(str::to_owned)).flatten()
    };
    let mut names: Vec<_> = entries.flatten().filter_map(name).collect();
    names.sort();
    Ok(names)
}

/// Lists the seed folders of a fuzz target.
fn seeds(root: &Path, name: &str) -> Vec<PathBuf> {
    let own = root.join(CRATE).join("corpus").join(name);
    let others = SEEDS.iter().filter(|(target, _)| *target == name).map(|(_, folder)| root.join(folder));
    [own].into_iter().chain(others).filter(|folder| folder.is_dir()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reader_of_untrusted_input_has_a_target_with_seeds() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let targets = targets(root).unwrap();
        assert_eq!(
            targets,
            ["archive", "arrays", "bundle", "config", "gguf", "manifest", "storage", "weights"]
        );
        for (name, folder) in SEEDS {
            assert!(seeds(root, name).contains(&root.join(folder)), "{name}");
        }
        for name in targets {
            let folders = seeds(root, &name);
            let files = folders.iter().flat_map(|folder| fs::read_dir(folder).unwrap().flatten());
            let lengths = files.map(|file| file.metadata().unwrap()).filter(fs::Metadata::is_file);
            let lengths: Vec<_> = lengths.map(|metadata| metadata.len()).collect();
            assert!(!lengths.is_empty(), "{name} has no seeds");
            assert!(lengths.iter().all(|length| (1..LONGEST as u64).contains(length)), "{name}: {lengths:?}");
        }
    }
}
