//! Kernels in C, for what generated code does far below the machine's limit, on CPUs and on GPUs.
//!
//! A kernel is a function of a file in `kernels/cpu/` or `kernels/cuda/`, compiled ahead of time for every [`Isa`] and linked into the vmfb: a
//! bundle needs nothing beside itself. `build.rs` compiles them; an [`Executable`] is one of them with the sizes of one
//! use, as the module calls it.
//!
//! The C function takes pointers to its operands and results, then numbers that a call gives, then sizes that are known
//! when compiling, and on a CPU the range of items that this workgroup does. On a GPU a workgroup does one item.

pub(crate) mod cuda;
mod isa;

use std::{fmt::Write as _, ops::Range};

pub use isa::Isa;
use mlxcel_artifacts::Traffic;
use safetensors::Dtype;

use crate::TensorType;

/// A compiled file of kernels, which iree-compile looks for by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Object {
    /// Its file name.
    pub name: &'static str,
    /// What is in the file.
    pub bytes: &'static [u8],
}

/// Name and bytes of every compiled kernel: [`Isa::object_name`].
const OBJECTS: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/objects.rs"));

/// Every compiled kernel.
pub fn objects() -> impl Iterator<Item = Object> {
    OBJECTS.iter().map(|&(name, bytes)| Object { name, bytes })
}

impl Isa {
    /// The best for a CPU with these features (LLVM's names).
    #[must_use]
    pub fn of_cpu(arch: &str, features: &[String]) -> Option<Self> {
        let has = |name: &str| features.iter().any(|feature| feature == name);
        Self::ALL.into_iter().rfind(|isa| isa.runs_on(arch, has))
    }

    /// How many inputs of an output lie together in 8-bit panels: see `matmul_q8.c`.
    pub(crate) fn q8_step(self) -> usize {
        match self {
            Self::X86_64V3 => 2,
            Self::X86_64V4Vnni | Self::X86_64V4Bf16 | Self::X86_64V4Amx | Self::Aarch64 => 4,
            Self::Sm80 => 1,
        }
    }

    /// What `quantize_rows` makes of rows.
    pub(crate) fn q8_activation(self) -> Dtype {
        match self {
            Self::X86_64V3 => Dtype::I16,
            Self::X86_64V4Vnni | Self::X86_64V4Bf16 | Self::X86_64V4Amx | Self::Aarch64 | Self::Sm80 => {
                Dtype::I8
            }
        }
    }

    /// Whether it multiplies pairs of bf16: see `matmul_bf16.c`.
    pub(crate) fn multiplies_bf16(self) -> bool {
        self.object_isa("matmul_bf16").is_some()
    }

    /// IREE's name of the format of executables.
    fn format(self) -> &'static str {
        match self.arch() {
            "aarch64" => "embedded-elf-arm_64",
            "nvptx64" => "cuda-nvptx-fb",
            _ => "embedded-elf-x86_64",
        }
    }
}

/// A kernel with the sizes of one use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Executable {
    pub(crate) isa: Isa,
    /// The file in `kernels/<Isa::folder>/`, without `.c`.
    pub(crate) file: &'static str,
    /// The function in it.
    pub(crate) function: &'static str,
    /// What it reads.
    pub(crate) operands: Vec<TensorType>,
    /// Which of them are the cache, `[2 · layers, batch, kv_heads, capacity, …]`: of those it reads one layer's keys and
    /// values, up to the last position that is attended to.
    pub(crate) cache: Range<usize>,
    /// What it writes.
    pub(crate) results: Vec<TensorType>,
    /// How many numbers a call gives.
    pub(crate) numbers: usize,
    /// Sizes, in the function's order.
    pub(crate) sizes: Vec<usize>,
    /// How many items there are to do, which the function's last two arguments are a range of.
    pub(crate) items: usize,
    /// How many of them a workgroup does. On a GPU it does one, with this many threads.
    pub(crate) grain: usize,
}

impl Executable {
    /// A name that no other executable has: the function, its sizes and how many items there are determine the rest.
    pub(crate) fn symbol(&self) -> String {
        let sizes: String = self.sizes.iter().map(|size| format!("_{size}")).collect();
        format!("{}{sizes}_{}", self.function, self.items)
    }

    /// The name of its entry. On a CPU no other entry of the module has it either, for they end up in one library; on a GPU
    /// it is the function itself, in a library of its own.
    pub(crate) fn entry(&self) -> String {
        if self.isa.is_gpu() { self.function.to_owned() } else { format!("{}_call", self.symbol()) }
    }

