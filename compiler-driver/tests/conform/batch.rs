//! Tests that are compiled into one bundle.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use mlxcel_artifacts::{Store, Tensor, report, safetensors_tensors, write_tensors};
use mlxcel_compiler_driver::{
    Cancel, CompilerLocation, ProgramRequest, StateArguments, build_program, generic_form,
};
use mlxcel_emitter::{Test, import_tests};
use tempfile::TempDir;

use super::{cases::Case, compare::compare};

/// The longest time of a compilation.
const TIME_LIMIT: Duration = Duration::from_secs(900);

/// Why a test that compares nothing is not run.
const NO_CHECK: &str = "found no check";

/// The longest line about a test in the ledger.
const LINE: usize = 120;

/// Where tests are compiled and run.
pub(crate) struct Bench {
    target: String,
    folder: TempDir,
    store: Store,
}

/// A test that was read.
struct Ready {
    name: String,
    /// Its functions as MLIR text.
    functions: String,
    test: Test,
}

impl Bench {
    pub(crate) fn new(target: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path().join("store"), None).unwrap();
        Self { target: target.to_owned(), folder, store }
    }

    /// Compiles and runs tests, and returns what became of each, by name.
    pub(crate) fn outcomes(&self, cases: &[Case]) -> BTreeMap<String, String> {
        let mut outcomes = BTreeMap::new();
        let mut ready = Vec::new();
        for (index, case) in cases.iter().enumerate() {
            match self.read(index, case, &mut outcomes) {
                Ok(tests) => ready.extend(tests),
                Err(words) => _ = outcomes.insert(case.name.clone(), refused(&words)),
            }
        }
        self.run(&ready, &mut outcomes);
        outcomes
    }

    /// Reads the tests of a case.
    fn read(
        &self,
        index: usize,
        case: &Case,
        outcomes: &mut BTreeMap<String, String>,
    ) -> Result<Vec<Ready>, String> {
        let path = self.folder.path().join("case.mlir");
        fs::write(&path, &case.text).unwrap();
        let text = generic_form(&path, &CompilerLocation::from_env(), &self.store, &Cancel::new());
        let text = text.map_err(|error| report(&error).replace(&path.display().to_string(), "case.mlir"))?;
        let prefix = format!("t{index}_");
        let (module, errors) = import_tests(&text, &prefix).map_err(|error| error.to_string())?;
        let name = |function: &str| match function {
            "main" => case.name.clone(),
            function => format!("{}/{function}", case.name),
        };
        let tests: Vec<_> = module.tests.into_iter().filter(|test| !test.checks.is_empty()).collect();
        if tests.is_empty() && errors.is_empty() {
            // Its functions take arguments that nobody gives, or compare nothing.
            return Err(NO_CHECK.to_owned());
        }
        outcomes.extend(
            errors.into_iter().map(|(function, error)| (name(&function), refused(&error.to_string()))),
        );
        Ok(tests
            .into_iter()
            .map(|test| Ready {
                name: name(&test.name[prefix.len()..]),
                functions: functions(&module.mlir, &test.name),
                test,
            })
            .collect())
    }

    /// Compiles tests together and runs them. If they do not compile, so do halves of them.
    fn run(&self, tests: &[Ready], outcomes: &mut BTreeMap<String, String>) {
        if tests.is_empty() {
            return;
        }
        let out = self.folder.path().join("tests.bundle");
        _ = fs::remove_dir_all(&out);
        match (self.build(tests, &out), tests) {
            (Ok(()), _) => {
                outcomes.extend(tests.iter().map(|ready| (ready.name.clone(), self.call(ready, &out))))
            }
            (Err(words), [one]) => _ = outcomes.insert(one.name.clone(), refused(&words)),
            (Err(_), _) => {
                let (left, right) = tests.split_at(tests.len() / 2);
                self.run(left, outcomes);
                self.run(right, outcomes);
            }
        }
    }

    fn build(&self, tests: &[Ready], out: &Path) -> Result<(), String> {
        let program = self.folder.path().join("tests.mlir");
        let functions: String = tests.iter().map(|ready| ready.functions.as_str()).collect();
        fs::write(&program, format!("module @tests {{\n{functions}}}\n")).unwrap();
        let request = ProgramRequest {
            program,
            targets: vec![self.target.clone()],
            sizes: Vec::new(),
            state: StateArguments::None,
            parameters: None,
            bind: BTreeMap::new(),
            kernels: Vec::new(),
            narrow_f64: false,
            goldens: Vec::new(),
            is_lean: true,
            time_limit: Some(TIME_LIMIT),
            out: Some(out.into()),
            dump_dir: None,
            store: Some(self.store.clone()),
            compiler: CompilerLocation::from_env(),
            cancel: Cancel::new(),
        };
        build_program(&request, &mut |_| {}).map(drop).map_err(|error| report(&error))
    }

    /// Calls a test, and compares what it returns.
    fn call(&self, ready: &Ready, bundle: &Path) -> String {
        let Test { name, checks } = &ready.test;
        let [inputs, results] =
            ["inputs.safetensors", "results.safetensors"].map(|name| self.folder.path().join(name));
        let called = self.execute(bundle, &format!("{name}_inputs"), None, &inputs).and_then(|()| {
            let named = safetensors_tensors(&fs::read(&inputs).unwrap())?;
            let renamed =
                named.into_iter().map(|(name, tensor)| (name.replace("result", "arg"), tensor)).collect();
            write_tensors(&inputs, &renamed).map_err(|error| error.to_string())?;
            self.execute(bundle, name, Some(&inputs), &results)?;
            safetensors_tensors(&fs::read(&results).unwrap())
        });
        let results: BTreeMap<String, Tensor> = match called {
            Ok(results) => results,
            Err(words) => return format!("wrong: {}", line(&words)),
        };
        let outcomes: Vec<_> = checks
            .iter()
            .enumerate()
            .map(|(index, check)| {
                let [found, expected] =
                    [2 * index, 2 * index + 1].map(|index| &results[&format!("result{index}")]);
                compare(&check.kind, found, expected)
            })
            .collect();
        let worst = ["wrong", "near"]
            .iter()
            .find_map(|class| outcomes.iter().find(|outcome| outcome.starts_with(class)));
        worst.cloned().unwrap_or_else(|| "pass".to_owned())
    }

    /// Calls a function with mlxcel-run.
    fn execute(
        &self,
        bundle: &Path,
        function: &str,
        inputs: Option<&Path>,
        results: &Path,
    ) -> Result<(), String> {
        let mut command = Command::new(program());
        if self.target.starts_with("cuda") {
            // There the emulator stands for NVIDIA's driver.
            command.env("LD_LIBRARY_PATH", program().with_file_name("examples"));
        }
        command.arg(bundle).args(["--function", function, "--output"]).arg(format!("@{}", results.display()));
        let has_content = |inputs: &&Path| inputs.metadata().is_ok_and(|metadata| metadata.len() > 0);
        if let Some(inputs) = inputs.filter(has_content) {
            command.arg("--input").arg(format!("@{}", inputs.display()));
        }
        let output = command.output().unwrap();
        if output.status.success() {
            Ok(())
        } else {
            Err(String::from_utf8_lossy(&output.stderr).into_owned())
        }
    }
}

