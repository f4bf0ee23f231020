//! A StableHLO program as the source of a bundle.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    time::{Duration, Instant},
};

use mlxcel_artifacts::{
    BundleKind, BundleWriter, Cancel, Digest, Float, Machine, ProgramSpec, Quant, Store,
    entry::{ArgumentKind, ArgumentSpec, Entry, Parameter, ResultKind, ResultSpec, Role},
};
use mlxcel_emitter::{
    Program, ProgramArgument, ProgramArgumentKind, ProgramFunction, ProgramOptions, Sizes, StateArguments,
    TensorType, import_program,
};
use safetensors::Dtype;

use crate::{
    build::{
        compiler_location::CompilerLocation,
        event::{Event, Progress},
        golden::{GoldenFiles, RecordedCall},
        parameters::ParameterFile,
        source::{Contents, Setup, Source, find_targets},
        toolchain::Toolchain,
    },
    documents::provenance::SourceFile,
    error::Error,
    kernels::Kernels,
    program::read::{ReadProgram, read},
    target::{ResolvedTarget, Target},
};

/// Numbers of 64 bits stay what they are. iree-compile would make them, and the types of functions, `f32`.
const KEEP_F64: &str = "--iree-input-demote-f64-to-f32=false";

/// The longest name of an argument or a result in a manifest.
const LONGEST_NAME: usize = 255;

/// What to build of a StableHLO program.
#[derive(Debug, Clone)]
pub struct ProgramRequest {
    /// The program's file: MLIR text, a portable artifact or a file of `jax.export`.
    pub program: PathBuf,
    /// Names of the targets.
    pub targets: Vec<String>,
    /// Sizes that the program leaves open. Each function is compiled once for each of these.
    pub sizes: Vec<Sizes>,
    /// The arguments that are state.
    pub state: StateArguments,
    /// A safetensors file whose tensors take the place of arguments.
    pub parameters: Option<PathBuf>,
    /// The tensors of arguments, by the arguments' names. Without any, each argument takes the tensor of its name.
    pub bind: BTreeMap<String, String>,
    /// Files of kernels that calls may name: ELF objects for CPUs, PTX for GPUs.
    pub kernels: Vec<PathBuf>,
    /// Whether `f64` becomes `f32`.
    pub narrow_f64: bool,
    /// Calls to record.
    pub goldens: Vec<GoldenFiles>,
    /// Whether iree-compile does without verifying and without threads, see [`Request::is_lean`](crate::Request::is_lean).
    pub is_lean: bool,
    /// The longest time that iree-compile may take to read the program, or to compile it for a target.
    pub time_limit: Option<Duration>,
    /// Folder of the bundle; `<program>.bundle` in the working directory by default.
    pub out: Option<PathBuf>,
    /// Folder to save MLIR, flags and compiled modules in.
    pub dump_dir: Option<PathBuf>,
    /// The store of compiled modules.
    pub store: Option<Store>,
    /// Where to look for iree-compile.
    pub compiler: CompilerLocation,
    /// Cancels the build.
    pub cancel: Cancel,
}

impl ProgramRequest {
    /// Returns where and how to build.
    pub(crate) fn setup(&self) -> Setup<'_> {
        Setup {
            is_lean: self.is_lean,
            time_limit: self.time_limit,
            out: self.out.clone(),
            dump_dir: self.dump_dir.as_deref(),
            store: self.store.as_ref(),
            compiler: &self.compiler,
            cancel: &self.cancel,
        }
    }

    /// Returns the options that provenance records.
    fn recorded(&self) -> BTreeMap<&'static str, String> {
        let shape = |sizes: &Sizes| {
            let one = |(name, shape): (&String, &Vec<usize>)| {
                let shape: Vec<_> = shape.iter().map(ToString::to_string).collect();
                format!("{name}={}", shape.join("x"))
            };
            sizes.iter().map(one).collect::<Vec<_>>().join(",")
        };
        let state = match &self.state {
            StateArguments::Donated => "auto".to_owned(),
            StateArguments::None => "none".to_owned(),
            StateArguments::Named(names) => names.join(","),
        };
        let mut recorded = BTreeMap::from([("targets", self.targets.join(",")), ("state", state)]);
        if !self.sizes.is_empty() {
            recorded.insert("shapes", self.sizes.iter().map(shape).collect::<Vec<_>>().join(" "));
        }
        if self.parameters.is_some() {
            recorded.insert("parameters", "file".to_owned());
        }
        if !self.bind.is_empty() {
            let bound = self.bind.iter().map(|(argument, tensor)| format!("{argument}={tensor}"));
            recorded.insert("bind", bound.collect::<Vec<_>>().join(","));
        }
        recorded.extend(self.narrow_f64.then(|| ("narrow-f64", "true".to_owned())));
        recorded
    }
}

