//! Quantized weights and caches: the demo model's predictions of a text are those that Hugging Face transformers makes with the same
//! formulas, on kernels and on plain StableHLO (`models/oracle/quantized.py` records them).

use std::{collections::BTreeMap, error::Error, fs};

use crate::{
    answers::{engine, greedy, on},
    real::{Built, Fixture, built, changed, in_pieces, is_full, models, request},
};
use mlxcel_artifacts::{Bundle, entry::Parameter};
use mlxcel_compiler_driver::{CacheType, Float, Quant, Request, build};
use mlxcel_runtime::{Cancel, Quality, QualityComparison, Tokenizer, measure_quality, pack};
use serde::Deserialize;

/// Between which factors of the recorded one a divergence lies. A few rounded inputs more or less make it differ; weights
/// alone quantized, or inputs in other groups, give another one.
const DIVERGENCES: std::ops::Range<f64> = 0.85..1.15;

/// By how much a perplexity may differ, relatively.
const PERPLEXITY: f64 = 2e-3;

/// The same in `f32`, where nothing is rounded to 8 bits.
const PERPLEXITY_IN_F32: f64 = 5e-6;

#[derive(Deserialize)]
pub(crate) struct Recorded {
    pub(crate) window: usize,
    of: BTreeMap<String, Expected>,
}

#[derive(Debug, Deserialize)]
struct Expected {
    perplexity: f64,
    mean_kl: f64,
}

/// The text, in tokens.
fn text(bundle: &Bundle) -> Vec<u32> {
    let text = fs::read_to_string(models().join("demo/held_out.txt")).unwrap();
    Tokenizer::from_bundle(bundle).unwrap().encode(&text, true).unwrap()
}

/// The demo model with one size of steps for prompts, for others take long to compile.
pub(crate) fn demo(target: &str) -> Request {
    Request { chunk: Some(64), ..request(&models().join("demo"), &[target]) }
}

/// Returns a request with quantized weights.
fn with_weights(quant: Quant, request: Request) -> Request {
    Request { quant, ..request }
}

/// Returns a request with a quantized cache.
fn with_cache(request: Request) -> Request {
    Request { cache_type: Some(CacheType::Q8), ..request }
}

/// Of the demo model with quantized weights.
fn weights_predict_as_recorded(target: &str, quant: Quant) {
    let quantized = built(&with_weights(quant, demo(target)));
    let plan = quantized.bundle.manifest().model_spec().unwrap();
    assert_eq!((plan.quant, plan.cache_type), (quant, CacheType::Float(Float::F32)));
    predicts_as_recorded(&quantized, &quant.to_string());
}

/// Of the demo model with a quantized cache.
fn cache_predicts_as_recorded(target: &str) {
    let quantized = built(&with_cache(demo(target)));
    let plan = quantized.bundle.manifest().model_spec().unwrap();
    assert_eq!((plan.quant, plan.cache_type), (Quant::None, CacheType::Q8));
    // Keys and values of 4 layers, 2 heads each, of 32 dimensions in 34 bytes.
    assert_eq!(plan.position_bytes, 2 * 4 * 2 * 34);
    predicts_as_recorded(&quantized, "kv-q8");
}

fn predicts_as_recorded(quantized: &Built, name: &str) {
    let Recorded { window, of } = recorded();
    let found = measured(quantized, window);
    assert!(is_near(found.reference_perplexity, of["none"].perplexity, PERPLEXITY_IN_F32), "{found:?}");
    predicts_as(&found, &of[name], name);
}

fn predicts_as(found: &Measured, expected: &Expected, name: &str) {
    assert!(is_near(found.perplexity, expected.perplexity, PERPLEXITY), "{name}: {found:?}, {expected:?}");
    let factor = found.mean_kl / expected.mean_kl;
    assert!(DIVERGENCES.contains(&factor), "{name}: {found:?}, {expected:?}");
}

fn is_near(found: f64, expected: f64, tolerance: f64) -> bool {
    (found / expected - 1.0).abs() < tolerance
}

