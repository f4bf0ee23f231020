//! Entries for the best tokens, as the emitter generates them, compared with a plain search on the host.
//!
//! The modules are goldens of the emitter, because this crate does not depend on it.

use std::{cmp::Ordering, rc::Rc};

use safetensors::Dtype;

use super::*;
use crate::{
    ffi::{ArgumentType, Call, Device, tests::compile},
    trace::Trace,
    weights::Weights,
};

const MANY: &str = include_str!("../../../../emitter/tests/snapshots/goldens__best_tokens.snap");
const FEW: &str =
    include_str!("../../../../emitter/tests/snapshots/goldens__best_tokens_of_a_small_vocabulary.snap");

/// Returns a golden's module and its vocabulary.
fn golden(text: &'static str) -> (&'static str, usize) {
    let module = text.find("module @").expect("a golden is a module");
    let (_, logits) = text.split_once("tensor<1x").expect("its first argument is logits");
    let (vocab, _) = logits.split_once("xf32>").expect("of one row");
    (&text[module..], vocab.parse().expect("a number"))
}

fn load(mlir: &str, device: &str) -> Module {
    let program = ffi::map(&compile(mlir, device)).unwrap();
    let device = Device::create(device, None, Some(2), &Trace::off()).unwrap();
    Module::load(&device, program, Rc::new(Weights::empty()), "", &[]).unwrap()
}

/// Returns numbers that look random.
fn numbers() -> impl FnMut(u64) -> u64 {
    let mut state = 88_172_645_463_325_252u64;
    move |below| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 20) % below
    }
}

/// Returns rows of logits: spread, with ties, equal, ascending, most of them -∞, one ∞, some NaN, and all NaN.
fn rows(vocab: usize) -> Vec<Vec<f32>> {
    let mut number = numbers();
    let mut spread = || number(2_000_000) as f32 * 1e-5 - 10.0;
    let mut row: Vec<f32> = (0..vocab).map(|_| spread()).collect();
    let mut all = vec![row.clone()];
    all.push((0..vocab).map(|_| spread().round()).collect());
    all.push(vec![-2.5; vocab]);
    all.push((0..vocab).map(|id| id as f32 * 1e-4).collect());
    all.push((0..vocab).map(|id| if id % 37 == 5 { spread() } else { f32::NEG_INFINITY }).collect());
    row[vocab / 3] = f32::INFINITY;
    all.push(row.clone());
    row[vocab / 2] = f32::NAN;
    row[vocab - 1] = f32::NAN;
    all.push(row);
    all.push(vec![f32::NAN; vocab]);
    all
}

/// Returns the best ids with their logits, and the logarithm of the sum of exponentials.
fn expected(logits: &[f32]) -> (Vec<i32>, Vec<f32>, f64) {
    let value = |id: usize| if logits[id].is_nan() { f32::NEG_INFINITY } else { logits[id] };
    let mut ids: Vec<usize> = (0..logits.len()).collect();
    ids.sort_by(|&a, &b| value(b).partial_cmp(&value(a)).unwrap_or(Ordering::Equal));
    ids.truncate(64);
    let largest = f64::from(value(ids[0]));
    let sum: f64 = logits.iter().map(|&logit| (f64::from(logit) - largest).exp()).sum();
    let log_sum = match largest {
        _ if logits.iter().any(|logit| logit.is_nan()) => f64::NAN,
        _ if largest.is_infinite() => largest,
        _ => largest + sum.ln(),
    };
    (ids.iter().map(|&id| id as i32).collect(), ids.iter().map(|&id| value(id)).collect(), log_sum)
}

fn check(module: &Module, vocab: usize, rows: &[Vec<f32>], device: &str) {
    let shape = [rows.len(), vocab];
    let inputs = [ArgumentType::Copied(Dtype::F32, &shape), ArgumentType::Copied(Dtype::I32, &[1])];
    let name = format!("model.best_{}", rows.len());
    let mut call = Call::new(module, &name, &inputs).unwrap();
    let logits = rows.concat();
    let results = call.invoke(&[ffi::bytes(&logits), ffi::bytes(&[rows.len() as i32])]).unwrap();
    let best = vocab.min(64);
    assert_eq!(results[0].shape(), [rows.len(), best]);
    let (ids, values) = (results[0].read::<i32>().unwrap(), results[1].read::<f32>().unwrap());
    let log_sums = results[2].read::<f32>().unwrap();
    for (index, row) in rows.iter().enumerate() {
        let at = index * best..(index + 1) * best;
        let (expected_ids, expected_values, log_sum) = expected(row);
        assert_eq!(ids[at.clone()], expected_ids, "{device}, {vocab} tokens, row {index}");
        assert_eq!(values[at], expected_values, "{device}, {vocab} tokens, row {index}");
        let found = f64::from(log_sums[index]);
        let near = (found - log_sum).abs() <= 1e-6 + log_sum.abs() * 1e-6;
        let same = found == log_sum || found.is_nan() && log_sum.is_nan();
        assert!(near || same, "{device}, {vocab} tokens, row {index}: found {found}, expected {log_sum}");
    }
}

#[test]
fn generated_entries_find_the_best_tokens() {
    for (mlir, vocab) in [golden(MANY), golden(FEW)] {
        let rows = rows(vocab);
        for device in ["local-sync", "local-task", "vulkan"] {
            let module = load(mlir, device);
            check(&module, vocab, &rows, device);
            rows.iter().for_each(|row| check(&module, vocab, std::slice::from_ref(row), device));
        }
    }
}
