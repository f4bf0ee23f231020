//! Global variables of modules.

use crate::types::TensorType;

/// A variable of a module, shared by its functions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Global {
    pub(crate) symbol: String,
    pub(crate) ty: TensorType,
    pub(crate) init: Init,
}

/// The initial value of a global.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Init {
    /// A parameter that the runtime provides, which never changes.
    Parameter { scope: String, key: String },
    /// A number everywhere, which functions overwrite.
    Splat(usize),
}
