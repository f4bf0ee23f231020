//! `cargo xtask ci`: everything that has to pass, the cheapest stage first.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use super::{goldens::goldens, test_times, tidy::tidy};
use crate::{shell, tasks::WHOLE, toolchain::setup::setup, workspace::Workspace};

/// A stage's name and its work.
type Stage = (&'static str, fn(&Workspace) -> Result<()>);

const STAGES: &[Stage] =
    &[
        ("fmt", |workspace| shell::run(&mut workspace.cargo("fmt --all --check"))),
        ("tidy", |workspace| tidy(workspace, false)),
        ("setup", setup),
        ("clippy", |workspace| {
            let command = format!("clippy {WHOLE} --all-targets --locked -- -D warnings");
            shell::run(&mut workspace.cargo(&command))
        }),
        ("clippy without iree", |workspace| {
            shell::run(&mut workspace.cargo(
                "clippy -p mlxcel-runtime --no-default-features --all-targets --locked -- -D warnings",
            ))
        }),
        ("docs", |workspace| {
            // Examples make cargo compile dependencies with the features that clippy and tests need.
            let targets = "--lib --bins --examples --document-private-items";
            let mut command = workspace.cargo(&format!("doc {WHOLE} --no-deps {targets} --locked"));
            shell::run(command.env("RUSTDOCFLAGS", "-D warnings"))
        }),
        ("goldens", |workspace| goldens(workspace, false)),
        // The command of README.md. A changed snapshot fails and is not written.
        ("test", |workspace| test_times::run(workspace.cargo("xtask test").env("INSTA_UPDATE", "no"))),
    ];

/// Runs the stages up to the first that fails, and prints the time of each.
pub(crate) fn ci(workspace: &Workspace) -> Result<()> {
    let mut times = Vec::new();
    for (name, stage) in STAGES {
        eprintln!("\n=== {name}");
        let start = Instant::now();
        let outcome = stage(workspace);
        times.push((*name, start.elapsed()));
        if let Err(error) = outcome {
            eprint!("\n{}", summary(&times, "failed"));
            return Err(error).with_context(|| format!("{name} failed"));
        }
    }
    eprint!("\n{}", summary(&times, "passed"));
    Ok(())
}

/// Formats a row for each stage. The last one has the outcome.
fn summary(times: &[(&str, Duration)], outcome: &str) -> String {
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (index, (name, time)) in times.iter().enumerate() {
        let state = if index + 1 == times.len() { outcome } else { "passed" };
        rows.push(vec![(*name).to_owned(), state.to_owned(), format!("{:.1} s", time.as_secs_f64())]);
    }
    let total: Duration = times.iter().map(|(_, time)| *time).sum();
    rows.push(vec!["ci".to_owned(), outcome.to_owned(), format!("{:.1} s", total.as_secs_f64())]);
    shell::table(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_names_the_stage_that_failed() {
        let times = [("fmt", Duration::from_millis(1200)), ("clippy", Duration::from_secs(60))];
        insta::assert_snapshot!(summary(&times, "failed"), @r"
        fmt     passed  1.2 s
        clippy  failed  60.0 s
        ci      failed  61.2 s
        ");
    }
}
