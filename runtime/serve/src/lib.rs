#![doc = include_str!("../README.md")]

mod answer;
mod api;
mod connection;
mod facts;
mod grammars;
mod limits;
mod model;
mod observe;
mod routes;
mod server;
mod state;
mod tools;

pub use facts::{Facts, Signature, Task};
pub use limits::Limits;
pub use model::{ServedModel, TextFiles};
pub use server::serve;
pub use state::Settings;
