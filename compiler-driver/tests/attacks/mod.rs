//! Invalid requests and checkpoints. Each is refused before the compiler starts, with what was found and expected, and
//! leaves no files.

mod bundles;
mod requests;
mod weights;
