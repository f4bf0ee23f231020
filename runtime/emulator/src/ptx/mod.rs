//! PTX as a program that can be run.

mod decode;
mod instruction;
mod memory;
mod module;
mod operands;
mod parse;
mod words;

pub(crate) use instruction::{
    Address, Barrier, Guard, Instruction, MatrixType, Operand, Shuffle, Special, Vote, Work,
};
pub(crate) use module::Kernel;
pub use module::{Error, Module};
