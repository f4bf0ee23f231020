//! `cargo xtask goldens`: compiles every committed golden with the real iree-compile.
//!
//! A golden is an MLIR module in the emitter's tests: an insta snapshot, in a `.snap` file or inline in the source, or a
//! `.mlir` file. MLIR's verifier does not know the ops in it, so only iree-compile detects a wrong module.

use std::{
    cmp::Reverse,
    fs,
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::{Context as _, Result, bail};

use crate::{
    parallel, shell,
    tasks::WHOLE,
    toolchain::{detect, setup::setup},
    workspace::Workspace,
};

/// Compiles to the end, and discards the module. Numbers of 64 bits stay what they are.
const FLAGS: [&str; 3] =
    ["--iree-input-type=stablehlo", "--iree-input-demote-f64-to-f32=false", "-o=/dev/null"];

/// For the least CPU of each architecture that is a target. A lesser one has no instruction to round numbers.
const FOR_CPU: [&str; 3] = [
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    if cfg!(target_arch = "x86_64") {
        "--iree-llvmcpu-target-cpu=x86-64-v2"
    } else {
        "--iree-llvmcpu-target-cpu=generic"
    },
];

/// For modules with GPU kernels. Other ops fail to compile with the level of bundles than without.
const FOR_GPU: [&str; 3] =
    ["--iree-hal-target-device=cuda", "--iree-cuda-target=sm_80", "--iree-opt-level=O3"];
const GPU_FORMAT: &str = "cuda-nvptx-fb";

/// A part of the names of those without kernels that every GPU runs too.
const FOR_ALL: &str = "best_tokens";
const FOR_VULKAN: [&str; 1] = ["--iree-hal-target-device=vulkan"];

/// The beginning of the names of whole models, which the tests of bundles compile, too, in every form, and run.
const MODEL: &str = "emitter/tests/snapshots/goldens__program_";

/// How much is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    All,
    /// What CI has time for.
    Parts,
}

/// A module and its source.
#[derive(Debug, PartialEq, Eq)]
struct Golden {
    name: String,
    module: String,
}

/// Compiles goldens and prints a table. With `bless`, accepts the emitter's present output first.
pub(crate) fn goldens(workspace: &Workspace, scope: Scope, bless: bool) -> Result<()> {
    setup(workspace)?;
    if bless {
        shell::run_to_stderr(workspace.cargo("test -p mlxcel-emitter").env("INSTA_UPDATE", "always"))?;
    }
    let mut goldens = collect(&workspace.root)?;
    goldens.retain(|golden| scope == Scope::All || !golden.name.starts_with(MODEL));
    if goldens.is_empty() {
        bail!("emitter: found no golden, expected at least one");
    }
    let folder = workspace.root.join("target/goldens");
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    // Modules with kernels link these objects.
    write_kernels(workspace, &folder.join("kernels"))?;
    let compiler = detect::iree_compile_path(workspace);
    let outcomes = compile_all(&compiler, &goldens, &folder);

    let mut rows = Vec::new();
    for (golden, (milliseconds, error)) in goldens.iter().zip(&outcomes) {
        let (state, why) = match error {
            None => ("ok", String::new()),
            Some(error) => ("failed", first_error(error)),
        };
        rows.push(vec![golden.name.clone(), state.to_owned(), format!("{milliseconds} ms"), why]);
    }
    shell::print(&shell::table(&rows))?;
    let failed = outcomes.iter().filter(|(_, error)| error.is_some()).count();
    if failed > 0 {
        bail!(
            "{failed} of {} goldens failed\nhint: iree-compile {}/N.mlir, with N the row's number from 0",
            goldens.len(),
            folder.display()
        );
    }
    shell::print(&format!("{} goldens passed iree-compile\n", goldens.len()))
}

/// Writes the emitter's compiled kernels to a folder, and nothing else that was there.
pub(super) fn write_kernels(workspace: &Workspace, folder: &Path) -> Result<()> {
    // With the features of the tests, which have compiled this or compile nothing of it again.
    shell::run_to_stderr(&mut workspace.cargo(&format!("build --quiet {WHOLE} --example kernels")))?;
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    let kernels = workspace.target()?.join("debug/examples/kernels");
    shell::run_to_stderr(std::process::Command::new(kernels).arg(folder))
}

/// Compiles goldens into files of their numbers. Returns for each its milliseconds, and the error if it fails.
fn compile_all(iree_compile: &Path, goldens: &[Golden], folder: &Path) -> Vec<(u128, Option<String>)> {
    let mut numbered: Vec<_> = goldens.iter().enumerate().collect();
    // The largest first, so that no core waits at the end for one that another has just begun.
    numbered.sort_by_key(|(_, golden)| Reverse(golden.module.len() * targets(golden).len()));
    let mut outcomes = parallel::map(&numbered, |(index, golden)| {
        let start = Instant::now();
        let outcome = compile(iree_compile, golden, &folder.join(format!("{index}.mlir")));
        (*index, (start.elapsed().as_millis(), outcome.err().map(|error| format!("{error:#}"))))
    });
    outcomes.sort_by_key(|(index, _)| *index);
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}

fn compile(iree_compile: &Path, golden: &Golden, file: &Path) -> Result<()> {
    fs::write(file, &golden.module)?;
    let mut objects = std::ffi::OsString::from("--iree-hal-executable-object-search-path=");
    objects.push(file.with_file_name("kernels"));
    for target in targets(golden) {
        let mut command = std::process::Command::new(iree_compile);
        shell::output(command.args(FLAGS).args(*target).arg(&objects).arg(file))?;
    }
    Ok(())
}

