//! Compiled kernels.

/// A compiled file of kernels, which iree-compile looks up by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Object {
    /// The file name.
    pub name: &'static str,
    /// The content of the file.
    pub bytes: &'static [u8],
}

/// Names and contents of every compiled file, see [`Isa::object_name`](super::Isa::object_name).
const OBJECTS: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/objects.rs"));

/// Returns every compiled file of kernels.
pub fn objects() -> impl Iterator<Item = Object> {
    OBJECTS.iter().map(|&(name, bytes)| Object { name, bytes })
}
