//! Checks: the house rules, the stages of CI, and checks that take too long for CI.

pub(crate) mod ci;
mod circles;
pub(crate) mod conform;
mod conformance;
mod doctests;
pub(crate) mod emulate;
mod functions;
pub(crate) mod fuzz;
pub(crate) mod goldens;
pub(crate) mod gpu;
mod invariants;
pub(crate) mod lanes;
mod markdown;
mod pins;
pub(crate) mod presets;
pub(crate) mod ptxas;
pub(crate) mod ray;
mod spelling;
mod tables;
mod test_times;
mod text;
pub(crate) mod tidy;
