//! Quantized checkpoints, as the tools that people use write them: with `--quant none`, tokens and logits are those of
//! transformers over the weights that the tool dequantizes. With `--quant auto`, which rounds inputs, they are near.
//!
//! `MLXCEL_FIXTURES=mlx,awq` runs the fixtures whose names contain one of these words, `MLXCEL_ORACLE=full` all of them, also
//! without kernels. `MLXCEL_CHECKPOINTS=FOLDER` runs those of another folder.

use std::{collections::BTreeSet, env, fs, path::PathBuf, sync::Mutex};

use mlxcel_compiler_driver::{InputBits, Quant, Request, WeightSource};

use crate::{
    answers::{Failure, Loaded, Recorded},
    oracle::answers_of_quantized,
    real::{Built, Fixture, OF_PANELS, built, each, is_full, models, request, try_built},
};

/// Fixtures that only `MLXCEL_ORACLE=full` runs, because others have the same form with other numbers, or each of its parts.
const FULL_ONLY: [&str; 37] = [
    "awq-gemv-128",
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
    "fp8-tensor",
    "gguf-biases",
    "gguf-f16",
    "gptq-4bit",
    "gptq-8bit",
    "gptq-row",
    "gptq-v2",
    "mlx-2bit",
    "mlx-4bit",
    "mlx-5bit",
    "mlx-6bit",
    "mlx-8bit",
    "mlx-f32",
    "mlx-recipe",
    "modelopt-fp8",
    "modelopt-fp8-rows",
    "modelopt-int8",
    "modelopt-mxfp4",
    "modelopt-mxfp8",
    "modelopt-nvfp4",
    "modelopt-nvfp4-fp8",
    "modelopt-nvfp4-moe",
    "torchao-int8",
    "torchao-w8a8",
];

/// GGUF files of architectures that run by default: whole norms, permuted rows and stacks, stacked norms.
///
/// Of all of them, unit tests compare what the metadata says, and every number, with the checkpoint that the file was made of.
const CONVERTED: [&str; 3] = ["gemma2-bare", "granitemoe-hub", "stablelm-parallel"];

/// Fixtures that run with `--quant auto` by default: together they have every form that there is a kernel for.
const WITH_STORED_BITS: [&str; 20] = [
    "awq-group-32",
    "bnb-nf4",
    "ct-w3a16",
    "fp8-qwen3-moe",
    "fp8-ragged",
    "gguf-k",
    "gguf-legacy",
    "gguf-mixtral",
    "gguf-q4-0",
    "gptq-3bit",
    "gptq-8bit",
    "gptq-act-order",
    "mlx-2bit",
    "mlx-mxfp8",
    "mlx-nvfp4",
    "mlx-overrides",
    "mlx-recipe",
    "modelopt-mixed",
    "modelopt-nvfp4-fp8",
    "mxfp4-gpt-oss",
];

/// By how much logits differ at most if kernels read the stored bits, as a part of their spread: inputs of GGUF files have 8
/// bits, others 16.
///
/// Of most tokens: where a mixture chooses another expert, all differs.
const WITH_INPUTS_OF_8_BITS: f32 = 0.05;
const WITH_INPUTS_OF_16_BITS: f32 = 0.0005;

/// Returns the fixtures of a folder that are chosen, or those of which `is_default` holds.
pub(crate) fn fixtures(is_default: impl Fn(&str) -> bool) -> Vec<Fixture> {
    let only = env::var("MLXCEL_FIXTURES").unwrap_or_default();
    let committed = || models().join("oracle/quantized_checkpoints/fixtures");
    let folder = env::var_os("MLXCEL_CHECKPOINTS").map_or_else(committed, PathBuf::from);
    let entries = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let is_chosen = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        match only.as_str() {
            "" => is_full() || is_default(&name),
            words => words.split(',').any(|word| name.contains(word)),
        }
    };
    let mut chosen: Vec<_> = entries.filter(is_chosen).collect();
    chosen.sort();
    assert!(!chosen.is_empty(), "no fixture is called {only}");
    chosen.iter().map(|path| Fixture::open(path).unwrap()).collect()
}

