//! Programs that check their own results, as StableHLO's tests do.
//!
//! A test is a function without arguments: constants, the ops under test, and calls of `check.expect_eq` and its like.

use super::{ast::Function, found::Checks, parse::parse, replay::Replay};
use crate::{error::Error, module, types::TensorType};

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

/// A test as a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Test {
    /// The function's name.
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
/// The compiler does not see that inputs are constants, so that it compiles the ops under test instead of computing them.
///
/// # Errors
/// The text is not in MLIR's generic form. A test that cannot be compiled is an error of its own.
pub fn import_tests(text: &str) -> Result<(TestModule, Vec<(String, Error)>), Error> {
    let parsed = parse(text)?;
    let mut module = module::Module::new(mlxcel_artifacts::entry::MODULE_NAME);
    let (mut tests, mut refused) = (Vec::new(), Vec::new());
    let has_inputs = parsed.functions.iter().any(|function| function.name == INPUTS);
    for function in
        parsed.functions.iter().filter(|function| function.is_public && function.body.arguments.is_empty())
    {
        let mut replay = Replay::new(&parsed, &function.name);
        replay.checks = Some(Checks::new(has_inputs));
        match test(replay, function) {
            Ok((graph, test)) => {
                module.add(graph);
                tests.push(test);
            }
            Err(error) => refused.push((function.name.clone(), error)),
        }
    }
    Ok((TestModule { mlir: module.to_mlir()?, tests }, refused))
}

fn test(mut replay: Replay<'_, '_>, function: &Function<'_>) -> Result<(crate::Function, Test), Error> {
    replay.function(function, &[])?;
    let found = replay.checks.take().map(|checks| checks.found).unwrap_or_default();
    let checks = found
        .iter()
        .map(|(kind, [actual, _])| Check { kind: kind.clone(), ty: replay.graph.type_of(*actual) })
        .collect();
    let results: Vec<_> = found.iter().flat_map(|(_, pair)| *pair).collect();
    let graph = replay.graph.finish(function.name.clone(), &results)?;
    Ok((graph, Test { name: function.name.clone(), checks }))
}
