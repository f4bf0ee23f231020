//! Instructions as they are run.

use crate::types::{Space, Type};

/// The index of a register.
pub(crate) type Register = usize;

/// A value that an instruction reads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Operand {
    Register(Register),
    Constant(u64),
    Special(Special),
}

/// A register that the machine sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Special {
    /// The thread's index in its block, by dimension.
    Thread(usize),
    /// The block's size.
    BlockSize(usize),
    /// The block's index in the grid.
    Block(usize),
    /// The grid's size.
    GridSize(usize),
    Lane,
    Warp,
}

/// A place in memory: the sum of both.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Address {
    pub(crate) base: Option<Register>,
    pub(crate) offset: u64,
}

/// What a predicate must be for an instruction to be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Guard {
    pub(crate) register: Register,
    pub(crate) expected: bool,
}

/// An instruction.
#[derive(Debug, Clone)]
pub(crate) struct Instruction {
    pub(crate) guard: Option<Guard>,
    pub(crate) work: Work,
    /// As it is written.
    pub(crate) text: String,
}

/// How lanes are exchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shuffle {
    Up,
    Down,
    Butterfly,
    Index,
}

/// What is asked of the predicates of lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Vote {
    Ballot,
    Any,
    All,
}

/// The threads that a barrier waits for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Barrier {
    pub(crate) number: Operand,
    /// All threads of the block without a number.
    pub(crate) threads: Option<Operand>,
    /// Whether all lanes of a warp have to come to it at once.
    pub(crate) aligned: bool,
}

/// The elements of the operands of a matrix product. Sums are `f32`, or `s32` of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MatrixType {
    F16,
    Bf16,
    S8,
}

/// What modifiers do to operands and results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Adjust {
    /// Subnormal operands of `f32` become zero.
    pub(crate) flushes_operands: bool,
    /// A subnormal result of `f32` becomes zero.
    pub(crate) flushes_result: bool,
    /// A result of `f32` is between 0 and 1; NaN becomes 0.
    pub(crate) saturates: bool,
    /// Numbers below zero become zero. The type is that of the result.
    pub(crate) rectifies: Option<Type>,
}

/// A function of operands.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Function {
    Unary(fn(u64) -> u64, Operand),
    Binary(fn(u64, u64) -> u64, [Operand; 2]),
    Ternary(fn(u64, u64, u64) -> u64, [Operand; 3]),
}

/// What an instruction does.
#[derive(Debug, Clone)]
pub(crate) enum Work {
    Nothing,
    Unary(fn(u64) -> u64, Register, Operand),
    Binary(fn(u64, u64) -> u64, Register, [Operand; 2]),
    Ternary(fn(u64, u64, u64) -> u64, Register, [Operand; 3]),
    /// Computes a function of operands that are changed before, or whose result is changed.
    Adjusted(Adjust, Function, Register),
    /// Puts parts of so many bits together, the first lowest.
    Pack(Register, Vec<Operand>, u32),
    /// Takes them apart. Some are not wanted.
    Unpack(Vec<Option<Register>>, Operand, u32),
    Load {
        space: Space,
        ty: Type,
        into: Vec<Option<Register>>,
        from: Address,
        /// Whether nothing may write what is read as long as the kernel runs.
        unchanging: bool,
    },
    Store {
        space: Space,
        ty: Type,
        into: Address,
        from: Vec<Operand>,
    },
    /// Replaces what is in memory by a function of it and of operands, and returns what was there.
    Atomic {
        space: Space,
        ty: Type,
        function: fn(u64, u64, u64) -> u64,
        old: Option<Register>,
        at: Address,
        operands: [Operand; 2],
        /// Whether it sees what was done before others of other blocks that release.
        acquires: bool,
        releases: bool,
    },
    /// Begins to copy bytes from global to shared memory; the rest of `bytes` is zero.
    Copy {
        into: Address,
        from: Address,
        bytes: usize,
        valid: Option<Operand>,
    },
    /// Ends a lane's group of copies.
    EndCopies,
    /// Waits for a lane's copies but those of its last groups; for all without a number.
    AwaitCopies(Option<usize>),
    /// Waits until the kernels ahead have ended.
    AwaitKernels,
    /// Lets the next kernel begin.
    StartNext,
    Branch(usize),
    Return,
    Barrier(Barrier),
    /// Lanes of a mask wait for each other.
    WarpBarrier(Operand),
    Shuffle {
        kind: Shuffle,
        into: Register,
        valid: Option<Register>,
        /// The value, the distance, the clamp with the segments, and the mask of lanes.
        operands: [Operand; 4],
    },
    Vote {
        kind: Vote,
        into: Register,
        predicate: Operand,
        expected: bool,
        mask: Operand,
    },
    /// `d = a · b + c` of a warp, 16 rows by 8 columns.
    Matrix {
        ty: MatrixType,
        d: [Register; 4],
        a: Vec<Operand>,
        b: Vec<Operand>,
        c: [Operand; 4],
    },
    /// Loads matrices of 8 × 8 numbers of 16 bits, whose rows lanes point to.
    LoadMatrix {
        into: Vec<Register>,
        from: Address,
        transposed: bool,
    },
}

impl Work {
    /// Returns whether each lane does it for itself and goes on with the next instruction.
    pub(crate) const fn goes_on(&self) -> bool {
        matches!(
            self,
            Self::Nothing
                | Self::Unary(..)
                | Self::Binary(..)
                | Self::Ternary(..)
                | Self::Adjusted(..)
                | Self::Pack(..)
                | Self::Unpack(..)
                | Self::Load { .. }
                | Self::Store { .. }
                | Self::Atomic { .. }
                | Self::Copy { .. }
                | Self::EndCopies
                | Self::AwaitCopies(_)
                | Self::AwaitKernels
                | Self::StartNext
        )
    }

    /// Returns whether lanes do it together, and then go on with the next instruction.
    pub(crate) const fn is_of_lanes(&self) -> bool {
        matches!(
            self,
            Self::WarpBarrier(_)
                | Self::Shuffle { .. }
                | Self::Vote { .. }
                | Self::Matrix { .. }
                | Self::LoadMatrix { .. }
        )
    }

    /// Returns whether the lanes of a warp that are not done do it at once, or none does.
    pub(crate) const fn is_of_all(&self) -> bool {
        matches!(
            self,
            Self::Barrier(Barrier { aligned: true, .. }) | Self::Matrix { .. } | Self::LoadMatrix { .. }
        )
    }
}
