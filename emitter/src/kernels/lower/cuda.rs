//! Executables for NVIDIA GPUs: entries of a PTX module, which iree-compile puts into the vmfb unchanged.

use std::iter;

use crate::kernels::executable::{Executable, Grid};

/// A buffer that a kernel writes to. Bindings without `Indirect` make iree-compile record a call's dispatches at every call.
const WRITTEN: &str = "#hal.pipeline.binding<storage_buffer, Indirect>";

/// Returns an op of the dialect `hal`, whose code is in the object. Its functions take pointers to operands and results, then
/// `i32`s.
///
/// The op has generic form, because iree-compile 3.13 reads some of the attributes in no other.
pub(super) fn to_mlir(executable: &Executable) -> String {
    let Executable { operands, results, numbers, sizes, grid, .. } = executable;
    let Grid { items: _, grain } = grid;
    let read = |index: usize| match executable.overwritten().contains(&index) {
        true => WRITTEN,
        false => "#hal.pipeline.binding<storage_buffer, \"ReadOnly|Indirect\">",
    };
    let bindings: Vec<_> =
        (0..operands.len()).map(read).chain(iter::repeat_n(WRITTEN, results.len())).collect();
    format!(
        r#"  "hal.executable.source"() <{{sym_name = "{symbol}", sym_visibility = "private", objects = #hal.executable.objects<{{#hal.executable.target<"cuda", "{format}"> = [#hal.executable.object<{{path = "{object}"}}>]}}>}}> ({{
    "hal.executable.export"() <{{sym_name = "{entry}", sym_visibility = "public", ordinal = 0 : index, workgroup_size = [{grain} : index, 1 : index, 1 : index], layout = #hal.pipeline.layout<constants = {constants}, bindings = [{bindings}]>}}> ({{
    ^bb0(%device: !hal.device, %count: index):
      %one = arith.constant 1 : index
      hal.return %count, %one, %one : index, index, index
    }}, {{}}) : () -> ()
    "hal.executable.source_end"() : () -> ()
  }}) : () -> ()
"#,
        symbol = executable.symbol(),
        entry = executable.entry(),
        format = "cuda-nvptx-fb",
        object = executable.object_names().join(""),
        constants = numbers.len() + sizes.len(),
        bindings = bindings.join(", "),
    )
}
