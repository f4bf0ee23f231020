//! What a call of a kernel for GPUs takes.

use std::collections::BTreeSet;

use mlxcel_artifacts::Traffic;

use super::{constant::KernelConstant, executable::Executable, matvec::OUTPUTS};
use crate::{cost::Cost, graph::Tensor, types::TensorType};

/// Operands of which a call reads as many elements as it writes at most: rows of tables.
const LOOKED_UP: [&str; 6] = ["table", "scales", "cos_coarse", "sin_coarse", "cos_fine", "sin_fine"];

/// Results that workgroups pass to each other, which stay in the GPU's cache.
const PASSED: &str = "partial";

/// The operand of kernels that attend, and so read the cache. Others write to it.
const QUERIES: &str = "q";

impl Executable {
    /// Returns what a call with these operands takes. Only those of kernels for GPUs are counted here.
    ///
    /// An operand that is passed several times is read once: parts of a tensor are, and what stands for one that is not needed.
    pub(crate) fn cost(&self, operands: &[Tensor]) -> Cost {
        if !self.is_gpu() {
            return Cost::default();
        }
        let mut traffic = Traffic::default();
        let mut seen = BTreeSet::new();
        for (index, ((name, ty), operand)) in self.operands.iter().zip(operands).enumerate() {
            if !seen.insert(*operand) {
                continue;
            }
            if !self.cache.contains(&index) {
                traffic.bytes += self.bytes_read(name, ty);
            } else if let &[_, _, kv_heads, _, width] = ty.shape.as_slice() {
                let of_position = bytes(&TensorType::new(ty.dtype, [2, kv_heads, width]));
                traffic.bytes += of_position * self.cache_rows();
                if self.operands.iter().any(|(name, _)| *name == QUERIES) {
                    traffic.position_bytes += of_position;
                }
            }
        }
        let results = self.results.iter().filter(|(name, _)| *name != PASSED);
        traffic.bytes += results.map(|(_, ty)| bytes(ty)).sum::<u64>();
        Cost { traffic, operations: self.operations() }
    }

    /// Returns how many bytes of an operand a call reads.
    fn bytes_read(&self, name: &str, ty: &TensorType) -> u64 {
        let all = bytes(ty);
        if LOOKED_UP.contains(&name) {
            let elements = self.results.first().map_or(0, |(_, ty)| ty.elements());
            return all.min(bytes(&TensorType::new(ty.dtype, [elements])));
        }
        match self.parts_read.iter().find(|(operand, _)| *operand == name) {
            Some(&(_, [read, of])) => all * read as u64 / of.max(1) as u64,
            None => all,
        }
    }

    /// Returns the rows whose keys and values are of the call itself.
    fn cache_rows(&self) -> u64 {
        self.size("rows").unwrap_or(1) * self.size("sequences").unwrap_or(1)
    }

    /// Returns the multiplications and additions of a product of several rows, `[m, k]`, by matrices of `n` outputs each.
    fn operations(&self) -> u64 {
        let (Some(m), Some(k)) = (self.size("m"), self.size("k")) else { return 0 };
        let outputs: u64 = match self.size("n") {
            // A gate and what it gates.
            Some(n) => 2 * n,
            None => OUTPUTS.iter().filter_map(|name| self.size(name)).sum(),
        };
        2 * m * k * outputs
    }

    /// Returns an integer that the kernel is passed.
    fn size(&self, name: &str) -> Option<u64> {
        match self.sizes.iter().find(|(known, _)| *known == name)?.1 {
            KernelConstant::Integer(size) => u64::try_from(size).ok(),
            KernelConstant::F32(_) | KernelConstant::F64(_) => None,
        }
    }
}

/// Returns the bytes of a tensor.
fn bytes(ty: &TensorType) -> u64 {
    if ty.is_dynamic() { 0 } else { (ty.elements() * ty.dtype.bitsize() / 8) as u64 }
}

#[cfg(test)]
mod tests {
    use safetensors::Dtype;

    use super::*;
    use crate::{
        graph::Graph,
        kernels::{
            arguments::F32Bits,
            cuda_matmul::{CudaMatmul, CudaMatrix, Tiles},
            embed::Embed,
            executable::Call,
            isa::Isa,
            matvec::{MatvecBias, MatvecWeights},
        },
    };

    fn cost(call: &Call) -> Cost {
        call.executable.cost(&call.operands)
    }

    #[test]
    fn a_table_is_read_in_part() {
        let mut g = Graph::new();
        let (tokens, table) = (g.argument(Dtype::I32, &[3]), g.argument(Dtype::BF16, &[1000, 64]));
        let embed = Embed {
            weights: MatvecWeights::Bf16,
            tokens,
            table,
            scales: None,
            out: TensorType::new(Dtype::F32, [3, 64]),
            width: 64,
            vocab: 1000,
            scale: F32Bits(1.0),
        };
        let call = Call::new(&g, Isa::Sm80, embed, Embed::grid(3));
        let traffic = Traffic { bytes: 3 * (4 + 64 * 2 + 64 * 4), position_bytes: 0 };
        assert_eq!(cost(&call), Cost { traffic, operations: 0 });
    }

    #[test]
    fn a_tensor_is_read_once() {
        let mut g = Graph::new();
        let (x, weight) = (g.argument(Dtype::BF16, &[16, 64]), g.argument(Dtype::BF16, &[96, 64]));
        // Without a bias, the rows stand for one.
        let out = TensorType::new(Dtype::F32, [1, 16, 48]);
        let matrix = CudaMatrix { weight, scales: None, bias: x, out, outputs: 48 };
        let call = CudaMatmul {
            weights: MatvecWeights::Bf16,
            tiles: Tiles::Small,
            x,
            matrices: vec![matrix; 2],
            m: 16,
            k: 64,
            splits: 1,
            bias_type: MatvecBias::None,
        };
        let grid = call.grid();
        let call = Call::new(&g, Isa::Sm80, call, grid);
        let bytes = 2 * (16 * 64 + 96 * 64) + 4 * 2 * 16 * 48;
        let traffic = Traffic { bytes, position_bytes: 0 };
        assert_eq!(cost(&call), Cost { traffic, operations: 2 * 16 * 64 * 96 });
    }
}
