//! The engine: answers to many requests at a time, over one [`ModelRunner`](crate::model::ModelRunner).
//!
//! [`Engine`] is synchronous: [`Engine::step`] runs one call of the device to its end. [`EngineThread`] runs it on a thread.
//!
//! - **Admission.** Requests wait in order, at most [`EngineSettings::waiting`]. A request starts when the pages of its
//!   prompt and its longest answer can be promised to it. So no running request is ever stopped for want of memory.
//! - **Steps.** Requests that generate come first, prompts fill the rest of a step. Every request that runs has a
//!   turn at least once in as many steps as requests run: it gets a row, and a prompt at least half of the largest
//!   chunk that a step could give it then.
//! - **One step ahead.** A GPU gets the next step while it computes one, where only requests run that take the largest logit.
//! - **Pages of earlier requests.** Whole pages stay in memory until others need them, the least recently used first. A
//!   prompt that starts with the same tokens reads them. Its last token is always run.
//! - **Speculation.** Drafts are rows of the same step. A draft is accepted while it is what the request would have
//!   taken anyway, drawn with its own random stream: the answer is the same as without.
//! - **Failures.** The requests of a step that fails end with its error, and the others go on. After
//!   [`EngineSettings::failures`] in a row the engine stops.
//!
//! On a device that is [exact](crate::model::ModelLimits::exact) an answer does not depend on other requests.

mod chooser;
mod core;
mod generation;
mod grammar;
mod inline;
mod memory;
mod ngram;
mod pages;
mod planned;
mod prefix;
mod request;
mod schedule;
mod score;
mod score_queue;
mod sequence;
mod step;
#[cfg(test)]
mod tests;
mod thread;
mod usage;

pub use self::core::{Engine, EngineSettings};
pub use generation::{Generation, StopReason, Timings};
pub use grammar::{Grammar, GrammarState, SharedGrammar};
pub use ngram::Speculation;
pub use request::{Event, EventKind, Penalties, Request, RequestId};
pub use score_queue::ScoreSink;
pub use thread::{EngineClient, EngineThread, EventSink, RequestGuard, RequestHandle};
pub use usage::{PoolUsage, Usage, Work};
