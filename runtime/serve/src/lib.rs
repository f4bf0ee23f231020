#![doc = include_str!("../README.md")]

mod answer;
mod api;
mod facts;
mod grammars;
mod model;
mod observe;
mod routes;
mod server;
mod state;
mod tools;

pub use facts::{Facts, Signature, Task};
pub use model::{ServedModel, TextFiles};
pub use server::serve;
pub use state::Settings;
