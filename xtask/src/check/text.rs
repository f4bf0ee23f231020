//! The rules for single files: where they are, how large, and what they must not contain.

use std::path::Path;

use super::{functions, markdown, spelling};

const LINES: usize = 500;
const BYTES: u64 = 1 << 20;
const DEMO_BYTES: u64 = 8_000_000;

/// The entries of the root.
const TOP_LEVEL: [&str; 20] = [
    ".cargo",
    ".ci",
    ".github",
    ".clippy.toml",
    ".gitattributes",
    ".gitignore",
    ".rustfmt.toml",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
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

/// The folders whose files may contain unsafe code.
const UNSAFE: [&str; 3] = ["runtime/src/ffi/", "runtime/capi/src/ffi/", "runtime/emulator/src/ffi/"];

/// Words that no file may contain, and the alternative. Split, so that this file does not contain them.
const UNWANTED: [(&str, &str); 10] = [
    (concat!("TO", "DO"), "an issue, or finished work"),
    (concat!("FIX", "ME"), "an issue, or finished work"),
    (concat!("X", "XX:"), "an issue, or finished work"),
    (concat!("dbg", "!("), "no debugging output"),
    (concat!("todo", "!("), "finished code"),
    (concat!("unimplemented", "!("), "finished code"),
    (concat!("/wo", "rk/"), "no path of one machine"),
    (concat!("/t", "mp/"), "no path of one machine; std::env::temp_dir or tempfile in tests"),
    (concat!("/ro", "ot/"), "no path of one machine"),
    (concat!("/ho", "me/"), "no path of one machine"),
];

/// Returns a line if the file is not below one of the root's entries.
pub(super) fn check_place(file: &str) -> Option<String> {
    let top = file.split('/').next().unwrap_or(file);
    (!TOP_LEVEL.contains(&top))
        .then(|| format!("{file}: found {top} in the root, expected one of its fixed entries"))
}

/// Returns a line if the file is too large.
pub(super) fn check_size(file: &str, bytes: u64) -> Option<String> {
    let limit = if file.starts_with("models/demo/") { DEMO_BYTES } else { BYTES };
    (bytes > limit).then(|| format!("{file}: found {bytes} bytes, expected at most {limit}"))
}

/// Returns a line for each rule that a file's text breaks.
pub(super) fn check_text(file: &str, text: &str) -> Vec<String> {
    let kind = Path::new(file).extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let mut found = Vec::new();
    let lines = text.lines().count();
    if ["rs", "c", "h", "py", "sh", "js", "css", "html"].contains(&kind) && lines >= LINES {
        found.push(format!("{file}: found {lines} lines, expected fewer than {LINES}"));
    }
    if !is_written_here(file, kind) {
        return found;
    }
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        for (word, instead) in UNWANTED {
            if line.contains(word) {
                found.push(format!("{file}:{number}: found {word}, expected {instead}"));
            }
        }
        if kind == "rs" && is_unsafe(line) && !UNSAFE.iter().any(|folder| file.starts_with(folder)) {
            let folders = UNSAFE.join(" and ");
            found.push(format!("{file}:{number}: found unsafe code, expected it only in {folders}"));
        }
    }
    match kind {
        "rs" => found.extend(functions::check(file, text)),
        "md" => found.extend(markdown::check(file, text)),
        _ => {}
    }
    found.extend(spelling::check(file, kind, text));
    found
}

/// Returns whether the words of the file are ours: not those of a license, a lock file or data.
fn is_written_here(file: &str, kind: &str) -> bool {
    const OURS: [&str; 14] =
        ["rs", "c", "h", "py", "sh", "js", "css", "html", "toml", "md", "txt", "snap", "mlir", "run"];
    (OURS.contains(&kind) || file == ".ci/run") && !file.starts_with("models/demo/corpus")
}

/// Returns whether the line has the keyword, neither in a comment nor as a part of `unsafe_code`.
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
    fn unsafe_code_is_found_but_not_its_mention() {
        let word = concat!("un", "safe");
        assert!(is_unsafe(&format!("    let x = {word} {{ f() }};")));
        assert!(is_unsafe(&format!("pub {word} fn f() {{")));
        assert!(is_unsafe(&format!("#[{word}(no_mangle)]")));
        assert!(!is_unsafe(&format!("#![allow({word}_code)]")));
        assert!(!is_unsafe(&format!("// {word} {{ here")));
    }

    #[test]
    fn each_rule_names_the_line_that_breaks_it() {
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