/// Checks every fixture, and fails with all that failed.
pub(crate) fn check_each(fixtures: &[Fixture], check: impl Fn(&Fixture) -> Result<(), Failure> + Sync) {
    let failures = Mutex::new(Vec::new());
    each(fixtures, |fixture| {
        if let Err(Failure(words)) = check(fixture) {
            failures.lock().unwrap().push(format!("{}: {words}", fixture.name));
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), fixtures.len(), failures.join("\n"));
}

#[test]
fn quantized_checkpoints_answer_as_their_tools_dequantize_them() {
    check_each(&fixtures(|name| !FULL_ONLY.contains(&name)), answers_of_quantized);
}

#[test]
fn gguf_files_answer_as_the_checkpoints_that_they_were_made_of() {
    let only = env::var("MLXCEL_FIXTURES").unwrap_or_default();
    let entries = fs::read_dir(models().join("oracle/gguf_architectures")).unwrap();
    let mut chosen = Vec::new();
    for path in entries.map(|entry| entry.unwrap().path()) {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let is_chosen = match only.as_str() {
            "" => is_full() || CONVERTED.contains(&name.as_str()),
            words => words.split(',').any(|word| name.contains(word)),
        };
        if is_chosen {
            let recorded = Fixture::find(&name);
            chosen.push(Fixture { family: "gguf".into(), folder: path, ..recorded });
        }
    }
    assert!(!chosen.is_empty() || !only.is_empty());
    check_each(&chosen, answers_of_quantized);
}

#[test]
fn stored_bits_answer_nearly_as_the_numbers_that_they_stand_for() {
    let read = Mutex::new(BTreeSet::new());
    let chosen = fixtures(|name| WITH_STORED_BITS.contains(&name));
    check_each(&chosen, |fixture| {
        let of_fixture = request(&fixture.folder, &["cpu"]);
        let request =
            Request { quant: Quant::Auto, chunk: Some(32), pack_elements: Some(OF_PANELS), ..of_fixture };
        let built = try_built(&request).map_err(Failure)?;
        let steps = &built.bundle.manifest().targets["cpu"].packing.as_ref().unwrap().steps;
        let results = steps.iter().flat_map(|step| &step.results);
        let recipes = results.filter_map(|result| result.name.split('.').find_map(kernel_of_recipe));
        read.lock().unwrap().extend(recipes);
        let part = difference(&fixture.prompts, usize::MAX, &mut built.engine("local-task")?)?;
        let of_gguf = fixture.name.starts_with("gguf");
        let most = if of_gguf { WITH_INPUTS_OF_8_BITS } else { WITH_INPUTS_OF_16_BITS };
        let words = || format!("logits differ by {part} of their spread, expected at most {most}");
        if part <= most { Ok(()) } else { Err(Failure(words())) }
    });
    let read = read.into_inner().unwrap();
    if ["MLXCEL_FIXTURES", "MLXCEL_CHECKPOINTS"].iter().all(|name| env::var_os(name).is_none()) {
        assert_eq!(read.into_iter().collect::<Vec<_>>().join(" "), KERNELS);
    }
}

#[test]
fn inputs_have_as_many_bits_as_asked_for() {
    let of = |name: &str, bits| {
        let fixture = &fixtures(|other| other == name)[0];
        let asked = Request {
            quant: Quant::Auto,
            chunk: Some(32),
            input_bits: bits,
            ..request(&fixture.folder, &["cpu"])
        };
        difference(&fixture.prompts, usize::MAX, &mut built(&asked).engine("local-task").unwrap()).unwrap()
    };
    let [fine, coarse] =
        [of("gguf-q4-0", Some(InputBits::Sixteen)), of("awq-group-32", Some(InputBits::Eight))];
    assert!(fine < WITH_INPUTS_OF_16_BITS && coarse > WITH_INPUTS_OF_16_BITS, "{fine} and {coarse}");
    let fixture = &fixtures(|name| name == "awq-group-32")[0];
    let refused = Request {
        quant: Quant::Q8,
        input_bits: Some(InputBits::Sixteen),
        ..request(&fixture.folder, &["cpu"])
    };
    assert_eq!(
        try_built(&refused).err().unwrap(),
        "error: found --input-bits 16, but no weights are in groups with quant q8\n\
         hint: omit --input-bits, or choose --quant q4 or q4k"
    );
}

#[test]
fn a_bundle_without_weights_takes_them_as_they_are_stored() {
    let fixture = &fixtures(|name| name == "awq-group-32")[0];
    let with = Request { quant: Quant::Auto, chunk: Some(32), ..request(&fixture.folder, &["cpu"]) };
    let without = Request { weights: WeightSource::None, ..with.clone() };
    let [with, without] = [with, without].map(|request| built(&request));
    let program = |built: &Built| built.bundle.manifest().targets["cpu"].vmfb;
    assert_eq!(program(&with), program(&without));
    assert!(without.bundle.manifest().weights.is_empty());

    let empty = tempfile::tempdir().unwrap();
    fs::copy(fixture.folder.join("config.json"), empty.path().join("config.json")).unwrap();
    let refused = Request { weights: WeightSource::None, ..request(empty.path(), &["cpu"]) };
    let error = try_built(&refused).err().unwrap().replace(&empty.path().display().to_string(), "…");
    assert!(error.contains("found no weights in …, expected those of awq"), "{error}");
}

/// The kernels for weights in groups. No fixture has 2 bits with zero points, whose parts others have.
const KERNELS: &str = "q2_half_minima q2_minima q3_halves q3_minima q3_zeros q4_e2m1 q4_e2m1_floats q4_e2m1_halves q4_iq4 \
                       q4_iq4_blocks q4_minima q4_nf4 q4_superblocks q4_symmetric q4_zeros q5_minima q5_superblocks q5_symmetric q6_halves \
                       q6_minima q8_e4m3 q8_minima q8_symmetric q8_zeros";

/// Returns the kernel for what `q4_minima64_bf16_panels` packs.
pub(crate) fn kernel_of_recipe(recipe: &str) -> Option<&'static str> {
    let kernels = KERNELS.split_whitespace().filter(|kernel| recipe.starts_with(kernel));
    kernels.max_by_key(|kernel| kernel.len())
}

/// Returns by how much the best logits of most tokens differ from the recorded ones, of which so many at most are compared for
/// each prompt, as a part of all logits' spread.
pub(crate) fn difference<'r>(
    prompts: impl IntoIterator<Item = &'r Recorded>,
    most: usize,
    engine: &mut Loaded,
) -> Result<f32, Failure> {
    let mut parts = Vec::new();
    for Recorded { prompt, tokens, best } in prompts {
        let text = [prompt.as_slice(), &tokens[..tokens.len().min(most) - 1]].concat();
        for (logits, best) in engine.score(&text, prompt.len() - 1)?.iter().zip(best) {
            let mean = logits.iter().sum::<f32>() / logits.len() as f32;
            let spread = logits.iter().map(|logit| (logit - mean).powi(2)).sum::<f32>() / logits.len() as f32;
            let differences = best.iter().map(|&(id, expected)| (logits[id as usize] - expected).powi(2));
            parts.push((differences.sum::<f32>() / best.len() as f32 / spread).sqrt());
        }
    }
    parts.sort_by(f32::total_cmp);
    Ok(parts[parts.len() / 2])
}
