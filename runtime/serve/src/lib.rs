#![doc = include_str!("../README.md")]

mod answer;
mod api;
mod aside;
mod connection;
mod embedder;
mod facts;
mod generator;
mod grammars;
mod limits;
mod model;
mod models;
mod observe;
mod openapi;
mod reload;
mod routes;
mod server;
mod state;
mod thread_end;
mod tls;
mod tools;
#[cfg(feature = "otel")]
mod traces;

pub use facts::{Facts, Signature, Task};
pub use limits::Limits;
pub use model::ServedModel;
pub use models::{Loader, Models, OpenedBundle};
pub use reload::{LoadError, Reload, ReloadError, Reloaded};
pub use server::{end_runtime, serve};
pub use state::Settings;
pub use tls::{Tls, TlsError};
#[cfg(feature = "otel")]
pub use traces::{Traces, TracesError};
