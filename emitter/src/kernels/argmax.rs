//! Calls of `cuda/argmax.c`.

use safetensors::Dtype;

use super::{
    arguments::{arguments, kernels},
    executable::Grid,
};
use crate::{graph::Tensor, types::TensorType};

arguments! {
    /// Finds the index of the largest element of each row of `length` elements, of which blocks have a part each.
    struct Argmax {
        logits: Tensor,
        out: TensorType,
        /// `[rows, parts, 2]`, between blocks.
        partial: TensorType,
        length: usize,
        parts: usize,
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
    pub(crate) fn of(logits: Tensor, rows: usize, length: usize) -> (Self, Grid) {
        let parts = if rows > MAX_ROWS { 1 } else { length.div_ceil(PART).clamp(1, MAX_PARTS) };
        let integers = |shape: &[usize]| TensorType::new(Dtype::I32, shape);
        let (out, partial) = (integers(&[rows]), integers(&[rows, parts, 2]));
        (Self { logits, out, partial, length, parts }, Grid { items: rows * parts, grain: THREADS })
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
