//! The options of programs.

use clap::Args;
use mlxcel_runtime::Tolerance;

use crate::integer::integer;

#[derive(Debug, Args)]
pub(crate) struct ProgramOptions {
    /// Call this function of a program [default: the only one, or main]
    #[arg(long, value_name = "NAME", help_heading = "Programs")]
    pub(crate) function: Option<String>,
    /// Arguments: NAME=@FILE.npy, @FILE.npz with all of them by name, @FILE.safetensors, NAME=0.1 or NAME=4xf32=1 2 3 4
    ///
    /// An argument without a name is called argN. A file of another kind than its name says is recognized.
    #[arg(long, value_name = "[NAME=]VALUE", allow_hyphen_values = true, help_heading = "Programs")]
    pub(crate) input: Vec<String>,
    /// Compare the results with those of an npz or safetensors file; exit with 1 if they differ
    #[arg(long, value_name = "@FILE", help_heading = "Programs")]
    pub(crate) expected: Option<String>,
    /// Relative tolerance of --expected [default: 1e-5]
    #[arg(long, value_name = "R", requires = "expected", help_heading = "Programs")]
    rtol: Option<f64>,
    /// Absolute tolerance of --expected [default: 1e-8]
    #[arg(long, value_name = "A", requires = "expected", help_heading = "Programs")]
    atol: Option<f64>,
    /// Call the function N times, each with the state that the call before returned, and print the time of a call
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = "Programs",
        value_parser = integer::<u64>(1..=u64::MAX, "leave it out for one call"))]
    pub(crate) repeat: Option<u64>,
}

impl ProgramOptions {
    /// Returns the tolerance of --expected.
    pub(crate) fn tolerance(&self) -> Tolerance {
        let default = Tolerance::default();
        Tolerance { rtol: self.rtol.unwrap_or(default.rtol), atol: self.atol.unwrap_or(default.atol) }
    }

    /// Returns whether one of these options was given.
    pub(crate) fn are_given(&self) -> bool {
        let Self { function, input, expected, rtol: _, atol: _, repeat } = self;
        function.is_some() || !input.is_empty() || expected.is_some() || repeat.is_some()
    }
}
