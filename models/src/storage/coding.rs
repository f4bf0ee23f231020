//! How a weight is stored.

use std::fmt;

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
    /// The group of each column, if that is known, all groups have as many columns, and they are not adjacent.
    pub order: Option<Vec<i32>>,
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
    /// What the codes are multiplied by.
    pub scales: OfGroups,
    /// What is subtracted from the codes, `[…, groups of rows, groups of columns]`.
    pub zeros: Option<Expr>,
    /// What is added at last.
    pub minima: Option<OfGroups>,
    /// Whether the weight is `[…, columns, rows]`.
    pub transposed: bool,
}

/// What each group of a weight has.
#[derive(Debug, Clone, PartialEq)]
pub enum OfGroups {
    /// A number, `[…, groups of rows, groups of columns]`. Dimensions of size 1 stand for all groups.
    Numbers(Expr),
    /// A whole number of steps, times the size of a step, which adjacent groups of a row share.
    Steps {
        /// `[…, rows, groups of columns]`.
        steps: Expr,
        /// What the steps are.
        numbers: Numbers,
        /// `[…, rows, blocks]`.
        sizes: Expr,
        /// Groups of a block.
        in_block: usize,
    },
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
        Self { tensors: vec![StoredTensor { name, dtype, shape }], coding: None, order: None }
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

    /// Returns an element type that holds every number of an expression exactly.
    #[must_use]
    pub fn exact_dtype(&self, expr: &Expr) -> Dtype {
        if expr.is_power_of_two() {
            // All of `f32`, and none of few bits.
            return Dtype::BF16;
        }
        match expr {
            Expr::Stored(index) => self.tensors.get(*index).map_or(Dtype::F32, |tensor| tensor.dtype),
            Expr::Floats(of) => match self.exact_dtype(of) {
                half @ (Dtype::F16 | Dtype::BF16) => half,
                _ => Dtype::F32,
            },
            Expr::FloatsOf(_, dtype) => *dtype,
            Expr::Product(of, sign) if sign.as_number() == Some(-1.0) => self.exact_dtype(of),
            Expr::Concatenate(parts, _) => {
                let mut dtypes = parts.iter().map(|part| self.exact_dtype(part));
                let first = dtypes.next().unwrap_or(Dtype::F32);
                if dtypes.all(|dtype| dtype == first) { first } else { Dtype::F32 }
            }
            _ => expr.rearranged().map_or(Dtype::F32, |of| self.exact_dtype(of)),
        }
    }
}

impl OfGroups {
    /// Changes the expressions of all groups and of all blocks, given how many of them a row has.
    pub(crate) fn map(self, groups: usize, change: impl Fn(Expr, usize) -> Expr) -> Self {
        match self {
            Self::Numbers(numbers) => Self::Numbers(change(numbers, groups)),
            Self::Steps { steps, numbers, sizes, in_block } => Self::Steps {
                steps: change(steps, groups),
                numbers,
                sizes: change(sizes, groups / in_block),
                in_block,
            },
        }
    }

    /// Returns steps of what range, and how many groups share their size; `None` for numbers.
    ///
    /// What two parts of a weight have can be joined if both are of one kind.
    pub(crate) fn kind(&self) -> Option<(Numbers, usize)> {
        match self {
            Self::Numbers(_) => None,
            Self::Steps { numbers, in_block, .. } => Some((*numbers, *in_block)),
        }
    }

    /// Joins what two parts of a weight have, if both are of one [`kind`](Self::kind).
    pub(crate) fn join(
        self,
        other: Self,
        groups: usize,
        join: impl Fn([Expr; 2], usize) -> Expr,
    ) -> Option<Self> {
        let is_like = self.kind() == other.kind();
        match (self, other) {
            (Self::Numbers(one), Self::Numbers(other)) => Some(Self::Numbers(join([one, other], groups))),
            (
                Self::Steps { steps, numbers, sizes, in_block },
                Self::Steps { steps: other_steps, sizes: other_sizes, .. },
            ) if is_like => Some(Self::Steps {
                steps: join([steps, other_steps], groups),
                numbers,
                sizes: join([sizes, other_sizes], groups / in_block),
                in_block,
            }),
            _ => None,
        }
    }

    /// Returns a number for each group, of which a weight has `shape`, `[…, groups of rows, groups of columns]`.
    #[must_use]
    pub fn numbers(&self, shape: &[usize]) -> Expr {
        match (self, shape) {
            (Self::Steps { steps, sizes, in_block, .. }, [outer @ .., groups]) => {
                let of_blocks = |each: usize| [outer, &[groups / in_block, each]].concat();
                let steps = steps.clone().floats().reshape(&of_blocks(*in_block));
                steps.times(sizes.clone().reshape(&of_blocks(1))).reshape(shape)
            }
            (Self::Numbers(numbers) | Self::Steps { sizes: numbers, .. }, _) => numbers.clone(),
        }
    }
}

impl Coding {
    /// Returns whether the weight has fewer bits than the floating-point numbers of 16 bits.
    #[must_use]
    pub fn is_quantized(&self) -> bool {
        let (Numbers::Integers { bits, .. } | Numbers::Floats { bits }) = self.numbers;
        bits < 16
    }

    /// Returns codes that are scaled in groups of adjacent columns of one row.
    pub(crate) fn in_groups(codes: Expr, numbers: Numbers, size: usize, scales: Expr) -> Self {
        Self {
            codes,
            numbers,
            group: [1, size],
            column_groups: None,
            scales: OfGroups::Numbers(scales),
            zeros: None,
            minima: None,
            transposed: false,
        }
    }
}

/// Says it to people: `4-bit integers in groups of 64 with minima`.
impl fmt::Display for Coding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.numbers {
            Numbers::Integers { bits, .. } => write!(f, "{bits}-bit integers")?,
            Numbers::Floats { bits } => write!(f, "{bits}-bit floats")?,
        }
        match self.group {
            [1, columns] => write!(f, " in groups of {columns}")?,
            [rows, columns] => write!(f, " in groups of {rows} × {columns}")?,
        }
        match (&self.zeros, &self.minima) {
            (_, Some(_)) => f.write_str(" with minima")?,
            (Some(zeros), None) if zeros.as_number().is_none() => f.write_str(" with zero points")?,
            _ => {}
        }
        f.write_str(if self.column_groups.is_some() { " in the order of activations" } else { "" })
    }
}
