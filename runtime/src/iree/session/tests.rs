//! A session over a module whose answers can be computed by hand.
//!
//! After tokens t₀ … tₙ₋₁ it answers `Σ tᵢ · (i + 1) mod VOCAB`. Its logits are `bias`, plus 1 for the answer.

use std::{fmt::Write, fs, path::Path};

use mlxcel_artifacts::{
    BundleWriter, Driver, Manifest,
    entry::{Entry, Parameter},
    sample,
};
use safetensors::Dtype;
use tempfile::TempDir;

use super::*;
use crate::{
    ffi,
    ffi::tests::{compile, weights},
};

const CONTEXT: usize = 32;
const VOCAB: usize = 64;
const PREFILL: [usize; 2] = [4, 8];
const DECODE: [usize; 2] = [16, 32];
/// A padded prefill can write beyond the context.
const CACHE: usize = CONTEXT + PREFILL[1];

fn module() -> String {
    let mut text = format!(
        "module @model {{
  util.global private mutable @cache = dense<0> : tensor<1x{CACHE}xi32>
  util.global private @bias = #flow.parameter.named<\"model\"::\"bias\"> : tensor<{VOCAB}xf32>\n"
    );
    for tokens in PREFILL {
        text +=
            &function(&format!("prefill_{tokens}"), tokens, CACHE, ", %length: tensor<1xi32>, %written: i32");
    }
    for cache in DECODE {
        text += &function(&format!("decode_{cache}"), 1, cache, "");
    }
    text + "}\n"
}

/// Returns a function that writes `tokens` to the cache and reads its first `width` positions.
fn function(name: &str, tokens: usize, width: usize, length: &str) -> String {
    let mut text = String::new();
    let one = if length.is_empty() { "%length = stablehlo.constant dense<1> : tensor<1xi32>" } else { "" };
    write!(
        text,
        "
  func.func @{name}(%tokens: tensor<1x{tokens}xi32>, %position: tensor<1xi32>{length}) -> (tensor<1xi32>, tensor<1x{VOCAB}xf32>) {{
    {one}
    %old = util.global.load @cache : tensor<1x{CACHE}xi32>
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %start = stablehlo.reshape %position : (tensor<1xi32>) -> tensor<i32>
    %cache = stablehlo.dynamic_update_slice %old, %tokens, %zero, %start : (tensor<1x{CACHE}xi32>, tensor<1x{tokens}xi32>, tensor<i32>, tensor<i32>) -> tensor<1x{CACHE}xi32>
    util.global.store %cache, @cache : tensor<1x{CACHE}xi32>
    %seen = stablehlo.slice %cache [0:1, 0:{width}] : (tensor<1x{CACHE}xi32>) -> tensor<1x{width}xi32>
    %end = stablehlo.add %position, %length : tensor<1xi32>
    %ends = stablehlo.broadcast_in_dim %end, dims = [0] : (tensor<1xi32>) -> tensor<1x{width}xi32>
    %index = stablehlo.iota dim = 1 : tensor<1x{width}xi32>
    %inside = stablehlo.compare LT, %index, %ends : (tensor<1x{width}xi32>, tensor<1x{width}xi32>) -> tensor<1x{width}xi1>
    %ones = stablehlo.constant dense<1> : tensor<1x{width}xi32>
    %weight = stablehlo.add %index, %ones : tensor<1x{width}xi32>
    %product = stablehlo.multiply %seen, %weight : tensor<1x{width}xi32>
    %nothing = stablehlo.constant dense<0> : tensor<1x{width}xi32>
    %terms = stablehlo.select %inside, %product, %nothing : tensor<1x{width}xi1>, tensor<1x{width}xi32>
    %sum = stablehlo.reduce(%terms init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<1x{width}xi32>, tensor<i32>) -> tensor<1xi32>
    %vocab = stablehlo.constant dense<{VOCAB}> : tensor<1xi32>
    %next = stablehlo.remainder %sum, %vocab : tensor<1xi32>
    %ids = stablehlo.iota dim = 1 : tensor<1x{VOCAB}xi32>
    %nexts = stablehlo.broadcast_in_dim %next, dims = [0] : (tensor<1xi32>) -> tensor<1x{VOCAB}xi32>
    %hit = stablehlo.compare EQ, %ids, %nexts : (tensor<1x{VOCAB}xi32>, tensor<1x{VOCAB}xi32>) -> tensor<1x{VOCAB}xi1>
    %hits = stablehlo.convert %hit : (tensor<1x{VOCAB}xi1>) -> tensor<1x{VOCAB}xf32>
    %bias = util.global.load @bias : tensor<{VOCAB}xf32>
    %biases = stablehlo.broadcast_in_dim %bias, dims = [1] : (tensor<{VOCAB}xf32>) -> tensor<1x{VOCAB}xf32>
    %logits = stablehlo.add %hits, %biases : tensor<1x{VOCAB}xf32>
    return %next, %logits : tensor<1xi32>, tensor<1x{VOCAB}xf32>
  }}\n"
    )
    .unwrap();
    text
}

