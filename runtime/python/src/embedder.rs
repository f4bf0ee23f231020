//! Embeddings of texts.

use std::sync::mpsc;

use mlxcel_runtime::EncoderClient;
use pyo3::prelude::*;

use crate::{
    error,
    wait::{receive, wait},
};

/// The most texts of one request to the encoder: Ctrl-C ends the work between requests.
const TEXTS: usize = 256;

/// Computes the embeddings of texts, one after another in a row of bytes: `f32`, as the machine orders them.
pub(crate) fn embed(py: Python<'_>, client: &EncoderClient, texts: Vec<Vec<u32>>) -> PyResult<Vec<u8>> {
    let mut bytes = Vec::with_capacity(texts.len() * client.limits().width * size_of::<f32>());
    let mut texts = texts.into_iter();
    loop {
        let part: Vec<Vec<u32>> = texts.by_ref().take(TEXTS).collect();
        if part.is_empty() {
            return Ok(bytes);
        }
        let (sender, answer) = mpsc::channel();
        let sink = Box::new(move |found| _ = sender.send(found));
        // The guard ends the work if Ctrl-C ends the wait.
        let _guard = client.try_embed_to(part, sink).map_err(error::of)?;
        let found = receive(py, answer)?.map_err(error::of)?;
        for vector in found.vectors {
            bytes.extend(vector.iter().flat_map(|value| value.to_ne_bytes()));
        }
        wait(py, || Some(()))?;
    }
}
