//! What can be wrong with a file of kernels.

use std::path::PathBuf;

/// Why kernels cannot be linked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KernelError {
    /// It is no object file.
    #[error(
        "{found}, expected a relocatable ELF object or PTX\n\
         hint: compile kernels for Linux with clang -c -O2 -ffreestanding -fPIC, or to PTX with nvcc -ptx"
    )]
    Form {
        /// What it seems to be.
        found: &'static str,
    },
    /// It is damaged.
    #[error(
        "damaged ({problem}), expected a whole object or PTX\nhint: copy the file again, or compile it again"
    )]
    Damaged {
        /// What is wrong.
        problem: String,
    },
    /// It is for an architecture that no target has.
    #[error(
        "an object for {found}, expected x86_64 or aarch64\nhint: compile it for the architecture of a target"
    )]
    Architecture {
        /// The architecture.
        found: String,
    },
    /// It is for a GPU with addresses of 32 bits.
    #[error("PTX without .address_size 64, expected it\nhint: compile it for nvptx64")]
    AddressSize,
    /// It has nothing to call.
    #[error(
        "found no function that others can call, expected at least one\n\
         hint: a kernel is not static; in C++ and CUDA it is extern \"C\", and on GPUs __global__"
    )]
    NoFunction,
    /// It has code that runs before any kernel.
    #[error(
        "found constructors of global variables, expected none: nothing runs them\n\
         hint: in C++ make the variables constexpr or constinit"
    )]
    Initializers,
    /// It has variables of threads.
    #[error("found thread-local variables, expected none\nhint: use variables of functions")]
    ThreadLocal,
    /// It calls what is not there.
    #[error(
        "found {} undefined, expected everything that kernels call in one of their objects\n\
         hint: bundles have no libraries of C and C++: compile with -ffreestanding -fno-builtin -fno-stack-protector \
         -fno-exceptions -fno-threadsafe-statics, and link what is missing, such as expf, with another --kernels", names.join(", ")
    )]
    Undefined {
        /// The symbols.
        names: Vec<String>,
    },
    /// Two files define a symbol.
    #[error("found {name}, which {} defines too, expected one of this name\nhint: rename one, or make it static", other.display())]
    Twice {
        /// The symbol.
        name: String,
        /// The other file.
        other: PathBuf,
    },
    /// A symbol has the name of one of our own.
    #[error(
        "found {name}, which is a kernel of mlxcel-compile's own, expected another name\nhint: rename it, or make it static"
    )]
    Reserved {
        /// The symbol.
        name: String,
    },
}
