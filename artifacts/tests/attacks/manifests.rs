//! Manifests that are malformed, contradict themselves, or need too many resources.

use std::{fs, os::unix::fs::symlink};

use mlxcel_artifacts::{Digest, Manifest};

use crate::{VMFB, Victim};

/// The hint of every message about a malformed manifest.
const HINT: &str =
    "\nhint: the bundle is damaged: get it again from its maker, or compile it again with `mlxcel-compile`";

/// Returns the message without that hint.
fn message(victim: &Victim) -> String {
    let message = victim.message();
    message.strip_suffix(HINT).unwrap_or(&message).to_owned()
}

/// Returns the message after one edit of an undamaged manifest.
fn edited(from: &str, to: &str) -> String {
    let victim = Victim::new();
    victim.edit(from, to);
    message(&victim)
}

#[test]
fn a_newer_format() {
    let newer = |format: i64| {
        format!(
            "the bundle has format {format}, expected at most 7\n\
             hint: update this program, or compile the bundle again with this version"
        )
    };
    assert_eq!(edited("format = 7", "format = 8"), newer(8));
    assert_eq!(edited("format = 7", "format = 9223372036854775807"), newer(i64::MAX));
    // The format decides, whatever other fields a newer manifest has.
    assert_eq!(edited("format = 7", "format = 8\nshards = [[1], [2]]"), newer(8));
    assert_eq!(edited("format = 7", "format = 0"), "invalid manifest: format is 0, expected 1 to 7");
    assert_eq!(
        edited("format = 7", "format = -1"),
        "manifest.toml line 1: invalid value: integer `-1`, expected u32"
    );
    assert_eq!(
        edited("format = 7", "format = \"1\""),
        "manifest.toml line 1: invalid type: string \"1\", expected i64"
    );
    assert_eq!(edited("format = 7", ""), "manifest.toml line 1: missing field `format`");
}

#[test]
fn garbage() {
    let victim = Victim::new();
    let path = victim.path().join("manifest.toml");
    fs::write(&path, [0xde, 0xad, 0xbe, 0xef]).unwrap();
    assert_eq!(message(&victim), "manifest.toml line 1: found bytes that are not UTF-8, expected text");
    let deep = "a = ".to_string() + &"[".repeat(1 << 19);
    let dotted = "a.".repeat(1 << 16) + "a = 1";
    for text in ["", "\0\0\0", "format", "{}", "format = 1", "format = 1\nformat = 1", &deep, &dotted] {
        fs::write(&path, text).unwrap();
        assert!(message(&victim).starts_with("manifest.toml line "), "{}", message(&victim));
    }
}

#[test]
fn truncations_and_lost_lines() {
    let victim = Victim::new();
    let path = victim.path().join("manifest.toml");
    let text = fs::read_to_string(&path).unwrap();
    for len in 0..text.len() - 1 {
        // A cut within the last number or before an optional field may give another valid manifest.
        if let Ok(manifest) = Manifest::parse(&text[..len]) {
            assert_ne!(manifest, victim.manifest);
            manifest.validate().unwrap();
        }
    }
    let lines: Vec<&str> = text.lines().collect();
    for lost in 0..lines.len() {
        let kept: Vec<&str> = lines.iter().enumerate().filter(|(i, _)| *i != lost).map(|(_, l)| *l).collect();
        if let Ok(manifest) = Manifest::parse(&kept.join("\n")) {
            assert!(lines[lost].is_empty() || manifest != victim.manifest, "{}", lines[lost]);
        }
    }
}

#[test]
fn flipped_bytes_give_an_error_or_a_valid_manifest() {
    let victim = Victim::new();
    let text = fs::read(victim.path().join("manifest.toml")).unwrap();
    for at in 0..text.len() {
        let mut flipped = text.clone();
        flipped[at] ^= 1;
        let Ok(flipped) = String::from_utf8(flipped) else { continue };
        if let Ok(manifest) = Manifest::parse(&flipped) {
            manifest.validate().unwrap();
        }
    }
}

#[test]
fn wrong_types() {
    let cases = [
        ("context = 64", "context = \"64\"", "invalid type: string \"64\", expected usize"),
        ("context = 64", "context = -64", "invalid value: integer `-64`, expected usize"),
        ("context = 64", "context = 64.0", "invalid type: floating point `64.0`, expected usize"),
        ("dtype = \"F32\"\nshape = [4, 8]", "dtype = \"F31\"\nshape = [4, 8]", "unknown variant `F31`"),
        ("shape = [4, 8]", "shape = 32", "invalid type: integer `32`, expected a sequence"),
        ("kind = \"tokens\"", "kind = \"text\"", "unknown variant `text`, expected one of `tokens`"),
        (
            "driver = \"local\"",
            "driver = \"rocm\"",
            "unknown driver `rocm`, expected local, cuda, vulkan, hip or metal",
        ),
        ("blake3:", "sha256:", "is not a digest, expected `blake3:` and 64 lower-case hex digits"),
    ];
    for (from, to, expected) in cases {
        let found = edited(from, to);
        assert!(found.starts_with("manifest.toml line ") && found.contains(expected), "{found}");
    }
}

