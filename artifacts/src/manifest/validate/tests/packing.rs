//! Packings that are refused.

use std::collections::BTreeMap;

use super::*;
use crate::manifest::{
    CalibratedBy, Packing,
    entry::{Calibration, CalibrationStep, PackCall, PackStep},
};
use crate::tensor::type_text;

/// Returns a packing with these steps.
fn packing_of(manifest: &Manifest, steps: Vec<PackStep>) -> Packing {
    Packing {
        build_key: Digest::of(b"packing"),
        vmfb: manifest.targets["cpu"].vmfb,
        weights: None,
        made_from: BTreeMap::new(),
        calibrated_by: None,
        calibration: None,
        steps,
    }
}

/// Returns the problem with a packing of these steps after a change.
fn refused_packing(steps: Vec<PackStep>, change: impl FnOnce(&mut Packing)) -> String {
    refused(|m| {
        let mut packing = packing_of(m, steps);
        change(&mut packing);
        m.targets.get_mut("cpu").unwrap().packing = Some(packing);
    })
}

#[test]
fn steps() {
    let norm = manifest().parameters[0].clone();
    let step = |entry: Option<&str>, sources: &[&str], results: Vec<Parameter>| PackStep {
        entry: entry.map(Into::into),
        ..PackStep::whole("", sources.iter().map(ToString::to_string).collect(), results)
    };
    let with = |steps: Vec<PackStep>| refused_packing(steps, |_| ());
    let name = norm.name.as_str();
    let made = Parameter { name: "made".into(), ..norm.clone() };
    assert_eq!(
        with(vec![step(Some("panels_0"), &["w\u{1b}"], vec![made.clone()])]),
        "packing of target cpu reads `w\\u{1b}`, expected one of the parameters"
    );
    assert_eq!(
        with(vec![step(Some("panels_0"), &[name], vec![])]),
        "packing of target cpu has a step with 0 results, expected at least one"
    );
    assert_eq!(
        with(vec![step(None, &[name], vec![made.clone(), norm.clone()])]),
        "packing of target cpu has a step that makes two tensors without a function, expected one"
    );
    let wider = Parameter { shape: vec![9], ..made.clone() };
    assert_eq!(
        with(vec![step(None, &[name], vec![wider])]),
        "packing of target cpu keeps `model.norm.weight` as bf16[9], expected bf16[8]"
    );
    assert_eq!(
        with(vec![step(None, &[name], vec![made.clone()]), step(Some("x"), &[name], vec![made.clone()])]),
        "parameter `made` is listed twice"
    );
    let entry = with(vec![step(Some("a\nb"), &[name], vec![made])]);
    assert!(entry.starts_with("packing entry of target cpu is `a\\nb`"), "{entry}");
    assert_eq!(
        refused_packing(vec![], |packing| packing.vmfb = Blob { digest: Digest::of(b"none"), size: 0 }),
        "packing vmfb of target cpu has 0 bytes, expected more"
    );
}

#[test]
fn parts() {
    let norm = manifest().parameters[0].clone();
    let rows = norm.shape[0];
    let made = Parameter { name: "made".into(), ..norm.clone() };
    let call = PackCall {
        entry: "panels_0".into(),
        sources: vec![norm.name.clone()],
        shared: vec![norm.name.clone()],
        parts: rows,
    };
    let step = PackStep { calls: vec![call.clone()], ..PackStep::copy(&norm.name, made.clone()) };
    let mut whole = manifest();
    whole.targets.get_mut("cpu").unwrap().packing = Some(packing_of(&whole, vec![step.clone()]));
    assert_eq!(whole.validate().map_err(|error| error.to_string()), Ok(()));
    let with = |change: &dyn Fn(&mut PackCall)| {
        let mut call = call.clone();
        change(&mut call);
        refused_packing(vec![PackStep { calls: vec![call], ..step.clone() }], |_| ())
    };
    assert_eq!(
        with(&|call| call.parts = 0),
        "packing of target cpu has a step in 0 parts, expected 1 to 1048576"
    );
    assert_eq!(
        with(&|call| call.parts = (1 << 20) + 1),
        "packing of target cpu has a step in 1048577 parts, expected 1 to 1048576"
    );
    assert_eq!(
        with(&|call| call.parts = 2 * rows),
        format!(
            "packing of target cpu reads `model.norm.weight`, {}, in {} parts, expected a first dimension that \
             they divide",
            type_text(norm.dtype, &norm.shape),
            2 * rows
        )
    );
    assert_eq!(
        with(&|call| call.sources.clear()),
        "packing of target cpu has a step in parts of no tensors, expected some"
    );
    assert_eq!(
        with(&|call| call.shared[0] = "w".into()),
        "packing of target cpu reads `w`, expected one of the parameters"
    );
    assert!(with(&|call| call.entry = "a\nb".into()).starts_with("packing entry of target cpu is `a\\nb`"));
    let both = PackStep { entry: Some("panels_0".into()), ..step.clone() };
    assert_eq!(
        refused_packing(vec![both], |_| ()),
        "packing of target cpu in format 7 has a step in parts, expected none before format 5 and no whole \
         function beside them"
    );
    let before = refused(|m| {
        m.format = 4;
        let packing = packing_of(m, vec![step.clone()]);
        m.targets.get_mut("cpu").unwrap().packing = Some(packing);
    });
    assert!(before.starts_with("packing of target cpu in format 4 has a step in parts"), "{before}");
    let none = PackStep { results: vec![], ..step };
    assert_eq!(
        refused_packing(vec![none], |_| ()),
        "packing of target cpu has a step with 0 results, expected at least one"
    );
}

