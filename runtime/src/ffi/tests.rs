//! The types of `shim.rs` with real modules, compiled by the `iree-compile` that setup installs.

use std::{
    collections::BTreeSet,
    env,
    path::{Path, PathBuf},
    process::Command,
    rc::Rc,
    sync::Mutex,
    time::Duration,
};

use memmap2::Mmap;
use mlxcel_artifacts::Digest;
use safetensors::{Dtype, tensor::TensorView};
use tempfile::{TempDir, TempPath};

use super::{error::Error, *};
use crate::{trace::Trace, weights::Weights};

/// Compiles a module for the driver of `device`; returns the vmfb.
pub(crate) fn compile(mlir: &str, device: &str) -> PathBuf {
    static DONE: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let target = match device {
        "local-sync" | "local-task" => "--iree-hal-target-device=local",
        "vulkan" => "--iree-hal-target-device=vulkan",
        other => panic!("no target for {other}"),
    };
    let folder = Path::new(env!("OUT_DIR")).join("modules");
    let source = folder.join(Digest::of(format!("{target}{mlir}").as_bytes()).hex()).with_extension("mlir");
    let vmfb = source.with_extension("vmfb");
    let mut done = DONE.lock().unwrap();
    if done.contains(&vmfb) {
        return vmfb;
    }
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(&source, mlir).unwrap();
    let toolchain = env::var_os("MLXCEL_TOOLCHAIN")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../.toolchain"), PathBuf::from);
    let compiler = env::var_os("MLXCEL_IREE_COMPILE")
        .map_or_else(|| toolchain.join("iree/iree/compiler/_mlir_libs/iree-compile"), PathBuf::from);
    let mut command = Command::new(&compiler);
    // Renamed when complete, because another run of these tests may be reading it.
    let part = TempPath::try_from_path(folder.join(format!("{}.part", std::process::id()))).unwrap();
    command.args([target, "--iree-llvmcpu-target-cpu=host", "-o"]).args([part.as_ref(), source.as_path()]);
    if target.ends_with("local") {
        command.arg("--iree-hal-local-target-device-backends=llvm-cpu");
    }
    let output = command.output().unwrap_or_else(|error| {
        panic!("{}: {error}; run cargo xtask setup, or set MLXCEL_IREE_COMPILE", compiler.display())
    });
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    part.persist(&vmfb).unwrap();
    done.insert(vmfb.clone());
    vmfb
}

/// Makes a checkpoint with one f32 tensor, whose data begins `skew` bytes after a multiple of 64.
pub(crate) fn weights(name: &str, values: &[f32], skew: usize) -> (TempDir, Weights) {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    let view = TensorView::new(Dtype::F32, vec![values.len()], &bytes).unwrap();
    let file = safetensors::serialize([(name, view)], None).unwrap();
    let header = usize::try_from(u64::from_le_bytes(file[..8].try_into().unwrap())).unwrap();
    // A header may end in spaces.
    let padded = (8 + header).next_multiple_of(64) + skew - 8;
    let mut text = file[8..8 + header].to_vec();
    text.resize(padded, b' ');
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("model.safetensors");
    std::fs::write(&path, [&(padded as u64).to_le_bytes()[..], &text, &bytes].concat()).unwrap();
    let weights = Weights::from_files(&[path]).unwrap();
    assert_eq!(weights.tensor(name).unwrap().as_ptr() as usize % 64, skew);
    (folder, weights)
}

const MODULE: &str = r#"
module @model {
  util.global private mutable @sum = dense<0> : tensor<4xi32>
  util.global private @w = #flow.parameter.named<"model"::"w"> : tensor<4xf32>
  func.func @add(%x: tensor<1x4xi32>) -> (tensor<4xi32>, tensor<4xf32>) {
    %sum = util.global.load @sum : tensor<4xi32>
    %w = util.global.load @w : tensor<4xf32>
    %row = stablehlo.reshape %x : (tensor<1x4xi32>) -> tensor<4xi32>
    %new = stablehlo.add %sum, %row : tensor<4xi32>
    util.global.store %new, @sum : tensor<4xi32>
    %f = stablehlo.convert %new : (tensor<4xi32>) -> tensor<4xf32>
    %product = stablehlo.multiply %f, %w : tensor<4xf32>
    return %new, %product : tensor<4xi32>, tensor<4xf32>
  }
  func.func @weights() -> tensor<4xf32> {
    %w = util.global.load @w : tensor<4xf32>
    return %w : tensor<4xf32>
  }
}
"#;

const WEIGHTS: [f32; 4] = [1.0, 0.5, -2.0, 10.0];

fn program(device: &str) -> Mmap {
    map(&compile(MODULE, device)).unwrap()
}

/// Prepares the function `add` of [`MODULE`].
fn add(module: &Module) -> Result<Call, Error> {
    Call::new(module, "model.add", &[ArgumentType::Copied(Dtype::I32, &[1, 4])])
}