/// Compares the first layer of the demo model, with weights and cache in 8 bits and without kernels, with the same by kernels, whose
/// predictions by all layers are the recorded ones.
#[cfg(target_arch = "x86_64")]
fn plain_stablehlo_predicts_as_kernels() {
    let words = [("\"num_hidden_layers\": 4", "\"num_hidden_layers\": 1")];
    let folder = changed(&models().join("demo"), &words);
    let weights = fs::canonicalize(models().join("demo/model.safetensors")).unwrap();
    std::os::unix::fs::symlink(weights, folder.path().join("model.safetensors")).unwrap();
    let of = |target: &str| Request { chunk: Some(64), ..request(folder.path(), &[target]) };
    let (reference, window) = (built(&of("cpu")), recorded().window);
    let [plain, kernels] = ["cpu-x86-64-v2", "cpu"].map(|target| {
        let quantized = with_weights(Quant::Q8, with_cache(of(target)));
        compared(&built(&quantized), &reference, window)
    });
    let Measured { perplexity, mean_kl, .. } = kernels;
    predicts_as(&plain, &Expected { perplexity, mean_kl }, "q8 and kv-q8");
}

pub(crate) fn recorded() -> Recorded {
    serde_json::from_slice(&fs::read(models().join("demo/quantized.json")).unwrap()).unwrap()
}

#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) perplexity: f64,
    reference_perplexity: f64,
    pub(crate) mean_kl: f64,
}

/// Compares a build of the demo model with one in `f32`.
pub(crate) fn measured(quantized: &Built, window: usize) -> Measured {
    compared(quantized, &built(&request(&models().join("demo"), &["cpu"])), window)
}

/// Compares a build of a model with the demo's tokenizer with one in `f32`.
fn compared(quantized: &Built, reference: &Built, window: usize) -> Measured {
    let mut quantized_engine = quantized.engine("local-task").unwrap();
    let mut reference = reference.engine("local-task").unwrap();
    let text = text(&quantized.bundle);
    let found = measure_quality(
        &mut quantized_engine,
        Some(&mut reference),
        &text,
        window,
        &mut |_, _| (),
        &Cancel::new(),
    );
    let Quality { perplexity, comparison, .. } = found.unwrap();
    let QualityComparison { reference_perplexity, mean_kl, .. } = comparison.unwrap();
    Measured { perplexity, reference_perplexity, mean_kl }
}

#[test]
fn kernels_on_a_cache_in_8_bits() {
    cache_predicts_as_recorded("cpu");
}

#[test]
fn kernels_in_8_bits() {
    weights_predict_as_recorded("cpu", Quant::Q8);
}

#[test]
fn kernels_in_4_bits() {
    weights_predict_as_recorded("cpu", Quant::Q4);
}

/// Nothing else has this mixture of forms, so that there is no recorded divergence.
#[test]
fn kernels_in_superblocks() {
    let Recorded { window, of } = recorded();
    let quantized = built(&Request { quant: Quant::Q4K, ..demo("cpu") });
    let Measured { perplexity, mean_kl, .. } = measured(&quantized, window);
    eprintln!("q4k: perplexity {perplexity}, mean KL {mean_kl}; q4: mean KL {}", of["q4"].mean_kl);
    assert!(mean_kl <= 0.02, "found {mean_kl}");
    assert!(perplexity < of["q4"].perplexity, "found {perplexity}");
}

#[test]
fn a_target_without_kernels_refuses_superblocks() {
    let demo = models().join("demo");
    for target in ["cpu-x86-64-v2", "cuda-sm_120"] {
        let request = Request { quant: Quant::Q4K, ..request(&demo, &[target]) };
        let refused = build(&request, &mut |_| ()).unwrap_err();
        let refused = refused.source().unwrap().to_string();
        let expected = "q4k on a target without kernels, but a CPU with AVX2, or an ARM CPU with dot products, is needed";
        assert!(refused.starts_with(expected), "{target}: {refused}");
    }
}

