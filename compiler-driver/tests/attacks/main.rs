//! Requests and checkpoints that are wrong, by accident or on purpose. Each is refused with what was found and expected,
//! before the compiler starts, and leaves nothing behind.
#![allow(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

mod bundles;
#[path = "../common/mod.rs"]
mod common;
#[path = "../real/mod.rs"]
mod real;
mod requests;
mod weights;
