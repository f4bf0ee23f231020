//! Everything that has to pass, in the order in which a failure costs least.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use super::{goldens::goldens, tidy::tidy};
use crate::{shell, toolchain::setup::setup, workspace::Workspace};

/// A name and what is done under it.
type Step = (&'static str, fn(&Workspace) -> Result<()>);

const STEPS: &[Step] =
    &[
        ("fmt", |workspace| shell::run(&mut workspace.cargo("fmt --all --check"))),
        ("tidy", |workspace| tidy(workspace, false)),
        ("setup", setup),
        ("clippy", |workspace| {
            shell::run(&mut workspace.cargo("clippy --workspace --all-targets --locked -- -D warnings"))
        }),
        ("clippy without iree", |workspace| {
            shell::run(&mut workspace.cargo(
                "clippy -p mlxcel-runtime --no-default-features --all-targets --locked -- -D warnings",
            ))
        }),
        ("docs", |workspace| {
            let mut command = workspace.cargo("doc --no-deps --workspace --document-private-items --locked");
            shell::run(command.env("RUSTDOCFLAGS", "-D warnings"))
        }),
        ("goldens", |workspace| goldens(workspace, false)),
        // The command that README.md gives, as it stands there. A changed snapshot fails; it is not written.
        ("test", |workspace| shell::run(workspace.cargo("xtask test").env("INSTA_UPDATE", "no"))),
    ];

/// Runs the steps up to the first that fails, and prints what each took.
pub(crate) fn ci(workspace: &Workspace) -> Result<()> {
    let mut times = Vec::new();
    for (name, step) in STEPS {
        eprintln!("\n=== {name}");
        let start = Instant::now();
        let outcome = step(workspace);
        times.push((*name, start.elapsed()));
        if let Err(error) = outcome {
            eprint!("\n{}", summary(&times, "failed"));
            return Err(error).with_context(|| format!("{name} failed"));
        }
    }
    eprint!("\n{}", summary(&times, "passed"));
    Ok(())
}

/// A line per step; the last one carries the outcome.
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
    fn the_summary_says_which_step_failed() {
        let times = [("fmt", Duration::from_millis(1200)), ("clippy", Duration::from_secs(60))];
        insta::assert_snapshot!(summary(&times, "failed"), @r"
        fmt     passed  1.2 s
        clippy  failed  60.0 s
        ci      failed  61.2 s
        ");
    }
}
