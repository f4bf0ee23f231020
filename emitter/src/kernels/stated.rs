//! Constants that kernels for GPUs share with their callers.

use super::{isa::Isa, object::objects};

/// Returns the number that the file of a function in `kernels/cuda/` publishes under this name with `STATED` of `cuda.h`.
pub(crate) fn stated_constant(function: &str, name: &str) -> Option<usize> {
    // Each function is in an object of its own, wherever its file is.
    let object = Isa::Sm80.object_name("", function);
    let text = objects().find(|found| found.name == object)?.bytes;
    let symbol = format!(" stated_{name} = ");
    std::str::from_utf8(&text).ok()?.split_once(&symbol)?.1.split_once(';')?.0.parse().ok()
}
