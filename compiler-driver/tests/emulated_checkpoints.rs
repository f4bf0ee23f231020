//! Quantized checkpoints with `--quant auto` on a driver without a GPU (`runtime/emulator`): kernels read the stored bits, round
//! the inputs of single rows to 16 bits and those of prompts to bf16, and answer nearly as transformers does with the weights that
//! the tool dequantizes.
//!
//! `MLXCEL_FIXTURES=mlx,awq` runs the fixtures whose names contain one of these words, `MLXCEL_ORACLE=full` all of them.

use std::{collections::BTreeSet, env, sync::Mutex};

use mlxcel_compiler_driver::{Float, Precision, Quant, Request};

use crate::{
    answers::Failure,
    checkpoints::{check_each, fixtures, kernel_of_recipe},
    emulated::{FIXTURE, answers, check_nearly},
    real::{self, Fixture, is_full, request, try_built},
};

/// The fixtures that run by default, which together have every width of codes: K-quants, zero points, minima, an order of
/// columns, floats of 8 and 4 bits, also beside a weight that is decoded, a mixture whose codes look up numbers, and one whose
/// experts have several forms, which no kernel reads.
const BY_DEFAULT: [&str; 9] = [
    "awq-group-32",
    "bnb-nf4-double",
    "fp8-qwen3-moe",
    "gguf-k",
    "gguf-mixtral",
    "gptq-act-order",
    "mlx-nvfp4",
    "mlx-overrides",
    "mxfp4-gpt-oss",
];

/// Tokens of an answer that are compared.
const TOKENS: usize = 8;

/// How near the best two logits are where either token is right.
const NEAR: f32 = 0.05;

const TARGET: &str = "cuda";

/// Returns the request for a fixture, which the test and its child process share.
fn for_gpu(fixture: &Fixture) -> Request {
    Request {
        precision: Precision::Float(Float::F32),
        quant: Quant::Auto,
        chunk: Some(32),
        ..request(&fixture.folder, &[TARGET])
    }
}

#[test]
fn stored_bits_on_gpus_answer_nearly_as_the_numbers_that_they_stand_for() {
    let read = Mutex::new(BTreeSet::new());
    check_each(&fixtures(|name| BY_DEFAULT.contains(&name)), |fixture| {
        let request = for_gpu(fixture);
        let built = try_built(&request).map_err(Failure)?;
        let steps = &built.bundle.manifest().targets[TARGET].packing.as_ref().unwrap().steps;
        let results = steps.iter().flat_map(|step| &step.results);
        read.lock()
            .unwrap()
            .extend(results.filter_map(|result| result.name.split('.').find_map(kernel_of_recipe)));
        answers(fixture, TARGET, &request, "emulated_checkpoints::one_fixture").map_err(Failure)
    });
    let read: Vec<_> = read.into_inner().unwrap().into_iter().collect();
    if env::var_os("MLXCEL_FIXTURES").is_none() && !is_full() {
        let expected = "q4_e2m1 q4_e2m1_floats q4_iq4_blocks q4_minima q4_nf4 q4_superblocks q4_zeros q5_minima \
                        q5_superblocks q5_symmetric q6_halves q6_minima q8_e4m3 q8_minima q8_symmetric";
        assert_eq!(read.join(" "), expected);
    }
}

#[test]
#[ignore = "a part of a fixture's comparison, which starts it"]
fn one_fixture() {
    let name = env::var(FIXTURE).unwrap();
    let fixture = fixtures(|other| other == name).into_iter().find(|fixture| fixture.name == name).unwrap();
    let mut engine = real::built(&for_gpu(&fixture)).engine(TARGET).unwrap();
    check_nearly(&mut engine, &fixture, TOKENS, NEAR);
}
