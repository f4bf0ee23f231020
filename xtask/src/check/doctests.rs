//! Crates without doctests: `doctest = false` in their manifest spares cargo a look for some, and must not hide one.

use std::{fs, path::Path};

use anyhow::{Context as _, Result};

/// The words after a fence that leave the block Rust, which rustdoc tests. With any other word it is something else.
const RUST: [&str; 9] = [
    "rust",
    "should_panic",
    "no_run",
    "ignore",
    "test_harness",
    "compile_fail",
    "standalone_crate",
    "edition2021",
    "edition2024",
];

/// Returns a line for each block of code that rustdoc would test if the crate's manifest did not keep it from that.
pub(super) fn violations(root: &Path, files: &[String]) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for manifest in files.iter().filter(|file| file.ends_with("/Cargo.toml")) {
        let folder = manifest.trim_end_matches("Cargo.toml");
        // git still lists a file that was deleted but not staged.
        let Ok(text) = fs::read_to_string(root.join(manifest)) else { continue };
        if !has_no_doctests(&text).with_context(|| manifest.clone())? {
            continue;
        }
        let is_documentation = |file: &&String| {
            let own = file.strip_prefix(folder).unwrap_or_default();
            own == "README.md" || (own.starts_with("src/") && own.ends_with(".rs"))
        };
        for file in files.iter().filter(is_documentation) {
            let Ok(text) = fs::read_to_string(root.join(file)) else { continue };
            for number in tested_blocks(&text, file.ends_with(".rs")) {
                found.push(format!(
                    "{file}:{number}: found a block of Rust, expected none: {manifest} has doctest = false"
                ));
            }
        }
    }
    Ok(found)
}

fn has_no_doctests(manifest: &str) -> Result<bool> {
    let manifest: toml::Table = toml::from_str(manifest)?;
    Ok(manifest.get("lib").and_then(|lib| lib.get("doctest")).and_then(toml::Value::as_bool) == Some(false))
}

/// Returns the lines on which blocks of code begin that rustdoc tests, of Rust source or of Markdown.
fn tested_blocks(text: &str, is_source: bool) -> Vec<usize> {
    let mut found = Vec::new();
    let (mut fence, mut after_blank) = (None, true);
    for (index, line) in text.lines().enumerate() {
        let Some(line) = (if is_source { documentation(line) } else { Some(line) }) else {
            // The comment ends, and whatever is open in it.
            (fence, after_blank) = (None, true);
            continue;
        };
        let words = line.trim_start();
        let marks = ["```", "~~~"].into_iter().find(|marks| words.starts_with(marks));
        match (fence, marks) {
            (None, Some(marks)) => {
                fence = Some(marks);
                if is_rust(words.trim_start_matches(['`', '~'])) {
                    found.push(index + 1);
                }
            }
            (None, None) if after_blank && line.starts_with("    ") && !words.is_empty() => {
                found.push(index + 1);
            }
            (Some(open), Some(marks)) if open == marks => fence = None,
            _ => {}
        }
        // The lines of an indented block follow its first.
        after_blank = words.is_empty();
    }
    found
}

/// Returns the text of a documentation comment's line.
fn documentation(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let text = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))?;
    Some(text.strip_prefix(' ').unwrap_or(text))
}

/// Returns whether a block with these words after its fence is Rust.
fn is_rust(words: &str) -> bool {
    let mut words = words.split([',', ' ', '\t']).filter(|word| !word.is_empty());
    words.all(|word| RUST.contains(&word) || word.starts_with("ignore-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_that_rustdoc_tests_are_found() {
        let source = "\
//! ```text
//! a
//! ```
//!
//! ```
//! b();
//! ```
/// ```no_run
/// c();
fn open() {}
/// ~~~rust,ignore
/// ```
/// ~~~
/// ```sh
/// ```
///
///     indented();
///     it();
/// no
///     block
    let text = \"```\";
";
        assert_eq!(tested_blocks(source, true), [5, 8, 11, 17]);
        assert_eq!(tested_blocks("# A\n\n```sh\nls\n```\n\n```rust\n```\n", false), [7]);
    }

    #[test]
    fn crates_without_doctests_have_no_block() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("a/src")).unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write("a/src/lib.rs", "//! ```\n//! a();\n//! ```\n");
        write("a/README.md", "```sh\nls\n```\n");
        let files = ["a/Cargo.toml", "a/README.md", "a/src/lib.rs"].map(str::to_owned);
        write("a/Cargo.toml", "[lib]\nname = \"a\"\n");
        assert_eq!(violations(folder.path(), &files).unwrap(), [""; 0]);
        write("a/Cargo.toml", "[lib]\ndoctest = false\n");
        assert_eq!(
            violations(folder.path(), &files).unwrap(),
            ["a/src/lib.rs:1: found a block of Rust, expected none: a/Cargo.toml has doctest = false"]
        );
    }
}
