//! Runs iree-compile, and summarizes why it failed.

use std::{
    env,
    fs::{self, File},
    io::{self, BufRead as _, BufReader, Read as _},
    os::unix::process::{CommandExt as _, ExitStatusExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

use crate::{
    build::{lean, places, toolchain::Toolchain, unit::Unit},
    error::Error,
    target::ResolvedTarget,
};

/// Name of the input.
///
/// The compiler writes the path of its input into the vmfb. So it always gets this relative path, and runs in the
/// folder of the file.
const INPUT: &str = "module.mlir";
/// Name of the module between two runs of the compiler.
const PLACED: &str = "placed.mlir";
/// Name of the output.
const OUTPUT: &str = "module.vmfb";
/// Name of the file that receives stdout and stderr of the compiler.
const LOG: &str = "iree-compile.log";

/// The variable with a library that the compiler is started with, whose `malloc` is a faster one.
const MALLOC: &str = "MLXCEL_COMPILER_MALLOC";

/// Bytes of the log that are searched for errors. A crashing compiler may print without end.
const LOG_LIMIT_BYTES: u64 = 4 << 20;
/// Error lines in a message.
const REASON_LINES: usize = 3;
/// Characters of an error line in a message.
const REASON_CHARS: usize = 300;

/// The remedy if the compiler takes too long for a target.
const LATE_HINT: &str =
    "leave out this target, whose compiler may never end, or raise --time-limit; others are compiled already";

/// Time between two looks at a running compiler.
const POLL: Duration = Duration::from_millis(10);

/// Output of the compiler, in a temporary folder that is removed on drop.
pub(crate) struct CompilerOutput {
    folder: TempDir,
}

impl CompilerOutput {
    /// Returns the path of the vmfb.
    pub(crate) fn vmfb(&self) -> PathBuf {
        self.folder.path().join(OUTPUT)
    }
}

/// Compiles `unit` for `target`. Kills the compiler once `cancelled` returns true.
///
/// If the compiler fails, its folder with input and log is kept.
pub(crate) fn compile(
    unit: &Unit<'_>,
    target: &ResolvedTarget,
    toolchain: &Toolchain,
    cancelled: &dyn Fn() -> bool,
) -> Result<CompilerOutput, Error> {
    let folder = tempfile::Builder::new()
        .prefix("mlxcel-compile-")
        .tempdir()
        .map_err(Error::io("write", std::env::temp_dir()))?;
    let input = folder.path().join(INPUT);
    fs::write(&input, unit.mlir).map_err(Error::io("write", &input))?;
    for object in unit.objects {
        let path = folder.path().join(&*object.name);
        fs::write(&path, &object.bytes).map_err(Error::io("write", &path))?;
    }
    let mut flags = unit.flags_for(target);
    if toolchain.is_lean {
        flags.extend(lean::flags(&flags));
    }
    let start = Instant::now();
    let is_late = || toolchain.time_limit.is_some_and(|limit| start.elapsed() >= limit);
    let compiler = Running { unit, target, toolchain, cancelled, is_late: &is_late };
    if !unit.loops_in_place {
        return compiler.run(folder, &flags, [INPUT, OUTPUT]);
    }
    let first = [flags.as_slice(), &places::FIRST_PHASES.map(str::to_owned)].concat();
    let first = compiler.run(folder, &first, [INPUT, PLACED])?;
    let placed = first.folder.path().join(PLACED);
    let text = fs::read_to_string(&placed).map_err(Error::io("read", &placed))?;
    fs::write(&placed, places::removed(&text)).map_err(Error::io("write", &placed))?;
    flags.push(places::OTHER_PHASES.to_owned());
    compiler.run(first.folder, &flags, [PLACED, OUTPUT])
}

/// A compilation, in one run of the compiler or several.
struct Running<'r> {
    unit: &'r Unit<'r>,
    target: &'r ResolvedTarget,
    toolchain: &'r Toolchain,
    cancelled: &'r dyn Fn() -> bool,
    is_late: &'r dyn Fn() -> bool,
}

impl Running<'_> {
    /// Runs the compiler in a folder, which is kept if it fails.
    fn run(&self, folder: TempDir, flags: &[String], files: [&str; 2]) -> Result<CompilerOutput, Error> {
        let Self { unit, target, toolchain, cancelled, is_late } = *self;
        let log_path = folder.path().join(LOG);
        let log = File::create(&log_path).map_err(Error::io("write", &log_path))?;
        let log_for_stderr = log.try_clone().map_err(Error::io("write", &log_path))?;
        let [input, output] = files;
        let malloc = env::var_os(MALLOC).filter(|library| !library.is_empty());
        let child = Command::new(&toolchain.executable)
            .envs(malloc.map(|library| ("LD_PRELOAD", library)))
            .args(flags)
            .args([input, "-o", output])
            .current_dir(folder.path())
            // The compiler passes names of temporary files to the linker through a shell, without quoting them.
            .env("TMPDIR", ".")
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(log_for_stderr)
            // Ctrl-C goes to this program alone, which then kills the compiler and what it started.
            .process_group(0)
            .spawn()
            .map_err(Error::io("run", &toolchain.executable))?;
        let status =
            wait(child, &|| cancelled() || is_late()).map_err(Error::io("run", &toolchain.executable))?;
        let Some(status) = status else {
            return Err(stopped(toolchain, cancelled, &target.name, LATE_HINT));
        };
        let written = fs::metadata(folder.path().join(output)).is_ok_and(|file| file.len() > 0);
        if status.success() && written {
            return Ok(CompilerOutput { folder });
        }
        let reason = reason(&log_path).map_err(Error::io("read", &log_path))?;
        let folder = folder.keep();
        Err(Error::Compile {
            target: target.name.clone(),
            outcome: outcome(status),
            reason: reason
                .map_or_else(|| "it printed nothing".to_owned(), |reason| with_op(&reason, unit.mlir)),
            command: command_line(&folder, toolchain, flags, files),
            folder,
        })
    }
}

