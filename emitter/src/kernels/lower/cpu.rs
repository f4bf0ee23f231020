//! Executables for CPUs: functions that are linked with a kernel's object.

use std::{collections::BTreeSet, fmt::Write as _};

use crate::{
    kernels::{
        executable::{CPU_CONTAINER, Executable, Grid},
        isa::Isa,
    },
    types::{TensorType, element},
};

/// Returns an op of the dialect `stream` with an entry for each executable: at that level it can name objects to be linked
/// with.
pub(super) fn to_mlir(executables: &[&Executable]) -> String {
    let format = executables.first().map_or("", |executable| format(executable.isa));
    let objects: BTreeSet<_> = executables.iter().map(|executable| object(executable)).collect();
    let objects: Vec<_> = objects.into_iter().collect();
    let declarations: BTreeSet<_> = executables.iter().map(|executable| declaration(executable)).collect();
    format!(
        r#"  stream.executable private @{CPU_CONTAINER} attributes {{hal.executable.objects = #hal.executable.objects<{{#hal.executable.target<"llvm-cpu", "{format}"> = [{objects}]}}>}} {{
{exports}    builtin.module {{
{declarations}{functions}    }}
  }}
"#,
        objects = objects.join(", "),
        exports = executables.iter().map(|executable| export(executable)).collect::<String>(),
        declarations = declarations.into_iter().collect::<String>(),
        functions = executables.iter().map(|executable| function(executable)).collect::<String>(),
    )
}

/// Returns the object with an executable's kernel.
fn object(executable: &Executable) -> String {
    let name = executable.isa.object_name(executable.function.file);
    format!("#hal.executable.object<{{path = \"{name}\"}}>")
}

/// Returns the entry of an executable with the number of its workgroups.
fn export(executable: &Executable) -> String {
    let Grid { items, grain } = executable.grid;
    format!(
        "    stream.executable.export public @{entry} workgroups() -> (index, index, index) {{
      %count = arith.constant {workgroups} : index
      %one = arith.constant 1 : index
      stream.return %count, %one, %one : index, index, index
    }}
",
        entry = executable.entry(),
        workgroups = items.div_ceil(grain.max(1)),
    )
}

/// Returns the type of a kernel's parameters: addresses and numbers, then the range of items.
fn parameter_types(executable: &Executable) -> String {
    let Executable { operands, results, numbers, sizes, .. } = executable;
    vec!["index"; operands.len() + results.len() + numbers.len() + sizes.len() + 2].join(", ")
}

/// Returns the declaration of an executable's kernel.
fn declaration(executable: &Executable) -> String {
    let (name, types) = (executable.function.name, parameter_types(executable));
    format!("      func.func private @{name}({types}) attributes {{hal.import.static}}\n")
}

/// Returns the function of an entry, which calls the kernel for the items of a workgroup.
fn function(executable: &Executable) -> String {
    let Executable { function, sizes, grid: Grid { items, grain }, numbers, .. } = executable;
    let bindings: Vec<_> = executable.operands.iter().chain(&executable.results).collect();
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
    let parameters: Vec<_> = (0..bindings.len())
        .map(|index| format!("%binding{index}: !stream.binding"))
        .chain((0..numbers.len()).map(|index| format!("%number{index}: index")))
        .collect();
    format!(
        "      func.func @{entry}({parameters}) {{
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
",
        entry = executable.entry(),
        parameters = parameters.join(", "),
        arguments = arguments.join(", "),
        function_name = function.name,
        types = parameter_types(executable),
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