/// A program that was read, with what belongs to it.
pub(crate) struct PreparedProgram<'r> {
    request: &'r ProgramRequest,
    name: String,
    targets: Vec<Target>,
    spec: ProgramSpec,
    /// The program as iree-compile prints it.
    text: String,
    options: ProgramOptions,
    kernels: Kernels,
    /// What becomes of it on the first target.
    first: (ResolvedTarget, Program),
    took: Duration,
    parameters: Option<ParameterFile>,
    calls: Vec<RecordedCall>,
}

impl<'r> PreparedProgram<'r> {
    /// Reads the program of a request, which the compiler prints, and everything that belongs to it.
    pub(crate) fn new(request: &'r ProgramRequest) -> Result<Self, Error> {
        let targets = find_targets(&request.targets)?;
        let store = request.store.as_ref().ok_or(mlxcel_artifacts::Error::NoStore)?;
        let found = Toolchain::find(&request.compiler, store)?;
        let toolchain = Toolchain { time_limit: request.time_limit, ..found };
        if request.narrow_f64 && !request.kernels.is_empty() {
            return Err(Error::NarrowKernels);
        }
        let kernels = Kernels::read(&request.kernels)?;
        let start = Instant::now();
        let ReadProgram { form, program: described, text } =
            read(&request.program, &toolchain, &|| request.cancel.is_cancelled())?;
        let parameters = request.parameters.as_deref().map(ParameterFile::open).transpose()?;
        let bound = match &parameters {
            Some(file) => file.bind(&request.bind, &described)?,
            None => BTreeMap::new(),
        };
        let options = ProgramOptions {
            sizes: request.sizes.clone(),
            state: request.state.clone(),
            parameters: bound,
            ..ProgramOptions::default()
        };
        let first = targets.first().map(|target| resolve(target, &Machine::host(), request));
        let first = first.ok_or(Error::NoTarget)?;
        let options_of_first = options_for(&first, &options, &kernels);
        let (program, types) = program(&text, &options_of_first, request.narrow_f64)?;
        if let Some(file) = &parameters {
            file.check(&types)?;
        }
        let calls = request.goldens.iter().map(|files| RecordedCall::read(files, &program.entries));
        let calls = calls.collect::<Result<_, _>>()?;
        let source = Digest::of(without_places(&text).as_bytes());
        let name = request.program.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let spec = ProgramSpec { stablehlo: form.version(), source };
        let took = start.elapsed();
        let first = (first, program);
        Ok(Self { request, name, targets, spec, text, options, kernels, first, took, parameters, calls })
    }
}

impl Source for PreparedProgram<'_> {
    fn name(&self) -> &str {
        &self.name
    }

    fn targets(&self, machine: &Machine) -> Vec<ResolvedTarget> {
        self.targets.iter().map(|target| resolve(target, machine, self.request)).collect()
    }

    fn warnings(&self, _: &ResolvedTarget) -> Vec<String> {
        Vec::new()
    }

    fn emit(&self, target: &ResolvedTarget, progress: &mut Progress<'_>) -> Result<Program, Error> {
        let start = Instant::now();
        let (first, of_first) = &self.first;
        let (program, took) = if (target.numerics, &target.arch) == (first.numerics, &first.arch) {
            (of_first.clone(), self.took)
        } else {
            let options = options_for(target, &self.options, &self.kernels);
            (program(&self.text, &options, self.request.narrow_f64)?.0, start.elapsed())
        };
        progress(Event::Emitted { bytes: program.mlir.len(), took });
        Ok(program)
    }

    fn write(
        self: Box<Self>,
        mut parameters: Vec<Parameter>,
        writer: &mut BundleWriter,
        cancel: &Cancel,
        progress: &mut Progress<'_>,
    ) -> Result<Contents, Error> {
        let mut weights = BTreeMap::new();
        let mut sources = vec![SourceFile { name: "program".to_owned(), digest: self.spec.source }];
        sources.extend(self.kernels.sources);
        if let Some(file) = self.parameters {
            let bundled = file.write(writer, cancel, progress)?;
            for parameter in &mut parameters {
                parameter.source = bundled.tensors.get(&parameter.name).copied();
            }
            weights = bundled.blobs;
            sources.extend(bundled.sources);
        }
        let goldens = self.calls.into_iter().map(|call| call.write(writer)).collect::<Result<_, _>>()?;
        Ok(Contents {
            kind: BundleKind::Program,
            family: String::new(),
            plan: None,
            program: Some(self.spec),
            files: BTreeMap::new(),
            weights,
            parameters,
            goldens,
            recorded: self.request.recorded(),
            sources,
            snapshot: None,
        })
    }
}

