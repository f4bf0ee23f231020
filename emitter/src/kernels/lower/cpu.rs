//! Executables and chains for CPUs: functions that are linked with kernels' objects.

use std::collections::BTreeSet;

use super::{
    chain,
    parameters::{binding_address, constant, declaration, entry_parameters},
};
use crate::kernels::{
    chain::{Chain, WORKGROUPS},
    executable::{CPU_CONTAINER, Executable, Grid},
    isa::Isa,
};

/// Returns an op of the dialect `stream` with an entry for each executable and chain: at that level it can name objects to be
/// linked with.
pub(super) fn to_mlir(executables: &[&Executable], chains: &[Chain]) -> String {
    let of_chains = chains.iter().flat_map(|chain| &chain.links).map(|link| &link.executable);
    let format =
        executables.iter().copied().chain(of_chains).next().map_or("", |executable| format(executable.isa));
    let objects = executables.iter().flat_map(|executable| executable.object_names());
    let objects: BTreeSet<_> = objects.chain(chains.iter().flat_map(Chain::object_names)).collect();
    let objects: Vec<_> =
        objects.iter().map(|name| format!("#hal.executable.object<{{path = \"{name}\"}}>")).collect();
    let declarations = executables.iter().map(|executable| declaration(executable));
    let declarations: BTreeSet<_> = declarations.chain(chains.iter().flat_map(chain::declarations)).collect();
    let mut exports = String::new();
    let mut functions = String::new();
    for executable in executables {
        let Grid { items, grain } = executable.grid;
        exports.push_str(&export(&executable.entry(), items.div_ceil(grain.max(1))));
        functions.push_str(&function(executable));
    }
    for (index, chain) in chains.iter().enumerate() {
        exports.push_str(&export(&Chain::entry(index), WORKGROUPS));
        functions.push_str(&chain::function(&Chain::entry(index), chain));
    }
    format!(
        r#"  stream.executable private @{CPU_CONTAINER} attributes {{hal.executable.objects = #hal.executable.objects<{{#hal.executable.target<"llvm-cpu", "{format}"> = [{objects}]}}>}} {{
{exports}    builtin.module {{
{declarations}{functions}    }}
  }}
"#,
        objects = objects.join(", "),
        declarations = declarations.into_iter().collect::<String>(),
    )
}

/// Returns an entry with the number of its workgroups.
fn export(entry: &str, workgroups: usize) -> String {
    format!(
        "    stream.executable.export public @{entry} workgroups() -> (index, index, index) {{
      %count = arith.constant {workgroups} : index
      %one = arith.constant 1 : index
      stream.return %count, %one, %one : index, index, index
    }}
"
    )
}

/// Returns the function of an entry, which calls the kernel for the items of a workgroup.
fn function(executable: &Executable) -> String {
    let Executable { grid: Grid { items, grain }, numbers, .. } = executable;
    let bindings: Vec<_> = executable.operands.iter().chain(&executable.results).collect();
    let mut body = String::new();
    for (index, (_, ty)) in bindings.iter().enumerate() {
        body.push_str(&binding_address(index, ty));
    }
    let mut arguments: Vec<_> = (0..bindings.len()).map(|index| format!("%pointer{index}")).collect();
    arguments.extend((0..numbers.len()).map(|index| format!("%number{index}")));
    for (index, size) in executable.sizes().enumerate() {
        body.push_str(&constant(&format!("%size{index}"), size));
        arguments.push(format!("%size{index}"));
    }
    arguments.extend(["%begin".to_owned(), "%end".to_owned()]);
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
        parameters = entry_parameters(bindings.len(), numbers.len()),
        arguments = arguments.join(", "),
        function_name = executable.function_name(),
        types = executable.parameter_types().join(", "),
    )
}

/// Returns IREE's name for the format of executables.
fn format(isa: Isa) -> &'static str {
    if isa.arch() == "aarch64" { "embedded-elf-arm_64" } else { "embedded-elf-x86_64" }
}
