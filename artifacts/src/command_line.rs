//! What every program can say of its own command line: completions for shells, and manual pages.

use std::{
    ffi::OsString,
    fs,
    io::{self, Write as _},
    path::Path,
    process,
};

use clap::{Command, Parser, ValueEnum as _};
use clap_complete::{Shell, generate};

/// Prints the completions of a shell.
const COMPLETIONS: &str = "--completions";

/// Writes manual pages into a folder.
const MAN_PAGES: &str = "--man-pages";

/// Parses the arguments of a program, its own name first.
///
/// `--completions SHELL` and `--man-pages FOLDER`, each alone, write what packages of the program contain, and end it. As all
/// programs have them, no page of help has them.
pub fn parse_arguments<P: Parser>(arguments: impl IntoIterator<Item = OsString>) -> P {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    match documents(P::command(), &arguments) {
        None => P::parse_from(arguments),
        Some(Ok(())) => process::exit(0),
        Some(Err(error)) => {
            // If stderr is gone, there is nowhere to report the error.
            _ = writeln!(io::stderr(), "error: {error}");
            process::exit(1);
        }
    }
}

/// Writes what the arguments ask for; `None` if that is nothing of this.
fn documents(mut command: Command, arguments: &[OsString]) -> Option<io::Result<()>> {
    let [_, option, value] = arguments else { return None };
    match option.to_str()? {
        COMPLETIONS => Some(write_completions(&mut command, &value.to_string_lossy())),
        MAN_PAGES => Some(write_pages(command, Path::new(value))),
        _ => None,
    }
}

fn write_completions(command: &mut Command, shell: &str) -> io::Result<()> {
    let shells = || Shell::value_variants().iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let shell = Shell::from_str(shell, true)
        .map_err(|_| io::Error::other(format!("found the shell {shell}, expected one of {}", shells())))?;
    let name = command.get_name().to_owned();
    let mut text = Vec::new();
    generate(shell, command, name, &mut text);
    io::stdout().write_all(&text)
}

/// Writes a page for the program, and one for each of its subcommands.
fn write_pages(command: Command, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    // It has the same page in every folder, and none of the reader's own.
    clap_mangen::generate_to(command.disable_help_subcommand(true), folder)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    /// A program
    #[derive(Parser)]
    #[command(name = "example", version)]
    struct Example {
        /// A number
        #[arg(long)]
        number: Option<u32>,
        #[command(subcommand)]
        more: Option<More>,
    }

    #[derive(clap::Subcommand)]
    enum More {
        /// Something else
        Other,
    }

    fn asked(arguments: &[&str]) -> Option<io::Result<()>> {
        documents(Example::command(), &arguments.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn pages_are_written_for_the_program_and_its_subcommands() {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("man1");
        asked(&["example", MAN_PAGES, to.to_str().unwrap()]).unwrap().unwrap();
        let page = fs::read_to_string(to.join("example.1")).unwrap();
        assert!(page.contains("A number") && page.contains("\\-\\-number"), "{page}");
        assert!(fs::read_to_string(to.join("example-other.1")).unwrap().contains("Something else"));
    }

    #[test]
    fn other_arguments_are_the_programs_own() {
        assert!(asked(&["example"]).is_none() && asked(&["example", "--number", "3"]).is_none());
        assert!(asked(&["example", COMPLETIONS]).is_none());
        let error = asked(&["example", COMPLETIONS, "tcsh"]).unwrap().unwrap_err().to_string();
        assert_eq!(error, "found the shell tcsh, expected one of bash, elvish, fish, powershell, zsh");
        let example: Example = parse_arguments(["example", "--number", "3"].map(OsString::from));
        assert!(example.number == Some(3) && example.more.is_none());
    }
}
