//! `cargo xtask ci`: everything that has to pass, the cheapest stage first.

use std::{
    fs,
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};

use super::{
    goldens::{Scope, goldens},
    test_times,
    tidy::tidy,
};
use crate::{parallel, shell, tasks::WHOLE, toolchain::setup::setup, workspace::Workspace};

/// A stage's name and its work.
type Stage = (&'static str, fn(&Workspace) -> Result<()>);

/// How long a stage took.
#[derive(Default, Clone, Copy)]
struct Time {
    elapsed: Duration,
    /// Of all its processes. Unlike the time that elapsed, other work on the machine changes it little.
    cpu: Duration,
}

const STAGES: &[Stage] =
    &[
        ("fmt", |workspace| shell::run(&mut workspace.cargo("fmt --all --check"))),
        ("tidy", |workspace| tidy(workspace, false)),
        ("setup", setup),
        ("compile", |workspace| shell::run(&mut workspace.cargo(&format!("test {WHOLE} --no-run --locked")))),
        ("clippy without iree", |workspace| {
            shell::run(&mut workspace.cargo(
                "clippy -p mlxcel-runtime --no-default-features --all-targets --locked -- -D warnings",
            ))
        }),
        ("goldens", |workspace| goldens(workspace, Scope::Parts, false)),
        // The command of README.md. A changed snapshot fails and is not written. One run names all that fails:
        // a test of the first crate says nothing about the last.
        ("test", |workspace| {
            let mut command = workspace.cargo("xtask test --no-fail-fast");
            test_times::run(command.env("INSTA_UPDATE", "no").env("RUST_TEST_THREADS", threads().to_string()))
        }),
    ];

/// Returns how many tests run at a time: two more than there are CPUs, because some mostly wait: for browsers, for clusters, for
/// limits of time.
fn threads() -> usize {
    parallel::cpus() + 2
}

/// The program that compiles the crates of the workspace and has clippy and rustdoc check them, in place of rustc.
const CHECKED_RUSTC: &str = "checked-rustc";

/// Runs the stages up to the first that fails, and prints the time of each.
pub(crate) fn ci(workspace: &Workspace) -> Result<()> {
    let workspace = &Workspace { wrapper: Some(checked_rustc(workspace)?), ..Workspace::find() };
    let mut times = Vec::new();
    for (name, stage) in STAGES {
        eprintln!("\n=== {name}");
        let (start, cpu) = (Instant::now(), cpu_of_children());
        let outcome = stage(workspace);
        times.push((*name, Time { elapsed: start.elapsed(), cpu: cpu_of_children().saturating_sub(cpu) }));
        if let Err(error) = outcome {
            eprint!("\n{}", summary(&times, "failed"));
            return Err(error).with_context(|| format!("{name} failed"));
        }
    }
    eprint!("\n{}", summary(&times, "passed"));
    Ok(())
}

/// Builds the program, and returns the path of a copy: cargo builds it once more with itself, where it was before.
fn checked_rustc(workspace: &Workspace) -> Result<PathBuf> {
    shell::run(&mut workspace.cargo(&format!("build --quiet -p xtask --bin {CHECKED_RUSTC} --locked")))?;
    let target = workspace.target()?;
    let copy = target.join(CHECKED_RUSTC);
    fs::copy(target.join("debug").join(CHECKED_RUSTC), &copy).with_context(|| copy.display().to_string())?;
    Ok(copy)
}

/// Returns the CPU time of the child processes that have ended, with theirs. Only Linux says; elsewhere it is zero.
fn cpu_of_children() -> Duration {
    const TICKS_PER_SECOND: f64 = 100.0;
    let text = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The second field, the program's name in parentheses, may contain spaces.
    let fields = text.rsplit_once(')').map(|(_, fields)| fields).unwrap_or_default();
    // `cutime` and `cstime`, fields 16 and 17.
    let ticks = fields.split_whitespace().skip(13).take(2).filter_map(|field| field.parse::<f64>().ok());
    Duration::from_secs_f64(ticks.sum::<f64>() / TICKS_PER_SECOND)
}

/// Formats a row for each stage: the time that elapsed, and CPU time. The last stage has the outcome.
fn summary(times: &[(&str, Time)], outcome: &str) -> String {
    let row = |name: &str, state: &str, Time { elapsed, cpu }: Time| {
        let (elapsed, cpu) = (elapsed.as_secs_f64(), cpu.as_secs_f64());
        vec![name.to_owned(), state.to_owned(), format!("{elapsed:.1} s"), format!("CPU {cpu:.1} s")]
    };
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut total = Time::default();
    for (index, (name, time)) in times.iter().enumerate() {
        let state = if index + 1 == times.len() { outcome } else { "passed" };
        rows.push(row(name, state, *time));
        total.elapsed += time.elapsed;
        total.cpu += time.cpu;
    }
    rows.push(row("ci", outcome, total));
    shell::table(&rows)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Returns a file of the checkout.
    fn file(name: &str) -> String {
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)).unwrap()
    }

    #[test]
    fn an_outdated_lock_is_noticed() {
        for name in [".ci/run", ".github/workflows/ci.yml"] {
            let text = file(name);
            let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
            let calls: Vec<_> = lines.filter(|line| line.contains("xtask")).collect();
            let is_locked = |line: &&str| line.contains("cargo run --locked --quiet --package xtask -- ");
            assert!(!calls.is_empty() && calls.iter().all(is_locked), "{name}: {calls:?}");
        }
    }

    #[test]
    fn two_builds_are_compared_whether_they_are_released_or_not() {
        let text = file(".github/workflows/ci.yml");
        let job = |name: &str| {
            let (_, rest) = text.split_once(&format!("\n  {name}:\n")).unwrap();
            rest.split("\n\n").next().unwrap()
        };
        let compare = job("compare");
        assert!(compare.contains("diff --recursive dist-first dist-second"), "{compare}");
        assert!(compare.contains("needs: dist\n") && !compare.contains("if: "), "{compare}");
        let release = job("release");
        assert!(release.contains("needs: compare\n") && release.contains("refs/tags/v"), "{release}");
    }

    #[test]
    fn the_summary_names_the_stage_that_failed() {
        let time =
            |elapsed, cpu| Time { elapsed: Duration::from_millis(elapsed), cpu: Duration::from_secs(cpu) };
        let times = [("fmt", time(1200, 1)), ("clippy", time(60_000, 110))];
        insta::assert_snapshot!(summary(&times, "failed"), @r"
        fmt     passed  1.2 s   CPU 1.0 s
        clippy  failed  60.0 s  CPU 110.0 s
        ci      failed  61.2 s  CPU 111.0 s
        ");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_cpu_time_of_a_child_is_counted() {
        let before = cpu_of_children();
        let script = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        shell::run(std::process::Command::new("sh").args(["-c", script])).unwrap();
        assert!(cpu_of_children() > before);
    }
}