fn bias() -> Vec<f32> {
    (0..VOCAB).map(|id| id as f32 / 256.0).collect()
}

fn answer(tokens: &[u32]) -> u32 {
    tokens.iter().zip(1..).map(|(token, weight)| token * weight).sum::<u32>() % VOCAB as u32
}

fn bundle(folder: &Path, device: &str, change: impl FnOnce(&mut Manifest)) -> Bundle {
    let mut writer = BundleWriter::create(&folder.join("bundle")).unwrap();
    let vmfb = writer.add_bytes(&fs::read(compile(&module(), device)).unwrap()).unwrap();
    let driver: Driver = if device == "vulkan" { Driver::Vulkan } else { Driver::Local };
    // Largest first, because the session must sort them.
    let roles = [
        DECODE.map(|cache| Role::Decode { cache }).into_iter().rev().collect::<Vec<_>>(),
        PREFILL.map(|tokens| Role::Prefill { tokens }).into_iter().rev().collect(),
    ];
    let arch = if driver == Driver::Local { std::env::consts::ARCH } else { "" };
    let target = sample::target(driver, arch, vmfb, &roles.concat(), VOCAB);
    let mut manifest = Manifest {
        targets: [("test".to_string(), target)].into(),
        parameters: vec![Parameter::new("bias", Dtype::F32, &[VOCAB])],
        ..sample::manifest(CONTEXT, VOCAB)
    };
    change(&mut manifest);
    writer.finish(&manifest).unwrap()
}

fn entries(manifest: &mut Manifest) -> &mut Vec<Entry> {
    &mut manifest.targets.get_mut("test").unwrap().entries
}

fn options(device: &str) -> LoadOptions {
    LoadOptions { device: device.parse().unwrap(), threads: Some(2), context: None }
}

fn open(device: &str) -> IreeSession {
    let folder = TempDir::new().unwrap();
    let (_folder, weights) = weights("bias", &bias(), 8);
    IreeSession::load(&bundle(folder.path(), device, |_| ()), Some(weights), &options(device)).unwrap()
}

#[test]
fn every_device_answers_across_all_buckets() {
    for device in ["local-sync", "local-task", "vulkan"] {
        let mut session = open(device);
        assert_eq!(session.capabilities().prefill, PREFILL);
        assert_eq!(session.capabilities().decode, DECODE);
        let all: Vec<u32> = (0..CONTEXT as u32).map(|i| (i * 37 + 11) % VOCAB as u32).collect();
        for prompt in [1, 3, 4, 5, 8, 13, 31, 32] {
            session.rewind(0).unwrap();
            assert_eq!(session.prefill(&all[..prompt]).unwrap(), answer(&all[..prompt]), "{device} {prompt}");
            for end in prompt + 1..=CONTEXT {
                assert_eq!(session.decode_step(all[end - 1]).unwrap(), answer(&all[..end]), "{device} {end}");
            }
            assert_eq!(session.position(), CONTEXT);
        }
        let mut logits = bias();
        logits[answer(&all) as usize] += 1.0;
        assert_eq!(session.logits().unwrap(), logits);
        assert_eq!(session.logits().unwrap(), logits, "they can be read again");
    }
}