#[test]
fn names_outside_the_bundle() {
    for name in ["../../etc/passwd", "/etc/passwd", "..", "a\\\\b"] {
        let shown = name.replace("\\\\", "\\");
        let expected = format!("invalid manifest: name of a file is `{shown}`, expected a plain file name");
        assert_eq!(edited("[files.\"config.json\"]", &format!("[files.\"{name}\"]")), expected);
        assert_eq!(edited("[weights.\"model.safetensors\"]", &format!("[weights.\"{name}\"]")), expected);
    }
    // A digest is a file name too.
    let hex = Digest::of(VMFB).hex();
    let found = edited(&format!("blake3:{hex}"), "blake3:../../../../etc/passwd");
    assert!(found.contains("is not a digest"), "{found}");
}

#[test]
fn shapes_beyond_memory() {
    let huge = "shape = [4611686018427387904, 4611686018427387904]";
    assert_eq!(
        edited("shape = [4, 8]", huge),
        "invalid manifest: parameter `w` is f32[4611686018427387904,4611686018427387904]: \
         its size overflows or is not whole bytes"
    );
    let found = edited("shape = [4]", huge);
    assert_eq!(
        found,
        "invalid manifest: target cpu: tokens of entry step_4 is i32[4611686018427387904,4611686018427387904], \
         expected i32[4]"
    );
}

#[test]
fn a_size_beyond_any_disk() {
    let found = edited("size = 10", "size = 9223372036854775807");
    assert!(found.ends_with("more than any disk holds"), "{found}");
}

#[test]
fn duplicate_entries() {
    let parameter = "[[parameters]]\nname = \"w\"\ndtype = \"F32\"\nshape = [4, 8]\n";
    assert_eq!(edited(parameter, &parameter.repeat(2)), "invalid manifest: parameter `w` is listed twice");
    let found = edited("model = ", "model = \"other\"\nmodel = ");
    assert!(found.starts_with("manifest.toml line 3: duplicate key"), "{found}");
}

#[test]
fn one_digest_with_two_sizes() {
    let victim = Victim::new();
    let [vmfb, config] = [VMFB, crate::CONFIG].map(|bytes| Digest::of(bytes).to_string());
    victim.edit(&config, &vmfb);
    assert_eq!(
        message(&victim),
        "invalid manifest: file config.json has 23 bytes, expected 10: vmfb of target cpu is the same blob"
    );
}

#[test]
fn terminal_control_characters() {
    assert_eq!(
        edited("model = \"tiny\"", "model = \"\\u001b]0;owned\\u0007\""),
        "invalid manifest: model is `\\u{1b}]0;owned\\u{7}`, expected 1 to 255 bytes without control characters"
    );
}

#[test]
fn a_manifest_that_is_a_link() {
    let victim = Victim::new();
    let (path, outside) = (victim.path().join("manifest.toml"), victim.folder.path().join("outside"));
    fs::rename(&path, &outside).unwrap();
    symlink(&outside, &path).unwrap();
    assert!(message(&victim).contains("is not a bundle: its manifest.toml is not a regular file\n"));
}

#[test]
fn impossible_self_tests() {
    let refused = |replay: &str| edited("[[parameters]]", &format!("[[replays]]\n{replay}\n[[parameters]]"));
    let invalid = |problem: &str| format!("invalid manifest: {problem}");
    assert_eq!(refused("prompt = []"), invalid("a replay has no prompt, expected token ids"));
    assert_eq!(
        refused("prompt = [100]\ntokens = [1]\ngaps = [0.5]"),
        invalid("a replay has the token 100, expected 0 to 99")
    );
    assert_eq!(
        refused("prompt = [1]\ntokens = [4294967295]\ngaps = [0.5]"),
        invalid("a replay has the token 4294967295, expected 0 to 99")
    );
    let long = format!("prompt = {:?}\ntokens = [1]\ngaps = [0.5]", vec![1; 65]);
    assert_eq!(refused(&long), invalid("a replay has 65 positions, expected at most the context, 64"));
    let expected = |tokens, gaps, numbers| {
        invalid(&format!(
            "a replay has {tokens} tokens, {gaps} gaps and {numbers} numbers, expected what the model gives"
        ))
    };
    assert_eq!(refused("prompt = [1]"), expected(0, 0, 0));
    assert_eq!(refused("prompt = [1]\ntokens = [1, 2]\ngaps = [0.5]"), expected(2, 1, 0));
    assert_eq!(refused("prompt = [1]\ntokens = [1]\ngaps = [0.5]\nembedding = [0.5]"), expected(1, 1, 1));
    for number in ["nan", "inf", "-inf", "1e300"] {
        let text = format!("prompt = [1]\ntokens = [1]\ngaps = [{number}]");
        assert_eq!(refused(&text), invalid("a replay has a number that is infinite or none"));
    }
    assert!(refused("prompt = [-1]").starts_with("manifest.toml line "));
}
