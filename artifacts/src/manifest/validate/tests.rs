use std::path::Path;

use super::*;
use crate::{Blob, manifest::tests::manifest};

mod entries;
mod packing;
mod programs;

/// Changes the small manifest and returns the problem that `validate` finds.
fn refused<R>(change: impl FnOnce(&mut Manifest) -> R) -> String {
    let mut manifest = manifest();
    change(&mut manifest);
    let message = manifest.validate().unwrap_err().to_string();
    let (problem, _) = message.split_once("\nhint: the bundle is damaged").unwrap();
    problem.strip_prefix("invalid manifest: ").unwrap().to_string()
}

#[test]
fn scalars() {
    assert_eq!(manifest().validate().map_err(|e| e.to_string()), Ok(()));
    assert_eq!(refused(|m| m.format = 0), "format is 0, expected 1 to 7");
    let document = |m: &mut Manifest| {
        entries::old(m);
        m.format = 1;
        m.documents.insert("sbom.cdx.json".into(), m.files["config.json"]);
    };
    assert_eq!(refused(document), "format 1 has documents, expected none before format 2");
    assert_eq!(
        refused(|m| m.model = "a\u{1b}[2J".into()),
        "model is `a\\u{1b}[2J`, expected 1 to 255 bytes without control characters"
    );
    assert_eq!(
        refused(|m| m.plan.as_mut().unwrap().position_bytes = u64::MAX),
        "plan.position_bytes is 18446744073709551615: more than any memory has"
    );
    assert_eq!(refused(|m| m.plan.as_mut().unwrap().vocab = 0), "plan.vocab is 0, expected 1 to 2147483647");
    assert_eq!(
        refused(|m| m.plan.as_mut().unwrap().context = 1 << 40),
        "plan.context is 1099511627776, expected 1 to 2147483647"
    );
}

#[test]
fn paths_are_not_names() {
    for name in ["../config.json", "/etc/passwd", "a/b", "..", ".", "a\\b", "c:x"] {
        let blob = manifest().files["config.json"];
        let expected = format!("name of a file is `{name}`, expected a plain file name");
        assert_eq!(refused(|m| m.files.insert(name.into(), blob)), expected);
        assert_eq!(refused(|m| m.weights.insert(name.into(), blob)), expected);
        let target = manifest().targets["cpu"].clone();
        assert_eq!(
            refused(|m| m.targets.insert(name.into(), target)),
            format!("name of a target is `{name}`, expected a plain file name")
        );
    }
    assert_eq!(
        refused(|m| m.files.insert(String::new(), m.files["config.json"])),
        "name of a file is ``, expected 1 to 255 bytes without control characters"
    );
    assert_eq!(
        refused(|m| m.weights.insert("config.json".into(), m.files["config.json"])),
        "file `config.json` is listed in files and in weights"
    );
}

#[test]
fn files_that_no_manifest_lists_are_refused_by_their_names() {
    let refused = |path: &str| crate::error::report(&Manifest::listed_name(Path::new(path)).unwrap_err());
    assert_eq!(Manifest::listed_name(Path::new("a:b/model.gguf")).unwrap(), "model.gguf");
    assert_eq!(
        refused("models/qwen2.5:7b.gguf"),
        "error: cannot read models/qwen2.5:7b.gguf: found the file name `qwen2.5:7b.gguf`, expected one without \
         `/`, `\\`, `:` and control characters\n\
         hint: rename the file, or link to it under another name"
    );
    for path in ["a\\b", "a\nb", "..", "/", ""] {
        assert!(refused(path).contains(": found the file name `"), "{}", refused(path));
    }
}

#[test]
fn targets() {
    let cpu = |m: &mut Manifest, change: fn(&mut TargetArtifact)| {
        change(m.targets.get_mut("cpu").unwrap());
    };
    assert_eq!(refused(|m| m.targets.clear()), "no target, expected at least one");
    assert_eq!(
        refused(|m| cpu(m, |t| t.driver = Driver::Cuda)),
        "target cpu has the driver cuda, expected no arch and no cpu_features"
    );
    assert_eq!(
        refused(|m| cpu(m, |t| t.arch.clear())),
        "arch of target cpu is ``, expected 1 to 255 bytes without control characters"
    );
    assert_eq!(
        refused(|m| cpu(m, |t| t.cpu_features.push("avx2".into()))),
        "cpu feature `avx2` of target cpu is listed twice"
    );
    assert_eq!(
        refused(|m| cpu(m, |t| t.flags.push("--x\n".into()))),
        "flag `--x\\n` of target cpu has a control character"
    );
    assert_eq!(
        refused(|m| cpu(m, |t| t.step_bytes = u64::MAX)),
        "step_bytes of target cpu is 18446744073709551615: more than any memory has"
    );
    assert_eq!(
        refused(|m| cpu(m, |t| {
            t.dispatches.insert("\u{1b}]0;x".into(), Traffic { bytes: 1, position_bytes: 1 });
        })),
        "dispatch `\\u{1b}]0;x` of target cpu has a control character"
    );
    assert_eq!(
        refused(|m| cpu(m, |t| {
            t.dispatches.insert("matmul".into(), Traffic { bytes: 1, position_bytes: u64::MAX });
        })),
        "position_bytes of dispatch `matmul` of target cpu is 18446744073709551615: more than any memory has"
    );
    assert_eq!(
        refused(|m| cpu(m, |t| t.rewind = Some(usize::MAX))),
        "rewind of target cpu is 18446744073709551615, expected at most 2147483647"
    );
    assert_eq!(refused(|m| cpu(m, |t| t.vmfb.size = 0)), "vmfb of target cpu has 0 bytes, expected more");
}

#[test]
fn blobs() {
    let other = Blob { size: 9, ..manifest().targets["cpu"].vmfb };
    assert_eq!(
        refused(|m| m.files.insert("tokenizer.json".into(), other)),
        "file tokenizer.json has 9 bytes, expected 4: vmfb of target cpu is the same blob"
    );
    let huge = Blob { digest: Digest::of(b"huge"), size: u64::MAX };
    assert_eq!(
        refused(|m| m.weights.insert("model.safetensors".into(), huge)),
        "weights file model.safetensors has 18446744073709551615 bytes: more than any disk holds"
    );
}

#[test]
fn parameters() {
    let with = |name: &str, dtype, shape: &[usize]| {
        refused(|m| m.parameters.push(Parameter::new(name, dtype, shape)))
    };
    assert_eq!(with("model.norm.weight", Dtype::BF16, &[8]), "parameter `model.norm.weight` is listed twice");
    assert_eq!(with("w", Dtype::F32, &[4, 0]), "parameter `w` is f32[4,0]: it has no elements");
    assert_eq!(
        with("w", Dtype::F32, &[1 << 40, 1 << 40]),
        "parameter `w` is f32[1099511627776,1099511627776]: its size overflows or is not whole bytes"
    );
    assert_eq!(
        with("w", Dtype::F4, &[3]),
        "parameter `w` is f4[3]: its size overflows or is not whole bytes"
    );
    assert_eq!(
        with("a\nb", Dtype::F32, &[1]),
        "parameter name is `a\\nb`, expected 1 to 255 bytes without control characters"
    );
    let source = Some(Digest::of(b"w"));
    let sourced = Parameter { source, ..Parameter::new("w", Dtype::F32, &[1]) };
    assert_eq!(
        refused(|m| m.parameters.push(sourced)),
        "1 of 2 parameters have a source, expected all or none"
    );
}
