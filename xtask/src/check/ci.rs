//! `cargo xtask ci`: everything that has to pass, the cheapest stage first.

use std::{
    fs, panic,
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};

use super::{
    goldens::{Scope, goldens},
    ptxas::ptxas,
    tidy::tidy,
};
use crate::{
    shell,
    tasks::WHOLE,
    toolchain::setup::{IS_SET_UP, setup},
    workspace::Workspace,
};

/// A stage's name and its work.
type Stage = (&'static str, fn(&Workspace) -> Result<()>);

/// How long a stage took.
#[derive(Default, Clone, Copy)]
struct Time {
    elapsed: Duration,
    /// Of all its processes. Unlike the time that elapsed, other work on the machine changes it little.
    cpu: Duration,
}

const STAGES: &[Stage] = &[
    ("fmt", |workspace| shell::run(&mut workspace.cargo("fmt --all --check"))),
    ("tidy", |workspace| tidy(workspace, false)),
    ("setup, build without iree", |workspace| {
        beside(|| setup(workspace), || check_without_toolchain(workspace))
    }),
    ("compile", |workspace| shell::run(&mut workspace.cargo(&format!("test {WHOLE} --no-run --locked")))),
    ("goldens", |workspace| goldens(workspace, Scope::Parts, false)),
    ("ptxas", |workspace| ptxas(workspace, Scope::Parts, false)),
    // The command of README.md. A changed snapshot fails and is not written. One run names all that fails:
    // a test of the first crate says nothing about the last.
    ("test", |workspace| {
        let mut command = workspace.cargo("xtask test --no-fail-fast");
        shell::run(command.env("INSTA_UPDATE", "no").env(IS_SET_UP, "1"))
    }),
];

/// Cargo commands that need Rust alone. They have cores to themselves while setup waits for downloads and unpacks on one core.
const WITHOUT_TOOLCHAIN: [&str; 2] = [
    // What the stage `test` starts. cargo compiles it once more, with its checks, in place of what runs now.
    "build -p xtask --bins --locked",
    // All that can be built without MLIR and without IREE's runtime. Later stages use most of the dependencies again: this many
    // packages give them the features that they have in the whole workspace, and an example those that tests alone ask for.
    "build -p mlxcel-artifacts -p mlxcel-models -p mlxcel-runtime -p mlxcel-capi -p mlxcel-python -p mlxcel-serve -p xtask \
     --no-default-features --features mlxcel-artifacts/default,mlxcel-serve/otel --lib --bins --example opening --locked",
];

/// Runs them one after the other, because cargo locks its folder. Returns what they print, which setup's output must not mix
/// with.
fn check_without_toolchain(workspace: &Workspace) -> Result<String> {
    let mut text = String::new();
    for arguments in WITHOUT_TOOLCHAIN {
        let mut command = workspace.cargo(arguments);
        let (stdout, stderr) = shell::outputs(&mut command)?;
        text.push_str(&format!("\n--- {}\n{stdout}{stderr}", shell::command_line(&command)));
    }
    Ok(text)
}

/// Runs `shown`, which prints, and at the same time `kept`, whose text is printed after it. Names each that fails.
fn beside(shown: impl FnOnce() -> Result<()>, kept: impl FnOnce() -> Result<String> + Send) -> Result<()> {
    let (shown, kept) = thread::scope(|scope| {
        let kept = scope.spawn(kept);
        let shown = shown();
        (shown, kept.join().unwrap_or_else(|panic| panic::resume_unwind(panic)))
    });
    let mut failed = Vec::new();
    if let Err(error) = shown {
        failed.push(format!("{error:#}"));
    }
    match kept {
        Ok(text) => eprint!("{text}"),
        Err(error) => failed.push(format!("{error:#}")),
    }
    if !failed.is_empty() {
        bail!("{}", failed.join("\n"));
    }
    Ok(())
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
    fn each_of_two_that_fail_is_named() {
        let fails = || -> Result<()> { bail!("found no disk") };
        let text = || -> Result<String> { Ok("fine\n".to_owned()) };
        beside(|| Ok(()), text).unwrap();
        assert_eq!(beside(fails, text).unwrap_err().to_string(), "found no disk");
        let error = beside(fails, || bail!("found a lint")).unwrap_err().to_string();
        assert_eq!(error, "found no disk\nfound a lint");
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
