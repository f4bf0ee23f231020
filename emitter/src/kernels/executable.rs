//! Kernels as executables of a module.

use std::{borrow::Cow, ops::Range, sync::Arc};

use mlxcel_artifacts::Traffic;

use super::{
    arguments::{Arguments, Kernel},
    constant::KernelConstant,
    isa::Isa,
    object::{Object, objects},
};
use crate::{
    graph::{Graph, HostIndex, Tensor},
    types::TensorType,
};

/// The name of the op that has all executables for CPUs.
pub(crate) const CPU_CONTAINER: &str = "kernels";

/// How the work of a call is divided among workgroups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Grid {
    /// The number of items. On a CPU, the last two parameters of a kernel are a range of them.
    pub(crate) items: usize,
    /// On a CPU, the number of items of a workgroup. On a GPU a workgroup does one item, with this many threads.
    pub(crate) grain: usize,
}

/// Where a kernel's function is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Source {
    /// In this file of the instruction set's folder, without `.c`.
    File(&'static str),
    /// In one of the objects that came with a program.
    Linked(Arc<[Object]>),
}

/// A kernel with the types and sizes of one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Executable {
    pub(super) isa: Isa,
    pub(super) function: Cow<'static, str>,
    source: Source,
    /// Tensors that it reads, by the names of their parameters.
    pub(super) operands: Vec<(&'static str, TensorType)>,
    /// The operands that are the cache, `[pages, 2 · layers, kv_heads, 64, …]`. A call reads one layer's keys and values in
    /// them, up to the last position that is attended to, or writes those of its rows.
    pub(super) cache: Range<usize>,
    /// Whether it writes to the cache. Then the cache is among its results, after the others.
    overwrites_cache: bool,
    /// Tensors that it writes.
    pub(super) results: Vec<(&'static str, TensorType)>,
    /// Numbers that the host computes for each call.
    pub(super) numbers: Vec<&'static str>,
    /// Numbers that are known at compile time.
    pub(super) sizes: Vec<(&'static str, KernelConstant)>,
    /// The operands of which a call reads a part: what it reads, and what there is.
    pub(super) parts_read: Vec<(&'static str, [usize; 2])>,
    pub(super) grid: Grid,
}

/// An executable with the operands and numbers of one call.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) executable: Executable,
    pub(crate) operands: Vec<Tensor>,
    pub(crate) numbers: Vec<HostIndex>,
}

impl Call {
    /// Prepares a call of `kernel` whose operands are tensors of `graph`.
    pub(crate) fn new(graph: &Graph, isa: Isa, kernel: impl Kernel, grid: Grid) -> Self {
        let function = kernel.function();
        let Arguments { operands, cache, overwrites_cache, results, numbers, sizes, parts_read } =
            kernel.arguments();
        let executable = Executable {
            isa,
            function: function.name.into(),
            source: Source::File(function.file),
            operands: operands.iter().map(|&(name, operand)| (name, graph.type_of(operand))).collect(),
            cache,
            overwrites_cache,
            results,
            numbers: numbers.iter().map(|&(name, _)| name).collect(),
            sizes,
            parts_read,
            grid,
        };
        Self {
            executable,
            operands: operands.into_iter().map(|(_, operand)| operand).collect(),
            numbers: numbers.into_iter().map(|(_, number)| number).collect(),
        }
    }
}

impl Executable {
    /// Describes a call of a function in objects that came with a program.
    pub(crate) fn linked(
        isa: Isa,
        (function, objects): (&str, &Arc<[Object]>),
        [operands, results]: [Vec<TensorType>; 2],
        constants: Vec<KernelConstant>,
        grid: Grid,
    ) -> Self {
        Self {
            isa,
            function: function.to_owned().into(),
            source: Source::Linked(Arc::clone(objects)),
            operands: operands.into_iter().map(|ty| ("operand", ty)).collect(),
            cache: 0..0,
            overwrites_cache: false,
            results: results.into_iter().map(|ty| ("result", ty)).collect(),
            numbers: Vec::new(),
            sizes: constants.into_iter().map(|constant| ("attribute", constant)).collect(),
            parts_read: Vec::new(),
            grid,
        }
    }

    /// Returns the C function that it calls.
    pub(crate) fn function_name(&self) -> &str {
        &self.function
    }

    /// Returns whether it runs on a GPU.
    pub(crate) fn is_gpu(&self) -> bool {
        self.isa.is_gpu()
    }

    /// Returns the number of items of a call.
    pub(crate) fn items(&self) -> usize {
        self.grid.items
    }

    /// Returns how many tensors a call reads.
    pub(crate) fn operand_count(&self) -> usize {
        self.operands.len()
    }

    /// Returns the types of its operands.
    pub(crate) fn operand_types(&self) -> Vec<TensorType> {
        self.operands.iter().map(|(_, ty)| ty.clone()).collect()
    }

    /// Returns the types of its results: tensors that it makes, then operands that it overwrites.
    pub(crate) fn result_types(&self) -> Vec<TensorType> {
        let overwritten = self.overwritten().map(|index| self.operands[index].1.clone());
        self.results.iter().map(|(_, ty)| ty.clone()).chain(overwritten).collect()
    }

    /// Returns the indices of the operands that it overwrites.
    pub(crate) fn overwritten(&self) -> Range<usize> {
        if self.overwrites_cache { self.cache.clone() } else { 0..0 }
    }

    /// Returns how many numbers a call takes.
    pub(crate) fn number_count(&self) -> usize {
        self.numbers.len()
    }

    /// Returns the sizes in the function's order.
    pub(crate) fn sizes(&self) -> impl Iterator<Item = KernelConstant> {
        self.sizes.iter().map(|&(_, size)| size)
    }

    /// Returns a name that no other executable has. Function, sizes and the number of items determine the rest, if it is one of
    /// ours.
    pub(crate) fn symbol(&self) -> String {
        let sizes: String = self.sizes().map(|size| format!("_{size}")).collect();
        let Grid { items, grain } = self.grid;
        match self.source {
            // On a GPU, all calls of a function are one executable, which is loaded once.
            Source::File(_) if self.isa.is_gpu() => self.function.to_string(),
            Source::File(_) => format!("{}{sizes}_{items}", self.function),
            Source::Linked(_) => {
                let types =
                    self.operands.iter().chain(&self.results).map(|(_, TensorType { dtype, shape })| {
                        let shape: Vec<_> = shape.iter().map(ToString::to_string).collect();
                        format!("_{}{dtype:?}", shape.join("x"))
                    });
                let (types, operands) = (types.collect::<String>(), self.operands.len());
                format!("{}_{operands}{types}{sizes}_{items}_{grain}", self.function)
            }
        }
    }

    /// Returns the name of the op that it is in: on a CPU one op has all of them, because iree-compile takes as long for an
    /// op as for many entries of one.
    pub(crate) fn container(&self) -> String {
        if self.isa.is_gpu() { self.symbol() } else { CPU_CONTAINER.to_owned() }
    }

    /// Returns the name of its entry. On a CPU it is unique in the module, because all entries end up in one library. On a
    /// GPU it is the function's name, because each executable is a library of its own.
    pub(crate) fn entry(&self) -> String {
        if self.isa.is_gpu() { self.function.to_string() } else { format!("{}_call", self.symbol()) }
    }

    /// Returns how much a call reads and writes.
    pub(crate) fn traffic(&self) -> Traffic {
        let mut traffic = Traffic::default();
        for (index, (_, ty)) in self.operands.iter().chain(&self.results).enumerate() {
            let bytes = |sizes: &[usize]| (sizes.iter().product::<usize>() * ty.dtype.bitsize() / 8) as u64;
            match *ty.shape {
                // What is written is little beside what is read.
                _ if self.overwritten().contains(&index) => {}
                [_, _, kv_heads, _, width] if self.cache.contains(&index) => {
                    traffic.position_bytes += bytes(&[2, kv_heads, width]);
                }
                _ => traffic.bytes += bytes(&ty.shape),
            }
        }
        traffic
    }

    /// Returns the names of the objects that contain its function and what that calls.
    pub(super) fn object_names(&self) -> Vec<String> {
        match &self.source {
            Source::File(file) => vec![self.isa.object_name(file, &self.function)],
            Source::Linked(objects) => objects.iter().map(|object| object.name.to_string()).collect(),
        }
    }

    /// Returns the objects that contain its function and what that calls.
    pub(crate) fn objects(&self) -> Vec<Object> {
        match &self.source {
            Source::File(file) => {
                let expected = self.isa.object_name(file, &self.function);
                objects().filter(|object| object.name == expected).collect()
            }
            Source::Linked(objects) => objects.to_vec(),
        }
    }

    /// Says what the C function takes: `2 tensors and attributes (i64, f32)`.
    pub(crate) fn takes(&self) -> String {
        let attributes: Vec<_> = self.sizes().map(KernelConstant::attribute_type).collect();
        let tensors = self.operands.len() + self.results.len();
        format!("{tensors} tensors and attributes ({})", attributes.join(", "))
    }

    /// Returns the types of the C function's parameters in MLIR: addresses, numbers and sizes, then the range of items.
    pub(crate) fn parameter_types(&self) -> Vec<&'static str> {
        let indices = |count: usize| std::iter::repeat_n("index", count);
        let pointers = indices(self.operands.len() + self.results.len() + self.numbers.len());
        pointers.chain(self.sizes().map(KernelConstant::mlir_type)).chain(indices(2)).collect()
    }
}

#[cfg(test)]
mod tests {
    use safetensors::Dtype;

    use super::*;
    use crate::kernels::arguments::F32Bits;
    use crate::kernels::attention::{Attention, AttentionMask, AttentionShape, CachedKeyValues, RowTables};
    use crate::types::DYNAMIC;

    #[test]
    fn traffic_counts_the_attended_part_of_the_cache() {
        let mut g = Graph::new();
        let q = g.argument(Dtype::F32, &[1, 1, 32, 64]);
        let cache = g.overwritten_argument(Dtype::I8, &[2 * 16, 8, 64, 64]);
        let scales = g.overwritten_argument(Dtype::F16, &[2 * 16, 8, 64, 2]);
        assert_eq!(g.shape(cache), [DYNAMIC, 32, 8, 64, 64]);
        let begins = g.argument(Dtype::I32, &[2]);
        let starts = g.argument(Dtype::I32, &[1]);
        let pages = g.argument(Dtype::I32, &[1, 72]);
        let sinks = g.argument(Dtype::F32, &[1]);
        let attention = Attention {
            q,
            cache: CachedKeyValues::Q8 { cache, scales },
            sinks,
            tables: RowTables { begins, starts, pages },
            out: TensorType::new(Dtype::F32, [1, 1, 32, 64]),
            layer: g.host_number(0),
            shape: AttentionShape {
                rows: 1,
                sequences: 1,
                heads: 32,
                kv_heads: 8,
                head_dim: 64,
                parts: 32,
                table: 72,
            },
            mask: AttentionMask { window: 0, soft_cap: F32Bits(0.0), causal: true },
            has_sinks: false,
            items: 64,
        };
        let call = Call::new(&g, Isa::X86_64V3, attention, Grid { items: 64, grain: 1 });
        let Traffic { bytes, position_bytes } = call.executable.traffic();
        // Queries, results, and four small tensors.
        assert_eq!(bytes, 2 * 32 * 64 * 4 + (2 + 1 + 72 + 1) * 4);
        // Keys and values of 8 heads: 64 bytes and 2 scales each.
        assert_eq!(position_bytes, 2 * 8 * (64 + 2 * 2));
    }
}