#[test]
fn state_and_results_stay_on_every_device() {
    for device in ["local-sync", "local-task", "vulkan"] {
        let program = compile(MODULE, device);
        for skew in [0, 8] {
            let (_folder, weights) = weights("w", &WEIGHTS, skew);
            let opened = Device::create(device, None, Some(2), &Trace::off()).unwrap();
            assert_eq!(opened.threads(), if device == "local-task" { 2 } else { 1 });
            let module =
                Module::load(&opened, map(&program).unwrap(), Rc::new(weights), "model", &["w"]).unwrap();
            let mut call = add(&module).unwrap();
            let first = call.invoke(&[bytes(&[1, 2, 3, 4])]).unwrap();
            assert_eq!(first[0].read::<i32>().unwrap(), [1, 2, 3, 4]);
            assert_eq!(first[1].read::<f32>().unwrap(), [1.0, 1.0, -6.0, 40.0]);
            let second = call.invoke(&[bytes(&[1, 0, 0, 0])]).unwrap();
            assert_eq!(second[0].read::<i32>().unwrap(), [2, 2, 3, 4]);
            // The next call does not overwrite results.
            assert_eq!(first[0].read::<i32>().unwrap(), [1, 2, 3, 4]);

            let all = Call::new(&module, "model.weights", &[]).unwrap().invoke(&[]).unwrap();
            drop((module, call, opened, first, second));
            assert_eq!(all[0].read::<f32>().unwrap(), WEIGHTS, "a result keeps its memory alive");
        }
    }
}

#[test]
fn a_device_runs_several_modules() {
    for device in ["local-task", "vulkan"] {
        let opened = Device::create(device, None, None, &Trace::off()).unwrap();
        let program = compile(MODULE, device);
        let load = || {
            let (_folder, weights) = weights("w", &WEIGHTS, 0);
            Module::load(&opened, map(&program).unwrap(), Rc::new(weights), "model", &["w"]).unwrap()
        };
        let mut calls = [load(), load()].map(|m| add(&m).unwrap());
        for call in &mut calls {
            assert_eq!(call.invoke(&[bytes(&[5; 4])]).unwrap()[0].read::<i32>().unwrap(), [5; 4]);
        }
    }
}

#[test]
fn refusals_of_iree_are_errors() {
    let device = Device::create("local-sync", None, None, &Trace::off()).unwrap();
    let (_folder, all) = weights("w", &WEIGHTS, 0);
    let load = |program, weights: &Weights, names: &[&str]| {
        Module::load(&device, program, Rc::new(weights.clone()), "model", names)
            .map_err(|error| error.to_string())
    };
    let refused = |result: Result<Module, String>| result.map(drop).unwrap_err();
    assert_eq!(
        refused(load(program("local-sync"), &all, &[])),
        "not found: no parameter found in index with key 'w'"
    );
    assert_eq!(refused(load(program("local-sync"), &all, &["v"])), "invalid argument: no tensor 'v'");
    let (_folder, short) = weights("w", &WEIGHTS[..2], 0);
    assert_eq!(
        refused(load(program("local-sync"), &short, &["w"])),
        "out of range: parameter `w` range out of bounds (offset=0, length=16, size=8)"
    );
    let folder = TempDir::new().unwrap();
    let text = folder.path().join("text");
    std::fs::write(&text, "not a module, but long enough to look at").unwrap();
    let refusal = refused(load(map(&text).unwrap(), &all, &["w"]));
    assert!(refusal.starts_with("invalid argument: FlatBuffer length prefix out of bounds"), "{refusal}");

    let module = load(program("local-sync"), &all, &["w"]).unwrap();
    let refused = |name, shapes: &[&[usize]], inputs: &[&[i32]]| {
        let types: Vec<_> = shapes.iter().map(|&shape| ArgumentType::Copied(Dtype::I32, shape)).collect();
        let mut call = Call::new(&module, name, &types).map_err(|error| error.to_string())?;
        let inputs: Vec<&[u8]> = inputs.iter().map(|input| bytes(input)).collect();
        call.invoke(&inputs).map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(
        refused("model.sub", &[], &[]).unwrap_err(),
        "not found: no function `sub` exported by module"
    );
    assert_eq!(
        refused("model.add", &[], &[]).unwrap_err(),
        "invalid argument: input list and function mismatch; expected 1 arguments but passed 0"
    );
    let shape = refused("model.add", &[&[1, 3]], &[&[0; 3]]).unwrap_err();
    assert!(shape.contains("expected shape `1x4`, actual shape `1x3`"), "{shape}");
    assert_eq!(
        refused("model.add", &[&[1, 4]], &[&[0; 3]]).unwrap_err(),
        "invalid argument: input 0 has 12 bytes, expected 16 bytes"
    );
    assert!(refused("model.add", &[&[usize::MAX, usize::MAX]], &[]).is_err());
    assert!(refused("model.add", &[&[1; 33]], &[]).is_err());
    // The module still works afterwards.
    let mut call = add(&module).unwrap();
    let results = call.invoke(&[bytes(&[1; 4])]).unwrap();
    assert!(results[0].read::<f32>().is_err(), "it is i32");
    assert_eq!(results[0].read::<i32>().unwrap(), [1; 4]);
}

#[test]
fn missing_devices_are_errors() {
    let error = |driver, index, threads| {
        Device::create(driver, index, threads, &Trace::off()).unwrap_err().to_string()
    };
    assert_eq!(error("rocm", None, None), "not found: no driver 'rocm' registered");
    assert_eq!(
        error("vulkan", Some(99), None).split(" out of range; ").next(),
        Some("out of range: device ordinal 99")
    );
    assert_eq!(error("local-task", None, Some(257)), "invalid argument: 257 threads, expected at most 256");
    if devices("cuda").is_err() {
        assert!(error("cuda", None, None).starts_with("unavailable: CUDA driver library"));
    }
    assert_eq!(devices("local-sync").unwrap().len(), 1);
}

#[test]
fn copies_are_timed_until_they_take_long_enough() {
    let (bytes, least) = (1 << 20, Duration::from_millis(5));
    for device in ["local-sync", "vulkan"] {
        let opened = Device::create(device, None, None, &Trace::off()).unwrap();
        let (copied, time) = opened.time_copies(bytes, least).unwrap();
        assert!(time >= least, "{device}: {time:?}");
        // Four times as many each time, from one on.
        let times = copied / bytes as u64;
        assert!(times.is_power_of_two() && times.ilog2().is_multiple_of(2), "{device}: {times}");
    }
    let device = Device::create("local-sync", None, None, &Trace::off()).unwrap();
    assert!(device.time_copies(1 << 60, least).unwrap_err().is_of_memory());
}

#[test]
fn an_empty_file_is_mapped() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("empty");
    std::fs::write(&path, "").unwrap();
    assert!(map(&path).unwrap().is_empty());
    assert!(map(&folder.path().join("none")).is_err());
}

