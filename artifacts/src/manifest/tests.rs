use safetensors::Dtype;

use super::*;
use crate::entry::{Calibration, CalibrationStep, PackCall};

/// Returns a small valid manifest. Its blobs are `b"vmfb"` and `b"{}"`.
pub(crate) fn manifest() -> Manifest {
    let cpu = TargetArtifact {
        cpu_features: vec!["avx2".into(), "fma".into()],
        flags: vec!["--iree-hal-target-device=local".into(), "--iree-opt-level=O3".into()],
        ..sample::target(Driver::Local, "x86_64", Blob::of(b"vmfb"), 64, 100)
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
    insta::assert_snapshot!(text);
}

#[test]
fn a_newer_format_is_named_before_anything_else() {
    let error = Manifest::parse("format = 8\nnovelty = true\n").unwrap_err();
    assert_eq!(
        error.to_string(),
        "the bundle has format 8, expected at most 7\n\
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
        "manifest.toml line 18: unknown driver `rocm`, expected local, cuda, vulkan, hip or metal"
    );
    assert_eq!(parse("model = 'x'\n"), "manifest.toml line 1: missing field `format`");
    let error = parse(&text.replace("family = ", "kin = "));
    assert!(error.starts_with("manifest.toml line 3: unknown field `kin`, expected one of"), "{error}");
}

/// Returns a manifest whose parameters, calibration steps and packing steps take several pieces.
fn long() -> Manifest {
    let source = Digest::of(b"tensor");
    let parameter = |n: usize| Parameter {
        source: Some(source),
        ..Parameter::new(format!("model.layers.{n}.weight"), Dtype::BF16, &[8, 4])
    };
    let copy = |n: usize| PackStep::copy(&parameter(n).name, Parameter { source: None, ..parameter(n) });
    let step = |n: usize| match copy(n) {
        step if n.is_multiple_of(2) => step,
        step => {
            let call = PackCall {
                entry: "panels_0".into(),
                sources: step.sources.clone(),
                shared: vec![parameter(0).name],
                parts: 4,
            };
            PackStep { calls: vec![call; n % 5], ..step }
        }
    };
    let collect = |n: usize| CalibrationStep {
        entry: "collect_0".into(),
        sources: vec![parameter(n).name],
        moments: (0..n % 3).map(|of| Parameter::new(format!("{n}.{of}"), Dtype::F32, &[8, 8])).collect(),
    };
    let calibration = Calibration { window: 256, hidden: 8, steps: (0..300).map(collect).collect() };
    let mut all = manifest();
    all.parameters = (0..2000).map(parameter).collect();
    all.replays =
        vec![SelfTestCase { prompt: vec![1, 2], tokens: vec![3], gaps: vec![0.5], embedding: vec![] }];
    let mut cpu = all.targets["cpu"].clone();
    cpu.packing = Some(Packing {
        build_key: source,
        vmfb: cpu.vmfb,
        weights: None,
        made_from: BTreeMap::new(),
        calibrated_by: None,
        calibration: Some(calibration),
        steps: (0..2000).map(step).collect(),
    });
    all.targets = [("cpu".into(), cpu.clone()), ("cpu-x86-64-v3".into(), cpu)].into();
    all
}

#[test]
fn long_lists_are_complete_and_in_order() {
    let text = long().render().unwrap();
    assert!(text.len() > 500_000);
    assert_eq!(Manifest::parse(&text).unwrap(), long());
    assert_eq!(toml::from_str::<Manifest>(&text).unwrap(), long());
    // A manifest may have come by way of another system.
    assert_eq!(Manifest::parse(&text.replace('\n', "\r\n")).unwrap(), long());
}

#[test]
fn calibration_steps_do_not_count_as_the_rest() {
    let mut all = long();
    all.targets.remove("cpu-x86-64-v3");
    let packing = all.targets.get_mut("cpu").unwrap().packing.as_mut().unwrap();
    packing.steps.truncate(2);
    let collect = |n: usize| CalibrationStep {
        entry: "collect_0".into(),
        sources: vec!["model.layers.0.weight".into()],
        moments: vec![Parameter::new(n.to_string(), Dtype::F32, &[8, 8])],
    };
    // They weigh 4 MB.
    packing.calibration.as_mut().unwrap().steps = (0..10_000).map(collect).collect();
    assert_eq!(Manifest::parse(&all.render().unwrap()).unwrap(), all);
}

#[test]
fn what_cannot_be_read_is_not_written() {
    let mut all = manifest();
    let traffic = Traffic { bytes: 1, position_bytes: 1 };
    let dispatches = (0..30_000).map(|n| (format!("dispatch.{n}"), traffic));
    all.targets.get_mut("cpu").unwrap().dispatches = dispatches.collect();
    let refused = all.render().unwrap_err().to_string();
    let expected = "found more than 3145728 bytes beside parameters and packing steps";
    assert!(refused.contains(expected), "{refused}");
    assert_eq!(Manifest::parse(&toml::to_string(&all).unwrap()).unwrap_err().to_string(), refused);
}

#[test]
fn errors_in_pieces_have_their_line() {
    let text = long().render().unwrap();
    for name in ["model.layers.1.weight", "model.layers.1999.weight"] {
        let last = text.rmatch_indices(&format!("name = \"{name}\"")).next().unwrap().0;
        let wrong = format!("{}kin{}", &text[..last], &text[last + 4..]);
        let line = 1 + text[..last].matches('\n').count();
        let error = Manifest::parse(&wrong).unwrap_err().to_string();
        assert!(error.starts_with(&format!("manifest.toml line {line}: unknown field `kin`")), "{error}");
    }
    // After the lists.
    let at = text.find("[[replays]]").unwrap();
    let line = 2 + text[..at].matches('\n').count();
    let error = Manifest::parse(&text.replace("[[replays]]\n", "[[replays]]\nkin = 1\n")).unwrap_err();
    assert!(error.to_string().starts_with(&format!("manifest.toml line {line}: unknown field")), "{error}");
}

#[test]
fn tricked_splits_are_refused() {
    let text = manifest().render().unwrap();
    let parse = |more: &str| Manifest::parse(&format!("{text}{more}")).unwrap_err().to_string();
    // The list of a target that is not there, and one within an item.
    let steps = "[[targets.gpu.packing.steps]]\nsources = []\nresults = []\n".repeat(2);
    assert!(parse(&steps).contains("missing field `build_key`"), "{}", parse(&steps));
    let step = "[[targets.gpu.packing.steps]]\nsources = []\nresults = []\n";
    let deceived = text.replace("\"tiny\"", "\"\"\"\n[[targets.gpu.packing.steps]]\n\"\"\"") + step;
    let error = Manifest::parse(&deceived).unwrap_err().to_string();
    assert!(error.contains("line 201: found packing steps after a string"), "{error}");
    let within = "[[parameters]]\nname = \"x\"\ndtype = \"U8\"\nshape = [\n[[parameters]]\n]\n";
    assert!(parse(within).starts_with("manifest.toml line "), "{}", parse(within));
}

#[test]
fn a_newer_format_is_named_whatever_else_is_wrong() {
    let error = |text: &str| Manifest::parse(text).unwrap_err().to_string();
    let newer = error("format = 8\n");
    for rest in ["x = [\n[1],\n[2]]\n", "[[shards]]\nx = 1\n", "[parameters]\n"] {
        assert_eq!(error(&format!("format = 8\n{rest}")), newer);
    }
    let long = format!("format = 8\n{}", "[[shards]]\nname = \"x\"\n".repeat(100_000));
    assert_eq!(error(&long), newer);
}

#[test]
fn unknown_number_formats_are_refused() {
    let mut of_an_encoder = manifest();
    of_an_encoder.plan.as_mut().unwrap().embedding =
        Some(EmbeddingSpec { width: 8, pooling: Pooling::Mean, normalized: true });
    let text = toml::to_string(&of_an_encoder).unwrap();
    for (from, to, problem) in [
        (
            "precision = \"f32\"",
            "precision = \"int3\"",
            "precision is `int3`, expected one of f32, bf16, f16",
        ),
        ("quant = \"none\"", "quant = \"q5\"", "quant is `q5`, expected one of none, auto, q8, q4, q4k"),
        ("kv = \"f32\"", "kv = \"q4\"", "kv is `q4`, expected one of f32, bf16, f16, q8"),
        (
            "pooling = \"mean\"",
            "pooling = \"m\\n\"",
            "embedding.pooling is `m\\n`, expected one of mean, cls",
        ),
    ] {
        let line = 1 + text[..text.find(from).unwrap()].matches('\n').count();
        let error = Manifest::parse(&text.replace(from, to)).unwrap_err().to_string();
        assert!(error.starts_with(&format!("manifest.toml line {line}: plan.{problem}\nhint: ")), "{error}");
    }
}
