//! Expressions over stored tensors, which the emitter turns into StableHLO.

use safetensors::Dtype;

/// A tensor that is computed from stored tensors.
///
/// Integers are `i32`, whatever type they are stored in, and wrap around. Other numbers are `f32`.
#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    /// The stored tensor with this index in [`Storage::tensors`](super::Storage::tensors), as it is: for
    /// [`Expr::Unpack`], [`Expr::Floats`] and changes of shape.
    Stored(usize),
    /// The same elements in another shape.
    Reshape(Box<Self>, Vec<usize>),
    /// Dimension `d` of the result is dimension `permutation[d]`.
    Transpose(Box<Self>, Vec<usize>),
    /// The range from `start` to `end` of one dimension.
    Slice {
        /// What is cut.
        of: Box<Self>,
        /// The dimension.
        dimension: usize,
        /// The first index.
        start: usize,
        /// One past the last index.
        end: usize,
    },
    /// Parts one after the other in one dimension.
    Concatenate(Vec<Self>, usize),
    /// The last dimension with zeros at its end, so that it has this size.
    Padded(Box<Self>, usize),
    /// Element `i` of the last dimension is element `index[i]`, which is stored.
    Take(Box<Self>, Box<Self>),
    /// Unsigned integers of `bits` bits: the last dimension is a stream of bits, lowest first, as little-endian words have it.
    Unpack {
        /// Whole numbers of 8 or 32 bits.
        of: Box<Self>,
        /// 1 to 8.
        bits: usize,
    },
    /// Element `i` of the last dimension is element `order[i]`.
    Reorder(Box<Self>, Vec<usize>),
    /// Whole numbers as they are, with their sign.
    Integers(Box<Self>),
    /// Floating-point numbers of the type they are stored in, or integers, as `f32`.
    Floats(Box<Self>),
    /// Floating-point numbers of this type, which the bytes of the last dimension are.
    FloatsOf(Box<Self>, Dtype),
    /// The number of a list, `[entries]`, for each integer.
    Lookup(Box<Self>, Box<Self>),
    /// The bitwise and with a number.
    And(Box<Self>, i32),
    /// The bitwise or of two tensors.
    Or(Box<Self>, Box<Self>),
    /// Integers shifted to the left, or to the right by a negative number, with zeros.
    Shift(Box<Self>, i32),
    /// The sum with a number.
    Plus(Box<Self>, i32),
    /// The product. Dimensions of size 1 are repeated.
    Product(Box<Self>, Box<Self>),
    /// The sum. Dimensions of size 1 are repeated.
    Sum(Box<Self>, Box<Self>),
    /// The quotient. Dimensions of size 1 are repeated.
    Quotient(Box<Self>, Box<Self>),
    /// These numbers, in one dimension.
    Constant(Vec<f32>),
}

impl Expr {
    /// Returns these elements in another shape.
    #[must_use]
    pub fn reshape(self, shape: &[usize]) -> Self {
        Self::Reshape(self.into(), shape.to_vec())
    }

    /// Reorders dimensions.
    #[must_use]
    pub fn transpose(self, permutation: &[usize]) -> Self {
        Self::Transpose(self.into(), permutation.to_vec())
    }

    /// Reorders the last dimension.
    #[must_use]
    pub fn reorder(self, order: &[usize]) -> Self {
        Self::Reorder(self.into(), order.to_vec())
    }

    /// Cuts the range from `start` to `end` out of a dimension.
    #[must_use]
    pub fn slice(self, dimension: usize, start: usize, end: usize) -> Self {
        Self::Slice { of: self.into(), dimension, start, end }
    }

    /// Reads unsigned integers of so many bits from the last dimension.
    #[must_use]
    pub fn unpack(self, bits: usize) -> Self {
        Self::Unpack { of: self.into(), bits }
    }

    /// Reads signed integers.
    #[must_use]
    pub fn integers(self) -> Self {
        Self::Integers(self.into())
    }

    /// Converts floating-point numbers of the stored type, or integers, to `f32`.
    #[must_use]
    pub fn floats(self) -> Self {
        Self::Floats(self.into())
    }

    /// Reads bytes as floating-point numbers of a type.
    #[must_use]
    pub fn floats_of(self, dtype: Dtype) -> Self {
        Self::FloatsOf(self.into(), dtype)
    }

    /// Looks integers up in a list.
    #[must_use]
    pub fn lookup(self, list: Self) -> Self {
        Self::Lookup(self.into(), list.into())
    }

    /// Adds a number to all integers.
    #[must_use]
    pub fn plus(self, number: i32) -> Self {
        Self::Plus(self.into(), number)
    }

    /// Keeps the bits that a number has.
    #[must_use]
    pub fn and(self, number: i32) -> Self {
        Self::And(self.into(), number)
    }

