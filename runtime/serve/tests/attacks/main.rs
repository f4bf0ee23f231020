//! Hostile clients. Each gets an answer of its own, and the server answers the next request.
#![allow(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

mod connections;
#[path = "../scripted/mod.rs"]
#[allow(dead_code, reason = "the tests of all answers need more of it")]
mod scripted;
mod slow;
mod table;
mod wire;
