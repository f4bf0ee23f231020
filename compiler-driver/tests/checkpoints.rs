//! Quantized checkpoints, as the tools that people use write them: with `--quant none`, tokens and logits are those of
//! transformers over the weights that the tool dequantizes.
//!
//! `MLXCEL_FIXTURES=mlx,awq` runs the fixtures whose names contain one of these words.

use std::{env, fs, path::PathBuf, sync::Mutex};

use crate::{
    oracle::{Failure, answers_of_quantized},
    real::{Fixture, each, models},
};

#[test]
fn quantized_checkpoints_answer_as_their_tools_dequantize_them() {
    let only = env::var("MLXCEL_FIXTURES").unwrap_or_default();
    let folder = models().join("oracle/quantized_checkpoints/fixtures");
    let entries = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let is_chosen = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        only.is_empty() || only.split(',').any(|word| name.contains(word))
    };
    let mut chosen: Vec<_> = entries.filter(is_chosen).collect();
    chosen.sort();
    assert!(!chosen.is_empty(), "no fixture is called {only}");
    let failures = Mutex::new(Vec::new());
    each(&chosen, |path| {
        let answered =
            Fixture::open(path).map_err(Failure).and_then(|fixture| answers_of_quantized(&fixture));
        if let Err(Failure(words)) = answered {
            failures.lock().unwrap().push(format!("{}: {words}", path.file_name().unwrap().display()));
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), chosen.len(), failures.join("\n"));
}