    /// Shifts integers to the left, or to the right by a negative number.
    #[must_use]
    pub fn shifted(self, by: i32) -> Self {
        Self::Shift(self.into(), by)
    }

    /// Combines the bits of integers.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self::Or(self.into(), other.into())
    }

    /// Adds.
    #[must_use]
    pub fn added_to(self, other: Self) -> Self {
        Self::Sum(self.into(), other.into())
    }

    /// Adds zeros at the end of the last dimension.
    #[must_use]
    pub fn padded(self, size: usize) -> Self {
        Self::Padded(self.into(), size)
    }

    /// Returns whose elements these are, if they are those of another expression, moved or left out.
    pub(crate) fn rearranged(&self) -> Option<&Self> {
        match self {
            Self::Reshape(of, _)
            | Self::Transpose(of, _)
            | Self::Slice { of, .. }
            | Self::Take(of, _)
            | Self::Padded(of, _)
            | Self::Reorder(of, _) => Some(of),
            _ => None,
        }
    }

    /// Returns the expressions that this one is made of.
    pub(crate) fn operands(&self) -> Vec<&Self> {
        match self {
            Self::Stored(_) | Self::Constant(_) => Vec::new(),
            Self::Concatenate(parts, _) => parts.iter().collect(),
            Self::Take(one, other)
            | Self::Lookup(one, other)
            | Self::Or(one, other)
            | Self::Product(one, other)
            | Self::Sum(one, other)
            | Self::Quotient(one, other) => vec![one, other],
            Self::Reshape(of, _)
            | Self::Transpose(of, _)
            | Self::Slice { of, .. }
            | Self::Padded(of, _)
            | Self::Unpack { of, .. }
            | Self::Reorder(of, _)
            | Self::Integers(of)
            | Self::Floats(of)
            | Self::FloatsOf(of, _)
            | Self::And(of, _)
            | Self::Shift(of, _)
            | Self::Plus(of, _) => vec![of],
        }
    }

    /// Changes the numbers of lists that elements are looked up in.
    pub(crate) fn with_lists(self, change: &impl Fn(&[f32]) -> Vec<f32>) -> Self {
        let inner = |of: Box<Self>| Box::new(of.with_lists(change));
        match self {
            Self::Lookup(of, list) => match *list {
                Self::Constant(numbers) => of.lookup(Self::Constant(change(&numbers))),
                list => of.lookup(list),
            },
            Self::Concatenate(parts, dimension) => {
                let parts = parts.into_iter().map(|part| part.with_lists(change)).collect();
                Self::Concatenate(parts, dimension)
            }
            Self::Integers(of) => Self::Integers(inner(of)),
            Self::Reshape(of, shape) => Self::Reshape(inner(of), shape),
            Self::Transpose(of, permutation) => Self::Transpose(inner(of), permutation),
            Self::Slice { of, dimension, start, end } => Self::Slice { of: inner(of), dimension, start, end },
            Self::Take(of, index) => Self::Take(inner(of), index),
            Self::Padded(of, size) => Self::Padded(inner(of), size),
            Self::Reorder(of, order) => Self::Reorder(inner(of), order),
            other => other,
        }
    }

    /// Returns whether every element is a power of two, as the expression is written.
    #[must_use]
    pub fn is_power_of_two(&self) -> bool {
        match self {
            // The exponent of an `f32` begins at this bit.
            Self::FloatsOf(of, Dtype::F32) => matches!(**of, Self::Shift(_, 23)),
            Self::Product(one, other) => one.is_power_of_two() && other.is_power_of_two(),
            Self::Lookup(_, list) => list.is_power_of_two(),
            Self::Concatenate(parts, _) => parts.iter().all(Self::is_power_of_two),
            Self::Constant(numbers) => {
                let is_power = |number: &f32| *number > 0.0 && number.log2().fract() == 0.0;
                numbers.iter().all(|number| number.is_nan() || is_power(number))
            }
            _ => self.rearranged().is_some_and(Self::is_power_of_two),
        }
    }

    /// Returns the number that all elements are, if it is stated.
    #[must_use]
    pub fn as_number(&self) -> Option<f32> {
        match self {
            Self::Reshape(of, _) => of.as_number(),
            Self::Constant(numbers) => match numbers.as_slice() {
                &[number] => Some(number),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns one number in two dimensions.
    #[must_use]
    pub fn number(value: f32) -> Self {
        Self::Constant(vec![value]).reshape(&[1, 1])
    }

    /// Divides.
    #[must_use]
    pub fn divided_by(self, other: Self) -> Self {
        Self::Quotient(self.into(), other.into())
    }

    /// Multiplies.
    #[must_use]
    pub fn times(self, other: Self) -> Self {
        Self::Product(self.into(), other.into())
    }
}
