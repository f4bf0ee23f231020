//! The arguments of kernels, each with the name of its parameter in C.

use std::ops::Range;

use super::constant::KernelConstant;
use crate::{
    graph::{HostIndex, Tensor},
    types::TensorType,
};

/// A C function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KernelFunction {
    /// The file in the instruction set's folder, without `.c`.
    pub(crate) file: &'static str,
    /// The name of the function.
    pub(crate) name: &'static str,
}

/// A call of a kernel: a function and a value for each of its parameters.
pub(crate) trait Kernel {
    /// Returns the function to call.
    fn function(&self) -> KernelFunction;

    /// Returns the arguments in the order of the function's parameters.
    fn arguments(self) -> Arguments;
}

/// The arguments of a call, by kind. A C function takes them in this order.
#[derive(Debug, Default)]
pub(crate) struct Arguments {
    /// Pointers to tensors that the kernel reads.
    pub(crate) operands: Vec<(&'static str, Tensor)>,
    /// The operands that are the cache.
    pub(crate) cache: Range<usize>,
    /// Whether the kernel writes to the cache.
    pub(crate) overwrites_cache: bool,
    /// Pointers to tensors that the kernel writes.
    pub(crate) results: Vec<(&'static str, TensorType)>,
    /// Numbers that the host computes for each call.
    pub(crate) numbers: Vec<(&'static str, HostIndex)>,
    /// Numbers that are known at compile time.
    pub(crate) sizes: Vec<(&'static str, KernelConstant)>,
    /// The operands of which the kernel reads a part, with what it reads and what there is, such as rows.
    pub(crate) parts_read: Vec<(&'static str, [usize; 2])>,
}

/// A value that stands for one parameter, or for a group of adjacent ones.
pub(crate) trait Argument {
    /// Adds it under the name of its parameter. A group has names of its own.
    fn add_to(self, arguments: &mut Arguments, name: &'static str);
}

impl Argument for Tensor {
    fn add_to(self, arguments: &mut Arguments, name: &'static str) {
        arguments.operands.push((name, self));
    }
}

impl Argument for TensorType {
    fn add_to(self, arguments: &mut Arguments, name: &'static str) {
        arguments.results.push((name, self));
    }
}

impl Argument for HostIndex {
    fn add_to(self, arguments: &mut Arguments, name: &'static str) {
        arguments.numbers.push((name, self));
    }
}

impl Argument for usize {
    fn add_to(self, arguments: &mut Arguments, name: &'static str) {
        arguments.sizes.push((name, self.into()));
    }
}

impl Argument for bool {
    fn add_to(self, arguments: &mut Arguments, name: &'static str) {
        usize::from(self).add_to(arguments, name);
    }
}

/// A float that is passed as the bits of an `f32`, because sizes are integers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct F32Bits(pub(crate) f64);

impl Argument for F32Bits {
    fn add_to(self, arguments: &mut Arguments, name: &'static str) {
        #[expect(clippy::cast_possible_truncation, reason = "kernels compute in f32")]
        let bits = (self.0 as f32).to_bits();
        (bits as usize).add_to(arguments, name);
    }
}

/// Declares a struct of arguments, whose fields have the names and the order of the C parameters.
macro_rules! arguments {
    ($(
        $(#[$doc:meta])*
        struct $name:ident { $($(#[$field_doc:meta])* $field:ident: $ty:ty,)* }
    )*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone)]
        pub(crate) struct $name { $($(#[$field_doc])* pub(crate) $field: $ty,)* }

        impl $crate::kernels::arguments::Argument for $name {
            fn add_to(self, arguments: &mut $crate::kernels::arguments::Arguments, _: &'static str) {
                let Self { $($field),* } = self;
                $($field.add_to(arguments, stringify!($field));)*
            }
        }
    )*};
}

/// Implements [`Kernel`] for a struct of arguments; the first parts name the file and the function.
macro_rules! kernels {
    ($($name:ident => $file:literal, $function:literal;)*) => {$(
        impl $crate::kernels::arguments::Kernel for $name {
            fn function(&self) -> $crate::kernels::arguments::KernelFunction {
                $crate::kernels::arguments::KernelFunction { file: $file, name: $function }
            }

            fn arguments(self) -> $crate::kernels::arguments::Arguments {
                $crate::kernels::arguments::Arguments::of(self)
            }
        }
    )*};
}

pub(super) use {arguments, kernels};

impl Arguments {
    /// Collects the arguments of a group.
    pub(crate) fn of(group: impl Argument) -> Self {
        let mut arguments = Self::default();
        group.add_to(&mut arguments, "");
        arguments
    }
}
