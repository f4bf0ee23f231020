//! The checks of `cargo xtask tidy`.

pub(crate) mod circles;
