//! Errors of calling a program's functions.

/// A call of a function that is not declared so.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProgramError {
    /// The program has no such function.
    #[error("found no function `{}`, expected {expected}\nhint: `mlxcel-bundle inspect BUNDLE` shows the functions", found.escape_debug())]
    NoFunction {
        /// The name that was asked for.
        found: String,
        /// The functions' names.
        expected: String,
    },

    /// A function was not named, and the program has several.
    #[error("found {count} functions, expected the name of one: {names}\nhint: name it with --function")]
    SeveralFunctions {
        /// How many there are.
        count: usize,
        /// Their names.
        names: String,
    },

    /// The function takes no such argument.
    #[error(
        "{function} takes no `{}`, expected {expected}\nhint: `mlxcel-bundle inspect BUNDLE` shows the arguments",
        found.escape_debug()
    )]
    NoArgument {
        /// The function.
        function: String,
        /// The name that was given.
        found: String,
        /// The arguments' names, the most similar one first.
        expected: String,
    },

    /// An argument has another type.
    #[error(
        "argument {number} \"{name}\": found {found}, expected {expected}\nhint: convert it before the call"
    )]
    ArgumentType {
        /// The argument's number, from 1.
        number: usize,
        /// Its name.
        name: String,
        /// The type that was given.
        found: String,
        /// The type that it has.
        expected: String,
    },

    /// An argument is a tensor on another device, whose memory the function cannot read.
    #[error(
        "argument {number} \"{name}\": found a tensor on another device, expected one on the program's\n\
         hint: `read` it, and give what was read to `bind`"
    )]
    OtherDevice {
        /// The argument's number, from 1.
        number: usize,
        /// Its name.
        name: String,
    },

    /// A buffer has another size than its tensor.
    #[error(
        "`{name}`: found {found} bytes, expected {size} for {expected}\nhint: give a buffer of the tensor's size"
    )]
    BufferSize {
        /// The argument or result.
        name: String,
        /// The buffer's bytes.
        found: usize,
        /// Those of the tensor.
        size: usize,
        /// The tensor's type.
        expected: String,
    },

    /// An argument was not given.
    #[error(
        "argument {number} \"{name}\": found nothing, expected {expected}\nhint: give it before the call"
    )]
    MissingArgument {
        /// The argument's number, from 1.
        number: usize,
        /// Its name.
        name: String,
        /// Its type.
        expected: String,
    },

    /// A state was bound as an input, or an input as a state.
    #[error("argument {number} \"{name}\" is {found}, expected {expected}\nhint: use `{method}`")]
    OtherKind {
        /// The argument's number, from 1.
        number: usize,
        /// Its name.
        name: String,
        /// What it is: `a state`, `an input`.
        found: &'static str,
        /// What it was given as.
        expected: &'static str,
        /// The method for what it is.
        method: &'static str,
    },

    /// Nothing of this name can be read.
    #[error("{function} has no result and no state `{}`, expected {expected}\nhint: `mlxcel-bundle inspect BUNDLE` shows them", found.escape_debug())]
    NoResult {
        /// The function.
        function: String,
        /// The name that was asked for.
        found: String,
        /// The results' names, the most similar one first.
        expected: String,
    },

    /// A result was asked for that is not there.
    #[error(
        "{function} has no result `{name}` yet\nhint: call the function first; a result can be taken once"
    )]
    NotCalled {
        /// The function.
        function: String,
        /// The result.
        name: String,
    },

    /// The result of a state was asked for as a tensor of its own.
    #[error("{function} keeps `{name}` for its next call\nhint: read it with `read`")]
    Kept {
        /// The function.
        function: String,
        /// The result.
        name: String,
    },
}
