//! Damaged and unsuitable checkpoints.

use std::{fs, path::Path};

use mlxcel_compiler_driver::Event;
use safetensors::{Dtype, SafeTensors, tensor::TensorView};

use crate::sandbox::Sandbox;

const DAMAGED: &str = "hint: download or copy the checkpoint again";

/// Returns the refusal of the small model after `change` changed the bytes of its safetensors file.
fn refusal(change: impl FnOnce(&mut Vec<u8>)) -> String {
    let sandbox = Sandbox::with_weights();
    let path = sandbox.at("model/model.safetensors");
    let mut bytes = fs::read(&path).unwrap();
    change(&mut bytes);
    fs::write(&path, bytes).unwrap();
    let refusal = sandbox.refusal();
    assert_eq!(sandbox.calls(), 0, "the compiler was started");
    refusal
}

/// Returns a safetensors file of this header and `data` zero bytes.
fn file(header: &str, data: usize) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.resize(bytes.len() + data, 0);
    bytes
}

/// Writes the tensors of the small model to `path`. `change` returns their new type and shape, or `None` to omit one.
fn rewrite(
    sandbox: &Sandbox,
    path: &Path,
    change: impl Fn(&str, Dtype, Vec<usize>) -> Option<(Dtype, Vec<usize>)>,
) {
    let bytes = fs::read(sandbox.at("model/model.safetensors")).unwrap();
    let zeros = vec![0; bytes.len()];
    let mut tensors = Vec::new();
    for (name, tensor) in SafeTensors::deserialize(&bytes).unwrap().tensors() {
        if let Some((dtype, shape)) = change(&name, tensor.dtype(), tensor.shape().to_vec()) {
            let length = shape.iter().product::<usize>() * dtype.bitsize() / 8;
            tensors.push((name, TensorView::new(dtype, shape, &zeros[..length]).unwrap()));
        }
    }
    safetensors::serialize_to_file(tensors, None, path).unwrap();
}

#[test]
fn lengths() {
    let whole = fs::metadata(Sandbox::with_weights().at("model/model.safetensors")).unwrap().len();
    let damaged = |reason: &str| format!("error: …/model/model.safetensors is damaged: {reason}\n{DAMAGED}");
    assert_eq!(
        refusal(|bytes| bytes.truncate(bytes.len() - 1)),
        damaged(&format!("found {} bytes, expected {whole} by its header", whole - 1))
    );
    assert_eq!(
        refusal(|bytes| bytes.push(0)),
        damaged(&format!("found {} bytes, expected {whole} by its header", whole + 1))
    );
    assert_eq!(refusal(Vec::clear), damaged("found 0 bytes, expected at least 8"));
    assert_eq!(refusal(|bytes| bytes.truncate(20)).lines().count(), 2);
    assert_eq!(
        refusal(|bytes| *bytes = b"version https://git-lfs.github.com/spec/v1\noid sha256:0".to_vec()),
        damaged("it is a pointer of Git LFS, which `git lfs pull` replaces, expected tensors")
    );
    for length in [whole, 100_000_001, u64::MAX] {
        assert_eq!(
            refusal(|bytes| bytes[..8].copy_from_slice(&length.to_le_bytes())),
            damaged(&format!("found a header of {length} bytes in a file of {whole}"))
        );
    }
}

