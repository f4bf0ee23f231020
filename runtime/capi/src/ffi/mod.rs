//! What C calls. All that is unsafe here is reading and writing the caller's memory, in `pointers.rs`, and the names of the
//! exported functions.

#![allow(unsafe_code)]
#![allow(
    clippy::missing_safety_doc,
    reason = "C's callers read mlxcel.h, whose first lines say what holds for all"
)]

mod bundle;
mod engine;
mod error;
mod generate;
mod pointers;
mod program;
mod requests;
mod stream;
mod types;
