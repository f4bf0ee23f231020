//! What becomes of each test, as it was last seen.

use std::{collections::BTreeMap, fs, path::Path};

/// What becomes of tests, by name.
pub(crate) type Ledger = BTreeMap<String, String>;

/// Reads a ledger: a line for each test. Without a file it is empty.
pub(crate) fn read(path: &Path) -> Ledger {
    let text = fs::read_to_string(path).unwrap_or_default();
    let lines = text.lines().filter(|line| !line.starts_with("//") && !line.is_empty());
    lines
        .map(|line| line.split_once(": ").unwrap())
        .map(|(name, outcome)| (name.to_owned(), outcome.to_owned()))
        .collect()
}

/// Returns the tests that are run, but have no outcome any more.
pub(crate) fn lost(known: &Ledger, found: &Ledger, is_run: impl Fn(&str) -> bool) -> Vec<String> {
    known.keys().filter(|name| is_run(name) && !found.contains_key(*name)).cloned().collect()
}

/// Writes a ledger, in which `found` takes the place of what is known, and without those that are lost.
pub(crate) fn write(path: &Path, mut known: Ledger, found: Ledger, lost: &[String]) {
    known.retain(|name, _| !lost.contains(name));
    known.extend(found);
    let lines: String = known.iter().map(|(name, outcome)| format!("{name}: {outcome}\n")).collect();
    let head = "// What becomes of StableHLO's tests. `cargo xtask conform --bless` writes this file.\n";
    fs::write(path, format!("{head}{lines}")).unwrap();
}

/// Returns a line for each test that does something else than the ledger says. Distances in the last place may differ between
/// processors.
pub(crate) fn changes(known: &Ledger, found: &Ledger) -> Vec<String> {
    let class = |outcome: &str| match outcome.split([' ', ':']).next() {
        Some("near") => "pass".to_owned(),
        _ => outcome.to_owned(),
    };
    let line = |(name, outcome): (&String, &String)| {
        let expected = known.get(name).map_or("nothing", String::as_str);
        (class(outcome) != class(expected)).then(|| format!("{name}: found {outcome}, expected {expected}"))
    };
    found.iter().filter_map(line).collect()
}

/// Counts outcomes: `pass 300, near 4, refused 20`.
pub(crate) fn summary(found: &Ledger) -> String {
    let mut counts = BTreeMap::new();
    for outcome in found.values() {
        *counts.entry(outcome.split([' ', ':']).next().unwrap_or_default()).or_insert(0) += 1;
    }
    counts.iter().map(|(outcome, count)| format!("{outcome} {count}")).collect::<Vec<_>>().join(", ")
}

#[test]
fn tests_that_are_gone_leave_the_ledger() {
    let of = |lines: &[(&str, &str)]| -> Ledger {
        lines.iter().map(|(name, outcome)| ((*name).to_owned(), (*outcome).to_owned())).collect()
    };
    let known = of(&[("a/gone", "pass"), ("a/stays", "pass"), ("b/not run", "near ulp=4")]);
    let found = of(&[("a/new", "pass"), ("a/stays", "pass")]);
    let lost = lost(&known, &found, |name| name.starts_with("a/"));
    assert_eq!(lost, ["a/gone"]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.txt");
    write(&path, known, found, &lost);
    assert_eq!(read(&path), of(&[("a/new", "pass"), ("a/stays", "pass"), ("b/not run", "near ulp=4")]));
}
