//! Runs other programs and writes to stdout.

use std::{
    fmt::Write as _,
    io::{self, Write as _},
    os::unix::process::CommandExt as _,
    process::{Command, Stdio},
};

use anyhow::{Context as _, Error, Result, bail};

/// Runs the command and returns its stdout. The error of a failure has its stderr.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    Ok(outputs(command)?.0)
}

/// Runs the command and returns its stdout and stderr. The error of a failure has its stderr.
pub(crate) fn outputs(command: &mut Command) -> Result<(String, String)> {
    let result = command.stdin(Stdio::null()).output().with_context(|| command_line(command))?;
    let [stdout, stderr] =
        [result.stdout, result.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    if !result.status.success() {
        bail!("{} ended with {}\n{}", command_line(command), result.status, stderr.trim_end());
    }
    Ok((stdout, stderr))
}

/// Runs the command with the stdin, stdout and stderr of this program.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| command_line(command))?;
    if !status.success() {
        bail!("{} ended with {status}", command_line(command));
    }
    Ok(())
}

/// Runs the command with its stdout sent to stderr, because only results go to stdout.
pub(crate) fn run_to_stderr(command: &mut Command) -> Result<()> {
    run(command.stdout(io::stderr()))
}

/// Replaces this process with the command. Returns only if that fails.
pub(crate) fn exec(command: &mut Command) -> Error {
    let error = command.exec();
    Error::new(error).context(command_line(command))
}

/// Returns the command as one types it in a shell.
pub(crate) fn command_line(command: &Command) -> String {
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

/// Writes a result to stdout. `main` exits quietly on the error of a broken pipe.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()?;
    Ok(())
}

/// Formats rows as left-aligned columns.
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

/// Formats an aligned Markdown table.
pub(crate) fn markdown_table<const N: usize>(head: [&str; N], rows: Vec<[String; N]>) -> String {
    let closed = |mut cells: Vec<String>, end: &str| {
        if let Some(last) = cells.last_mut() {
            last.push_str(end);
        }
        cells
    };
    let line = |cells: [String; N]| closed(cells.map(|cell| format!("| {cell}")).to_vec(), " |");
    let mut lines = vec![line(head.map(str::to_owned)), closed(vec!["|---".to_owned(); N], "|")];
    lines.extend(rows.into_iter().map(line));
    table(&lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_quoted_for_a_shell() {
        let mut command = Command::new("echo");
        command.args(["-p", "it's late", ""]);
        assert_eq!(command_line(&command), r"echo -p 'it'\''s late' ''");
    }

    #[test]
    fn a_failure_names_the_command_and_its_stderr() {
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