#[test]
fn a_prompt_continues_at_the_position() {
    let mut session = open("local-sync");
    assert_eq!(session.prefill(&[1, 2, 3, 4, 5]).unwrap(), answer(&[1, 2, 3, 4, 5]));
    assert_eq!(session.decode_step(6).unwrap(), answer(&[1, 2, 3, 4, 5, 6]));
    assert_eq!(session.prefill(&[7, 8]).unwrap(), answer(&[1, 2, 3, 4, 5, 6, 7, 8]));
    session.rewind(2).unwrap();
    assert!(matches!(session.logits(), Err(Error::NoLogits)));
    assert_eq!(session.decode_step(9).unwrap(), answer(&[1, 2, 9]), "later tokens are gone");
    assert_eq!(session.position(), 3);
}

#[test]
fn loaded_code_does_not_change_with_its_file() {
    let folder = TempDir::new().unwrap();
    let bundle = bundle(folder.path(), "local-sync", |_| ());
    let (_folder, weights) = weights("bias", &bias(), 0);
    let mut session = IreeSession::load(&bundle, Some(weights), &options("local-sync")).unwrap();
    let vmfb = bundle.manifest().targets["test"].vmfb;
    let other = vec![0; usize::try_from(vmfb.size).unwrap()];
    // Written in place: a mapping would show the new bytes.
    fs::write(bundle.blob_path(&vmfb), other).unwrap();
    assert_eq!(session.prefill(&[1, 2, 3]).unwrap(), answer(&[1, 2, 3]));
    assert_eq!(session.decode_step(4).unwrap(), answer(&[1, 2, 3, 4]));
}

#[test]
fn bad_calls_are_refused_before_they_run() {
    let mut session = open("local-sync");
    assert!(matches!(session.logits(), Err(Error::NoLogits)));
    assert!(matches!(session.prefill(&[]), Err(Error::NoTokens)));
    assert!(matches!(session.prefill(&[1; CONTEXT + 1]), Err(Error::TooLong { .. })));
    assert!(matches!(session.prefill(&[1, 64]), Err(Error::TokenOutOfRange { token: 64, index: 1, .. })));
    assert!(matches!(session.decode_step(u32::MAX), Err(Error::TokenOutOfRange { .. })));
    assert!(matches!(session.rewind(1), Err(Error::Rewind { .. })));
    assert_eq!(session.position(), 0);
    session.prefill(&[1; CONTEXT]).unwrap();
    assert!(matches!(session.decode_step(1), Err(Error::TooLong { .. })));
}

/// Returns the report of an error.
fn refused(device: &str, options: &LoadOptions, change: impl FnOnce(&mut Manifest)) -> String {
    let folder = TempDir::new().unwrap();
    let (_folder, weights) = weights("bias", &bias(), 0);
    let result = IreeSession::load(&bundle(folder.path(), device, change), Some(weights), options);
    mlxcel_artifacts::report(&result.err().expect("it should be refused"))
}

