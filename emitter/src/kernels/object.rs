//! Compiled kernels.

use std::borrow::Cow;

/// A compiled file of kernels, which iree-compile looks up by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// The file name.
    pub name: Cow<'static, str>,
    /// The content of the file.
    pub bytes: Cow<'static, [u8]>,
}

/// Names and contents of every compiled file, see [`Isa::object_name`](super::Isa::object_name).
const OBJECTS: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/objects.rs"));

/// Returns every compiled file of kernels.
pub fn objects() -> impl Iterator<Item = Object> {
    OBJECTS.iter().map(|&(name, bytes)| Object { name: name.into(), bytes: bytes.into() })
}
