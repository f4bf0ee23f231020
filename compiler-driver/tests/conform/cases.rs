//! Tests as they are written.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// What separates tests in a file.
const SPLIT: &str = "// -----";

/// A test: a module of functions that check their own results.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    /// Its name: `interpret/add#3`, `testdata/top_k_float32_5_3_chlo`.
    pub(crate) name: String,
    /// Its text, in which every op is one of StableHLO.
    pub(crate) text: String,
}

/// Returns the committed tests: files of several, each after a line with its name.
pub(crate) fn committed(folder: &Path) -> Vec<Case> {
    let mut cases = Vec::new();
    for path in files(folder) {
        let text = fs::read_to_string(&path).unwrap();
        for part in text.split(SPLIT).skip(1) {
            let (name, text) = part.split_once('\n').unwrap();
            cases.push(Case { name: name.trim().to_owned(), text: plain(text) });
        }
    }
    cases
}

/// Returns the tests of a checkout of openxla/stablehlo.
pub(crate) fn of_checkout(folder: &Path) -> Vec<Case> {
    let mut cases = Vec::new();
    let stem = |path: &Path| path.file_stem().unwrap().to_string_lossy().into_owned();
    for (group, folder) in [
        ("interpret", folder.join("stablehlo/tests/interpret")),
        ("interpret/chlo", folder.join("stablehlo/tests/interpret/chlo")),
    ] {
        for path in files(&folder) {
            let text = fs::read_to_string(&path).unwrap();
            let split = format!("\n{SPLIT}");
            let parts = text.split(&split).enumerate().filter(|(_, part)| part.contains("func.func"));
            // The rest of a line that separates says nothing.
            let after_line = |index, part: &str| {
                if index == 0 { part.to_owned() } else { part.split_once('\n').unwrap().1.to_owned() }
            };
            cases.extend(parts.map(|(index, part)| Case {
                name: format!("{group}/{}#{index}", stem(&path)),
                text: plain(&after_line(index, part)),
            }));
        }
    }
    for (group, folder) in [
        ("testdata", folder.join("stablehlo/testdata")),
        ("testdata/dynamic", folder.join("stablehlo/testdata/dynamic")),
    ] {
        let of = |path: PathBuf| Case {
            name: format!("{group}/{}", stem(&path)),
            text: plain(&fs::read_to_string(&path).unwrap()),
        };
        cases.extend(files(&folder).into_iter().map(of));
    }
    cases
}

/// Names of tests that are run, to find what of a ledger is about them.
pub(crate) struct Names<'a> {
    cases: BTreeSet<&'a str>,
    /// How names begin of which all tests are run.
    groups: &'static [&'static str],
}

impl<'a> Names<'a> {
    pub(crate) fn of(cases: &'a [Case], groups: &'static [&'static str]) -> Self {
        Self { cases: cases.iter().map(|case| case.name.as_str()).collect(), groups }
    }

    /// Returns whether a name of the ledger is a test that is run: of a group, a case's own, or that of a function in it.
    pub(crate) fn has(&self, name: &str) -> bool {
        let is_case = |name: &str| self.cases.contains(name);
        let mut folders = name.match_indices('/').map(|(at, _)| &name[..at]);
        self.groups.iter().any(|group| name.starts_with(group)) || is_case(name) || folders.any(is_case)
    }
}

/// Returns the MLIR files in a folder, sorted.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "mlir"));
    paths.sort();
    paths
}

/// Returns a test with the checks of StableHLO's interpreter as custom calls, which every reader of StableHLO takes.
///
/// `check.expect_eq_const %x, dense<1> : tensor<i32>` becomes a constant and a call.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    let mut count = 0;
    while let Some(at) = rest.find("check.expect_") {
        let (before, check) = rest.split_at(at);
        plain.push_str(before);
        if before.ends_with('@') {
            // A call already.
            let (name, after) = check.split_at("check.expect_".len());
            plain.push_str(name);
            rest = after;
            continue;
        }
        let (kind, after) = check["check.".len()..].split_once(' ').unwrap();
        let (value, after) = after.split_once(',').unwrap();
        let end = end_of(after, ':');
        let (expected, ty) = (after[..end].trim(), &after[end + 1..]);
        let end = end_of(ty, '\n');
        rest = &ty[end..];
        let ty = ty[..end].trim();
        let (kind, expected) = match kind.strip_suffix("_const") {
            Some(kind) => {
                count += 1;
                plain.push_str(&format!("%expected{count} = stablehlo.constant {expected} : {ty}\n  "));
                (kind, format!("%expected{count}"))
            }
            None => (kind, expected.to_owned()),
        };
        // A tolerance may follow the operands.
        let expected = expected.split(',').next().unwrap().trim();
        plain.push_str(&format!(
            "stablehlo.custom_call @check.{kind}({value}, {expected}) {{has_side_effect = true}} : ({ty}, {ty}) -> ()"
        ));
    }
    plain + rest
}

/// Returns where `end` is in text, outside of brackets.
fn end_of(text: &str, end: char) -> usize {
    let mut depth = 0_i32;
    for (at, c) in text.char_indices() {
        match c {
            '<' | '(' | '[' | '{' => depth += 1,
            '>' | ')' | ']' | '}' => depth -= 1,
            _ if c == end && depth == 0 => return at,
            _ => {}
        }
    }
    text.len()
}

#[test]
fn checks_become_calls() {
    let text = "  check.expect_eq_const %r, dense<[[1, 2],\n [3, 4]]> : tensor<2x2xi8>\n  func.return";
    assert_eq!(
        plain(text),
        "  %expected1 = stablehlo.constant dense<[[1, 2],\n [3, 4]]> : tensor<2x2xi8>\n  stablehlo.custom_call \
         @check.expect_eq(%r, %expected1) {has_side_effect = true} : (tensor<2x2xi8>, tensor<2x2xi8>) -> ()\n  func.return"
    );
    let call = "stablehlo.custom_call @check.expect_eq(%0, %1) : (tensor<i1>, tensor<i1>) -> ()";
    assert_eq!(plain(call), call);
}

#[test]
fn names_in_a_ledger_belong_to_cases_and_groups() {
    let case = |name: &str| Case { name: name.to_owned(), text: String::new() };
    let cases = [case("interpret/add#1"), case("testdata/dynamic/add")];
    let names = Names::of(&cases, &["own/"]);
    for name in ["interpret/add#1", "interpret/add#1/main", "testdata/dynamic/add", "own/gone"] {
        assert!(names.has(name), "{name}");
    }
    for name in ["interpret/add#10", "interpret/add", "testdata/add", "interpret/chlo/top_k#0"] {
        assert!(!names.has(name), "{name}");
    }
}
