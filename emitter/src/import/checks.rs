//! Programs that check their own results, as StableHLO's tests do.
//!
//! A test is a function without arguments: constants, the ops under test, and calls of `check.expect_eq` and its like.

use super::{
    ast::{Function, Module},
    found::Checks,
    options::ProgramOptions,
    parse::parse,
    replay::Replay,
};
use crate::{error::Error, graph::Tensor, module, types::TensorType};

/// What a test has for the ops under test, in files that JAX's tests wrote.
const INPUTS: &str = "inputs";

/// Tests as a module: functions that return what they found and what they expect.
#[derive(Debug, Clone)]
pub struct TestModule {
    /// The module as MLIR text.
    pub mlir: String,
    /// Its functions.
    pub tests: Vec<Test>,
}

/// A test as two functions: one returns the inputs of the ops under test, the other takes them and computes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Test {
    /// The name of the function that computes. The other one's ends with `_inputs`.
    pub name: String,
    /// What it checks. Its results are, for each, what was found and what is expected.
    pub checks: Vec<Check>,
}

/// A check of a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// What it asks for: `expect_eq`, `expect_almost_eq`, `expect_close`.
    pub kind: String,
    /// The type of both.
    pub ty: TensorType,
}

/// Makes a module of tests, each with its result.
///
/// Inputs are arguments, so that the compiler compiles the ops under test instead of computing them. Names of functions follow
/// `prefix`, so that one program can have the tests of several files.
///
/// # Errors
/// The text is not in MLIR's generic form. A test that cannot be compiled is an error of its own.
pub fn import_tests(text: &str, prefix: &str) -> Result<(TestModule, Vec<(String, Error)>), Error> {
    let parsed = parse(text)?;
    let mut module = module::Module::new(mlxcel_artifacts::entry::MODULE_NAME);
    let (mut tests, mut refused) = (Vec::new(), Vec::new());
    let has_inputs = parsed.functions.iter().any(|function| function.name == INPUTS);
    let is_test = |function: &&Function<'_>| function.is_public && function.body.arguments.is_empty();
    for function in parsed.functions.iter().filter(is_test) {
        match test(&parsed, function, prefix, has_inputs) {
            Ok((graphs, test)) => {
                graphs.into_iter().for_each(|graph| module.add(graph));
                tests.push(test);
            }
            Err(error) => refused.push((function.name.clone(), error)),
        }
    }
    Ok((TestModule { mlir: module.to_mlir()?, tests }, refused))
}

fn test(
    parsed: &Module<'_>,
    function: &Function<'_>,
    prefix: &str,
    has_inputs: bool,
) -> Result<([crate::Function; 2], Test), Error> {
    let name = format!("{prefix}{}", function.name);
    let options = ProgramOptions::default();
    let replayed = |takes_inputs| -> Result<(Replay<'_, '_>, Checks), Error> {
        let mut replay = Replay::new(parsed, &function.name, &options);
        replay.checks = Some(Checks::new(has_inputs, takes_inputs));
        replay.function(function, &[])?;
        let checks = replay.checks.take().unwrap_or_else(|| Checks::new(has_inputs, takes_inputs));
        Ok((replay, checks))
    };
    let (mut constants, Checks { inputs, .. }) = replayed(false)?;
    constants.graph.keep_only(&inputs);
    let inputs = constants.graph.finish(format!("{name}_inputs"), &inputs)?;
    let (replay, Checks { found, .. }) = replayed(true)?;
    let check = |(kind, [actual, _]): &(String, [Tensor; 2])| Check {
        kind: kind.clone(),
        ty: replay.graph.type_of(*actual),
    };
    let checks = found.iter().map(check).collect();
    let results: Vec<_> = found.iter().flat_map(|(_, pair)| *pair).collect();
    let graph = replay.graph.finish(name.clone(), &results)?;
    Ok(([inputs, graph], Test { name, checks }))
}
