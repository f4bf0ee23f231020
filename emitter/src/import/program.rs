//! Compiles what others wrote into a module: functions with fixed shapes, of ops that compilers get right.

use std::collections::{BTreeMap, BTreeSet};

use mlxcel_artifacts::{Traffic, entry::PARAMETER_SCOPE};

use super::{
    ast::{Function, Module},
    describe::{ImportedFunction, of_function},
    options::{ProgramOptions, StateArguments},
    parse::parse,
    refusal::{OF_WORDS, is_of_words, not_of_words},
    replay::Replay,
    sizes::{self, Sizes},
};
use crate::{
    error::Error,
    graph,
    kernels::{Executable, Object},
    module,
    types::TensorType,
    work::work,
};

/// A program as a module that can be compiled.
#[derive(Debug, Clone, Default)]
pub struct ProgramModule {
    /// The module as MLIR text: StableHLO in generic form.
    pub mlir: String,
    /// Its functions.
    pub functions: Vec<ProgramFunction>,
    /// The tensors that it reads, by name.
    pub parameters: BTreeMap<String, TensorType>,
    /// The objects that it is linked with.
    pub objects: Vec<Object>,
    /// How much its kernels read and write, by the names of their dispatches.
    pub dispatches: BTreeMap<String, Traffic>,
    /// Whether it has loops that may carry tensors in place: their turns copy what others may have.
    pub loops_in_place: bool,
}

/// A function of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramFunction {
    /// Its name.
    pub name: String,
    /// The name that the program gives it. One that is compiled for several sizes has several functions.
    pub function: String,
    /// What it takes, in order. Storage of results follows the program's own arguments.
    pub arguments: Vec<ProgramArgument>,
    /// What it returns: names, if the program says them, and types.
    pub results: Vec<(Option<String>, TensorType)>,
    /// An estimate of the numbers that a call computes.
    pub work: u64,
}

/// An argument of a program's function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramArgument {
    /// Its name, if the program says it.
    pub name: Option<String>,
    /// Its type.
    pub ty: TensorType,
    /// What it is for.
    pub kind: ProgramArgumentKind,
}

/// What an argument of a program's function is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramArgumentKind {
    /// The function reads it.
    Input,
    /// The function reads it, and the next call takes this result in its place.
    State {
        /// The result's index.
        result: usize,
    },
    /// The function writes this result into it. It must not be the memory of another argument.
    Storage {
        /// The result's index.
        result: usize,
    },
}

/// Makes a module of a program in MLIR's generic form.
///
/// # Errors
/// The text is not in that form, an op cannot be compiled or would be compiled to something else, or the options do not fit the
/// program.
pub fn import_program(text: &str, options: &ProgramOptions) -> Result<ProgramModule, Error> {
    let parsed = parse(text)?;
    let (made, [in_place, copies]) = compile(&parsed, options, true)?;
    // Where a turn has to copy something else for it, the compiler's own copies of everything are as good.
    if copies > 0 {
        return Ok(compile(&parsed, options, false)?.0);
    }
    Ok(ProgramModule { loops_in_place: in_place > 0, ..made })
}