/// Resolves a target for a program.
fn resolve(target: &Target, machine: &Machine, request: &ProgramRequest) -> ResolvedTarget {
    let mut resolved = target.resolve(machine, Float::F32, Quant::None);
    if !request.narrow_f64 {
        resolved.flags.push(KEEP_F64.to_owned());
    }
    resolved
}

/// Returns how a program is compiled for a target.
fn options_for(target: &ResolvedTarget, options: &ProgramOptions, kernels: &Kernels) -> ProgramOptions {
    ProgramOptions {
        isa: target.numerics.cpu_isa(),
        words_only: target.numerics.floats_as_bits,
        kernels: kernels.for_target(target),
        ..options.clone()
    }
}

/// Makes a module of a program that was printed. Returns the types of its parameters too.
fn program(
    text: &str,
    options: &ProgramOptions,
    narrow_f64: bool,
) -> Result<(Program, BTreeMap<String, TensorType>), Error> {
    let made = import_program(text, options).map_err(|error| Error::Program(Box::new(error)))?;
    let of = |(key, ty): (&String, &TensorType)| Parameter::new(key, ty.dtype, &ty.shape);
    let is_bound = !options.parameters.is_empty();
    let program = Program {
        entries: made.functions.into_iter().map(|function| entry(function, narrow_f64, is_bound)).collect(),
        parameters: made.parameters.iter().map(of).collect(),
        mlir: made.mlir,
        packed: None,
        step_bytes: 0,
        serving: None,
        dispatches: made.dispatches,
        loops_in_place: made.loops_in_place,
        objects: made.objects,
    };
    Ok((program, made.parameters))
}

/// Returns the entry point of a function. If some arguments are bound, all others have the names that they had beside these.
fn entry(function: ProgramFunction, narrow_f64: bool, is_bound: bool) -> Entry {
    let dtype = |dtype| if narrow_f64 && dtype == Dtype::F64 { Dtype::F32 } else { dtype };
    let ProgramFunction { name, function, arguments, results, work } = function;
    let is_storage =
        |argument: &ProgramArgument| matches!(argument.kind, ProgramArgumentKind::Storage { .. });
    // Storage, which follows, has no names.
    let given = arguments.iter().filter(|argument| !is_storage(argument));
    let given = given.map(|argument| argument.name.clone()).collect();
    let names = usable(given, "arg", is_bound).into_iter().chain(std::iter::repeat(None));
    let arguments = arguments.into_iter().zip(names).map(|(argument, name)| ArgumentSpec {
        name,
        kind: match argument.kind {
            ProgramArgumentKind::Input => ArgumentKind::Input,
            ProgramArgumentKind::State { result } => ArgumentKind::State { result },
            ProgramArgumentKind::Storage { result } => ArgumentKind::Storage { result },
        },
        dtype: dtype(argument.ty.dtype),
        shape: argument.ty.shape,
    });
    let (given, types): (Vec<_>, Vec<_>) = results.into_iter().unzip();
    let results = types.into_iter().zip(usable(given, "result", false)).map(|(ty, name)| ResultSpec {
        name,
        kind: ResultKind::Output,
        dtype: dtype(ty.dtype),
        shape: ty.shape,
    });
    Entry {
        function: (function != name).then_some(function),
        name,
        role: Role::Function,
        work,
        arguments: arguments.collect(),
        results: results.collect(),
    }
}

