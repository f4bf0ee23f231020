//! `cargo xtask tidy`: the house rules that a machine can check.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, bail};

use super::{circles, doctests, invariants, pins, tables, text};
use crate::{parallel, shell, workspace::Workspace};

/// Prints every violation, and fails if there is one. With `fix`, writes the generated tables first.
pub(crate) fn tidy(workspace: &Workspace, fix: bool) -> Result<()> {
    // A document without its marks is a violation as well; the other rules are checked anyway.
    let mut found = tables::check(&workspace.root, fix).unwrap_or_else(|error| vec![format!("{error:#}")]);
    let files = listed(workspace)?;
    for of_file in parallel::map(&files, |file| check_file(&workspace.root, file)) {
        found.extend(of_file?);
    }
    found.extend(pins::violations()?);
    found.extend(circles::check(&workspace.root, &files)?);
    found.extend(doctests::violations(&workspace.root, &files)?);
    found.extend(invariants::violations(workspace)?);
    if found.is_empty() {
        return shell::print(&format!("{} files are tidy\n", files.len()));
    }
    shell::print(&format!("{}\n", found.join("\n")))?;
    bail!("found {} violations", found.len())
}

/// Returns a line for each rule of single files that a file breaks.
fn check_file(root: &Path, file: &str) -> Result<Vec<String>> {
    let mut found: Vec<String> = text::check_place(file).into_iter().collect();
    let path = root.join(file);
    // git still lists a file that was deleted but not staged.
    let Ok(metadata) = fs::symlink_metadata(&path) else { return Ok(found) };
    if !metadata.is_file() {
        found.push(format!("{file}: found no regular file, expected one"));
        return Ok(found);
    }
    found.extend(text::check_size(file, metadata.len()));
    let bytes = fs::read(&path).with_context(|| file.to_owned())?;
    if let Ok(text) = String::from_utf8(bytes) {
        found.extend(text::check_text(file, &text));
    }
    Ok(found)
}

/// Lists the files that git tracks or would add.
fn listed(workspace: &Workspace) -> Result<Vec<String>> {
    let listing = shell::output(workspace.command("git").args([
        "ls-files",
        "--cached",
        "--others",
        "--exclude-standard",
        "--deduplicate",
        "-z",
    ]))?;
    Ok(listing.split('\0').filter(|file| !file.is_empty()).map(str::to_owned).collect())
}
