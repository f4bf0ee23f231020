//! Measurements of a model: speed, time by dispatch, perplexity, and whether a device answers as recorded.

pub(crate) mod batch;
pub(crate) mod bench;
pub(crate) mod perplexity;
pub(crate) mod profile;
pub(crate) mod read;
pub(crate) mod self_test;
