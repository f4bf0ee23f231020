//! The table of what becomes of StableHLO's tests, of the ledger that `cargo xtask conform` keeps.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context as _, Result, bail};

/// Where outcomes are, by test.
const LEDGER: &str = "compiler-driver/tests/conform/ledger.txt";

/// The groups of tests, by the beginning of their names. The first that fits counts.
const GROUPS: [(&str, &str); 4] = [
    ("interpret/chlo/", "StableHLO's interpreter, CHLO"),
    ("interpret/", "StableHLO's interpreter"),
    ("testdata/", "what JAX exported"),
    ("own/", "ours"),
];

/// What becomes of a test, in the order of columns.
const OUTCOMES: [&str; 8] = [
    "pass",
    "near",
    "other types",
    "several devices, hosts",
    "not StableHLO",
    "no check",
    "refused else",
    "wrong",
];

/// Returns the column of an outcome.
fn column(outcome: &str) -> &'static str {
    match outcome {
        "pass" => "pass",
        _ if outcome.starts_with("near") => "near",
        _ if outcome.contains("expected a tensor of bool") => "other types",
        _ if ["run_parallel", "exchange with the host"].iter().any(|words| outcome.contains(words)) => {
            "several devices, hosts"
        }
        _ if outcome.contains("found no valid StableHLO") => "not StableHLO",
        _ if outcome == "refused: found no check" => "no check",
        _ if outcome.starts_with("refused") => "refused else",
        _ => "wrong",
    }
}

/// Returns a Markdown table with a row for each group.
pub(super) fn table(root: &Path) -> Result<String> {
    let text = fs::read_to_string(root.join(LEDGER)).context(LEDGER)?;
    of(&text).context(LEDGER)
}

fn of(ledger: &str) -> Result<String> {
    let mut counts: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
    for line in ledger.lines().filter(|line| !line.starts_with("//")) {
        let Some((name, outcome)) = line.split_once(": ") else {
            bail!("found the line `{line}`, expected a name and an outcome");
        };
        let Some((_, group)) = GROUPS.iter().find(|(start, _)| name.starts_with(start)) else {
            let known: Vec<_> = GROUPS.iter().map(|(start, _)| *start).collect();
            bail!("found the test {name}, expected a name that begins with one of {}", known.join(", "));
        };
        *counts.entry(group).or_default().entry(column(outcome)).or_default() += 1;
    }
    let mut text =
        format!("| tests | all | {} |\n|---|{}\n", OUTCOMES.join(" | "), "---|".repeat(OUTCOMES.len() + 1));
    for (group, counts) in GROUPS.iter().filter_map(|(_, group)| Some((group, counts.get(group)?))) {
        let cells = OUTCOMES.map(|outcome| counts.get(outcome).unwrap_or(&0).to_string());
        text.push_str(&format!("| {group} | {} | {} |\n", counts.values().sum::<usize>(), cells.join(" | ")));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_counted_by_group() {
        let ledger = "// Written by a program.\n\
            interpret/chlo/top_k#0: pass\n\
            interpret/abs#0: refused: main: abs at program:2: found tensor<2xi4>, expected a tensor of bool, integers\n\
            interpret/abs#1: near ulp=4\n\
            interpret/send#0: refused: main: send at program:2: found an exchange with the host, expected a function\n\
            testdata/gamma: refused: iree-compile crashed\n\
            testdata/dynamic/add: refused: found no check\n\
            testdata/abs: wrong: element 0 is 1, expected 2\n";
        insta::assert_snapshot!(of(ledger).unwrap(), @"
        | tests | all | pass | near | other types | several devices, hosts | not StableHLO | no check | refused else | wrong |
        |---|---|---|---|---|---|---|---|---|---|
        | StableHLO's interpreter, CHLO | 1 | 1 | 0 | 0 | 0 | 0 | 0 | 0 | 0 |
        | StableHLO's interpreter | 3 | 0 | 1 | 1 | 1 | 0 | 0 | 0 | 0 |
        | what JAX exported | 3 | 0 | 0 | 0 | 0 | 0 | 1 | 1 | 1 |
        ");
    }

    #[test]
    fn every_line_is_of_a_group() {
        let error = |ledger: &str| of(ledger).unwrap_err().to_string();
        assert_eq!(
            error("own/add: pass\nother/add: pass\n"),
            "found the test other/add, expected a name that begins with one of interpret/chlo/, interpret/, testdata/, own/"
        );
        assert_eq!(error("own/add pass\n"), "found the line `own/add pass`, expected a name and an outcome");
    }
}
