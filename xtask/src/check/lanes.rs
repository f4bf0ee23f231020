//! `cargo xtask test`: every test of the workspace, in three lanes at the same time.
//!
//! cargo runs test programs one after the other, and a program starts its tests in the order of their names. A program whose last
//! test is a long one leaves cores idle, and so do tests that mostly wait, for a browser, a cluster or limits of time. So the
//! longest program has two lanes, one of them for its tests that wait, and all other programs have the third. The output of the
//! lane that takes longest is shown as it comes, and that of the others in one piece when they end.

use std::{
    env,
    ffi::OsString,
    panic,
    path::Path,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};

use super::test_times::{self, Outcome, Output};
use crate::{
    parallel, shell,
    tasks::WHOLE,
    toolchain::{
        detect::{JEMALLOC, linker_finds},
        setup::{IS_SET_UP, setup},
    },
    workspace::Workspace,
};

/// Set for the tests that `cargo xtask test` runs.
const THROUGH_XTASK: &str = "MLXCEL_XTASK_TEST";

/// The longest program, of compiler-driver. Two lanes run it, and the third skips it.
const LONGEST: &str = "bundles";

/// The modules of that program whose tests mostly wait. One lane runs them, and another skips them: whatever the names are,
/// each test has exactly one lane.
const WAITING: [&str; 2] = ["python::", "serving::"];

/// The task that runs a test program for the lane of all other programs. cargo calls it as its runner.
const RUNNER: &str = "test-program";

/// The only argument of `cargo test` that leaves it running everything.
const NO_FAIL_FAST: &str = "--no-fail-fast";

const THREADS: &str = "RUST_TEST_THREADS";

/// Runs the tests of the workspace in lanes, or what the arguments choose.
pub(crate) fn test(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    setup(workspace)?;
    if !arguments.iter().all(|argument| argument == NO_FAIL_FAST) {
        let mut command = workspace.cargo(&test_command(arguments));
        return Err(shell::exec(command.args(arguments).env(THROUGH_XTASK, "1").env_remove(IS_SET_UP)));
    }
    let own = env::current_exe()?;
    let start = Instant::now();
    shell::run_to_stderr(&mut workspace.cargo(&format!("test {WHOLE} --no-run")))?;
    let compile = ("compile".to_owned(), start.elapsed());
    let outcomes = run_lanes(workspace, &own, arguments)?;

    let mut times = vec![compile];
    let mut failed = Vec::new();
    for outcome in outcomes {
        times.extend(outcome.times);
        failed.extend(outcome.failed);
    }
    eprint!("\n{}", test_times::table(&times));
    if !failed.is_empty() {
        bail!("found {} failures, expected none:\n{}", failed.len(), failed.join("\n"));
    }
    Ok(())
}

/// Runs all lanes to their ends. Their programs are built, so that no cargo waits for another.
fn run_lanes(workspace: &Workspace, own: &Path, arguments: &[String]) -> Result<[Outcome; 3]> {
    let [mut longest, mut waiting, mut others] =
        threads(parallel::cpus()).map(|threads| lane(workspace, arguments, threads));
    longest.args(["--test", LONGEST, "--"]).args(skipped());
    waiting.args(["--test", LONGEST, "--"]).args(WAITING);
    others.args(["--config", &runner(own)?]);

    let target = workspace.target()?;
    let [waiting_log, others_log] =
        ["tests-that-wait.log", "tests-of-other-programs.log"].map(|name| target.join(name));
    eprintln!("tests of {} run beside those below; see {}", WAITING.join(" and "), waiting_log.display());
    eprintln!("so do all programs but {LONGEST}; see {}", others_log.display());
    let (longest, waiting, others) = thread::scope(|scope| {
        let waiting = scope.spawn(|| test_times::run(&mut waiting, Output::AtTheEnd(&waiting_log)));
        let others = scope.spawn(|| test_times::run(&mut others, Output::AtTheEnd(&others_log)));
        let longest = test_times::run(&mut longest, Output::AtOnce);
        let [waiting, others] =
            [waiting, others].map(|lane| lane.join().unwrap_or_else(|panic| panic::resume_unwind(panic)));
        (longest, waiting, others)
    });
    let mut waiting = waiting?;
    let label = |(name, time): (String, Duration)| (format!("{name}, of {}", WAITING.join(" and ")), time);
    waiting.times = waiting.times.into_iter().map(label).collect();
    Ok([longest?, waiting, others?])
}

/// Returns the command that all lanes begin with.
fn lane(workspace: &Workspace, arguments: &[String], threads: usize) -> Command {
    let mut command = workspace.cargo(&format!("test {WHOLE}"));
    command.args(arguments).env(THROUGH_XTASK, "1").env_remove(IS_SET_UP);
    // Tests run iree-compile hundreds of times, which takes a tenth less CPU time with it.
    if linker_finds(JEMALLOC) {
        command.env("MLXCEL_COMPILER_MALLOC", JEMALLOC);
    }
    if workspace.variable(THREADS).is_none() {
        command.env(THREADS, threads.to_string());
    }
    command
}

/// Returns how many tests each lane runs at a time: that of the longest program, its tests that wait, and the other programs.
/// Together they are more than the CPUs, because those of one lane mostly wait, and some of the others do: for limits of time.
/// The two that compute have as many, so that they end at about the same time.
fn threads(cpus: usize) -> [usize; 3] {
    [cpus + 1, cpus.div_ceil(2) + 1, cpus + 1]
}

