//! Hostile inputs: each gets a message, none a panic or a read out of bounds.

// Clippy knows tests, not their helpers.
#![allow(clippy::unwrap_used)]

mod bundles;
mod weights;
