//! Reads a program in any form, as StableHLO in MLIR's generic form.
//!
//! iree-compile has StableHLO's dialects and its versions, so it is the one that reads: it is asked for the module that one of
//! its first passes sees.

use std::{
    cell::RefCell,
    fs::{self, File},
    io::Read as _,
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Command, Stdio},
    time::Instant,
};

use mlxcel_artifacts::{Cancel, Links, ReadError, Store, read_limited};
use mlxcel_emitter::{ImportedProgram, import};

use super::form::{Form, detect};
use crate::{
    build::{
        compiler_location::CompilerLocation,
        iree_compile::{outcome, reason, stopped, wait},
        toolchain::Toolchain,
    },
    error::Error,
};

/// The first pass with a name that sees StableHLO, whatever the form of the program. Before it, composites have become calls.
const FIRST_PASS: &str = "chlo-legalize-to-stablehlo";

/// What precedes the module in the compiler's output.
const DUMP: &str = "// -----// IR Dump Before";

/// Name of the program in the compiler's folder, and what it prints.
const INPUT: &str = "program";
const PRINTED: &str = "printed.mlir";

/// The remedy if the compiler takes too long to read a program.
const LATE_HINT: &str = "raise --time-limit, or split the program";

/// The most bytes of a program. Constants of a model do not belong into it.
const PROGRAM_LIMIT_BYTES: u64 = 1 << 30;

/// A program that was read.
#[derive(Debug)]
pub(crate) struct ReadProgram {
    pub(crate) form: Form,
    pub(crate) program: ImportedProgram,
    /// The program in MLIR's generic form.
    pub(crate) text: String,
}

/// Reads the program at a path.
pub(crate) fn read(
    path: &Path,
    toolchain: &Toolchain,
    cancelled: &dyn Fn() -> bool,
) -> Result<ReadProgram, Error> {
    let bytes = read_limited(path, PROGRAM_LIMIT_BYTES, Links::Follow).map_err(|error| match error {
        ReadError::TooLong { found, limit } => Error::LargeProgram { path: path.into(), found, limit },
        other => Error::io("read", path)(other.into()),
    })?;
    let (form, program) =
        detect(&bytes).map_err(|problem| Error::ProgramForm { path: path.into(), problem })?;
    let text = print(path, program, toolchain, cancelled)?;
    let program =
        import(&text).map_err(|source| Error::Import { path: path.into(), source: Box::new(source) })?;
    Ok(ReadProgram { form, program, text })
}

/// Returns the program at a path as text in MLIR's generic form.
///
/// # Errors
/// There is no compiler, the file cannot be read or is no StableHLO program, or `cancel` was triggered.
pub fn generic_form(
    path: &Path,
    compiler: &CompilerLocation,
    store: &Store,
    cancel: &Cancel,
) -> Result<String, Error> {
    let toolchain = Toolchain::find(compiler, store)?;
    Ok(read(path, &toolchain, &|| cancel.is_cancelled())?.text)
}

/// Returns a program as text in MLIR's generic form.
fn print(
    path: &Path,
    program: &[u8],
    toolchain: &Toolchain,
    cancelled: &dyn Fn() -> bool,
) -> Result<String, Error> {
    let folder = tempfile::Builder::new().prefix("mlxcel-program-").tempdir();
    let folder = folder.map_err(Error::io("write", std::env::temp_dir()))?;
    let [input, printed] = [INPUT, PRINTED].map(|name| folder.path().join(name));
    fs::write(&input, program).map_err(Error::io("write", &input))?;
    let log = File::create(&printed).map_err(Error::io("write", &printed))?;
    let start = Instant::now();
    let child = Command::new(&toolchain.executable)
        .args(["--iree-input-type=stablehlo", "--compile-to=input", INPUT, "-o", "/dev/null"])
        .arg(format!("--mlir-print-ir-before={FIRST_PASS}"))
        .args(["--mlir-print-op-generic", "--mlir-print-debuginfo"])
        // The pass runs on functions, and the module is printed for each of them.
        .args(["--mlir-print-ir-module-scope", "--mlir-disable-threading"])
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        // Ctrl-C goes to this program alone, which then kills the compiler and what it started.
        .process_group(0)
        .spawn()
        .map_err(Error::io("run", &toolchain.executable))?;
    let watched = File::open(&printed).map_err(Error::io("read", &printed))?;
    let dumps = RefCell::new(Dumps { output: watched, tail: Vec::new(), count: 0 });
    // One module is enough. The compiler would go on with as many as there are functions.
    let is_enough = || dumps.borrow_mut().count() > 1;
    let is_late = || toolchain.time_limit.is_some_and(|limit| start.elapsed() >= limit);
    let status = wait(child, &|| cancelled() || is_enough() || is_late())
        .map_err(Error::io("run", &toolchain.executable))?;
    if status.is_none() && !is_enough() {
        return Err(stopped(toolchain, cancelled, &path.display().to_string(), LATE_HINT));
    }
    let text = module_in(&fs::read_to_string(&printed).map_err(Error::io("read", &printed))?);
    match (text, status) {
        // Passes after the first may fail. What they refuse is for a preflight to say.
        (Some(text), _) => Ok(text),
        (None, None) => Err(Error::Cancelled),
        (None, Some(status)) => {
            let words = reason(&printed).map_err(Error::io("read", &printed))?;
            let words = words.unwrap_or_else(|| format!("iree-compile {}", outcome(status)));
            let reason = words.lines().map(place).collect::<Vec<_>>().join("\n");
            Err(Error::UnreadableProgram { path: path.into(), reason })
        }
    }
}