/// Puts the function and the op that the compiler stopped at before its words.
fn with_op(reason: &str, mlir: &str) -> String {
    let place = || {
        let (line, _) = reason.strip_prefix(INPUT)?.strip_prefix(':')?.split_once(':')?;
        let before: Vec<&str> = mlir.lines().take(line.parse().ok()?).collect();
        let between = |line: &str, start: &str, end: char| {
            let (_, rest) = line.split_once(start)?;
            rest.split_once(end).map(|(name, _)| name.to_owned())
        };
        let op = before.last().and_then(|line| between(line, "\"", '"'))?;
        let function = before.iter().rev().find_map(|line| between(line, "func.func @", '('))?;
        Some(format!("{function}: {}: {reason}", op.trim_start_matches("stablehlo.")))
    };
    place().unwrap_or_else(|| reason.to_owned())
}

/// Returns why the compiler was stopped at `what`: it was cancelled, or took too long.
pub(crate) fn stopped(
    toolchain: &Toolchain,
    cancelled: &dyn Fn() -> bool,
    what: &str,
    hint: &'static str,
) -> Error {
    let limit = toolchain.time_limit.filter(|_| !cancelled());
    let late = |limit: Duration| Error::TimeLimit { what: what.to_owned(), seconds: limit.as_secs(), hint };
    limit.map_or(Error::Cancelled, late)
}

/// Waits until the compiler ends. Returns `None` if it was cancelled.
///
/// The compiler must lead a process group. All of it is killed, because a wrapper or a driver waits for a compiler of its own.
pub(crate) fn wait(mut child: Child, cancelled: &dyn Fn() -> bool) -> io::Result<Option<ExitStatus>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if cancelled() {
            kill_process_group(Pid::from_child(&child), Signal::KILL)?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(POLL);
    }
}

