//! Calls of `cuda/embed.c`.

use super::{
    arguments::{Argument, Arguments, F32Bits, Kernel, KernelFunction},
    executable::Grid,
    matvec::MatvecWeights,
};
use crate::{graph::Tensor, group_form::GroupForm, types::TensorType};

/// Looks up rows of a table, times `scale`.
#[derive(Debug, Clone)]
pub(crate) struct Embed {
    pub(crate) weights: MatvecWeights,
    pub(crate) tokens: Tensor,
    pub(crate) table: Tensor,
    /// The scales of quantized weights.
    pub(crate) scales: Option<Tensor>,
    pub(crate) out: TensorType,
    pub(crate) width: usize,
    pub(crate) vocab: usize,
    pub(crate) scale: F32Bits,
}

/// Threads of a workgroup: `EMBED_THREADS` of `cuda/embed.c`.
const THREADS: usize = 256;

impl Embed {
    /// Returns the workgroups of a call for so many rows.
    pub(crate) fn grid(rows: usize) -> Grid {
        Grid { items: rows, grain: THREADS }
    }
}

impl Kernel for Embed {
    fn function(&self) -> KernelFunction {
        let name = match self.weights {
            MatvecWeights::F32 => "cuda_embed_f32",
            MatvecWeights::Bf16 => "cuda_embed_bf16",
            MatvecWeights::F16 => "cuda_embed_f16",
            MatvecWeights::Q8 => "cuda_embed_q8",
            MatvecWeights::Q4 => "cuda_embed_q4",
            MatvecWeights::Groups(form) if form.takes_floats() && form.bits == 8 => "cuda_embed_e4m3",
            MatvecWeights::Groups(form) if form.takes_floats() => "cuda_embed_f4",
            MatvecWeights::Groups(GroupForm { bits: 4, .. }) => "cuda_embed_g4",
            MatvecWeights::Groups(GroupForm { bits: 5, .. }) => "cuda_embed_g5",
            MatvecWeights::Groups(GroupForm { bits: 6, .. }) => "cuda_embed_g6",
            MatvecWeights::Groups(_) => "cuda_embed_g8",
        };
        KernelFunction { file: "embed", name }
    }

    fn arguments(self) -> Arguments {
        let Self { weights, tokens, table, scales, out, width, vocab, scale } = self;
        let mut arguments = Arguments::default();
        tokens.add_to(&mut arguments, "tokens");
        table.add_to(&mut arguments, "table");
        if let Some(scales) = scales {
            scales.add_to(&mut arguments, "scales");
        }
        out.add_to(&mut arguments, "out");
        width.add_to(&mut arguments, "width");
        vocab.add_to(&mut arguments, "vocab");
        scale.add_to(&mut arguments, "scale");
        weights.add_format(&mut arguments, width);
        arguments
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::stated_constant;

    #[test]
    fn constants_are_those_of_the_kernels() {
        assert_eq!(stated_constant("cuda_embed_q4", "embed_threads"), Some(THREADS));
    }
}
