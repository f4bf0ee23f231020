//! Weights that are rounded by a text: predictions that are nearer to those in floats, runs that go on after an interruption,
//! and what is refused.

use std::{fs, path::PathBuf, process::Command};

use mlxcel_artifacts::{Bundle, CalibratedBy, Digest, report};
use mlxcel_compiler_driver::{ModelSource, Quant, Request};
use mlxcel_runtime::{Calibrate, Cancel, Error, pack};
use tempfile::TempDir;

use crate::{
    answers::on,
    quantized::{Measured, demo, measured, recorded},
    real::{Built, built, models, program},
};

/// Windows of 256 tokens of the text.
const WINDOWS: usize = 50;

/// A text like those that the demo model learned, and was not measured by.
fn text() -> String {
    fs::read_to_string(models().join("demo/calibration.txt")).unwrap()
}

/// The demo model in few bits, with code that calibrates.
fn quantized() -> Built {
    built(&Request { quant: Quant::Q4K, calibration: true, ..demo("cpu") })
}

/// Packs a bundle by a text. `progress` gets the calls done.
fn calibrated(
    built: &Built,
    text: &str,
    cancel: &Cancel,
    progress: &mut dyn FnMut(usize),
) -> Result<Bundle, Error> {
    let mut progress = |done, _| progress(done);
    let calibrate = Calibrate { text, keep_in: None, progress: &mut progress };
    let packed = pack(built.bundle.clone(), None, &on("local-task"), Some(calibrate), cancel, &mut |_, _| ());
    packed.map(|(_, bundle)| bundle)
}

fn packed_weights(bundle: &Bundle) -> Digest {
    bundle.manifest().targets["cpu"].packing.as_ref().unwrap().weights.unwrap().digest
}

/// The folders beside the bundle that keep what calibration has collected.
fn kept(built: &Built) -> Vec<PathBuf> {
    let entries = fs::read_dir(built.folder.path()).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.to_string_lossy().contains(".calibration-")).collect()
}

#[test]
fn weights_rounded_by_a_text_predict_better() {
    let window = recorded().window;
    let plain = quantized();
    let Measured { mean_kl: before, .. } = measured(&plain, window);
    let Built { folder, bundle } = quantized();
    let mut rounded = Built { folder, bundle };
    rounded.bundle = calibrated(&rounded, &text(), &Cancel::new(), &mut |_| ()).unwrap();
    let Measured { perplexity, mean_kl, .. } = measured(&rounded, window);
    eprintln!("calibrated q4k: perplexity {perplexity}, mean KL {mean_kl}; before {before}");
    assert!(mean_kl <= 0.014 && mean_kl < 0.8 * before, "found {mean_kl}, before {before}");

    let packing = rounded.bundle.manifest().targets["cpu"].packing.clone().unwrap();
    let CalibratedBy { text: by, tokens, moments } = packing.calibrated_by.unwrap();
    assert_eq!((by, tokens), (Digest::of(text().as_bytes()), WINDOWS * 256));
    let blob = rounded.bundle.manifest().documents["provenance.intoto.json"];
    let mut provenance = vec![0; usize::try_from(blob.size).unwrap()];
    rounded.bundle.read_blob(&blob, &mut provenance).unwrap();
    let provenance = String::from_utf8(provenance).unwrap();
    let noted = [by, moments].iter().all(|digest| provenance.contains(&digest.hex()));
    assert!(noted, "{provenance}");
    assert_eq!(kept(&rounded), Vec::<PathBuf>::new());
}

#[test]
fn an_interrupted_run_goes_on_and_gives_the_same_bits() {
    let text = text();
    let (whole, interrupted) = (quantized(), quantized());
    let expected = packed_weights(&calibrated(&whole, &text, &Cancel::new(), &mut |_| ()).unwrap());
    // In the middle of the second block.
    let cancel = Cancel::new();
    let ended = calibrated(&interrupted, &text, &cancel, &mut |done| {
        if done == 2 * WINDOWS + 20 {
            cancel.cancel();
        }
    });
    assert!(matches!(ended, Err(Error::Cancelled)), "{ended:?}");
    assert_eq!(kept(&interrupted).len(), 1);
    let mut first = None;
    let resumed = calibrated(&interrupted, &text, &Cancel::new(), &mut |done| {
        first.get_or_insert(done);
    });
    // After the embedding and the first block.
    assert_eq!(first, Some(2 * WINDOWS + 1));
    assert_eq!(packed_weights(&resumed.unwrap()), expected);
    assert_eq!(kept(&interrupted), Vec::<PathBuf>::new());
}

/// Returns a copy of the demo checkpoint with a tokenizer that makes other tokens of a text.
fn with_another_tokenizer() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in fs::read_dir(models().join("demo")).unwrap() {
        let path = file.unwrap().path();
        fs::copy(&path, folder.path().join(path.file_name().unwrap())).unwrap();
    }
    let path = folder.path().join("tokenizer.json");
    let tokenizer = fs::read_to_string(&path).unwrap();
    let other = tokenizer.replacen(r#""normalizer": null"#, r#""normalizer": {"type": "Lowercase"}"#, 1);
    assert_ne!(other, tokenizer);
    fs::write(path, other).unwrap();
    folder
}

#[test]
fn a_run_with_another_tokenizer_begins_anew() {
    let text = text();
    let interrupted = |built: &Built, last: usize| {
        let (cancel, mut first) = (Cancel::new(), None);
        let ended = calibrated(built, &text, &cancel, &mut |done| {
            first.get_or_insert(done);
            if done == last {
                cancel.cancel();
            }
        });
        assert!(matches!(ended, Err(Error::Cancelled)), "{ended:?}");
        first
    };
    let mut built = quantized();
    assert_eq!(interrupted(&built, WINDOWS + 1), Some(1));
    // A bundle that differs by its tokenizer takes the place of the first.
    let folder = with_another_tokenizer();
    let model = ModelSource::Folder(folder.path().to_owned());
    let other = crate::real::built(&Request { model, quant: Quant::Q4K, calibration: true, ..demo("cpu") });
    let path = built.bundle.path().to_owned();
    fs::rename(&path, built.folder.path().join("before")).unwrap();
    fs::rename(other.bundle.path(), &path).unwrap();
    built.bundle = Bundle::open(&path).unwrap();
    assert_eq!(interrupted(&built, 1), Some(1));
    assert_eq!(kept(&built).len(), 2);
}

#[test]
fn what_cannot_be_calibrated_is_refused() {
    let quantized = quantized();
    let short = calibrated(&quantized, "In the beginning", &Cancel::new(), &mut |_| ()).unwrap_err();
    let message = report(&short);
    let expected =
        "error: the calibration text has 6 tokens, expected at least 256\nhint: give a longer text";
    assert!(message.starts_with(expected), "{message}");

    let without = built(&Request { quant: Quant::Q4K, ..demo("cpu") });
    let refused = calibrated(&without, &text(), &Cancel::new(), &mut |_| ()).unwrap_err();
    assert_eq!(
        report(&refused),
        "error: target cpu was compiled without calibration\n\
         hint: compile the bundle again with --quant q4k --calibrate FILE"
    );

    let latin = quantized.folder.path().join("latin.txt");
    fs::write(&latin, b"Gar\xe7on").unwrap();
    let mut command = Command::new(program("mlxcel-pack"));
    let output = command.arg(quantized.bundle.path()).arg("--calibrate").arg(&latin).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success());
    assert!(message.contains("latin.txt is not UTF-8, expected a text"), "{message}");
}