#[test]
fn calibration() {
    let norm = manifest().parameters[0].clone();
    let sources = vec![norm.name.clone()];
    let moments = Parameter::new("moments", Dtype::F32, &[8, 8]);
    let step = PackStep {
        calibrated_entry: Some("panels_0_calibrated".into()),
        moments: Some("moments".into()),
        ..PackStep::whole("panels_0", sources.clone(), vec![Parameter { name: "made".into(), ..norm }])
    };
    let collect = |moments| CalibrationStep { entry: "collect_0".into(), sources: sources.clone(), moments };
    let calibration =
        Calibration { window: 256, hidden: 8, steps: vec![collect(vec![moments.clone()]), collect(vec![])] };
    let with = |change: &dyn Fn(&mut Packing)| {
        refused_packing(vec![step.clone()], |packing| {
            packing.calibration = Some(calibration.clone());
            change(packing);
        })
    };
    let calibrated = |m: &mut Manifest| {
        let packing = Packing { calibration: Some(calibration.clone()), ..packing_of(m, vec![step.clone()]) };
        m.targets.get_mut("cpu").unwrap().packing = Some(packing);
    };
    let mut whole = manifest();
    calibrated(&mut whole);
    assert_eq!(whole.validate().map_err(|error| error.to_string()), Ok(()));
    assert_eq!(
        refused(|m| {
            calibrated(m);
            m.format = 3;
        }),
        "packing of target cpu in format 3 has calibration, expected none before format 4"
    );
    assert_eq!(
        with(&|packing| packing.steps[0].calibrated_entry = None),
        "packing of target cpu has moments without a function for them, expected both or none"
    );
    assert_eq!(
        with(&|packing| packing.steps[0].moments = Some("m\n".into())),
        "packing of target cpu takes the moments `m\\n`, expected some that are collected"
    );
    let by = CalibratedBy { text: Digest::of(b"text"), tokens: 256, moments: Digest::of(b"moments") };
    assert_eq!(
        with(&|packing| packing.calibrated_by = Some(by)),
        format!(
            "target cpu names the text of packed weights, {}, expected none without these",
            Digest::of(b"text")
        )
    );
    assert_eq!(
        with(&|packing| _ = packing.made_from.insert("model.safetensors".into(), Blob::of(b"weights"))),
        "target cpu lists 1 sources of packed weights, expected none without these"
    );
    let of =
        |change: &dyn Fn(&mut Calibration)| with(&|packing| packing.calibration.iter_mut().for_each(change));
    assert_eq!(
        of(&|calibration| calibration.window = 0),
        "calibration of target cpu is for 0 tokens, expected 1 to 2147483647"
    );
    assert_eq!(
        of(&|calibration| calibration.steps.truncate(1)),
        "calibration of target cpu has 1 steps, expected at least two"
    );
    assert_eq!(
        of(&|calibration| calibration.steps[1].sources.push("w".into())),
        "calibration of target cpu reads `w`, expected one of the parameters"
    );
    assert_eq!(
        of(&|calibration| calibration.steps[0].moments[0].shape = vec![8, 4]),
        "moments of target cpu are f32[8,4], expected a square of f32"
    );
}