/// Makes a module of a program. Returns how many tensors loops carry in place, and how many copies turns make for others.
fn compile(
    parsed: &Module<'_>,
    options: &ProgramOptions,
    loops_in_place: bool,
) -> Result<(ProgramModule, [usize; 2]), Error> {
    let mut module = module::Module::new(mlxcel_artifacts::entry::MODULE_NAME);
    let mut made = ProgramModule { loops_in_place, ..ProgramModule::default() };
    let none = [Sizes::new()];
    let all_sizes = if options.sizes.is_empty() { none.as_slice() } else { &options.sizes };
    let (mut names, mut carried) = (BTreeSet::new(), [0; 2]);
    for function in parsed.functions.iter().filter(|function| function.is_public) {
        for sizes in all_sizes {
            let suffix = if options.sizes.len() > 1 { suffix(sizes) } else { String::new() };
            let name = format!("{}{suffix}", function.name);
            if !names.insert(name.clone()) {
                return Err(of_program(
                    &name,
                    "found two functions of one name, expected one",
                    "give them different names",
                ));
            }
            let (graph, described, [in_place, copies]) =
                of(parsed, function, sizes, options, &mut module, &mut made, name)?;
            carried = [carried[0] + in_place, carried[1] + copies];
            module.add(graph);
            made.functions.push(described);
        }
    }
    if made.functions.is_empty() {
        return Err(of_program(
            "program",
            "found no public function, expected at least one",
            "export it again, or remove 'private'",
        ));
    }
    let unused = options.parameters.keys().find(|name| {
        let mut functions = parsed.functions.iter().filter(|function| function.is_public);
        !functions.any(|function| {
            of_function(parsed, function)
                .arguments
                .iter()
                .enumerate()
                .any(|(index, argument)| argument.shown_name(index) == **name)
        })
    });
    if let Some(name) = unused {
        return Err(of_program(
            name,
            "found no argument of this name to bind, expected one of a function that others call",
            "mlxcel-compile explain shows the names",
        ));
    }
    made.mlir = module.to_mlir()?;
    (made.objects, made.dispatches) = (module.objects(), module.traffic());
    Ok((made, carried))
}

/// Returns `_b8_t128`.
fn suffix(sizes: &Sizes) -> String {
    let of = |(name, shape): (&String, &Vec<usize>)| {
        let shape: Vec<_> = shape.iter().map(ToString::to_string).collect();
        format!("_{name}{}", shape.join("x"))
    };
    sizes.iter().map(of).collect()
}

fn of_program(what: &str, problem: &str, hint: &str) -> Error {
    Error::refused(what, "program", problem, hint)
}

/// Makes a function.
fn of(
    parsed: &Module<'_>,
    function: &Function<'_>,
    sizes: &Sizes,
    options: &ProgramOptions,
    module: &mut module::Module,
    made: &mut ProgramModule,
    name: String,
) -> Result<(graph::Function, ProgramFunction, [usize; 2]), Error> {
    let described = of_function(parsed, function);
    let types = sizes::argument_types(parsed, function, &described, sizes)?;
    let states = states(&described, options)?;
    let mut replay = Replay::new(parsed, &function.name, options);
    replay.graph.protect_arguments(made.loops_in_place);
    let (mut values, mut arguments) = (Vec::new(), Vec::new());
    for (index, (argument, ty)) in described.arguments.iter().zip(types).enumerate() {
        if let Some(key) = options.parameters.get(&argument.shown_name(index)) {
            let global = module.parameter(PARAMETER_SCOPE, key, ty.clone());
            values.push(replay.graph.load(&global));
            if let Some(other) = made.parameters.insert(key.clone(), ty.clone()).filter(|other| *other != ty)
            {
                let problem = format!("found {ty}, expected {other} as elsewhere");
                return Err(of_program(key, &problem, "bind different tensors"));
            }
            continue;
        }
        values.push(replay.graph.argument(ty.dtype, &ty.shape));
        let kind =
            states[index].map_or(ProgramArgumentKind::Input, |result| ProgramArgumentKind::State { result });
        // What is bound is no argument any more, and the others keep the names that they had.
        let named = || argument.shown_name(index);
        let name = argument.name.clone().or_else(|| (!options.parameters.is_empty()).then(named));
        arguments.push(ProgramArgument { name, ty, kind });
    }
    let results = replay.function(function, &values)?;
    let result_types: Vec<_> = results.iter().map(|result| replay.graph.type_of(*result)).collect();
    let all = values.iter().map(|value| replay.graph.type_of(*value)).chain(result_types.iter().cloned());
    if let Some(ty) = all.filter(|ty| !is_of_words(ty.dtype)).find(|_| options.words_only) {
        return Err(of_program(&function.name, &not_of_words(&ty), OF_WORDS));
    }
    for state in arguments.clone() {
        let ProgramArgumentKind::State { result } = state.kind else { continue };
        if result_types.get(result) != Some(&state.ty) {
            let found = result_types.get(result).map_or_else(|| "nothing".to_owned(), ToString::to_string);
            let problem =
                format!("found result {result} of type {found} for an argument of type {}", state.ty);
            return Err(of_program(
                &function.name,
                &problem,
                "choose other arguments with --state, or --state none",
            ));
        }
        replay.graph.argument(state.ty.dtype, &state.ty.shape);
        replay.graph.set_argument_attribute(&format!("iree.abi.output = {result} : index"));
        arguments.push(ProgramArgument { kind: ProgramArgumentKind::Storage { result }, ..state });
    }
    let results_of = described.results.iter().map(|result| result.name.clone()).zip(result_types).collect();
    check_calls(module, &replay.executables)?;
    module.add_executables(replay.executables);
    let carried = replay.graph.carried_in_place();
    let graph = replay.graph.finish(name.clone(), &results)?;
    let (function, work) = (described.name, work(&graph));
    let described = ProgramFunction { name, function, arguments, results: results_of, work };
    Ok((graph, described, carried))
}

