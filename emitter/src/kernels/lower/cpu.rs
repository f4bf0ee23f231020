//! Executables for CPUs: functions that are linked with a kernel's object.

use std::fmt::Write as _;

use crate::{
    kernels::{
        executable::{Executable, Grid},
        isa::Isa,
    },
    types::{TensorType, element},
};

/// Returns an op of the dialect `stream`: at that level, executables can name objects to be linked with.
pub(super) fn to_mlir(executable: &Executable) -> String {
    let Executable { isa, function, sizes, grid: Grid { items, grain }, numbers, .. } = executable;
    let bindings: Vec<_> = executable.operands.iter().chain(&executable.results).collect();
    let (symbol, function_name) = (executable.symbol(), function.name);
    let workgroups = items.div_ceil((*grain).max(1));
    let mut body = String::new();
    for (index, (_, ty)) in bindings.iter().enumerate() {
        body.push_str(&binding_address(index, ty));
    }
    let mut arguments: Vec<_> = (0..bindings.len()).map(|index| format!("%pointer{index}")).collect();
    arguments.extend((0..numbers.len()).map(|index| format!("%number{index}")));
    for (index, (_, size)) in sizes.iter().enumerate() {
        _ = writeln!(body, "        %size{index} = arith.constant {size} : index");
        arguments.push(format!("%size{index}"));
    }
    arguments.extend(["%begin".to_owned(), "%end".to_owned()]);
    let types = vec!["index"; arguments.len()].join(", ");
    let parameters: Vec<_> = (0..bindings.len())
        .map(|index| format!("%binding{index}: !stream.binding"))
        .chain((0..numbers.len()).map(|index| format!("%number{index}: index")))
        .collect();
    format!(
        r#"  stream.executable private @{symbol} attributes {{hal.executable.objects = #hal.executable.objects<{{#hal.executable.target<"llvm-cpu", "{format}"> = [#hal.executable.object<{{path = "{object}"}}>]}}>}} {{
    stream.executable.export public @{entry} workgroups() -> (index, index, index) {{
      %count = arith.constant {workgroups} : index
      %one = arith.constant 1 : index
      stream.return %count, %one, %one : index, index, index
    }}
    builtin.module {{
      func.func private @{function_name}({types}) attributes {{hal.import.static}}
      func.func @{entry}({parameters}) {{
        %zero = arith.constant 0 : index
        %workgroup = stream.dispatch.workgroup.id[0] : index
        %grain = arith.constant {grain} : index
        %items = arith.constant {items} : index
        %begin = arith.muli %workgroup, %grain : index
        %next = arith.addi %begin, %grain : index
        %end = arith.minui %next, %items : index
{body}        func.call @{function_name}({arguments}) : ({types}) -> ()
        return
      }}
    }}
  }}
"#,
        entry = executable.entry(),
        format = format(*isa),
        object = isa.object_name(function.file),
        parameters = parameters.join(", "),
        arguments = arguments.join(", "),
    )
}

/// Returns IREE's name for the format of executables.
fn format(isa: Isa) -> &'static str {
    if isa.arch() == "aarch64" { "embedded-elf-arm_64" } else { "embedded-elf-x86_64" }
}

/// Returns the ops that compute the address of a binding's first element. It is a number, because a memref's descriptor is no
/// C type.
fn binding_address(index: usize, ty: &TensorType) -> String {
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