/// The program that runs bundles.
fn program() -> PathBuf {
    let program = Path::new(env!("CARGO_BIN_EXE_mlxcel-compile")).with_file_name("mlxcel-run");
    assert!(
        program.exists(),
        "found no {}\nhint: cargo build -p mlxcel-runtime --features iree",
        program.display()
    );
    program
}

/// Returns the functions of a test in a module's text.
fn functions(module: &str, test: &str) -> String {
    let is_own = |part: &&str| {
        let name = part.split(['(', ' ']).next().unwrap_or_default().trim_matches('"');
        name == test || name.strip_suffix("_inputs") == Some(test)
    };
    let parts = module.split("  func.func @").skip(1).filter(is_own);
    parts.map(|part| format!("  func.func @{}\n", part.trim_end().trim_end_matches("\n}"))).collect()
}

/// Says in one line why a test is not run.
fn refused(words: &str) -> String {
    format!("refused: {}", line(words))
}

/// Returns what is wrong in one line: the error that a program tells, without notes and the rest, and without the line of the test,
/// which is another one where tests share a file.
fn line(words: &str) -> String {
    // What the emulator says is the cause of the error that a program tells.
    let told = |start: &str| words.lines().find_map(|line| line.strip_prefix(start));
    let told = told("cuda emulator: ").or_else(|| told("error: "));
    let line = told.or_else(|| words.lines().find(|line| !line.trim().is_empty())).unwrap_or_default();
    let placeless = match line.split_once(" at program:") {
        Some((before, after)) => {
            format!("{before}{}", after.trim_start_matches(|c: char| c.is_ascii_digit()))
        }
        None => line.to_owned(),
    };
    placeless.chars().take(LINE).collect()
}

#[test]
fn errors_have_no_line_numbers() {
    assert_eq!(line("note\nerror: main: add at program:12: found i4\nhint: none"), "main: add: found i4");
    assert_eq!(line("\nfound nothing"), "found nothing");
}