/// Checks that all calls of a function give it parameters of the same types.
fn check_calls(module: &module::Module, executables: &[Executable]) -> Result<(), Error> {
    for (index, executable) in executables.iter().enumerate() {
        let is_other = |other: &&Executable| {
            other.function_name() == executable.function_name()
                && other.parameter_types() != executable.parameter_types()
        };
        let Some(other) = module.executables().chain(&executables[..index]).find(is_other) else { continue };
        let name = executable.function_name();
        let problem =
            format!("found calls with {}, and with {}, expected the same", other.takes(), executable.takes());
        let hint = "a function in C has the same parameters wherever it is called";
        return Err(of_program(&format!("@{name}"), &problem, hint));
    }
    Ok(())
}

/// Returns for each argument the result that takes its place in the next call.
fn states(function: &ImportedFunction, options: &ProgramOptions) -> Result<Vec<Option<usize>>, Error> {
    let arguments = &function.arguments;
    let names = match &options.state {
        StateArguments::None => return Ok(vec![None; arguments.len()]),
        StateArguments::Donated => return Ok(arguments.iter().map(|argument| argument.donated_to).collect()),
        StateArguments::Named(names) => names,
    };
    let is_part = |name: &str, whole: &str| {
        name.strip_prefix(whole).is_some_and(|rest| rest.is_empty() || rest.starts_with(['[', '.']))
    };
    let mut states = vec![None; arguments.len()];
    for name in names {
        let found: Vec<_> = (0..arguments.len())
            .filter(|index| is_part(&arguments[*index].shown_name(*index), name))
            .collect();
        if found.is_empty() {
            let known: Vec<_> =
                (0..arguments.len()).map(|index| arguments[index].shown_name(index)).collect();
            let problem =
                format!("found no argument '{name}' for the state, expected one of {}", known.join(", "));
            return Err(of_program(&function.name, &problem, "mlxcel-compile explain shows the names"));
        }
        for index in found {
            let argument = &arguments[index];
            let free = |result: &usize| {
                function.results[*result].ty == argument.ty && !states.contains(&Some(*result))
            };
            let result = argument.donated_to.or_else(|| (0..function.results.len()).find(free));
            let Some(result) = result else {
                let problem = format!(
                    "found no result of type {} for the state '{name}', expected one that no other state has",
                    argument.ty
                );
                return Err(of_program(
                    &function.name,
                    &problem,
                    "a state needs a result of its type that the next call takes",
                ));
            };
            states[index] = Some(result);
        }
    }
    Ok(states)
}
