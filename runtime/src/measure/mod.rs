//! What is measured of a model: speed, where its time goes, how well it predicts a text, and whether a device answers as
//! another one did.

pub(crate) mod bench;
pub(crate) mod perplexity;
pub(crate) mod profile;
pub(crate) mod self_test;
