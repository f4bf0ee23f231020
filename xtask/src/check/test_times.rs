//! Runs tests, times each test program, and collects what failed.

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader, PipeReader, Write},
    path::Path,
    process::{Command, Stdio},
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};

use crate::shell;

/// Programs that take less time share a row.
const SHORT: Duration = Duration::from_secs(2);

/// How long the output may go on after cargo has ended: a process that a test left behind may hold it for ever.
const PATIENCE: Duration = Duration::from_secs(5);

/// When the output of tests is shown, on stderr.
pub(super) enum Output<'a> {
    /// Line by line.
    AtOnce,
    /// In one piece. Until then it is in this file.
    AtTheEnd(&'a Path),
}

/// What came of a `cargo test` command.
pub(super) struct Outcome {
    /// The time of each test program.
    pub(super) times: Vec<(String, Duration)>,
    /// The tests that failed, each after its program, and the programs that failed without a test.
    pub(super) failed: Vec<String>,
}

/// Runs a `cargo test` command to its end.
pub(super) fn run(command: &mut Command, output: Output<'_>) -> Result<Outcome> {
    run_with(command, output, PATIENCE)
}

fn run_with(command: &mut Command, output: Output<'_>, patience: Duration) -> Result<Outcome> {
    let sink: Box<dyn Write + Send> = match output {
        Output::AtOnce => Box::new(io::stderr()),
        Output::AtTheEnd(file) => {
            Box::new(File::create(file).with_context(|| format!("cannot write {}", file.display()))?)
        }
    };
    // cargo names the programs on stderr, and they write to stdout: one pipe keeps the order.
    let (reader, writer) = io::pipe()?;
    command.env("CARGO_TERM_COLOR", "never").stdin(Stdio::null());
    command.stdout(writer.try_clone()?).stderr(writer);
    let mut child = command.spawn().with_context(|| shell::command_line(command))?;
    // The pipe ends when the last writer is closed, and the command has two.
    command.stdout(io::stderr()).stderr(io::stderr());

    let report = Arc::new(Mutex::new(Report::new(Instant::now())));
    let (ended, end) = mpsc::channel();
    let of_reader = Arc::clone(&report);
    thread::spawn(move || {
        // Nobody receives it after the time of patience.
        _ = ended.send(read_lines(reader, sink, &of_reader));
    });
    let status = child.wait()?;
    let now = Instant::now();
    let read = end.recv_timeout(patience);
    if let Output::AtTheEnd(file) = output {
        show(file, command)?;
    }
    match read {
        Ok(read) => read.context("cannot pass on the output of tests")?,
        Err(_) => eprintln!(
            "warning: found a process of a test that has outlived {}, expected none: it holds the output",
            shell::command_line(command)
        ),
    }
    let mut report = report.lock().unwrap_or_else(PoisonError::into_inner);
    report.end(now);
    if !status.success() && report.failed.is_empty() {
        report.failed.push(format!("{} ended with {status}", shell::command_line(command)));
    }
    Ok(Outcome { times: std::mem::take(&mut report.done), failed: std::mem::take(&mut report.failed) })
}

/// Passes on each line, and reads what it says of programs and tests.
fn read_lines(reader: PipeReader, mut sink: impl Write, report: &Mutex<Report>) -> io::Result<()> {
    for line in BufReader::new(reader).split(b'\n') {
        let mut line = line?;
        let text = String::from_utf8_lossy(&line).into_owned();
        report.lock().unwrap_or_else(PoisonError::into_inner).read(&text, Instant::now());
        line.push(b'\n');
        // In one piece: others write to stderr as well.
        sink.write_all(&line)?;
    }
    Ok(())
}

/// Shows the output of a command that has ended, between the lines of whatever else runs.
fn show(file: &Path, command: &Command) -> Result<()> {
    let mut text = File::open(file).with_context(|| file.display().to_string())?;
    let mut stderr = io::stderr().lock();
    writeln!(stderr, "\n--- {}", shell::command_line(command))?;
    io::copy(&mut text, &mut stderr)?;
    writeln!(stderr, "---\n")?;
    Ok(())
}

/// What the lines say that cargo and test programs print.
struct Report {
    /// The crate of the last library or program. Its integration tests follow it.
    package: String,
    current: String,
    since: Instant,
    done: Vec<(String, Duration)>,
    failed: Vec<String>,
}

impl Report {
    fn new(start: Instant) -> Self {
        let current = "start of cargo".to_owned();
        Self { package: String::new(), current, since: start, done: Vec::new(), failed: Vec::new() }
    }

    /// Reads a line that arrived at `now`.
    fn read(&mut self, line: &str, now: Instant) {
        let line = line.trim();
        if let Some(name) = self.program(line) {
            self.end(now);
            (self.current, self.since) = (name, now);
        } else if let Some(test) = failed_test(line) {
            self.failed.push(format!("{}: {test}", self.current));
        } else if line.starts_with("error: ") && line.contains("to rerun pass `") {
            // A program that crashed named no test.
            let program = format!("{}: ", self.current);
            if !self.failed.iter().any(|failed| failed.starts_with(&program)) {
                self.failed.push(format!("{program}{line}"));
            }
        }
    }

