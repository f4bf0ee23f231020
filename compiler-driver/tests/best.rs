//! The best tokens of a step, as devices find them, equal those computed from the logits on the host.

use crate::real::{built, changed, fixtures, models, request};
use mlxcel_artifacts::entry::best_count;
use mlxcel_compiler_driver::{Request, WeightSource};
use mlxcel_runtime::{
    ModelRunner,
    model::{Batch, SequenceRows},
};
use tempfile::TempDir;

/// The targets of these tests: with kernels, if the machine has some, and without.
fn targets() -> Vec<&'static str> {
    if cfg!(target_arch = "x86_64") { vec!["cpu", "cpu-x86-64-v2"] } else { vec!["cpu"] }
}

/// Returns the best ids, and the logarithm of the sum of exponentials.
fn expected(logits: &[f32]) -> (Vec<u32>, f64) {
    let mut ids: Vec<u32> = (0..).take(logits.len()).collect();
    // Stable, so that of equal logits the lower id comes first.
    ids.sort_by(|&a, &b| logits[b as usize].total_cmp(&logits[a as usize]));
    ids.truncate(best_count(logits.len()));
    let sum: f64 = logits.iter().map(|&logit| f64::from(logit).exp()).sum();
    (ids, sum.ln())
}

/// Runs steps of every size with several selected rows, and compares each row.
fn check(name: &str, model: &mut dyn ModelRunner) {
    let limits = model.limits().clone();
    let mut compared = 0;
    for (size, sizes) in limits.steps.iter().enumerate() {
        let pages: Vec<[u32; 1]> = (1..).take(sizes.sequences.min(5)).map(|page| [page]).collect();
        let tokens = |sequence: usize| ((sequence * 31 + size) % limits.vocab) as u32;
        let rows = pages.iter().enumerate().map(|(sequence, pages)| SequenceRows {
            tokens: vec![tokens(sequence)],
            start: 0,
            pages: vec![pages; limits.pools.len()],
            selected: vec![0],
        });
        let best = model.step(&Batch { size, sequences: rows.collect() }).unwrap();
        for (row, selected) in best.iter().enumerate() {
            let what = format!("{name}, call of {} rows, row {row}", sizes.rows);
            let found = model.best(row).unwrap().expect("every target finds the best tokens");
            let logits = model.logits(row).unwrap();
            let (ids, log_sum) = expected(&logits);
            assert_eq!((found.ids[0], &found.ids), (selected.token, &ids), "{what}");
            let values: Vec<f32> = ids.iter().map(|&id| logits[id as usize]).collect();
            assert_eq!(found.logits, values, "{what}");
            let near = (f64::from(found.log_sum_exp) - log_sum).abs() < 1e-6 + log_sum.abs() * 1e-6;
            assert!(near, "{what}: {}, expected {log_sum}", found.log_sum_exp);
            compared += 1;
        }
        assert!(model.best(best.len()).is_err(), "no such row");
    }
    assert!(compared >= limits.steps.len());
}

fn of_target(name: &str, target: &str, request: &Request) {
    let built = built(&Request { targets: vec![target.to_owned()], ..request.clone() });
    check(&format!("{name} for {target}"), built.engine("local-task").unwrap().runner());
}

fn each_target(name: &str, request: &Request) {
    targets().into_iter().for_each(|target| of_target(name, target, request));
}

/// Returns a layer of the demo model with this vocabulary. What a step finds is compared with its own logits, wherever those come
/// from.
fn layer(vocabulary: &str) -> TempDir {
    let vocabulary = format!("\"vocab_size\": {vocabulary}");
    let words =
        [("\"num_hidden_layers\": 4", "\"num_hidden_layers\": 1"), ("\"vocab_size\": 1536", &vocabulary)];
    changed(&models().join("demo"), &words)
}

/// Calls of every size.
#[test]
fn of_the_demo() {
    of_target("demo", "cpu", &request(&models().join("demo"), &[]));
    let short = layer("1536");
    let weights = WeightSource::Random(7);
    each_target("a layer of the demo", &Request { weights, ..request(short.path(), &[]) });
}

/// Logits with a cap.
#[test]
fn of_a_fixture() {
    let chunk = Some(32);
    each_target("gemma2-hub", &Request { chunk, ..request(&fixtures().join("gemma2-hub"), &[]) });
}

#[test]
fn of_a_vocabulary_below_64() {
    let folder = layer("40");
    let weights = WeightSource::Random(7);
    each_target("40 tokens", &Request { weights, chunk: Some(32), ..request(folder.path(), &[]) });
}