/// Returns the setting that makes cargo start every test program through [`run_program`]. An option and no variable, so that what
/// tests start does not have it.
fn runner(own: &Path) -> Result<String> {
    let own = own.to_str().with_context(|| format!("found the path {}, expected UTF-8", own.display()))?;
    let words = toml::Value::from(vec![own, RUNNER]);
    Ok(format!("target.'cfg(unix)'.runner={words}"))
}

/// Replaces this process with a test program, unless it is the one that has other lanes.
pub(crate) fn run_program(program: &Path, arguments: &[OsString]) -> Result<()> {
    if is_longest(program) {
        eprintln!("has lanes of its own");
        return Ok(());
    }
    Err(shell::exec(Command::new(program).args(arguments)))
}

/// Returns whether cargo made the executable of the longest program. The name ends with a digest.
fn is_longest(program: &Path) -> bool {
    let name = program.file_name().and_then(|name| name.to_str()).and_then(|name| name.rsplit_once('-'));
    name.is_some_and(|(name, _)| name == LONGEST)
}

fn skipped() -> impl Iterator<Item = &'static str> {
    WAITING.into_iter().flat_map(|module| ["--skip", module])
}

fn test_command(arguments: &[String]) -> String {
    let own = arguments.iter().take_while(|argument| *argument != "--");
    let chooses = own.into_iter().any(|argument| {
        argument.starts_with("-p") || argument.starts_with("--package") || argument == "--manifest-path"
    });
    if chooses { "test".to_owned() } else { format!("test {WHOLE}") }
}

#[cfg(test)]
mod tests {
    use std::{fs, io::Write as _};

    use super::*;

    /// Returns a file of the checkout.
    fn file(name: &str) -> String {
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)).unwrap()
    }

    /// cargo has no option that changes `cargo test`, so a test prints what it leaves out.
    #[test]
    fn cargo_test_without_xtask_says_that_it_covers_half_of_the_crates() {
        let manifest: toml::Table = toml::from_str(&file("Cargo.toml")).unwrap();
        let members = |key: &str| -> Vec<&str> {
            manifest["workspace"][key].as_array().unwrap().iter().filter_map(toml::Value::as_str).collect()
        };
        assert_eq!(members("default-members"), ["artifacts", "models", "xtask"]);
        let all = members("members").len();
        assert!(all > members("default-members").len());
        if env::var_os(THROUGH_XTASK).is_none() {
            // Unlike `eprintln!`, this is not captured.
            let note = format!(
                "note: plain `cargo test` covers only artifacts, models and xtask, which need no toolchain\n\
                 hint: cargo xtask test, which covers all {all} crates\n"
            );
            std::io::stderr().write_all(note.as_bytes()).unwrap();
        }
    }

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn chosen_packages_replace_the_workspace() {
        assert_eq!(test_command(&words("")), format!("test {WHOLE}"));
        assert_eq!(test_command(&words("--no-fail-fast -- -p")), format!("test {WHOLE}"));
        assert_eq!(test_command(&words("-p mlxcel-models config")), "test");
    }

    /// Returns whether libtest runs a test with these arguments: any filter is a part of its name, and no skipped word is.
    fn runs(arguments: &[&str], test: &str) -> bool {
        let (mut filters, mut skips) = (Vec::new(), Vec::new());
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            if *argument == "--skip" { skips.extend(rest.next()) } else { filters.push(argument) }
        }
        let has = |words: &[&&str]| words.iter().any(|word| test.contains(**word));
        (filters.is_empty() || has(&filters)) && !has(&skips)
    }

    #[test]
    fn every_test_has_exactly_one_lane() {
        let others: Vec<&str> = skipped().collect();
        let lanes = |test: &str| [runs(&WAITING, test), runs(&others, test)];
        for (test, expected) in [
            ("python::ray_passes_its_tests", [true, false]),
            ("serving::soak::a_thousand_streams", [true, false]),
            ("hub::serving::python", [true, false]),
            ("oracle::answers", [false, true]),
            ("serving", [false, true]),
            ("programs_run::python_reads_it", [false, true]),
        ] {
            assert_eq!(lanes(test), expected, "{test}");
        }
    }

    #[test]
    fn the_tests_that_wait_are_there() {
        let modules = file("compiler-driver/tests/main.rs");
        for module in WAITING {
            let name = module.trim_end_matches(':');
            assert!(modules.contains(&format!("mod {name};\n")), "{name}");
        }
        assert!(file("compiler-driver/Cargo.toml").contains(&format!("[[test]]\nname = \"{LONGEST}\"\n")));
    }

    #[test]
    fn other_programs_run_whole() {
        assert!(is_longest(Path::new("target/debug/deps/bundles-0cc175b9c0f1b6a8")));
        for program in
            ["target/debug/deps/conform-0cc175b9", "deps/more-bundles-0cc175b9", "bundles", "rust_out"]
        {
            assert!(!is_longest(Path::new(program)), "{program}");
        }
    }

    #[test]
    fn cargo_finds_the_runner_in_a_folder_with_spaces() {
        let setting = runner(Path::new("a b/xtask")).unwrap();
        let setting: toml::Table = toml::from_str(&setting).unwrap();
        let words: Vec<&str> = setting["target"]["cfg(unix)"]["runner"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(toml::Value::as_str)
            .collect();
        assert_eq!(words, ["a b/xtask", RUNNER]);
    }

    #[test]
    fn there_are_more_threads_than_cpus() {
        assert_eq!([1, 2, 16].map(threads), [[2, 2, 2], [3, 2, 3], [17, 9, 17]]);
    }
}
