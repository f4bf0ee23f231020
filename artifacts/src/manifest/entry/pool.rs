//! What fits in a call, and the pages of the key/value cache.

use safetensors::Dtype;
use serde::{Deserialize, Serialize};

use crate::tensor::tensor_bytes;

/// Positions of a page of the key/value cache.
pub const PAGE: usize = 64;

/// What fits in a call. A row is one token of one sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallSizes {
    /// The rows of all sequences together.
    pub rows: usize,
    /// The sequences.
    pub sequences: usize,
    /// The rows whose logits are computed.
    pub selected: usize,
    /// Whether the rows of each sequence begin at a multiple of `rows / sequences`, which is the most that it can have.
    ///
    /// Otherwise sequences of any length follow each other.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub uniform: bool,
    /// Whether the call writes its results where the caller says, and kernels alone reach the cache. Since format 7.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_place: bool,
}

/// The layers that share a page table: those with a window of one size, or those without.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pool {
    /// The size of the window in positions. A row attends to that many positions, up to its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<usize>,
    /// The tensors of the cache: the elements, then their scales if the cache is quantized.
    pub parts: Vec<PagePart>,
}

/// A page's part of a tensor of the cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PagePart {
    /// The element type.
    pub dtype: Dtype,
    /// The shape: `[2 · layers, kv_heads, …]`.
    pub shape: Vec<usize>,
}

impl CallSizes {
    /// Returns the most rows of one sequence.
    #[must_use]
    pub fn rows_of_a_sequence(self) -> usize {
        match self.sequences {
            0 => 0,
            sequences if self.uniform => self.rows / sequences,
            _ => self.rows,
        }
    }
}

impl Pool {
    /// Returns the pages of a sequence that a table of a call lists.
    #[must_use]
    pub fn table_pages(&self, context: usize, sizes: CallSizes) -> usize {
        let all = context.div_ceil(PAGE);
        let Some(window) = self.window.filter(|_| sizes.uniform) else { return all };
        // From the first position that the first row attends to, up to the last row.
        let seen = window.saturating_add(sizes.rows_of_a_sequence());
        (seen.div_ceil(PAGE) + 1).min(all)
    }

    /// Returns the bytes of a page, or `None` if they overflow or are not whole.
    #[must_use]
    pub fn page_bytes(&self) -> Option<usize> {
        self.parts
            .iter()
            .try_fold(0usize, |sum, part| sum.checked_add(tensor_bytes(part.dtype, &part.shape)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_the_bytes_of_all_its_tensors() {
        let part = |dtype, width| PagePart { dtype, shape: vec![32, 8, PAGE, width] };
        let bytes = |parts| Pool { window: None, parts }.page_bytes();
        // Llama-3.2-1B: 16 layers · 2 · 8 heads · 64 positions · 64 dimensions.
        assert_eq!(bytes(vec![part(Dtype::BF16, 64)]), Some(2 << 20));
        assert_eq!(bytes(vec![part(Dtype::I8, 64), part(Dtype::F16, 2)]), Some((1 << 20) + (1 << 16)));
        assert_eq!(bytes(vec![part(Dtype::F32, usize::MAX)]), None);
    }
}