    /// Ends the program that is running.
    fn end(&mut self, now: Instant) {
        self.done.push((std::mem::take(&mut self.current), now - self.since));
    }

    /// Returns the name of the test program that the line announces.
    fn program(&mut self, line: &str) -> Option<String> {
        if let Some(package) = line.strip_prefix("Doc-tests ") {
            return Some(format!("{package} documentation"));
        }
        let (source, executable) = line.strip_prefix("Running ")?.strip_suffix(')')?.split_once(" (")?;
        let file = executable.rsplit('/').next().unwrap_or(executable);
        let name = file.rsplit_once('-').map_or(file, |(name, _)| name);
        let Some(source) = source.strip_prefix("unittests ") else {
            // Without a library before it, only the program's own name is known.
            let package = if self.package.is_empty() { name } else { &self.package };
            return Some(format!("{package} {source}"));
        };
        if ["src/lib.rs", "src/main.rs"].contains(&source) {
            self.package = name.to_owned();
        }
        Some(format!("{} {source}", self.package))
    }
}

/// Returns the test that the line of libtest says has failed.
fn failed_test(line: &str) -> Option<&str> {
    line.strip_prefix("test ")?.strip_suffix(" ... FAILED")
}

/// Formats a row for each program, and one for the short ones.
pub(super) fn table(times: &[(String, Duration)]) -> String {
    let row = |name: &str, time: Duration| vec![name.to_owned(), format!("{:.1} s", time.as_secs_f64())];
    let (long, short): (Vec<_>, Vec<_>) = times.iter().partition(|(_, time)| *time >= SHORT);
    let mut rows: Vec<_> = long.into_iter().map(|(name, time)| row(name, *time)).collect();
    if !short.is_empty() {
        let name = format!("{} others, each below {} s", short.len(), SHORT.as_secs());
        rows.push(row(&name, short.iter().map(|(_, time)| *time).sum()));
    }
    shell::table(&rows)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn each_program_has_its_time() {
        let start = Instant::now();
        let mut report = Report::new(start);
        let lines = [
            (0, "   Compiling mlxcel-artifacts v0.1.0"),
            (40, "     Running unittests src/lib.rs (target/debug/deps/mlxcel_artifacts-6cd51e36)"),
            (41, "test result: ok. 9 passed; 0 failed; finished in 0.83s"),
            (43, "     Running unittests src/bin/tool.rs (target/debug/deps/tool-6cd51e36)"),
            (44, "     Running tests/kills.rs (target/debug/deps/kills-0cc175b9)"),
            (144, "   Doc-tests mlxcel_artifacts"),
        ];
        for (second, line) in lines {
            report.read(line, start + Duration::from_secs(second));
        }
        report.end(start + Duration::from_secs(145));
        insta::assert_snapshot!(table(&report.done), @r"
        start of cargo                   40.0 s
        mlxcel_artifacts src/lib.rs      3.0 s
        mlxcel_artifacts tests/kills.rs  100.0 s
        2 others, each below 2 s         2.0 s
        ");
    }

    #[test]
    fn every_failure_is_named() {
        let now = Instant::now();
        let mut report = Report::new(now);
        for line in [
            "     Running tests/main.rs (target/debug/deps/bundles-0cc175b9)",
            "test serving::pages ... FAILED",
            "test serving::clients ... ok",
            "error: test failed, to rerun pass `-p mlxcel-compiler-driver --test bundles`",
            "     Running tests/soak.rs (target/debug/deps/soak-0cc175b9)",
            "error: test failed, to rerun pass `-p mlxcel-compiler-driver --test soak`",
            "error: 2 targets failed:",
        ] {
            report.read(line, now);
        }
        insta::assert_snapshot!(report.failed.join("\n"), @r"
        bundles tests/main.rs: serving::pages
        soak tests/soak.rs: error: test failed, to rerun pass `-p mlxcel-compiler-driver --test soak`
        ");
    }

    fn shell(script: &str, output: Output<'_>) -> Outcome {
        run(Command::new("sh").args(["-c", script]), output).unwrap()
    }

    #[test]
    fn a_failure_is_passed_on() {
        assert_eq!(shell("echo x; echo y >&2", Output::AtOnce).failed, [""; 0]);
        assert_eq!(shell("exit 3", Output::AtOnce).failed, ["sh -c 'exit 3' ended with exit status: 3"]);
    }

    #[test]
    fn output_is_kept_until_the_end_in_its_order() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("log");
        shell("echo a; echo b >&2; echo c", Output::AtTheEnd(&file));
        assert_eq!(fs::read_to_string(&file).unwrap(), "a\nb\nc\n");
    }

    #[test]
    fn a_process_that_outlives_the_tests_holds_nobody_up() {
        let start = Instant::now();
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 60 & exit 0"]);
        let outcome = run_with(&mut command, Output::AtOnce, Duration::from_millis(100)).unwrap();
        assert_eq!(outcome.failed, [""; 0]);
        assert!(start.elapsed() < Duration::from_secs(50));
    }
}
