//! What entries take and pass on to kernels.

use crate::{
    kernels::{constant::KernelConstant, executable::Executable},
    types::{TensorType, element},
};

/// Returns the declaration of an executable's kernel.
pub(super) fn declaration(executable: &Executable) -> String {
    declare(executable.function_name(), &executable.parameter_types(), "")
}

/// Returns the declaration of a C function that takes numbers of these types and returns `results`.
pub(super) fn declare(name: &str, parameters: &[&str], results: &str) -> String {
    let types = parameters.join(", ");
    format!("      func.func private @{name}({types}){results} attributes {{hal.import.static}}\n")
}

/// Returns the op that makes a number known at compile time.
pub(super) fn constant(name: &str, constant: KernelConstant) -> String {
    format!("        {name} = arith.constant {} : {}\n", constant.mlir_value(), constant.mlir_type())
}

/// Returns the parameters of an entry: bindings, then numbers.
pub(super) fn entry_parameters(bindings: usize, numbers: usize) -> String {
    let bindings = (0..bindings).map(|index| format!("%binding{index}: !stream.binding"));
    let numbers = (0..numbers).map(|index| format!("%number{index}: index"));
    bindings.chain(numbers).collect::<Vec<_>>().join(", ")
}

/// Returns the ops that compute `%pointerN`, the address of a binding's first element. It is a number, because a memref's
/// descriptor is no C type. They use the constant `%zero`.
pub(super) fn binding_address(index: usize, ty: &TensorType) -> String {
    let element = element(ty.dtype).trim_start_matches('u');
    // The size of a cache is not known, and its address does not depend on it.
    let elements = if ty.is_dynamic() { 1 } else { ty.elements() };
    let (memref, bytes) = (format!("memref<{elements}x{element}>"), ty.dtype.bitsize() / 8);
    format!(
        "        %memref{index} = stream.binding.subspan %binding{index}[%zero] : !stream.binding -> {memref}
        %base{index}, %offset{index}, %length{index}, %stride{index} = iree_codegen.extract_strided_metadata %memref{index} : {memref} -> memref<{element}>, index, index, index
        %address{index} = memref.extract_aligned_pointer_as_index %base{index} : memref<{element}> -> index
        %width{index} = arith.constant {bytes} : index
        %skipped{index} = arith.muli %offset{index}, %width{index} : index
        %pointer{index} = arith.addi %address{index}, %skipped{index} : index
"
    )
}