#[test]
fn headers() {
    let tensor = |dtype: &str, shape: &str, offsets: &str| {
        format!(r#"{{"a":{{"dtype":"{dtype}","shape":{shape},"data_offsets":{offsets}}}}}"#)
    };
    let overlap = r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}"#;
    for (header, data, expected) in [
        ("not json".to_owned(), 0, "expected ident"),
        (r#"{"a":1}"#.to_owned(), 0, "invalid type"),
        ("[".repeat(100_000), 0, "invalid type"),
        (format!(r#"{{"a":{}"#, "[".repeat(100_000)), 0, "recursion limit"),
        (tensor("F33", "[1]", "[0,4]"), 4, "unknown variant `F33`"),
        (tensor("F32", "[1]", "[0,8]"), 8, "found 8 bytes, expected 4 of f32[1]"),
        (tensor("F32", "[1]", "[4,8]"), 8, "invalid offset"),
        (tensor("F32", "[1]", "[8,4]"), 8, "invalid offset"),
        (tensor("F32", "[18446744073709551615,2]", "[0,4]"), 4, "more than any file has"),
        (tensor("F32", "[-1]", "[0,4]"), 4, "invalid value"),
        (overlap.to_owned(), 12, "invalid offset"),
    ] {
        let message = refusal(|bytes| *bytes = file(&header, data));
        let start = "error: …/model/model.safetensors is damaged: ";
        assert!(message.starts_with(start) && message.contains(expected), "{message}");
    }
    let message = refusal(|bytes| bytes[9] = 0xff);
    assert!(message.contains("is damaged: "), "{message}");
    // 8 tensors of 2^61 - 1 bytes: their sum fits into 64 bits, the sum with the header does not.
    let size = (1u64 << 61) - 1;
    let tensors: Vec<String> = (0..8)
        .map(|i| {
            format!(
                r#""t{i}":{{"dtype":"U8","shape":[{size}],"data_offsets":[{},{}]}}"#,
                i * size,
                (i + 1) * size
            )
        })
        .collect();
    let bytes = file(&format!("{{{}}}", tensors.join(",")), 0);
    let expected = 8 * u128::from(size) + bytes.len() as u128;
    let found = format!("is damaged: found {} bytes, expected {expected} by its header", bytes.len());
    let message = refusal(|all| *all = bytes);
    assert!(message.contains(&found), "{message}");
}

#[test]
fn every_unsuitable_tensor_is_named() {
    let sandbox = Sandbox::with_weights();
    let path = sandbox.at("model/model.safetensors");
    rewrite(&sandbox, &path, |name, dtype, shape| match name {
        "model.norm.weight" => None,
        "model.layers.0.self_attn.k_proj.weight" => Some((dtype, vec![shape[1], shape[0]])),
        "model.layers.1.mlp.up_proj.weight" => Some((Dtype::I8, shape)),
        _ => Some((dtype, shape)),
    });
    assert_eq!(
        sandbox.refusal(),
        "error: the weights in …/model do not fit model:\n  \
           model.layers.0.self_attn.k_proj.weight: shape [16, 8], expected [8, 16]\n  \
           model.layers.1.mlp.up_proj.weight: dtype I8, expected F32, BF16 or F16\n  \
           model.norm.weight: missing, expected shape [16]\n\
         hint: check that config.json and the weights belong to the same checkpoint"
    );
    assert_eq!(sandbox.calls(), 0);
}

#[test]
fn unknown_tensors_are_a_warning() {
    let sandbox = Sandbox::with_weights();
    let bytes = fs::read(sandbox.at("model/model.safetensors")).unwrap();
    let zeros = [0; 4];
    let mut tensors = SafeTensors::deserialize(&bytes).unwrap().tensors();
    for i in 0..7 {
        let view = TensorView::new(Dtype::I32, vec![1], &zeros).unwrap();
        tensors.push((format!("extra.{i}\u{1b}[2J"), view));
    }
    let path = sandbox.at("model/model.safetensors");
    safetensors::serialize_to_file(tensors, None, &path).unwrap();
    let (bundle, events) = sandbox.build();
    bundle.unwrap();
    let warnings: Vec<_> = events.iter().filter(|event| matches!(event, Event::Warning(_))).collect();
    let escaped: Vec<String> = (0..5).map(|i| format!("extra.{i}\\u{{1b}}[2J")).collect();
    let expected = format!("7 tensors of the checkpoint are not used: {}, …", escaped.join(", "));
    assert_eq!(warnings, [&Event::Warning(expected)]);
}

#[test]
fn indexes() {
    let sandbox = Sandbox::with_weights();
    let whole = sandbox.at("model/model.safetensors");
    fs::rename(&whole, sandbox.at("model/a.safetensors")).unwrap();
    fs::copy(sandbox.at("model/a.safetensors"), sandbox.at("model/b.safetensors")).unwrap();
    let refusal = |index: &str| {
        fs::write(sandbox.at("model/model.safetensors.index.json"), index).unwrap();
        let message = sandbox.refusal();
        assert_eq!(sandbox.calls(), 0, "the compiler was started");
        let start = "error: …/model/model.safetensors.index.json is damaged: ";
        let message = message.strip_prefix(start).unwrap_or_else(|| panic!("{message}"));
        message.strip_suffix(&format!("\n{DAMAGED}")).unwrap().to_owned()
    };
    let map = |map: &str| refusal(&format!(r#"{{"weight_map":{{{map}}}}}"#));

    for shard in
        ["../a.safetensors", "/a.safetensors", "x/../a.safetensors", "a.safetensors/.", "config.json", ""]
    {
        assert_eq!(
            map(&format!(r#""a":"{shard}""#)),
            format!("shard `{shard}`, expected the name of a safetensors file")
        );
    }
    assert_eq!(
        map(r#""a":"gone-1.safetensors","b":"a.safetensors","c":"gone-2.safetensors""#),
        "it names shards that are not there: gone-1.safetensors, gone-2.safetensors"
    );
    assert_eq!(
        map(r#""nowhere":"a.safetensors""#),
        "it expects tensor `nowhere` in a.safetensors, which lacks it"
    );
    assert_eq!(
        map(r#""model.norm.weight":"a.safetensors","x":"b.safetensors""#),
        "tensor `lm_head.weight` is both in a.safetensors and in b.safetensors"
            .replace("lm_head.weight", &first_tensor(&sandbox))
    );
    assert!(refusal("{}").starts_with("missing field `weight_map`"));
    assert!(refusal("").starts_with("EOF while parsing"));
    assert!(refusal(&"[".repeat(100_000)).contains("at line 1"));
}

/// Returns the name of the small model's first tensor.
fn first_tensor(sandbox: &Sandbox) -> String {
    let bytes = fs::read(sandbox.at("model/a.safetensors")).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    tensors.names().into_iter().min().unwrap().to_owned()
}

#[test]
fn weights_that_are_not_a_regular_file() {
    let sandbox = Sandbox::new("works");
    fs::create_dir(sandbox.at("model/model.safetensors")).unwrap();
    assert!(sandbox.build().0.unwrap().manifest().weights.is_empty());

    // Reading a pipe without a writer would block forever.
    let sandbox = Sandbox::new("works");
    let pipe = sandbox.at("model/model.safetensors");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    assert!(sandbox.build().0.unwrap().manifest().weights.is_empty());
}