/// Returns the events of a timeline with a length: category, name, beginning and end in microseconds, and numbers.
fn recorded(trace: &Trace) -> Vec<(String, String, f64, f64, serde_json::Value)> {
    let json = crate::trace::tests::json(trace);
    let events = crate::trace::tests::events(&json, "X").into_iter();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    events
        .map(|event| {
            let (start, length) = (event["ts"].as_f64().unwrap(), event["dur"].as_f64().unwrap());
            (text(&event["cat"]), text(&event["name"]), start, start + length, event["args"].clone())
        })
        .collect()
}

#[test]
fn a_device_that_is_recorded_tells_what_it_does() {
    // The clocks of a GPU and of the host are compared once for each call.
    for (device, slack) in [("local-sync", 0.0), ("local-task", 0.0), ("vulkan", 500.0)] {
        let trace = Trace::new();
        let (_folder, weights) = weights("w", &WEIGHTS, 0);
        let opened = Device::create(device, None, Some(2), &trace).unwrap();
        let module = Module::load(&opened, program(device), Rc::new(weights), "model", &["w"]).unwrap();
        let mut call = add(&module).unwrap();
        for _ in 0..3 {
            let results = call.invoke(&[bytes(&[1; 4])]).unwrap();
            assert_eq!(results[1].read::<f32>().unwrap().len(), 4);
        }
        assert!(opened.trace().is_on());
        drop((call, module, opened));
        assert_eq!(trace.notes(), [""; 0], "{device}");
        let events = recorded(&trace);
        let of = |category: &str| events.iter().filter(move |event| event.0 == category).collect::<Vec<_>>();
        let calls = of("call");
        assert_eq!(calls.iter().map(|call| call.1.as_str()).collect::<Vec<_>>(), ["add"; 3], "{device}");
        for (_, _, start, end, _) in calls {
            let inside = |event: &&&(String, String, f64, f64, serde_json::Value)| {
                event.2 >= start - slack && event.3 <= end + slack
            };
            let (dispatches, waits) = (of("dispatch"), of("wait"));
            assert!(dispatches.iter().filter(inside).count() > 0, "{device}: {events:?}");
            assert!(waits.iter().filter(inside).count() > 0, "{device}: {events:?}");
            let transfers = of("transfer");
            let written = transfers.iter().filter(inside).find(|event| event.1 == "write arguments").unwrap();
            assert_eq!(written.4["bytes"], 16);
        }
        assert!(of("dispatch").iter().all(|event| !event.1.is_empty() && event.3 >= event.2));
        assert_eq!(of("workgroups").is_empty(), device != "local-task");
        let read = of("transfer").into_iter().filter(|event| event.1 == "read");
        assert_eq!(read.map(|event| event.4["bytes"].as_u64().unwrap()).collect::<Vec<_>>(), [16; 3]);
    }
}

#[test]
fn a_device_has_one_recording_at_a_time() {
    let device = Device::create("local-task", None, Some(2), &Trace::off()).unwrap();
    assert!(!device.trace().is_on());
    assert!(device.record(&Trace::new()).unwrap());
    let second = device.record(&Trace::new()).map_err(|error| error.to_string());
    assert_eq!(second, Err("failed precondition: the device is being recorded already".to_owned()));
    device.end_recording();
    assert!(!device.trace().is_on() && device.record(&Trace::new()).unwrap());
}
