//! Import circles between the files of a crate.
//!
//! A file depends on the file that defines what it names. Re-exports are resolved: to take `crate::Item` is to depend on
//! the file that defines `Item`, not on `lib.rs`. `mod` declarations, re-exports and tests are no dependencies. Method
//! calls have no path, so they are not seen.

mod graph;
mod resolve;
mod source;
mod visit;

use std::path::Path;

use anyhow::Result;

use self::{graph::Graph, resolve::definitions, source::Crate};
use crate::parallel;

/// Returns a description of every circle in the crates whose roots are among `files`.
pub(crate) fn check(root: &Path, files: &[String]) -> Result<Vec<String>> {
    let roots: Vec<&String> =
        files.iter().filter(|file| is_crate_root(file) && root.join(file).is_file()).collect();
    let mut found = Vec::new();
    for of_crate in parallel::map(&roots, |file| check_crate(root, file)) {
        found.extend(of_crate?);
    }
    Ok(found)
}

/// Returns a description of every circle in the crate whose root is `file`.
fn check_crate(root: &Path, file: &str) -> Result<Vec<String>> {
    let package = file.split_once("/src/").map_or("", |(package, _)| package);
    let source = Crate::read(root, file)?;
    let circles = graph(&source).circles();
    let line = |circle: Vec<String>| {
        format!("{package}: found an import circle, expected none\n{}", circle.join("\n"))
    };
    Ok(circles.into_iter().map(line).collect())
}

/// Libraries and programs. Every program is a crate of its own.
fn is_crate_root(file: &str) -> bool {
    let Some((_, path)) = file.rsplit_once("/src/").or_else(|| Some(("", file.strip_prefix("src/")?))) else {
        return false;
    };
    match path.split('/').collect::<Vec<_>>()[..] {
        ["lib.rs" | "main.rs"] | ["bin", _, "main.rs"] => true,
        ["bin", program] => program.ends_with(".rs"),
        _ => false,
    }
}

fn graph(source: &Crate) -> Graph<'_> {
    let mut graph = Graph::default();
    for (index, module) in source.modules.iter().enumerate() {
        for path in &module.references {
            for (definer, name) in definitions(source, index, path) {
                graph.add(&module.file, &source.modules[definer].file, name);
            }
        }
    }
    graph
}

#[cfg(test)]
mod tests;
