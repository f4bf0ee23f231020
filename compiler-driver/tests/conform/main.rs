//! StableHLO's own tests through the whole path: read, rewritten, compiled into bundles and run by mlxcel-run.
//!
//! What becomes of each test is in `ledger.txt`. A few hundred small tests are committed, in `cases/`. All of them are those of
//! openxla/stablehlo, `stablehlo/tests/interpret` and `stablehlo/testdata`, which `cargo xtask conform --source` takes.
#![allow(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

mod batch;
mod cases;
mod compare;
mod ledger;

use std::{
    collections::BTreeMap,
    env,
    path::{Path, PathBuf},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use batch::Bench;
use cases::{Case, Names};

/// Tests that are compiled at once: compiling them one by one takes twice as long.
const BATCH: usize = 24;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conform")
}

/// Runs tests, and returns what became of each, by name.
fn run(cases: &[Case], target: &str) -> BTreeMap<String, String> {
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(BTreeMap::new());
    let batches: Vec<_> = cases.chunks(BATCH).collect();
    let jobs = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                let bench = Bench::new(target);
                while let Some(batch) = batches.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let found = bench.outcomes(batch);
                    let mut outcomes = outcomes.lock().unwrap();
                    outcomes.extend(found);
                    if batches.len() > jobs * BATCH {
                        eprintln!("{} tests of {} files", outcomes.len(), cases.len());
                    }
                }
            });
        }
    });
    outcomes.into_inner().unwrap()
}

/// The variable with the folder of all tests, a checkout of openxla/stablehlo.
const SOURCE: &str = "MLXCEL_CONFORM_SOURCE";
/// The variable with the target, `cpu` by default.
const TARGET: &str = "MLXCEL_CONFORM_TARGET";
/// The variable that is set for the ledger to be written instead of compared.
const BLESS: &str = "MLXCEL_CONFORM_BLESS";
/// The variable with what names of tests must contain.
const ONLY: &str = "MLXCEL_CONFORM_ONLY";

#[test]
fn every_test_does_what_the_ledger_says() {
    let text = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    let (source, target) = (text(SOURCE), text(TARGET).unwrap_or_else(|| "cpu".to_owned()));
    let mut cases = match &source {
        Some(folder) => cases::of_checkout(Path::new(folder)),
        None => cases::committed(&folder().join("cases")),
    };
    let only = text(ONLY);
    cases.retain(|case| only.as_ref().is_none_or(|only| case.name.contains(only.as_str())));
    assert!(!cases.is_empty(), "found no tests");
    // The committed tests are some of a checkout's, and all of our own.
    let groups: &[&str] = match (&only, &source) {
        (Some(_), _) => &[],
        (None, Some(_)) => &["interpret/", "testdata/"],
        (None, None) => &["own/"],
    };
    let names = Names::of(&cases, groups);
    let found = run(&cases, &target);
    let path =
        folder().join(if target == "cpu" { "ledger.txt".to_owned() } else { format!("ledger_{target}.txt") });
    let known = ledger::read(&path);
    eprintln!("{}", ledger::summary(&found));
    let lost = ledger::lost(&known, &found, |name| names.has(name));
    let lines = lost.iter().map(|name| format!("{name}: found no outcome, expected {}", known[name]));
    let lines: Vec<_> = lines.collect();
    if env::var_os(BLESS).is_some() {
        lines.iter().for_each(|line| eprintln!("{line}; it leaves the ledger"));
        return ledger::write(&path, known, found, &lost);
    }
    let changed = [ledger::changes(&known, &found), lines].concat();
    assert!(changed.is_empty(), "found {} changes:\n{}", changed.len(), changed.join("\n"));
}

/// The ledgers: of CPUs, and of other targets.
const LEDGERS: [&str; 3] = ["ledger.txt", "ledger_cuda.txt", "ledger_vulkan.txt"];

#[test]
fn every_committed_test_is_in_the_ledgers() {
    let cases = cases::committed(&folder().join("cases"));
    for ledger in LEDGERS {
        let known = ledger::read(&folder().join(ledger));
        let has_outcome = |case: &Case| {
            let names = Names::of(std::slice::from_ref(case), &[]);
            // Names that begin with it follow each other.
            let mut own =
                known.range(case.name.clone()..).take_while(|(name, _)| name.starts_with(&case.name));
            own.any(|(name, _)| names.has(name))
        };
        let without: Vec<_> = cases.iter().filter(|case| !has_outcome(case)).map(|case| &case.name).collect();
        assert!(without.is_empty(), "{ledger}: found no outcome of {without:#?}");
    }
}

#[test]
fn no_test_in_the_ledger_is_wrong() {
    for name in LEDGERS {
        let wrong: Vec<_> = ledger::read(&folder().join(name))
            .into_iter()
            .filter(|(_, outcome)| outcome.starts_with("wrong"))
            .collect();
        assert!(wrong.is_empty(), "{name}: {wrong:#?}");
    }
}
