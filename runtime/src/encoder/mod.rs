//! Encoders: texts to vectors.

pub(crate) mod contract;
#[cfg(test)]
mod tests;
pub(crate) mod thread;
