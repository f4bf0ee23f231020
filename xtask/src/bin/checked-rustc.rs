//! The compiler of `cargo xtask ci`: compiles a crate of the workspace with clippy's lints, and then has rustdoc check it.
//!
//! cargo runs it as `RUSTC_WORKSPACE_WRAPPER`: the first argument is rustc, and the others are rustc's. `cargo clippy` and
//! `cargo doc` would compile every dependency once more, since cargo keeps what it makes for checks apart from builds.
//!
//! clippy is rustc with more lints, and makes what rustc makes, but for optimizations ahead of LLVM, which it leaves out. Tests of
//! unoptimized code run as fast, and crates are analyzed once in place of twice.

use std::{
    env,
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

/// What rustdoc prints reaches cargo as rustc's own messages do.
const MESSAGES: [&str; 2] = ["--error-format=json", "--json=diagnostic-rendered-ansi"];
const WARNINGS_ARE_ERRORS: [&str; 2] = ["-D", "warnings"];
/// What cargo names the program of a build script.
const BUILD_SCRIPT: &str = "build_script_";
/// The folder that cargo puts the programs of examples into.
const EXAMPLES: &str = "examples";

fn main() -> ExitCode {
    let arguments: Vec<String> = match env::args_os().skip(1).map(OsString::into_string).collect() {
        Ok(arguments) => arguments,
        Err(argument) => return failure(&format!("found an argument {argument:?}, expected UTF-8")),
    };
    let Some((rustc, arguments)) = arguments.split_first() else {
        return failure("found no argument, expected those of a RUSTC_WORKSPACE_WRAPPER");
    };
    match compile_and_check(Path::new(rustc), arguments) {
        Ok(code) => code,
        Err(error) => failure(&error.to_string()),
    }
}

fn failure(message: &str) -> ExitCode {
    eprintln!("error: checked-rustc: {message}");
    ExitCode::FAILURE
}

/// Returns the exit status of the first that fails, as each stops what follows.
fn compile_and_check(rustc: &Path, arguments: &[String]) -> io::Result<ExitCode> {
    let Some(unit) = Unit::read(arguments) else { return run(Command::new(rustc).args(arguments)) };
    let outcome = run(&mut linted(rustc, arguments))?;
    if outcome != ExitCode::SUCCESS || !unit.has_documentation() {
        return Ok(outcome);
    }
    run(&mut unit.rustdoc(rustc))
}

/// Returns the command that compiles as rustc does, and lints as `cargo clippy` does.
fn linted(rustc: &Path, arguments: &[String]) -> Command {
    let mut command = Command::new(rustc.with_file_name("clippy-driver"));
    command.arg(rustc).args(arguments).args(WARNINGS_ARE_ERRORS);
    command
}

fn run(command: &mut Command) -> io::Result<ExitCode> {
    let status = command.status().map_err(|error| {
        let program = command.get_program().to_string_lossy();
        io::Error::new(error.kind(), format!("{program}: {error}; hint: rustup component add clippy"))
    })?;
    // A signal has no code.
    let code = status.code().map_or(1, |code| u8::try_from(code).unwrap_or(1));
    Ok(ExitCode::from(code))
}

/// A crate that rustc is asked to compile.
struct Unit<'a> {
    name: &'a str,
    /// Where what rustc makes goes.
    folder: PathBuf,
    /// The arguments of rustdoc: without what is made, where, and how it is told.
    arguments: Vec<&'a str>,
}

impl<'a> Unit<'a> {
    /// Reads the arguments of rustc. Returns nothing if they ask only for what it is or can do.
    fn read(arguments: &'a [String]) -> Option<Self> {
        let (mut name, mut folder, mut kept) = (None, None, Vec::new());
        let mut rest = arguments.iter().map(String::as_str);
        while let Some(argument) = rest.next() {
            match argument {
                // Checks link nothing.
                "-l" => drop(rest.next()?),
                "--out-dir" => folder = Some(PathBuf::from(rest.next()?)),
                "--crate-name" => {
                    name = Some(rest.next()?);
                    kept.extend(["--crate-name", name?]);
                }
                "-C" => {
                    let option = rest.next()?;
                    if !option.starts_with("incremental=") {
                        kept.extend(["-C", option]);
                    }
                }
                _ if ["--emit=", "--json=", "--error-format="]
                    .iter()
                    .any(|part| argument.starts_with(part)) => {}
                _ => kept.push(argument),
            }
        }
        Some(Self { name: name?, folder: folder?, arguments: kept })
    }

    /// Returns the command that checks the documentation and makes no pages.
    fn rustdoc(&self, rustc: &Path) -> Command {
        let mut command = Command::new(rustc.with_file_name("rustdoc"));
        command.args(&self.arguments).args(MESSAGES).args(WARNINGS_ARE_ERRORS);
        command.args(["--document-private-items", "-Z", "unstable-options", "--check"]);
        // `--check` is not stable.
        command.env("RUSTC_BOOTSTRAP", "1");
        command
    }

    /// Returns whether `cargo doc` would document the crate.
    fn has_documentation(&self) -> bool {
        !self.arguments.contains(&"--test")
            && !self.name.starts_with(BUILD_SCRIPT)
            && !self.folder.ends_with(EXAMPLES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn rustdoc_gets_what_the_crate_is_and_not_what_is_made_of_it() {
        let arguments = words(
            "--crate-name a --edition=2024 src/lib.rs --error-format=json --json=artifacts --crate-type lib \
             --emit=dep-info,metadata,link -C opt-level=1 -C incremental=i --out-dir deps -l static=c --extern b=libb.rmeta",
        );
        let unit = Unit::read(&arguments).unwrap();
        let expected =
            "--crate-name a --edition=2024 src/lib.rs --crate-type lib -C opt-level=1 --extern b=libb.rmeta";
        assert_eq!(unit.arguments.join(" "), expected);
        assert_eq!(unit.folder, Path::new("deps"));
        assert!(unit.has_documentation());
    }

    #[test]
    fn questions_to_rustc_are_passed_on() {
        for arguments in ["-vV", "- --crate-name ___ --print=file-names --crate-type bin"] {
            assert!(Unit::read(&words(arguments)).is_none(), "{arguments}");
        }
    }

    #[test]
    fn what_cargo_doc_leaves_out_has_no_documentation() {
        for arguments in [
            "--crate-name a --test --out-dir d",
            "--crate-name build_script_build --out-dir d",
            "--crate-name a --out-dir target/debug/examples",
        ] {
            assert!(!Unit::read(&words(arguments)).unwrap().has_documentation(), "{arguments}");
        }
    }

    #[test]
    fn the_linting_compiler_gets_all_arguments() {
        let command = linted(Path::new("bin/rustc"), &words("--crate-name a -C opt-level=1"));
        let found: Vec<_> = command.get_args().filter_map(|argument| argument.to_str()).collect();
        assert_eq!(command.get_program(), "bin/clippy-driver");
        assert_eq!(found.join(" "), "bin/rustc --crate-name a -C opt-level=1 -D warnings");
    }

    #[test]
    fn a_failure_of_the_compiler_is_the_outcome() {
        let folder = tempfile::tempdir().unwrap();
        // Systems differ in where it is.
        let fails =
            ["/bin/false", "/usr/bin/false"].into_iter().find(|path| Path::new(path).exists()).unwrap();
        std::os::unix::fs::symlink(fails, folder.path().join("clippy-driver")).unwrap();
        let arguments = words("--crate-name a --out-dir d");
        let outcome = compile_and_check(&folder.path().join("rustc"), &arguments).unwrap();
        assert_eq!(outcome, ExitCode::FAILURE);
    }
}
