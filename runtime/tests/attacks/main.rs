//! Hostile inputs: each gives an error, and none a panic or a read out of bounds.

// Clippy allows unwrap in tests, but not in their helpers.
#![allow(clippy::unwrap_used)]

mod bundles;
#[path = "../../src/bin/mlxcel-run/offline/fields.rs"]
#[allow(dead_code, reason = "a part of the program mlxcel-run")]
mod fields;
mod receipts;
mod requests;
mod weights;
