//! The options of StableHLO programs.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use clap::Args;
use mlxcel_artifacts::Store;
use mlxcel_compiler_driver::{Cancel, CompilerLocation, GoldenFiles, ProgramRequest, Sizes, StateArguments};

#[derive(Args)]
pub(crate) struct ProgramOptions {
    /// Sizes that the program leaves open, as in b=8,t=128, or an argument's shape, as in x=8x128. Each --shape is compiled for
    #[arg(long, value_name = "NAME=SIZE", requires = "program", value_parser = sizes, help_heading = "Programs")]
    shape: Vec<Sizes>,
    /// The arguments that are state, whose results the next call takes: auto (donated ones), none, or names
    #[arg(long, value_name = "auto|none|NAMES", requires = "program", value_parser = state, default_value = "auto",
        help_heading = "Programs")]
    state: StateArguments,
    /// Safetensors file whose tensors take the place of the arguments with their names
    #[arg(long, value_name = "FILE", requires = "program", help_heading = "Programs")]
    parameters: Option<PathBuf>,
    /// The tensor of --parameters that an argument takes, if it has another name
    #[arg(long, value_name = "ARGUMENT=TENSOR", requires = "parameters", value_parser = pair, help_heading = "Programs")]
    bind: Vec<(String, String)>,
    /// Record a call: a file of arguments, and one of the results that every device must give
    #[arg(long, value_name = "[FUNCTION=]IN:OUT", requires = "program", help_heading = "Programs")]
    golden: Vec<GoldenFiles>,
    /// Relative tolerance of recorded calls
    #[arg(long, value_name = "R", requires = "golden", help_heading = "Programs")]
    rtol: Option<f64>,
    /// Absolute tolerance of recorded calls
    #[arg(long, value_name = "A", requires = "golden", help_heading = "Programs")]
    atol: Option<f64>,
    /// Object file (x86_64 or aarch64, ELF) or PTX with functions that the program's custom calls name
    #[arg(long, value_name = "FILE", requires = "program", help_heading = "Programs")]
    kernels: Vec<PathBuf>,
    /// Compute in f32 what the program computes in f64, arguments and results too
    #[arg(long, requires = "program", help_heading = "Programs")]
    narrow_f64: bool,
    /// Give up a program that takes longer than this many seconds to read, or to compile for a target [default: 300]
    #[arg(long, value_name = "SECONDS", requires = "program", help_heading = "Programs",
        value_parser = clap::value_parser!(u64).range(1..))]
    time_limit: Option<u64>,
}

/// The time limit without --time-limit. Some programs never end in the compiler.
const TIME_LIMIT_SECONDS: u64 = 300;

impl ProgramOptions {
    /// Returns the request for the program at this path.
    pub(crate) fn request(&self, program: PathBuf, targets: Vec<String>, cancel: &Cancel) -> ProgramRequest {
        let golden = |golden: &GoldenFiles| GoldenFiles {
            rtol: self.rtol.unwrap_or(golden.rtol),
            atol: self.atol.unwrap_or(golden.atol),
            ..golden.clone()
        };
        ProgramRequest {
            program,
            targets,
            sizes: self.shape.clone(),
            state: self.state.clone(),
            parameters: self.parameters.clone(),
            bind: self.bind.iter().cloned().collect::<BTreeMap<_, _>>(),
            kernels: self.kernels.clone(),
            narrow_f64: self.narrow_f64,
            goldens: self.golden.iter().map(golden).collect(),
            is_lean: false,
            time_limit: Some(Duration::from_secs(self.time_limit.unwrap_or(TIME_LIMIT_SECONDS))),
            out: None,
            dump_dir: None,
            store: None::<Store>,
            compiler: CompilerLocation::from_env(),
            cancel: cancel.clone(),
        }
    }
}

/// Parses sizes: `b=8,t=128` or `x=8x128`.
fn sizes(text: &str) -> Result<Sizes, String> {
    let expected = || "expected sizes such as b=8,t=128 or x=8x128".to_owned();
    let mut sizes = Sizes::new();
    for part in text.split(',') {
        let (name, shape) = part.split_once('=').ok_or_else(expected)?;
        let shape = shape.split('x').map(str::parse).collect::<Result<Vec<usize>, _>>();
        let shape = shape.map_err(|_| expected())?;
        if name.is_empty() || sizes.insert(name.to_owned(), shape).is_some() {
            return Err(expected());
        }
    }
    Ok(sizes)
}

/// Parses which arguments are state.
fn state(text: &str) -> Result<StateArguments, String> {
    Ok(match text {
        "auto" => StateArguments::Donated,
        "none" => StateArguments::None,
        names => StateArguments::Named(names.split(',').map(str::to_owned).collect()),
    })
}

/// Parses `argument=tensor`.
fn pair(text: &str) -> Result<(String, String), String> {
    // Names of arguments have no such sign, but `p['a=b']` may.
    let pair = text.rsplit_once('=').filter(|(argument, tensor)| !argument.is_empty() && !tensor.is_empty());
    let pair = pair.map(|(argument, tensor)| (argument.to_owned(), tensor.to_owned()));
    pair.ok_or_else(|| "expected ARGUMENT=TENSOR".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_names() {
        let parsed = sizes("b=8,x=4x128").unwrap();
        assert_eq!(parsed, [("b".to_owned(), vec![8]), ("x".to_owned(), vec![4, 128])].into());
        for text in ["", "b", "b=", "b=-1", "=8", "b=8,b=9", "b=8,", "x=8x"] {
            assert_eq!(sizes(text).unwrap_err(), "expected sizes such as b=8,t=128 or x=8x128", "{text}");
        }
    }

    #[test]
    fn state_and_bindings() {
        assert_eq!(state("auto").unwrap(), StateArguments::Donated);
        assert_eq!(state("w,opt").unwrap(), StateArguments::Named(vec!["w".into(), "opt".into()]));
        assert_eq!(pair("p['w']=model.w").unwrap(), ("p['w']".into(), "model.w".into()));
        assert!(pair("w").is_err() && pair("=w").is_err() && pair("w=").is_err());
    }
}
