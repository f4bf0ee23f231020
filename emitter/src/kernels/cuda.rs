//! Kernels for NVIDIA GPUs: entries of a PTX module, which iree-compile puts into the vmfb as it is.

use std::iter;

use super::Executable;
#[cfg(test)]
use super::{Isa, objects};

/// The number that the kernels of `kernels/cuda/<file>.c` state under this name: `STATED` of `cuda.h`.
#[cfg(test)]
pub(crate) fn stated(file: &str, name: &str) -> Option<usize> {
    let object = Isa::Sm80.object_name(file);
    let text = objects().find(|found| found.name == object)?.bytes;
    let symbol = format!(" stated_{name} = ");
    std::str::from_utf8(text).ok()?.split_once(&symbol)?.1.split_once(';')?.0.parse().ok()
}

/// An executable of IREE's dialect `hal`, all of which is in the object. Its functions take pointers to operands and
/// results, then `i32`s.
///
/// In generic form, because iree-compile 3.13 reads some of the attributes in no other.
pub(super) fn executable(executable: &Executable) -> String {
    let Executable { isa, file, operands, results, numbers, sizes, items, grain, .. } = executable;
    let bindings: Vec<_> = iter::repeat_n("#hal.pipeline.binding<storage_buffer, ReadOnly>", operands.len())
        .chain(iter::repeat_n("#hal.pipeline.binding<storage_buffer>", results.len()))
        .collect();
    format!(
        r#"  "hal.executable.source"() <{{sym_name = "{symbol}", sym_visibility = "private", objects = #hal.executable.objects<{{#hal.executable.target<"cuda", "{format}"> = [#hal.executable.object<{{path = "{object}"}}>]}}>}}> ({{
    "hal.executable.export"() <{{sym_name = "{entry}", sym_visibility = "public", ordinal = 0 : index, workgroup_size = [{grain} : index, 1 : index, 1 : index], layout = #hal.pipeline.layout<constants = {constants}, bindings = [{bindings}]>}}> ({{
    ^bb0(%device: !hal.device):
      %count = arith.constant {items} : index
      %one = arith.constant 1 : index
      hal.return %count, %one, %one : index, index, index
    }}, {{}}) : () -> ()
    "hal.executable.source_end"() : () -> ()
  }}) : () -> ()
"#,
        symbol = executable.symbol(),
        entry = executable.entry(),
        format = isa.format(),
        object = isa.object_name(file),
        constants = numbers + sizes.len(),
        bindings = bindings.join(", "),
    )
}
