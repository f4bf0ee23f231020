//! How a weight is stored.

use safetensors::Dtype;

use super::expr::Expr;
use crate::layers::Weight;

/// How a checkpoint stores a weight.
#[derive(Debug, Clone, PartialEq)]
pub struct Storage {
    /// The tensors that hold it.
    pub tensors: Vec<StoredTensor>,
    /// What the weight is made of; `None` if the only tensor is the weight.
    pub coding: Option<Coding>,
}

/// A tensor of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredTensor {
    /// Its name.
    pub name: String,
    /// The element type.
    pub dtype: Dtype,
    /// The shape.
    pub shape: Vec<usize>,
}

/// A weight in few bits: `(numbers[codes] - zeros) · scales + minima`, with one of the last three for each group.
///
/// It is computed in `f32` in this order, and has the elements of the weight in their order, or with the last two dimensions
/// swapped if [`Coding::transposed`].
#[derive(Debug, Clone, PartialEq)]
pub struct Coding {
    /// What stands for each element, `[…, rows, columns]`.
    pub codes: Expr,
    /// What the codes are.
    pub numbers: Numbers,
    /// Rows and columns of a group. The last group of a row or a column may be smaller.
    pub group: [usize; 2],
    /// The group of each column, `[columns]`, unless groups are adjacent columns.
    pub column_groups: Option<Expr>,
    /// `[…, groups of rows, groups of columns]`.
    pub scales: Expr,
    /// What is subtracted from the codes, as `scales`.
    pub zeros: Option<Expr>,
    /// What is added at last, as `scales`.
    pub minima: Option<Expr>,
    /// Whether the weight is `[…, columns, rows]`.
    pub transposed: bool,
}

/// What codes are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Numbers {
    /// Whole numbers of so many bits, negative ones among them or not.
    Integers {
        /// Bits of a number.
        bits: usize,
        /// Whether they are from `-2^(bits - 1)` on, and not from 0.
        signed: bool,
    },
    /// Floating-point numbers of so many bits, which [`Coding::codes`] has looked up.
    Floats {
        /// Bits of a number.
        bits: usize,
    },
}

impl Storage {
    /// Returns the storage of a weight that is a tensor of this type.
    #[must_use]
    pub fn plain(weight: &Weight, dtype: Dtype) -> Self {
        let Weight { name, shape } = weight.clone();
        Self { tensors: vec![StoredTensor { name, dtype, shape }], coding: None }
    }

    /// Returns what stores every weight as a tensor of one type.
    pub fn all(dtype: Dtype) -> impl Fn(&Weight) -> Self {
        move |weight| Self::plain(weight, dtype)
    }

    /// Returns the element type of the weight: that of its tensor, or `f32`.
    #[must_use]
    pub fn dtype(&self) -> Dtype {
        match (&self.coding, self.tensors.as_slice()) {
            (None, [only]) => only.dtype,
            _ => Dtype::F32,
        }
    }
}

impl Coding {
    /// Returns codes that are scaled in groups of adjacent columns of one row.
    pub(crate) fn in_groups(codes: Expr, numbers: Numbers, size: usize, scales: Expr) -> Self {
        Self {
            codes,
            numbers,
            group: [1, size],
            column_groups: None,
            scales,
            zeros: None,
            minima: None,
            transposed: false,
        }
    }
}
