//! Invalid requests and checkpoints. Each is refused before the compiler starts, with what was found and expected, and
//! leaves no files.
#![allow(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

mod bundles;
#[path = "../common/mod.rs"]
mod common;
#[path = "../real/mod.rs"]
mod real;
mod requests;
mod weights;
