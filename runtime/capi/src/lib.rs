//! The C interface, `mlxcel.h`. `src/ffi/` has what C calls and all that is unsafe; the modules beside it have no pointers.

#![allow(unreachable_pub, reason = "C reaches it")]

mod errors;
mod ffi;
mod handles;
mod request;
mod threads;