/// The modules that the compiler has begun to print.
struct Dumps {
    output: File,
    /// What was read last, in which another may begin.
    tail: Vec<u8>,
    count: usize,
}

impl Dumps {
    /// Returns how many modules there are by now.
    fn count(&mut self) -> usize {
        // What cannot be read now is read when the compiler is through.
        _ = self.output.read_to_end(&mut self.tail);
        let marker = DUMP.as_bytes();
        self.count += self.tail.windows(marker.len()).filter(|window| *window == marker).count();
        self.tail.drain(..self.tail.len().saturating_sub(marker.len() - 1));
        self.count
    }
}

/// Returns a line of the compiler with the place in words: `line 2, column 5: …` for `program:2:5: error: …`.
fn place(line: &str) -> String {
    let place = || {
        let (place, problem) = line.strip_prefix(INPUT)?.strip_prefix(':')?.split_once(": error: ")?;
        let (line, column) = place.split_once(':')?;
        // Bytecode has no lines.
        Some(if line == "0" {
            problem.to_owned()
        } else {
            format!("line {line}, column {column}: {problem}")
        })
    };
    format!("  {}", place().unwrap_or_else(|| line.to_owned()))
}

/// Returns the module in the compiler's output, without what other passes printed.
fn module_in(printed: &str) -> Option<String> {
    let start = printed.find(DUMP)?;
    let (_, module) = printed[start..].split_once('\n')?;
    let end = module.find(DUMP).unwrap_or(module.len());
    Some(module[..end].to_owned())
}

#[cfg(test)]
mod tests {
    use std::{io, time::Duration};

    use super::*;
    use crate::test_support;

    #[test]
    fn the_first_module_is_taken() {
        let printed = format!("warning: x\n{DUMP} A //----- //\n#loc = loc(unknown)\nm\n{DUMP} A //\nn\n");
        assert_eq!(module_in(&printed).as_deref(), Some("#loc = loc(unknown)\nm\n"));
        assert_eq!(module_in("error: x"), None);
    }

    #[test]
    fn modules_are_counted_as_they_are_printed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(PRINTED);
        let mut writer = File::create(&path).unwrap();
        let mut dumps = Dumps { output: File::open(&path).unwrap(), tail: Vec::new(), count: 0 };
        let (begin, end) = DUMP.split_at(7);
        for (text, count) in [("x", 0), (DUMP, 1), ("m\n", 1), (begin, 1), (end, 2), ("n", 2)] {
            io::Write::write_all(&mut writer, text.as_bytes()).unwrap();
            assert_eq!(dumps.count(), count, "{text}");
        }
    }

    #[test]
    fn a_compiler_that_hangs_is_killed_with_what_it_started() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("step.mlir");
        fs::write(&program, "module @m {}").unwrap();
        let toolchain = test_support::toolchain(folder.path(), "forks");
        let started = || test_support::started(&toolchain.executable).is_some();
        let error = read(&program, &toolchain, &started).unwrap_err();
        assert!(matches!(error, Error::Cancelled), "{error}");
        test_support::assert_ended(&toolchain.executable);
        let limited = Toolchain { time_limit: Some(Duration::from_secs(5)), ..toolchain.clone() };
        let error = read(&program, &limited, &|| false).unwrap_err();
        assert_eq!(
            error.to_string().replace(&folder.path().display().to_string(), "…"),
            "…/step.mlir: gave up after 5 s in iree-compile\nhint: raise --time-limit, or split the program"
        );
        test_support::assert_ended(&toolchain.executable);
    }

    #[test]
    fn places_are_in_words() {
        assert_eq!(place("program:2:5: error: no"), "  line 2, column 5: no");
        assert_eq!(place("program:0:0: error: no"), "  no");
        assert_eq!(place("LLVM ERROR: no"), "  LLVM ERROR: no");
    }
}
