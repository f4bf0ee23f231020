use safetensors::Dtype;

use super::*;
use crate::{sample, signature::Role};

/// A small valid manifest; its blobs are `b"vmfb"` and `b"{}"`.
pub(crate) fn manifest() -> Manifest {
    let roles = [Role::Prefill { tokens: 16 }, Role::Decode { cache: 64 }];
    let cpu = TargetArtifact {
        cpu_features: vec!["avx2".into(), "fma".into()],
        flags: vec!["--iree-hal-target-device=local".into(), "--iree-opt-level=O3".into()],
        ..sample::target(Driver::Local, "x86_64", Blob::of(b"vmfb"), &roles, 100)
    };
    Manifest {
        targets: [("cpu".to_string(), cpu)].into(),
        files: [("config.json".to_string(), Blob::of(b"{}"))].into(),
        parameters: vec![Parameter::new("model.norm.weight", Dtype::BF16, &[8])],
        ..sample::manifest(64, 100)
    }
}

#[test]
fn rendering_is_stable_and_round_trips() {
    let text = manifest().render().unwrap();
    assert_eq!(Manifest::parse(&text).unwrap(), manifest());
    insta::assert_snapshot!(text, @r#"
    format = 2
    model = "tiny"
    family = "llama"

    [plan]
    precision = "f32"
    quant = "none"
    kv = "f32"
    batch = 1
    context = 64
    vocab = 100
    position_bytes = 64

    [compiler]
    version = "3.13.0"
    digest = "blake3:d1c2da04f74e1b9322141fd35c76e1887f27d63aee89fffd9c6de3e728882188"

    [targets.cpu]
    driver = "local"
    arch = "x86_64"
    cpu_features = ["avx2", "fma"]
    flags = ["--iree-hal-target-device=local", "--iree-opt-level=O3"]
    build_key = "blake3:ff8e2bab3b26e0c127002127905539b47eb421de85d554e15f55a446459b52b4"
    step_bytes = 32

    [targets.cpu.vmfb]
    digest = "blake3:4166bb3ea9f457b17746fd3653d16065bcd13d195857aad716cf1843fb27b993"
    size = 4

    [[targets.cpu.entries]]
    name = "prefill_16"

    [targets.cpu.entries.role.prefill]
    tokens = 16

    [[targets.cpu.entries.arguments]]
    kind = "tokens"
    dtype = "I32"
    shape = [1, 16]

    [[targets.cpu.entries.arguments]]
    kind = "positions"
    dtype = "I32"
    shape = [1]

    [[targets.cpu.entries.arguments]]
    kind = "lengths"
    dtype = "I32"
    shape = [1]

    [[targets.cpu.entries.arguments]]
    kind = "end"
    dtype = "I32"
    shape = []

    [[targets.cpu.entries.results]]
    kind = "next_token"
    dtype = "I32"
    shape = [1]

    [[targets.cpu.entries.results]]
    kind = "logits"
    dtype = "F32"
    shape = [1, 100]

    [[targets.cpu.entries]]
    name = "decode_64"

    [targets.cpu.entries.role.decode]
    cache = 64

    [[targets.cpu.entries.arguments]]
    kind = "tokens"
    dtype = "I32"
    shape = [1, 1]

    [[targets.cpu.entries.arguments]]
    kind = "positions"
    dtype = "I32"
    shape = [1]

    [[targets.cpu.entries.results]]
    kind = "next_token"
    dtype = "I32"
    shape = [1]

    [[targets.cpu.entries.results]]
    kind = "logits"
    dtype = "F32"
    shape = [1, 100]

    [files."config.json"]
    digest = "blake3:6e46dd10defc9b56c29a6ec56b508c21f54c08192194e4df25bf36f0c9c3c279"
    size = 2

    [[parameters]]
    name = "model.norm.weight"
    dtype = "BF16"
    shape = [8]
    "#);
}

#[test]
fn a_newer_format_is_named_before_anything_else() {
    let error = Manifest::parse("format = 3\nnovelty = true\n").unwrap_err();
    assert_eq!(
        error.to_string(),
        "bundle has format 3, this program reads up to 2\n\
         hint: update this program, or compile the bundle again with this version"
    );
}

#[test]
fn syntax_errors_have_a_line() {
    let text = manifest().render().unwrap();
    let parse = |text: &str| {
        let message = Manifest::parse(text).unwrap_err().to_string();
        message.split_once("\nhint: the bundle is damaged").unwrap().0.to_owned()
    };
    assert_eq!(
        parse(&text.replace("driver = \"local\"", "driver = \"rocm\"")),
        "manifest.toml line 19: unknown driver `rocm`, expected local, cuda or vulkan"
    );
    assert_eq!(parse("model = 'x'\n"), "manifest.toml line 1: missing field `format`");
    let error = parse(&text.replace("family = ", "kin = "));
    assert!(error.starts_with("manifest.toml line 3: unknown field `kin`, expected one of"), "{error}");
}