/// Leaves out names that a manifest cannot have, and those by which two tensors could not be told apart.
///
/// `arg3` is what the fourth argument is called if it has no name. Another one can be called so only if arguments before it are
/// bound (`is_bound`), and the fourth has a name.
fn usable(names: Vec<Option<String>>, prefix: &str, is_bound: bool) -> Vec<Option<String>> {
    let mut seen = BTreeSet::new();
    let mut is_usable = |name: &String| {
        let is_plain = (1..=LONGEST_NAME).contains(&name.len()) && !name.contains(char::is_control);
        is_plain && seen.insert(name.clone())
    };
    let names: Vec<_> = names.into_iter().map(|name| name.filter(&mut is_usable)).collect();
    let stands_for_other = |index: usize, name: &str| {
        let number = name.strip_prefix(prefix).and_then(|number| number.parse::<usize>().ok());
        let other = number.filter(|number| *number != index);
        other.is_some_and(|other| !is_bound || names.get(other).is_some_and(Option::is_none))
    };
    let kept = names
        .iter()
        .enumerate()
        .map(|(index, name)| name.clone().filter(|name| !stands_for_other(index, name)));
    kept.collect()
}

/// Returns a program's text without the places in source files, which differ between those who export it.
fn without_places(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for line in text.lines().filter(|line| !line.starts_with("#loc")) {
        let mut rest = line;
        while let Some(start) = rest.find(" loc(") {
            plain.push_str(&rest[..start]);
            rest = after_location(&rest[start + " loc(".len()..]);
        }
        plain.push_str(rest);
        plain.push('\n');
    }
    plain
}

/// Returns what follows the parenthesis that closes a location.
fn after_location(text: &str) -> &str {
    let (mut depth, mut is_quoted, mut is_escaped) = (1, false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            '(' if !is_quoted => depth += 1,
            ')' if !is_quoted => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &text[at + 1..];
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_do_not_change_a_program() {
        let of = |place: &str| {
            format!(
                "#loc1 = loc(\"{place}\":1:2)\n^bb0(%a: tensor<2xf32> loc(\"p['w']\"(#loc1)), %b: tensor<f32> \
                 loc(\"a)\\\"b\")):\n  \"x.y\"(%a) : () -> () loc(callsite(\"{place}\":3:4 at #loc1))\n"
            )
        };
        assert_eq!(without_places(&of("other/folder/step.py")), without_places(&of("step.py")));
        assert_eq!(
            without_places(&of("a.py")),
            "^bb0(%a: tensor<2xf32>, %b: tensor<f32>):\n  \"x.y\"(%a) : () -> ()\n"
        );
        assert_eq!(without_places("x loc(\"open"), "x\n");
    }

    #[test]
    fn names_that_a_manifest_cannot_have_are_left_out() {
        let names = ["w", "w", "arg0", "a\nb", "arg4", ""].map(|name| Some(name.to_owned()));
        let found = usable(names.to_vec(), "arg", false);
        let found: Vec<_> = found.iter().map(|name| name.as_deref().unwrap_or("-")).collect();
        assert_eq!(found, ["w", "-", "-", "-", "arg4", "-"]);
        // The second one, which has no name left, is called `arg1`.
        let names = ["arg1", "a\nb", "arg3"].map(|name| Some(name.to_owned()));
        let found = usable(names.to_vec(), "arg", true);
        assert_eq!(found, [None, None, Some("arg3".to_owned())]);
    }

    #[test]
    fn arguments_keep_their_names_when_others_are_bound() {
        let text = r#""builtin.module"() ({
          "func.func"() <{function_type = (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>, sym_name = "main",
              arg_attrs = [{}, {}, {tf.aliasing_output = 0 : i32}]}> ({
          ^bb0(%0: tensor<2xf32>, %1: tensor<2xf32>, %2: tensor<2xf32>):
            %3 = "stablehlo.add"(%0, %1) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
            %4 = "stablehlo.add"(%3, %2) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
            "func.return"(%4) : (tensor<2xf32>) -> ()
          }) : () -> ()
        }) : () -> ()"#;
        let parameters = [("arg0".to_owned(), "w".to_owned())].into();
        let options = ProgramOptions { parameters, ..ProgramOptions::default() };
        let (made, _) = program(text, &options, false).unwrap();
        let names: Vec<_> = made.entries[0].inputs().map(|(name, _)| name).collect();
        assert_eq!(names, ["arg1", "arg2"]);
        assert_eq!(made.entries[0].arguments.len(), 3, "with storage for the state");
    }
}
