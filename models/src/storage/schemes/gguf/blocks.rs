//! Reads rows of ggml's blocks.

use safetensors::Dtype;

use crate::storage::{
    coding::{Coding, Numbers, OfGroups},
    expr::Expr,
};

/// A matrix of blocks: bytes `[rows, blocks · bytes of a block]`.
#[derive(Debug, Clone)]
pub(super) struct Blocks {
    bytes: Expr,
    pub(super) rows: usize,
    /// Blocks of a row.
    pub(super) count: usize,
    /// Bytes of a block.
    size: usize,
}

/// A decoded matrix: codes `[rows, columns]`, with scales and minima of groups.
#[derive(Debug, Clone)]
pub(super) struct Decoded {
    pub(super) codes: Expr,
    pub(super) numbers: Numbers,
    /// Columns of a group.
    pub(super) group: usize,
    /// None stands for 1.
    pub(super) scales: Option<OfGroups>,
    /// What is added at last.
    pub(super) minima: Option<OfGroups>,
}

impl Blocks {
    pub(super) fn new(bytes: Expr, rows: usize, count: usize, size: usize) -> Self {
        Self { bytes: bytes.reshape(&[rows, count, size]), rows, count, size }
    }

    /// Returns `length` bytes of each block, `[rows, blocks, length]`.
    pub(super) fn bytes(&self, start: usize, length: usize) -> Expr {
        match (start, length) {
            (0, whole) if whole == self.size => self.bytes.clone(),
            _ => self.bytes.clone().slice(2, start, start + length),
        }
    }

    /// Returns the 16-bit number at a place of each block, `[rows, blocks, 1]`.
    pub(super) fn half(&self, start: usize) -> Expr {
        self.bytes(start, 2).floats_of(Dtype::F16)
    }

    /// Returns the 16-bit number at a place of each block, whose only group has it.
    pub(super) fn half_of_group(&self, start: usize) -> OfGroups {
        self.numbers(1, self.half(start))
    }

    /// Returns the fields of `bits` bits that `length` bytes have, `[rows, blocks, fields]`: of each run of `run` bytes, the
    /// lowest fields of all its bytes come first.
    pub(super) fn fields(&self, start: usize, length: usize, bits: usize, run: usize) -> Expr {
        let in_byte = 8 / bits;
        let fields = self.bytes(start, length).unpack(bits);
        let fields = fields.reshape(&[self.rows, self.count, length / run, run, in_byte]);
        fields.transpose(&[0, 1, 2, 4, 3]).reshape(&[self.rows, self.count, length * in_byte])
    }

    /// Returns bytes as signed integers.
    pub(super) fn signed(&self, start: usize, length: usize) -> Expr {
        let shifted = Expr::And(self.bytes(start, length).unpack(8).plus(128).into(), 255);
        shifted.plus(-128)
    }

    /// Returns a number for each group, of which `each` block has some: `[rows, blocks, groups of a block]`.
    pub(super) fn numbers(&self, each: usize, numbers: Expr) -> OfGroups {
        OfGroups::Numbers(numbers.reshape(&[self.rows, self.count * each]))
    }

    /// Returns whole numbers of steps, `[rows, blocks, groups of a block]`, of a size for each block, `[rows, blocks, 1]`.
    pub(super) fn steps(&self, each: usize, (steps, numbers): (Expr, Numbers), sizes: Expr) -> OfGroups {
        let steps = steps.reshape(&[self.rows, self.count * each]);
        OfGroups::Steps { steps, numbers, sizes: sizes.reshape(&[self.rows, self.count]), in_block: each }
    }

    /// Returns the matrix that these codes of each block, `[rows, blocks, …]`, make.
    pub(super) fn decoded(
        &self,
        codes: Expr,
        (numbers, block, group): (Numbers, usize, usize),
        scales: OfGroups,
        minima: Option<OfGroups>,
    ) -> Decoded {
        let codes = codes.reshape(&[self.rows, self.count * block]);
        Decoded { codes, numbers, group, scales: Some(scales), minima }
    }
}

impl Decoded {
    /// Returns floating-point numbers, `[rows, columns]`.
    pub(super) fn floats(codes: Expr, columns: usize) -> Self {
        Self { codes, numbers: Numbers::Floats { bits: 16 }, group: columns, scales: None, minima: None }
    }

    /// Returns whether the parts of both can be put together.
    fn is_like(&self, other: &Self) -> bool {
        self.numbers == other.numbers
            && self.group == other.group
            && self.scales.as_ref().map(OfGroups::kind) == other.scales.as_ref().map(OfGroups::kind)
            && self.minima.as_ref().map(OfGroups::kind) == other.minima.as_ref().map(OfGroups::kind)
    }

    /// Applies a change of rows to each part, `[rows, …]`, given its size of the last dimension.
    pub(super) fn map(self, columns: usize, change: impl Fn(Expr, usize) -> Expr) -> Self {
        let groups = columns / self.group;
        let of_groups = |part: OfGroups| part.map(groups, &change);
        Self {
            codes: change(self.codes, columns),
            scales: self.scales.map(of_groups),
            minima: self.minima.map(of_groups),
            ..self
        }
    }

    /// Puts the rows of two matrices together. If they are of different types, they become numbers first.
    pub(super) fn join(self, other: Self, size: [usize; 2], join: impl Fn([Expr; 2], usize) -> Expr) -> Self {
        if !self.is_like(&other) {
            let [one, other] = [self, other].map(|matrix| matrix.into_numbers(size));
            return Self { codes: join([one.codes, other.codes], size[1]), ..one };
        }
        let groups = size[1] / self.group;
        let both = |one: Option<OfGroups>, other: Option<OfGroups>| one?.join(other?, groups, &join);
        Self {
            codes: join([self.codes, other.codes], size[1]),
            scales: both(self.scales, other.scales),
            minima: both(self.minima, other.minima),
            ..self
        }
    }

    /// Returns the numbers themselves, computed in the order of [`Coding`].
    fn into_numbers(self, [rows, columns]: [usize; 2]) -> Self {
        let Self { codes, numbers, group, scales, minima } = self;
        let mut x = match numbers {
            Numbers::Integers { .. } => codes.floats(),
            Numbers::Floats { .. } => codes,
        };
        let groups = columns / group;
        x = x.reshape(&[rows, groups, group]);
        if let Some(scales) = scales {
            x = x.times(scales.numbers(&[rows, groups]).reshape(&[rows, groups, 1]));
        }
        if let Some(minima) = minima {
            x = x.added_to(minima.numbers(&[rows, groups]).reshape(&[rows, groups, 1]));
        }
        Self::floats(x.reshape(&[rows, columns]), columns)
    }

    /// Returns the coding of the whole weight.
    pub(super) fn coding(self, transposed: bool) -> Coding {
        let Self { codes, numbers, group, scales, minima } = self;
        let coding = Coding::in_groups(codes, numbers, group, Expr::number(1.0));
        Coding { scales: scales.unwrap_or(coding.scales), minima, transposed, ..coding }
    }
}
