//! Quantized checkpoints, as the tools that people use write them: with `--quant none`, tokens and logits are those of
//! transformers over the weights that the tool dequantizes.
//!
//! `MLXCEL_FIXTURES=mlx,awq` runs the fixtures whose names contain one of these words, `MLXCEL_ORACLE=full` all of them, also
//! without kernels. `MLXCEL_CHECKPOINTS=FOLDER` runs those of another folder.

use std::{env, fs, path::PathBuf, sync::Mutex};

use crate::{
    oracle::{Failure, answers_of_quantized},
    real::{Fixture, each, is_full, models},
};

/// Fixtures that only `MLXCEL_ORACLE=full` runs, because others have the same form with other numbers.
const FULL_ONLY: [&str; 20] = [
    "awq-group-128",
    "awq-group-64",
    "bnb-nf4",
    "ct-fp8-dynamic",
    "ct-ignore",
    "ct-mxfp4",
    "ct-nvfp4-act",
    "ct-w4a16",
    "ct-w4a16-actorder",
    "ct-w8a16",
    "fp8-bf16-scales",
    "fp8-qwen3-moe",
    "gptq-4bit",
    "gptq-8bit",
    "gptq-v2",
    "mlx-2bit",
    "mlx-4bit",
    "mlx-5bit",
    "mlx-6bit",
    "mlx-8bit",
];

#[test]
fn quantized_checkpoints_answer_as_their_tools_dequantize_them() {
    let only = env::var("MLXCEL_FIXTURES").unwrap_or_default();
    let committed = || models().join("oracle/quantized_checkpoints/fixtures");
    let folder = env::var_os("MLXCEL_CHECKPOINTS").map_or_else(committed, PathBuf::from);
    let entries = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let is_chosen = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        match only.as_str() {
            "" => is_full() || !FULL_ONLY.contains(&&*name),
            words => words.split(',').any(|word| name.contains(word)),
        }
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
