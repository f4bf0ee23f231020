//! Quantized checkpoints, as the tools that people use write them: with `--quant none`, tokens and logits are those of
//! transformers over the weights that the tool dequantizes.
//!
//! `MLXCEL_FIXTURES=mlx,awq` runs the fixtures whose names contain one of these words.

use std::{env, sync::Mutex};

use crate::{
    oracle::{Failure, answers_of_quantized},
    real::{Fixture, each, models},
};

#[test]
fn quantized_checkpoints_answer_as_their_tools_dequantize_them() {
    let only = env::var("MLXCEL_FIXTURES").unwrap_or_default();
    let folder = models().join("oracle/quantized_checkpoints/fixtures");
    let mut chosen = Fixture::all_in(&folder).unwrap();
    chosen.retain(|fixture| only.is_empty() || only.split(',').any(|word| fixture.name.contains(word)));
    let failures = Mutex::new(Vec::new());
    each(&chosen, |fixture| {
        if let Err(Failure(words)) = answers_of_quantized(fixture) {
            failures.lock().unwrap().push(format!("{}: {words}", fixture.name));
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), chosen.len(), failures.join("\n"));
}
