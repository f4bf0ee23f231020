//! Receipts: all that an answer was made of, so that another machine can make it again.

mod document;
mod error;
mod fields;
mod read;
mod replay;
mod request;
#[cfg(test)]
mod tests;

pub use document::{Maker, Receipt, RecordedAnswer, VERSION};
pub use error::ReceiptError;
pub use read::{MAX_BYTES, read};
pub use replay::{Replayed, replay};
pub use request::{RecordedConstraint, RecordedRequest, RecordedSampling, TextRules};