/// Describes how the compiler ended, to follow its name.
pub(crate) fn outcome(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => match signal_name(signal) {
            Some(name) => format!("crashed with {name}"),
            None => format!("was ended by signal {signal}"),
        },
        (None, Some(0)) => "wrote no vmfb".to_owned(),
        (None, code) => format!("failed with exit status {}", code.unwrap_or(-1)),
    }
}

fn signal_name(signal: i32) -> Option<&'static str> {
    // These numbers are the same on Linux and macOS.
    Some(match signal {
        4 => "SIGILL",
        6 => "SIGABRT",
        8 => "SIGFPE",
        9 => "SIGKILL, perhaps out of memory",
        11 => "SIGSEGV",
        _ => return None,
    })
}

/// Returns the first error lines of the log, otherwise its first line that is not empty.
pub(crate) fn reason(log: &Path) -> io::Result<Option<String>> {
    let mut first = None;
    let mut errors = Vec::new();
    let mut lines = BufReader::new(File::open(log)?.take(LOG_LIMIT_BYTES));
    let mut line = Vec::new();
    while errors.len() < REASON_LINES && lines.read_until(b'\n', &mut line)? > 0 {
        let text = shorten(String::from_utf8_lossy(&line).trim());
        line.clear();
        let error = text.contains("error: ") || text.starts_with("LLVM ERROR: ");
        if error && !errors.contains(&text) {
            errors.push(text);
        } else if first.is_none() && !text.is_empty() {
            first = Some(text);
        }
    }
    Ok(if errors.is_empty() { first } else { Some(errors.join("\n  ")) })
}

/// Shortens a line to [`REASON_CHARS`] characters and removes control characters.
fn shorten(line: &str) -> String {
    let mut chars = line.chars().filter(|c| !c.is_control());
    let mut short: String = chars.by_ref().take(REASON_CHARS).collect();
    if chars.next().is_some() {
        short.push('…');
    }
    short
}

/// Returns the shell command that repeats a compilation.
fn command_line(
    folder: &Path,
    toolchain: &Toolchain,
    flags: &[String],
    [input, output]: [&str; 2],
) -> String {
    let mut words = vec!["cd".to_owned(), quote(&folder.to_string_lossy()), "&&".to_owned()];
    words.push(quote(&toolchain.executable.to_string_lossy()));
    words.extend(flags.iter().map(|flag| quote(flag)));
    words.extend([input, "-o", output].map(str::to_owned));
    words.join(" ")
}

fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+,./:@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use mlxcel_artifacts::{Float, Machine, Quant, Store};

    use super::*;
    use crate::{build::compiler_location::CompilerLocation, target::Target, test_support};

    /// Returns a module without objects.
    fn unit(mlir: &str) -> Unit<'_> {
        Unit { mlir, objects: &[], flags: &[], loops_in_place: false }
    }

    /// Returns a fake compiler's failure, with its folder replaced by `DIR`, and that folder.
    fn failure(name: &str) -> (String, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let toolchain = test_support::toolchain(folder.path(), name);
        let Err(error) = compile(&unit("module {}"), &test_support::target(), &toolchain, &|| false) else {
            panic!("{name} compiled");
        };
        let Error::Compile { folder: kept, .. } = &error else { panic!("{error}") };
        let message = error.to_string().replace(&kept.display().to_string(), "DIR");
        (message.replace(&folder.path().display().to_string(), "BIN"), kept.clone())
    }

    #[test]
    fn a_failure_shows_the_first_errors_and_the_command() {
        let (message, kept) = failure("fails");
        insta::assert_snapshot!(message, @r"
        iree-compile failed with exit status 1 for target cuda: module.mlir:7:10: error: failed to legalize operation 'stablehlo.add'
          module.mlir:9:1: error: second
          module.mlir:9:1: error: third
        hint: its input and output are in DIR; to repeat it: cd DIR && BIN/fails '--flag=a b' '--other=it'\''s' --plain=+x,y module.mlir -o module.vmfb
        ");
        assert_eq!(fs::read_to_string(kept.join(INPUT)).unwrap(), "module {}");
        assert_eq!(fs::read_to_string(kept.join(LOG)).unwrap().lines().count(), 1006);
        fs::remove_dir_all(kept).unwrap();
    }

    #[test]
    fn a_crash_names_its_signal() {
        let (message, kept) = failure("crashes");
        insta::assert_snapshot!(message, @r"
        iree-compile crashed with SIGSEGV for target cuda: Please report issues and include the crash backtrace.
        hint: its input and output are in DIR; to repeat it: cd DIR && BIN/crashes '--flag=a b' '--other=it'\''s' --plain=+x,y module.mlir -o module.vmfb
        ");
        fs::remove_dir_all(kept).unwrap();
    }

    #[test]
    fn a_failure_without_output_is_reported() {
        for (name, expected) in [
            ("dumb", "iree-compile failed with exit status 3 for target cuda: it printed nothing\n"),
            ("lazy", "iree-compile wrote no vmfb for target cuda: it printed nothing\n"),
        ] {
            let (message, kept) = failure(name);
            assert!(message.starts_with(expected), "{message}");
            fs::remove_dir_all(kept).unwrap();
        }
    }

    #[test]
    fn success_leaves_no_files() {
        let folder = tempfile::tempdir().unwrap();
        let toolchain = test_support::toolchain(folder.path(), "works");
        let compiled = compile(&unit("module {}"), &test_support::target(), &toolchain, &|| false).unwrap();
        let vmfb = compiled.vmfb();
        assert_eq!(
            fs::read_to_string(&vmfb).unwrap(),
            "compiled from 9 bytes with --flag=a b --other=it's --plain=+x,y module.mlir -o module.vmfb\n"
        );
        drop(compiled);
        assert!(!vmfb.parent().unwrap().exists());
    }

    #[test]
    fn a_cancelled_compiler_is_killed() {
        let folder = tempfile::tempdir().unwrap();
        let toolchain = test_support::toolchain(folder.path(), "hangs");
        let started = || test_support::calls(&toolchain.executable) > 0;
        let Err(error) = compile(&unit("module {}"), &test_support::target(), &toolchain, &started) else {
            panic!("it compiled");
        };
        assert!(matches!(error, Error::Cancelled), "{error}");
    }

    #[test]
    fn a_compiler_that_takes_too_long_is_killed() {
        let folder = tempfile::tempdir().unwrap();
        let toolchain = test_support::toolchain(folder.path(), "hangs");
        let toolchain = Toolchain { time_limit: Some(Duration::from_millis(300)), ..toolchain };
        let Err(error) = compile(&unit("module {}"), &test_support::target(), &toolchain, &|| false) else {
            panic!("it compiled");
        };
        insta::assert_snapshot!(error, @r"
        cuda: gave up after 0 s in iree-compile
        hint: leave out this target, whose compiler may never end, or raise --time-limit; others are compiled already
        ");
    }

    #[test]
    fn what_a_compiler_started_is_killed_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let toolchain = test_support::toolchain(folder.path(), "forks");
        let started = || test_support::started(&toolchain.executable).is_some();
        let compile = |limit, cancelled: &dyn Fn() -> bool| {
            let toolchain = Toolchain { time_limit: limit, ..toolchain.clone() };
            compile(&unit("module {}"), &test_support::target(), &toolchain, cancelled).err()
        };
        let error = compile(None, &started);
        assert!(matches!(error, Some(Error::Cancelled)), "{error:?}");
        test_support::assert_ended(&toolchain.executable);
        let error = compile(Some(Duration::from_secs(5)), &|| false);
        assert!(matches!(error, Some(Error::TimeLimit { .. })), "{error:?}");
        test_support::assert_ended(&toolchain.executable);
    }

    #[test]
    fn the_function_and_the_op_precede_the_compilers_words() {
        let mlir = "module @m {\n  func.func @main(%a: tensor<4xf32>) -> tensor<3xf32> {\n    %0 = \"stablehlo.fft\"(%a)\n";
        let words = "module.mlir:3:10: error: failed to legalize operation 'stablehlo.fft'";
        assert_eq!(with_op(words, mlir), format!("main: fft: {words}"));
        for other in
            ["LLVM ERROR: no", "module.mlir:99999999999999999999:1: error: no", "module.mlir:1:1: error: no"]
        {
            assert_eq!(with_op(other, mlir), other);
        }
    }

    #[test]
    fn long_lines_and_control_characters_are_cut() {
        assert_eq!(shorten("a\u{1b}[2J\tb"), "a[2Jb");
        assert_eq!(shorten(&"ä".repeat(1000)).chars().count(), REASON_CHARS + 1);
    }

    /// Returns a module that converts a parameter and multiplies by it.
    fn product(stored: &str, computed: &str) -> String {
        include_str!("../../tests/product.mlir").replace("STORED", stored).replace("COMPUTED", computed)
    }

    /// Returns the iree-compile of this workspace.
    fn real() -> &'static Toolchain {
        static REAL: LazyLock<Toolchain> = LazyLock::new(|| {
            let store = tempfile::tempdir().unwrap();
            let store = Store::new(store.path(), None).unwrap();
            Toolchain::find(&CompilerLocation::from_env(), &store).unwrap_or_else(|error| panic!("{error}"))
        });
        &REAL
    }

    #[test]
    fn every_target_compiles_its_precisions() {
        let (f32, bf16) = (("f32", Float::F32), ("bf16", Float::Bf16));
        for target in test_support::all_targets() {
            let resolved = target.resolve(&Machine::host(), Float::F32, Quant::None);
            for (stored, computed) in [(f32, f32), (bf16, f32), (bf16, bf16)] {
                // Compiling bf16 covers f32.
                let covered = stored == f32 && target.computes(Float::Bf16);
                // Floats read as bits are emitted differently. The oracle's tests compile them.
                let covered = covered || (stored != f32 && resolved.numerics.floats_as_bits);
                if !covered && target.computes(computed.1) {
                    let compiled =
                        compile(&unit(&product(stored.0, computed.0)), &resolved, real(), &|| false);
                    let compiled = compiled.unwrap_or_else(|error| panic!("{error}"));
                    let log = fs::read_to_string(compiled.folder.path().join(LOG)).unwrap();
                    assert_eq!(log, "", "{} warns: unknown feature?", target.name);
                }
            }
        }
    }

    #[test]
    fn the_output_does_not_depend_on_the_folder() {
        let target = Target::find("cpu").unwrap().resolve(&Machine::host(), Float::F32, Quant::None);
        let bytes = || {
            let compiled = compile(&unit(&product("bf16", "bf16")), &target, real(), &|| false);
            fs::read(compiled.unwrap_or_else(|error| panic!("{error}")).vmfb()).unwrap()
        };
        assert!(bytes() == bytes());
    }

    #[test]
    fn a_real_failure_is_summarized() {
        let target = Target::find("cpu").unwrap().resolve(&Machine::host(), Float::F32, Quant::None);
        let broken = product("f32", "f32").replace("stablehlo.dot_general", "stablehlo.no_such_op");
        let Err(Error::Compile { reason, folder, .. }) = compile(&unit(&broken), &target, real(), &|| false)
        else {
            panic!("it compiled");
        };
        assert!(reason.contains("error: ") && reason.contains("stablehlo.no_such_op"), "{reason}");
        assert!(reason.lines().count() <= REASON_LINES, "{reason}");
        fs::remove_dir_all(folder).unwrap();
    }
}
