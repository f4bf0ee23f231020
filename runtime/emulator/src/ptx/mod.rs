//! PTX as a program that can be run.

mod decode;
mod instruction;
mod memory;
mod modifiers;
mod module;
mod operands;
mod parse;
mod registers;
mod target;
mod variable;
mod words;

pub(crate) use instruction::{
    Address, Adjust, Barrier, Function, Guard, Instruction, MatrixType, Operand, Shuffle, Special, Vote, Work,
};
pub(crate) use module::Kernel;
pub use module::{Error, Module};
