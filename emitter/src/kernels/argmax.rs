//! Calls of `cuda/argmax.c`.

use safetensors::Dtype;

use super::{
    arguments::{F32Bits, arguments, kernels},
    executable::Grid,
};
use crate::{graph::Tensor, types::TensorType};

arguments! {
    /// Scales logits, caps them, and finds the index of the largest of each row of `length`, of which blocks have a part each.
    struct Argmax {
        logits: Tensor,
        out: TensorType,
        /// `[rows, parts, 2]`, between blocks.
        partial: TensorType,
        /// The scaled logits; not written if that changes nothing.
        scaled: TensorType,
        length: usize,
        parts: usize,
        scale: F32Bits,
        /// 0 is none.
        cap: F32Bits,
    }
}

/// Threads of a workgroup, the elements that it looks at in turn, and the most rows of more parts than one: as in `cuda/argmax.c`.
const THREADS: usize = 256;
const PART: usize = 4096;
const MAX_ROWS: usize = 1024;
/// The most parts of a row: more would take longer to merge.
const MAX_PARTS: usize = 64;

impl Argmax {
    /// Returns the call for `rows` rows, and its grid.
    pub(crate) fn of(
        logits: Tensor,
        [rows, length]: [usize; 2],
        (scale, cap): (f64, Option<f64>),
    ) -> (Self, Grid) {
        let parts = if rows > MAX_ROWS { 1 } else { length.div_ceil(PART).clamp(1, MAX_PARTS) };
        let integers = |shape: &[usize]| TensorType::new(Dtype::I32, shape);
        let (out, partial) = (integers(&[rows]), integers(&[rows, parts, 2]));
        let is_scaled = Self::changes(scale, cap);
        let scaled = TensorType::new(Dtype::F32, if is_scaled { [rows, length] } else { [1, 1] });
        let (scale, cap) = (F32Bits(scale), F32Bits(cap.unwrap_or(0.0)));
        let call = Self { logits, out, partial, scaled, length, parts, scale, cap };
        (call, Grid { items: rows * parts, grain: THREADS })
    }

    /// Returns whether logits are not what they become.
    pub(crate) fn changes(scale: f64, cap: Option<f64>) -> bool {
        #[expect(clippy::cast_possible_truncation, reason = "kernels compute in f32")]
        let scale = scale as f32;
        scale.to_bits() != 1.0_f32.to_bits() || cap.is_some()
    }
}

kernels! { Argmax => "argmax", "cuda_argmax"; }

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::stated_constant;

    #[test]
    fn constants_are_those_of_the_kernel() {
        let found = ["threads", "part", "max_rows"].map(|name| stated_constant("cuda_argmax", name));
        assert_eq!(found, [THREADS, PART, MAX_ROWS].map(Some));
    }
}
