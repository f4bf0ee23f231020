//! Running other programs, and writing to stdout.

use std::{
    fmt::Write as _,
    io::{self, Write as _},
    os::unix::process::CommandExt as _,
    process::{Command, Stdio},
};

use anyhow::{Context as _, Error, Result, bail};

/// What the command writes to stdout. When it fails: what it wrote to stderr.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let result = command.stdin(Stdio::null()).output().with_context(|| line(command))?;
    if !result.status.success() {
        let stderr = String::from_utf8_lossy(&result.stderr);
        bail!("{} ended with {}\n{}", line(command), result.status, stderr.trim_end());
    }
    Ok(String::from_utf8_lossy(&result.stdout).into_owned())
}

/// Runs the command with this program's stdin, stdout and stderr.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| line(command))?;
    if !status.success() {
        bail!("{} ended with {status}", line(command));
    }
    Ok(())
}

/// Runs a command whose output is not a result of this program: all of it goes to stderr.
pub(crate) fn run_aside(command: &mut Command) -> Result<()> {
    run(command.stdout(io::stderr()))
}

/// Becomes the command, so that its exit status and signals are this program's. Only returns when that fails.
pub(crate) fn become_program(command: &mut Command) -> Error {
    let error = command.exec();
    Error::new(error).context(line(command))
}

/// The command as a person would type it.
pub(crate) fn line(command: &Command) -> String {
    let mut text = quoted(&command.get_program().to_string_lossy());
    for argument in command.get_args() {
        let _ = write!(text, " {}", quoted(&argument.to_string_lossy()));
    }
    text
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Writes a result to stdout. A broken pipe comes back as an error that `main` takes for a quiet end.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()?;
    Ok(())
}

/// Lines of left-aligned columns.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or_default()).collect();
    let mut text = String::new();
    for row in rows {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_it_would_be_typed() {
        let mut command = Command::new("echo");
        command.args(["-p", "it's late", ""]);
        assert_eq!(line(&command), r"echo -p 'it'\''s late' ''");
    }

    #[test]
    fn a_failure_names_the_command_and_what_it_said() {
        let error = output(Command::new("sh").args(["-c", "echo no such thing >&2; exit 3"])).unwrap_err();
        assert_eq!(
            error.to_string(),
            "sh -c 'echo no such thing >&2; exit 3' ended with exit status: 3\nno such thing"
        );
    }

    #[test]
    fn columns_line_up() {
        let rows = [vec!["a".into(), "b".into()], vec!["longer".into(), String::new()]];
        assert_eq!(table(&rows), "a       b\nlonger\n");
    }
}
