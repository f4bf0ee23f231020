//! An instruction's words.

use crate::types::{Space, Type};

/// What an instruction's name is made of, and its operands.
pub(super) struct Words<'t> {
    pub(super) op: &'t str,
    /// The parts of the name after the first: `rn`, `f32`.
    pub(super) modifiers: Vec<&'t str>,
    pub(super) operands: Vec<&'t str>,
}

impl Words<'_> {
    pub(super) fn has(&self, modifier: &str) -> bool {
        self.modifiers.contains(&modifier)
    }

    /// Returns the type, which is the last part of a name.
    pub(super) fn ty(&self) -> Result<Type, String> {
        let last = self.modifiers.iter().rev().find_map(|name| Type::of(name));
        last.ok_or_else(|| "found no type, expected one".to_owned())
    }

    pub(super) fn operand(&self, index: usize) -> Result<&str, String> {
        let found = self.operands.len();
        self.operands
            .get(index)
            .copied()
            .ok_or_else(|| format!("found {found} operands, expected at least {}", index + 1))
    }

    /// Returns the space that an instruction names.
    pub(super) fn space(&self) -> Space {
        self.modifiers.iter().find_map(|name| Space::of(name)).unwrap_or(Space::Generic)
    }
}
