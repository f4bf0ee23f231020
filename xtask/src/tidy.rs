//! The house rules that a machine can check.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, bail};

use crate::{check::circles, invariants, readme, shell, workspace::Workspace};

const LINES: usize = 500;
const BYTES: u64 = 1 << 20;
const DEMO_BYTES: u64 = 8_000_000;

/// What may lie in the root.
const TOP_LEVEL: &[&str] = &[
    ".cargo",
    ".ci",
    ".clippy.toml",
    ".gitattributes",
    ".gitignore",
    ".rustfmt.toml",
    "ARCHITECTURE.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE",
    "README.md",
    "artifacts",
    "compiler-driver",
    "emitter",
    "models",
    "runtime",
    "xtask",
];

/// The files that may contain unsafe code: those of the folder that opts in.
const UNSAFE: &[&str] = &["runtime/src/ffi/map.rs", "runtime/src/ffi/raw.rs", "runtime/src/ffi/shim.rs"];

/// Written in two halves, so that this file does not contain them.
const UNWANTED: &[(&str, &str)] = &[
    (concat!("TO", "DO"), "an issue, or done"),
    (concat!("FIX", "ME"), "an issue, or done"),
    (concat!("X", "XX:"), "an issue, or done"),
    (concat!("dbg", "!("), "no debugging output"),
    (concat!("todo", "!("), "finished code"),
    (concat!("unimplemented", "!("), "finished code"),
    (concat!("/wo", "rk/"), "no path of one machine"),
    (concat!("/t", "mp/"), "no path of one machine; std::env::temp_dir or tempfile in tests"),
    (concat!("/ro", "ot/"), "no path of one machine"),
    (concat!("/ho", "me/"), "no path of one machine"),
];

/// Lists every violation; an error if there is one. With `fix` README.md's generated parts are written first.
pub(crate) fn tidy(workspace: &Workspace, fix: bool) -> Result<()> {
    let mut found = readme::check(&workspace.root, fix)?;
    let files = committed(workspace)?;
    for file in &files {
        found.extend(check_place(file));
        let path = workspace.root.join(file);
        // A file that is deleted but still in the index.
        let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
        if !metadata.is_file() {
            found.push(format!("{file}: found no regular file, expected one"));
            continue;
        }
        found.extend(check_size(file, metadata.len()));
        let bytes = fs::read(&path).with_context(|| file.clone())?;
        if let Ok(text) = String::from_utf8(bytes) {
            found.extend(check_text(file, &text));
        }
    }
    found.extend(circles::check(&workspace.root, &files)?);
    found.extend(invariants::violations(workspace)?);
    if found.is_empty() {
        return shell::print(&format!("{} files are tidy\n", files.len()));
    }
    shell::print(&format!("{}\n", found.join("\n")))?;
    bail!("found {} untidy places", found.len())
}

/// What git has or would add.
fn committed(workspace: &Workspace) -> Result<Vec<String>> {
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

fn check_place(file: &str) -> Option<String> {
    let top = file.split('/').next().unwrap_or(file);
    (!TOP_LEVEL.contains(&top))
        .then(|| format!("{file}: found {top} in the root, expected one of its fixed entries"))
}

fn check_size(file: &str, bytes: u64) -> Option<String> {
    let limit = if file.starts_with("models/demo/") { DEMO_BYTES } else { BYTES };
    (bytes > limit).then(|| format!("{file}: found {bytes} bytes, expected at most {limit}"))
}

fn check_text(file: &str, text: &str) -> Vec<String> {
    let kind = Path::new(file).extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let mut found = Vec::new();
    let lines = text.lines().count();
    if ["rs", "c", "h", "py", "sh"].contains(&kind) && lines >= LINES {
        found.push(format!("{file}: found {lines} lines, expected fewer than {LINES}"));
    }
    if !is_written_here(file, kind) {
        return found;
    }
    for (index, line) in text.lines().enumerate() {
        for (word, instead) in UNWANTED {
            if line.contains(word) {
                found.push(format!("{file}:{}: found {word}, expected {instead}", index + 1));
            }
        }
        if kind == "rs" && is_unsafe(line) && !UNSAFE.contains(&file) {
            found.push(format!(
                "{file}:{}: found unsafe code, expected it only in {}",
                index + 1,
                UNSAFE.join(", ")
            ));
        }
    }
    found
}

/// Not a licence, a lock file or data, whose words are not ours.
fn is_written_here(file: &str, kind: &str) -> bool {
    const OURS: [&str; 11] = ["rs", "c", "h", "py", "sh", "toml", "md", "txt", "snap", "mlir", "run"];
    (OURS.contains(&kind) || file == ".ci/run") && !file.starts_with("models/demo/corpus")
}

/// Whether the line holds the keyword, and not as a part of `unsafe_code` or in a comment.
fn is_unsafe(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    let word = concat!("un", "safe");
    let mut rest = code;
    while let Some(position) = rest.find(word) {
        let before = rest[..position].chars().next_back();
        let after = &rest[position + word.len()..];
        let is_apart = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != '"');
        if is_apart(before)
            && [" {", " fn", " impl", " extern", " trait", "("].iter().any(|next| after.starts_with(next))
        {
            return true;
        }
        rest = after;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_code_is_told_from_talk_about_it() {
        let word = concat!("un", "safe");
        assert!(is_unsafe(&format!("    let x = {word} {{ f() }};")));
        assert!(is_unsafe(&format!("pub {word} fn f() {{")));
        assert!(is_unsafe(&format!("#[{word}(no_mangle)]")));
        assert!(!is_unsafe(&format!("#![allow({word}_code)]")));
        assert!(!is_unsafe(&format!("// {word} {{ here")));
    }

    #[test]
    fn each_rule_says_where_it_was_broken() {
        let text = format!("fn a() {{\n    {}x);\n}}\n", UNWANTED[3].0);
        assert_eq!(
            check_text("a/src/lib.rs", &text),
            [format!("a/src/lib.rs:2: found {}, expected no debugging output", UNWANTED[3].0)]
        );
        let long = "\n".repeat(LINES);
        assert_eq!(check_text("a/b.rs", &long), ["a/b.rs: found 500 lines, expected fewer than 500"]);
        assert_eq!(check_text("Cargo.lock", &long), Vec::<String>::new());
    }

    #[test]
    fn places_and_sizes_are_fixed() {
        assert_eq!(check_place("models/src/lib.rs"), None);
        assert!(check_place("notes.md").is_some());
        assert_eq!(check_size("models/demo/model.safetensors", 7_000_000), None);
        assert!(check_size("models/other.bin", 7_000_000).is_some());
    }
}
