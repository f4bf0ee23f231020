//! Runs the tests, and times each test program.

use std::{
    io::{self, BufRead as _, BufReader, Write as _},
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};

use crate::shell;

/// Programs that take less time share a row.
const SHORT: Duration = Duration::from_secs(2);

/// Runs a `cargo test` command, and prints the time of each test program to stderr.
pub(super) fn run(command: &mut Command) -> Result<()> {
    // cargo names the programs on stderr, and they write to stdout: one pipe keeps the order.
    let (reader, writer) = io::pipe()?;
    command.env("CARGO_TERM_COLOR", "never").stdout(writer.try_clone()?).stderr(writer);
    let mut child = command.spawn().with_context(|| shell::command_line(command))?;
    // The pipe ends when the last writer is closed, and the command has two.
    command.stdout(io::stderr()).stderr(io::stderr());
    let mut times = Times::new(Instant::now());
    for line in BufReader::new(reader).split(b'\n') {
        let mut line = line?;
        times.read(&String::from_utf8_lossy(&line), Instant::now());
        line.push(b'\n');
        io::stderr().write_all(&line)?;
    }
    let status = child.wait()?;
    times.end(Instant::now());
    eprint!("\n{}", times.table());
    if !status.success() {
        bail!("{} ended with {status}", shell::command_line(command));
    }
    Ok(())
}

/// The time of each test program, read from the lines that cargo prints.
struct Times {
    /// The crate of the last library or program. Its integration tests follow it.
    package: String,
    current: String,
    since: Instant,
    done: Vec<(String, Duration)>,
}

impl Times {
    fn new(start: Instant) -> Self {
        Self { package: String::new(), current: "compile".to_owned(), since: start, done: Vec::new() }
    }

    /// Reads a line that arrived at `now`.
    fn read(&mut self, line: &str, now: Instant) {
        let Some(name) = self.program(line.trim()) else { return };
        self.end(now);
        (self.current, self.since) = (name, now);
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
        let Some(source) = source.strip_prefix("unittests ") else {
            return Some(format!("{} {source}", self.package));
        };
        let file = executable.rsplit('/').next().unwrap_or(executable);
        let name = file.rsplit_once('-').map_or(file, |(name, _)| name);
        if ["src/lib.rs", "src/main.rs"].contains(&source) {
            self.package = name.to_owned();
        }
        Some(format!("{} {source}", self.package))
    }

    /// Formats a row for each program, and one for the short ones.
    fn table(&self) -> String {
        let row = |name: &str, time: Duration| vec![name.to_owned(), format!("{:.1} s", time.as_secs_f64())];
        let (long, short): (Vec<_>, Vec<_>) = self.done.iter().partition(|(_, time)| *time >= SHORT);
        let mut rows: Vec<_> = long.into_iter().map(|(name, time)| row(name, *time)).collect();
        if !short.is_empty() {
            let name = format!("{} others, each below {} s", short.len(), SHORT.as_secs());
            rows.push(row(&name, short.iter().map(|(_, time)| *time).sum()));
        }
        shell::table(&rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_program_has_its_time() {
        let start = Instant::now();
        let mut times = Times::new(start);
        let lines = [
            (0, "   Compiling mlxcel-artifacts v0.1.0"),
            (40, "     Running unittests src/lib.rs (target/debug/deps/mlxcel_artifacts-6cd51e36)"),
            (41, "test result: ok. 9 passed; 0 failed; finished in 0.83s"),
            (43, "     Running unittests src/bin/tool.rs (target/debug/deps/tool-6cd51e36)"),
            (44, "     Running tests/kills.rs (target/debug/deps/kills-0cc175b9)"),
            (144, "   Doc-tests mlxcel_artifacts"),
        ];
        for (second, line) in lines {
            times.read(line, start + Duration::from_secs(second));
        }
        times.end(start + Duration::from_secs(145));
        insta::assert_snapshot!(times.table(), @r"
        compile                          40.0 s
        mlxcel_artifacts src/lib.rs      3.0 s
        mlxcel_artifacts tests/kills.rs  100.0 s
        2 others, each below 2 s         2.0 s
        ");
    }

    #[test]
    fn a_failure_is_passed_on() {
        let shell = |script: &str| run(Command::new("sh").args(["-c", script]));
        shell("echo x; echo y >&2").unwrap();
        assert_eq!(shell("exit 3").unwrap_err().to_string(), "sh -c 'exit 3' ended with exit status: 3");
    }
}