    /// What a call reads and writes.
    pub(crate) fn traffic(&self) -> Traffic {
        let mut traffic = Traffic::default();
        for (index, ty) in self.operands.iter().chain(&self.results).enumerate() {
            let bytes = |of: &[usize]| (of.iter().product::<usize>() * ty.dtype.bitsize() / 8) as u64;
            match *ty.shape {
                [_, batch, kv_heads, _, width] if self.cache.contains(&index) => {
                    traffic.position_bytes += bytes(&[2, batch, kv_heads, width]);
                }
                _ => traffic.bytes += bytes(&ty.shape),
            }
        }
        traffic
    }

    /// The object it is linked with.
    pub(crate) fn object(&self) -> Option<Object> {
        let expected = self.isa.object_name(self.file);
        objects().find(|object| object.name == expected)
    }

    /// It as an op of IREE's.
    pub(crate) fn to_mlir(&self) -> String {
        if self.isa.is_gpu() { cuda::executable(self) } else { self.linked() }
    }

    /// As an op of IREE's dialect `stream`, at which level executables can name objects to be linked with.
    fn linked(&self) -> String {
        let Self { isa, file, function, sizes, items, grain, numbers, .. } = self;
        let bindings: Vec<_> = self.operands.iter().chain(&self.results).collect();
        let symbol = self.symbol();
        let workgroups = items.div_ceil((*grain).max(1));
        let mut body = String::new();
        for (index, ty) in bindings.iter().enumerate() {
            body.push_str(&binding(index, ty));
        }
        let mut arguments: Vec<_> = (0..bindings.len()).map(|index| format!("%pointer{index}")).collect();
        arguments.extend((0..*numbers).map(|index| format!("%number{index}")));
        for (index, size) in sizes.iter().enumerate() {
            _ = writeln!(body, "        %size{index} = arith.constant {size} : index");
            arguments.push(format!("%size{index}"));
        }
        arguments.extend(["%begin".to_owned(), "%end".to_owned()]);
        let types = vec!["index"; arguments.len()].join(", ");
        let parameters: Vec<_> = (0..bindings.len())
            .map(|index| format!("%binding{index}: !stream.binding"))
            .chain((0..*numbers).map(|index| format!("%number{index}: index")))
            .collect();
        format!(
            r#"  stream.executable private @{symbol} attributes {{hal.executable.objects = #hal.executable.objects<{{#hal.executable.target<"llvm-cpu", "{format}"> = [#hal.executable.object<{{path = "{object}"}}>]}}>}} {{
    stream.executable.export public @{entry} workgroups() -> (index, index, index) {{
      %count = arith.constant {workgroups} : index
      %one = arith.constant 1 : index
      stream.return %count, %one, %one : index, index, index
    }}
    builtin.module {{
      func.func private @{function}({types}) attributes {{hal.import.static}}
      func.func @{entry}({parameters}) {{
        %zero = arith.constant 0 : index
        %workgroup = stream.dispatch.workgroup.id[0] : index
        %grain = arith.constant {grain} : index
        %items = arith.constant {items} : index
        %begin = arith.muli %workgroup, %grain : index
        %next = arith.addi %begin, %grain : index
        %end = arith.minui %next, %items : index
{body}        func.call @{function}({arguments}) : ({types}) -> ()
        return
      }}
    }}
  }}
"#,
            entry = self.entry(),
            format = isa.format(),
            object = isa.object_name(file),
            parameters = parameters.join(", "),
            arguments = arguments.join(", "),
        )
    }
}

/// The address of a binding's first element. As a number, because a memref's descriptor is no C type.
fn binding(index: usize, ty: &TensorType) -> String {
    let element = crate::types::element(ty.dtype).trim_start_matches('u');
    let (memref, bytes) = (format!("memref<{}x{element}>", ty.elements()), ty.dtype.bitsize() / 8);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_cache_only_what_is_attended_to_counts() {
        let rows = TensorType::new(Dtype::F32, [1, 1, 32, 64]);
        let cache = |dtype, width| TensorType::new(dtype, [2 * 16, 1, 8, 4608, width]);
        let attention = Executable {
            isa: Isa::X86_64V3,
            file: "attention",
            function: "attention_q8",
            operands: vec![rows.clone(), cache(Dtype::I8, 64), cache(Dtype::F16, 2)],
            cache: 1..3,
            results: vec![rows],
            numbers: 1,
            sizes: vec![],
            items: 8,
            grain: 1,
        };
        // Keys and values of 8 heads, of 64 dimensions and two scales each.
        let expected = Traffic { bytes: 2 * 32 * 64 * 4, position_bytes: 2 * 8 * 68 };
        assert_eq!(attention.traffic(), expected);
    }
}