/// Code without kernels takes the compiler a quarter of a minute, so that both have one test by default.
#[cfg(target_arch = "x86_64")]
#[test]
fn plain_stablehlo_in_8_bits() {
    if is_full() {
        weights_predict_as_recorded("cpu-x86-64-v2", Quant::Q8);
        return cache_predicts_as_recorded("cpu-x86-64-v2");
    }
    plain_stablehlo_predicts_as_kernels();
}

#[cfg(target_arch = "x86_64")]
#[test]
fn plain_stablehlo_in_4_bits() {
    weights_predict_as_recorded("cpu-x86-64-v2", Quant::Q4);
}

#[test]
fn packed_weights_are_small_and_answer_the_same() {
    for (quant, most_bits) in [(Quant::Q8, 8.3), (Quant::Q4, 4.6), (Quant::Q4K, 4.85)] {
        let built = built(&Request { quant, ..demo("cpu") });
        let device = on("local-task");
        let (_, packed) =
            pack(built.bundle.clone(), None, &device, None, &Cancel::new(), &mut |_, _| ()).unwrap();
        let manifest = packed.manifest();
        let matrices = || manifest.parameters.iter().filter(|parameter| parameter.shape.len() == 2);
        let is_matrix = |name: &String| matrices().any(|parameter| parameter.name == *name);
        let steps = &manifest.targets["cpu"].packing.as_ref().unwrap().steps;
        let of_matrices = steps.iter().filter(|step| step.sources.iter().all(is_matrix));
        let bytes: usize = of_matrices.flat_map(|step| &step.results).filter_map(Parameter::bytes).sum();
        let weights: usize = matrices().map(|parameter| parameter.shape.iter().product::<usize>()).sum();
        let bits = 8.0 * bytes as f64 / weights as f64;
        eprintln!("{quant}: {bits} bits a weight");
        assert!(bits <= most_bits, "{quant}: {bits} bits a weight");

        let prompt = &text(&packed)[..40];
        let at_load = greedy(&mut built.engine("local-task").unwrap(), prompt, 40).unwrap();
        let ahead = greedy(&mut engine(&packed, None, &device).unwrap(), prompt, 40).unwrap();
        assert_eq!(at_load.tokens, ahead.tokens);
    }
}

/// Experts whose weights are tensors of their own, and stacked ones: their logits in 8 bits are near to those that transformers
/// gives in f32, and the same after a prompt, whose rows are sorted by expert, and after single tokens.
#[test]
fn experts_in_8_bits() {
    for name in ["mixtral-hub", "granitemoe-hub"] {
        let fixture = Fixture::find(name);
        let quantized = built(&Request { quant: Quant::Q8, ..request(&fixture.folder, &["cpu"]) });
        let mut engine = quantized.engine("local-task").unwrap();
        for recorded in &fixture.prompts[2..4] {
            let best = &recorded.best[0];
            let spread = best[0].1.abs().max(1.0);
            let mut far = |pieces: &[usize]| {
                let logits = in_pieces(engine.runner(), &recorded.prompt, pieces).unwrap();
                best.iter().map(|&(id, expected)| (logits[id as usize] - expected).abs()).fold(0.0, f32::max)
            };
            let (at_once, in_steps) = (far(&[recorded.prompt.len()]), far(&[1]));
            assert!((at_once - in_steps).abs() < 1e-4, "{name}: {at_once} and {in_steps}");
            assert!(at_once < 0.08 * spread, "{name}: {at_once} and {in_steps} of {spread}");
        }
    }
}

#[test]
fn a_target_that_loads_no_small_numbers_refuses() {
    let refused = |request: &Request| build(request, &mut |_| ()).unwrap_err().to_string();
    let hint = "hint: build a separate bundle for this target";
    let request = request(&models().join("demo"), &["vulkan"]);
    assert_eq!(
        refused(&Request { quant: Quant::Q8, ..request.clone() }),
        format!("target vulkan cannot quantize weights, expected --quant none\n{hint}")
    );
    assert_eq!(
        refused(&Request { cache_type: Some(CacheType::Q8), ..request }),
        format!("target vulkan cannot load 8-bit numbers, expected --cache-type f32\n{hint}")
    );
}