#[test]
fn a_bundle_that_cannot_run_here() {
    let sync = options("local-sync");
    let other_context = LoadOptions { context: Some(CONTEXT + 1), ..sync.clone() };
    assert!(
        refused("local-sync", &other_context, |_| ())
            .starts_with("error: context of 33 tokens, expected 1 to 32")
    );
    let no_context = LoadOptions { context: Some(0), ..sync.clone() };
    assert!(refused("local-sync", &no_context, |_| ()).starts_with("error: context of 0 tokens"));

    let other = refused("local-sync", &options("vulkan"), |_| ());
    assert!(other.contains("found test (local), expected one of the driver vulkan"), "{other}");
    let other = refused("local-sync", &sync, |m| m.compiler.version = "3.12.0".into());
    assert!(other.contains("compiled by iree 3.12.0"), "{other}");
    let parameter = refused("local-sync", &sync, |m| m.parameters[0].shape = vec![65]);
    assert!(parameter.contains("bias: f32[64], expected f32[65]"), "{parameter}");
    let name = refused("local-sync", &sync, |m| m.parameters[0].name = "other".into());
    assert!(name.contains("other: missing"), "{name}");
    // A manifest with an entry point that the module lacks.
    let entry =
        refused("local-sync", &sync, |m| entries(m).push(Entry::new(Role::Prefill { tokens: 5 }, 1, VOCAB)));
    assert_eq!(
        entry,
        "error: cannot prepare prefill_5: not found: no function `prefill_5` exported by module\n\
         hint: try --device local-sync; if that fails too, compile the bundle again with this version"
    );
    let rows = refused("local-sync", &sync, |m| {
        m.plan.batch = 2;
        entries(m).iter_mut().for_each(|entry| *entry = Entry::new(entry.role, 2, VOCAB));
    });
    assert!(rows.contains("it has a batch of 2, expected 1"), "{rows}");
}

#[test]
fn a_device_that_is_not_there() {
    let index = refused("vulkan", &options("vulkan:99"), |_| ());
    assert!(
        index.starts_with("error: cannot use the device vulkan:99: out of range: device ordinal 99"),
        "{index}"
    );
    assert!(index.contains("\nhint: there is vulkan:0 ("), "{index}");
    if ffi::devices("cuda").is_err() {
        let cuda = refused("local-sync", &options("cuda"), |m| {
            let target = m.targets.get_mut("test").unwrap();
            (target.driver, target.arch) = (Driver::Cuda, String::new());
        });
        assert!(
            cuda.starts_with("error: cannot use the device cuda: unavailable: CUDA driver library"),
            "{cuda}"
        );
        assert!(cuda.contains("\nhint: install NVIDIA's driver, or compile the bundle again"), "{cuda}");
    }
}

#[test]
fn the_device_is_named() {
    assert_eq!(open("local-sync").capabilities().device, "local-sync");
    assert_eq!(open("local-task").capabilities().device, "local-task, 2 threads");
    assert!(open("vulkan").capabilities().device.starts_with("vulkan"));
}

#[test]
fn auto_takes_vulkan_if_the_bundle_has_no_other_target() {
    let folder = TempDir::new().unwrap();
    let (_folder, weights) = weights("bias", &bias(), 0);
    let mut session =
        IreeSession::load(&bundle(folder.path(), "vulkan", |_| ()), Some(weights), &options("auto")).unwrap();
    assert!(session.capabilities().device.starts_with("vulkan"), "{}", session.capabilities().device);
    assert_eq!(session.prefill(&[1, 2]).unwrap(), answer(&[1, 2]));
}

#[test]
fn a_smaller_context_is_enforced() {
    let folder = TempDir::new().unwrap();
    let (_folder, weights) = weights("bias", &bias(), 0);
    let options = LoadOptions { context: Some(6), ..options("auto") };
    let mut session =
        IreeSession::load(&bundle(folder.path(), "local-task", |_| ()), Some(weights), &options).unwrap();
    assert_eq!(session.capabilities().context, 6);
    session.prefill(&[1; 6]).unwrap();
    assert!(matches!(session.decode_step(1), Err(Error::TooLong { context: 6, .. })));
}

#[test]
fn a_prompt_is_cut_into_the_largest_chunks_it_fills() {
    let buckets = [16, 128, 512];
    let cut = |mut tokens: usize| {
        let mut sizes = vec![];
        while tokens > 0 {
            let size = buckets[chunk(&buckets, tokens)];
            sizes.push(size);
            tokens -= size.min(tokens);
        }
        sizes
    };
    assert_eq!(cut(1), [16]);
    assert_eq!(cut(16), [16]);
    assert_eq!(cut(17), [16, 16]);
    assert_eq!(cut(128), [128]);
    assert_eq!(cut(700), [512, 128, 16, 16, 16, 16]);
}