/// Returns the flags of each target that a golden is compiled for.
fn targets(golden: &Golden) -> &'static [&'static [&'static str]] {
    if golden.module.contains(GPU_FORMAT) {
        &[&FOR_GPU]
    } else if golden.name.contains(FOR_ALL) {
        &[&FOR_CPU, &FOR_GPU, &FOR_VULKAN]
    } else {
        &[&FOR_CPU]
    }
}

/// Returns the message of the first error in iree-compile's output.
fn first_error(text: &str) -> String {
    let message = text.lines().find_map(|line| line.split_once("error: ")).map(|(_, message)| message);
    message.or_else(|| text.lines().next()).unwrap_or_default().to_owned()
}

/// Collects the goldens of the emitter, sorted by name.
fn collect(root: &Path) -> Result<Vec<Golden>> {
    let mut goldens = Vec::new();
    for path in files_below(&root.join("emitter"))? {
        let text = || fs::read_to_string(&path).with_context(|| path.display().to_string());
        let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("snap") => goldens.extend(golden(name, body_of_snapshot(&text()?))),
            Some("mlir") => goldens.extend(golden(name, &text()?)),
            Some("rs") => {
                for (line, body) in inline_snapshots(&text()?) {
                    goldens.extend(golden(format!("{name}:{line}"), body));
                }
            }
            _ => {}
        }
    }
    goldens.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(goldens)
}

/// Returns a golden if the text is a whole module, because iree-compile takes nothing else.
fn golden(name: String, text: &str) -> Option<Golden> {
    // Attribute aliases precede the module.
    let first = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with(['#', '/']))?;
    let is_module = first.starts_with("module") || first.starts_with("\"builtin.module\"");
    is_module.then(|| Golden { name, module: text.to_owned() })
}

/// Returns the text after the header of a `.snap` file.
pub(super) fn body_of_snapshot(text: &str) -> &str {
    let Some(rest) = text.strip_prefix("---\n") else { return text };
    rest.split_once("\n---\n").map_or(text, |(_, body)| body)
}

/// Finds every `@r"…"` and `@r#"…"#` in Rust source, with its line.
fn inline_snapshots(source: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut position = 0;
    while let Some(start) = source[position..].find("@r").map(|offset| position + offset) {
        position = start + 2;
        let hashes = source[position..].bytes().take_while(|byte| *byte == b'#').count();
        let Some(body) = source[position + hashes..].strip_prefix('"') else { continue };
        let Some(length) = body.find(&format!("\"{}", "#".repeat(hashes))) else { continue };
        found.push((source[..start].matches('\n').count() + 1, &body[..length]));
        position += hashes + 1 + length;
    }
    found
}

fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(files_below(&path)?);
        } else {
            files.push(path);
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_modules_are_goldens() {
        let snap = "---\nsource: emitter/src/lib.rs\nexpression: text\n---\n\"builtin.module\"() ({\n}) : () -> ()\n";
        let body = body_of_snapshot(snap);
        assert_eq!(body, "\"builtin.module\"() ({\n}) : () -> ()\n");
        assert!(golden("a".into(), body).is_some());
        assert!(golden("a".into(), "#map = affine_map<() -> ()>\nmodule @model {\n}").is_some());
        assert!(golden("a".into(), "shapes differ: found 2, expected 3").is_none());
        assert!(golden("a".into(), "").is_none());
    }

    #[test]
    fn models_are_a_part_of_all() {
        let goldens = collect(&Workspace::find().root).unwrap();
        let models = goldens.iter().filter(|golden| golden.name.starts_with(MODEL)).count();
        assert!(models > 0 && models < goldens.len(), "{models} of {}", goldens.len());
    }

    #[test]
    fn what_gpus_run_is_compiled_for_them() {
        let of = |name: &str, module: &str| {
            targets(&Golden { name: name.to_owned(), module: module.to_owned() }).len()
        };
        assert_eq!([of("best_tokens", "module {}"), of("a", GPU_FORMAT), of("a", "module {}")], [3, 1, 1]);
    }

    #[test]
    fn outcomes_have_the_order_of_the_goldens() {
        let folder = tempfile::tempdir().unwrap();
        let golden = |name: &str, module: &str| Golden { name: name.to_owned(), module: module.to_owned() };
        let goldens = [golden("a", "1"), golden("best_tokens", "22"), golden("b", "333")];
        let failures = |compiler: &str| {
            let outcomes = compile_all(Path::new(compiler), &goldens, folder.path());
            outcomes.into_iter().map(|(_, error)| error.is_some()).collect::<Vec<_>>()
        };
        assert_eq!(failures("true"), [false; 3]);
        assert_eq!(failures("false"), [true; 3]);
        for (index, golden) in goldens.iter().enumerate() {
            let file = folder.path().join(format!("{index}.mlir"));
            assert_eq!(fs::read_to_string(file).unwrap(), golden.module);
        }
    }

    #[test]
    fn inline_snapshots_are_read_from_source() {
        let source = "fn a() {\n    assert_snapshot!(x, @r#\"\n    module {}\n    \"#);\n    b!(@r\"one\");\n}\n@return";
        assert_eq!(inline_snapshots(source), [(2, "\n    module {}\n    "), (5, "one")]);
    }

    #[test]
    fn the_table_shows_the_first_error() {
        let text = "iree-compile x ended with exit status: 1\nx.mlir:3:8: error: 'op' is wrong\nx.mlir:3:8: note: see";
        assert_eq!(first_error(text), "'op' is wrong");
        assert_eq!(first_error("killed"), "killed");
    }
}
