//! Hostile inputs: each gives an error, and none a panic or a read out of bounds.

// Clippy allows unwrap in tests, but not in their helpers.
#![allow(clippy::unwrap_used)]

mod bundles;
mod weights;
