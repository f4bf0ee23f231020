//! Calls of real functions, compiled by the `iree-compile` that setup installs.

use std::rc::Rc;

use mlxcel_artifacts::{
    entry::{ResultKind, ResultSpec, Role},
    report,
};

use super::*;
use crate::{
    ffi::{Device, map, tests::compile},
    trace::Trace,
    weights::Weights,
};

/// A moment and a weight as an optimizer updates them: the weight reads the moment of the call before.
const STEP: &str = r#"
module @model {
  func.func @step(
    %m: tensor<4xf32>, %w: tensor<4xf32>, %count: tensor<i32>, %x: tensor<4xf32>,
    %new_m: tensor<4xf32> {iree.abi.output = 0 : index},
    %new_w: tensor<4xf32> {iree.abi.output = 1 : index},
    %new_count: tensor<i32> {iree.abi.output = 2 : index}
  ) -> (tensor<4xf32>, tensor<4xf32>, tensor<i32>, tensor<f32>) {
    %half = stablehlo.constant dense<0.5> : tensor<4xf32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.multiply %m, %half : tensor<4xf32>
    %1 = stablehlo.add %0, %x : tensor<4xf32>
    %2 = stablehlo.add %w, %m : tensor<4xf32>
    %3 = stablehlo.add %count, %one : tensor<i32>
    %sum = stablehlo.reduce(%2 init: %zero) applies stablehlo.add across dimensions = [0]
      : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    return %1, %2, %3, %sum : tensor<4xf32>, tensor<4xf32>, tensor<i32>, tensor<f32>
  }
  func.func @types(
    %a: tensor<2xi1>, %b: tensor<2xui8>, %c: tensor<2xi16>, %d: tensor<ui32>, %e: tensor<2xui64>, %f: tensor<2xf16>,
    %g: tensor<2xbf16>, %h: tensor<2xf64>, %i: tensor<2xcomplex<f32>>, %j: tensor<0x3xf32>
  ) -> (
    tensor<2xi1>, tensor<2xui8>, tensor<2xi16>, tensor<ui32>, tensor<2xui64>, tensor<2xf16>,
    tensor<2xbf16>, tensor<2xf64>, tensor<2xcomplex<f32>>, tensor<0x3xf32>
  ) {
    return %a, %b, %c, %d, %e, %f, %g, %h, %i, %j : tensor<2xi1>, tensor<2xui8>, tensor<2xi16>, tensor<ui32>,
      tensor<2xui64>, tensor<2xf16>, tensor<2xbf16>, tensor<2xf64>, tensor<2xcomplex<f32>>, tensor<0x3xf32>
  }
}
"#;

fn argument(name: &str, kind: ArgumentKind, dtype: Dtype, shape: &[usize]) -> ArgumentSpec {
    ArgumentSpec { name: (!name.is_empty()).then(|| name.into()), kind, dtype, shape: shape.to_vec() }
}

fn result(name: &str, dtype: Dtype, shape: &[usize]) -> ResultSpec {
    ResultSpec { name: Some(name.into()), kind: ResultKind::Output, dtype, shape: shape.to_vec() }
}

fn step_entry() -> Entry {
    let (state, storage) =
        (|result| ArgumentKind::State { result }, |result| ArgumentKind::Storage { result });
    Entry {
        name: "step".into(),
        function: None,
        role: Role::Function,
        work: 0,
        arguments: vec![
            argument("m", state(0), Dtype::F32, &[4]),
            argument("w", state(1), Dtype::F32, &[4]),
            argument("count", state(2), Dtype::I32, &[]),
            argument("x", ArgumentKind::Input, Dtype::F32, &[4]),
            argument("", storage(0), Dtype::F32, &[4]),
            argument("", storage(1), Dtype::F32, &[4]),
            argument("", storage(2), Dtype::I32, &[]),
        ],
        results: vec![
            result("next m", Dtype::F32, &[4]),
            result("next w", Dtype::F32, &[4]),
            result("next count", Dtype::I32, &[]),
            result("loss", Dtype::F32, &[]),
        ],
    }
}

fn module(device: &str) -> Module {
    opened(device).1
}

fn opened(device: &str) -> (Device, Module) {
    let opened = Device::create(device, None, Some(2), &Trace::off()).unwrap();
    let program = map(&compile(STEP, device)).unwrap();
    let module = Module::load(&opened, program, Rc::new(Weights::empty()), "model", &[]).unwrap();
    (opened, module)
}

fn floats(values: [f32; 4]) -> HostTensor {
    HostTensor::of(&[4], &values).unwrap()
}

fn bound(module: &Module) -> Function {
    let step = Function::new(module, &step_entry()).unwrap();
    let step = step.bind("x", &floats([1.0, 0.0, -1.0, 2.0])).unwrap();
    let step = step.state("m", &floats([0.0; 4])).unwrap().state("w", &floats([0.0; 4])).unwrap();
    step.state("count", &HostTensor::scalar(0)).unwrap()
}

#[test]
fn states_go_from_call_to_call() {
    for device in ["local-sync", "local-task", "vulkan"] {
        let (opened, module) = opened(device);
        let mut step = bound(&module);
        let (mut m, mut w, x) = ([0f32; 4], [0f32; 4], [1.0, 0.0, -1.0, 2.0]);
        for count in 1..=9 {
            step.call().unwrap();
            // `w` takes the moment before it changes.
            (0..4).for_each(|i| w[i] += m[i]);
            (0..4).for_each(|i| m[i] = m[i] * 0.5 + x[i]);
            assert_eq!(step.read("m").unwrap(), floats(m), "{device}, call {count}");
            assert_eq!(step.read("next w").unwrap(), floats(w), "{device}, call {count}");
            assert_eq!(step.read("count").unwrap(), HostTensor::scalar(count));
            assert_eq!(step.read("loss").unwrap(), HostTensor::scalar(w.iter().sum::<f32>()));
        }
        // Nothing is allocated for states: 4 bytes of the loss, and what the device rounds them to.
        let before = opened.allocated();
        (0..100).for_each(|_| step.call().unwrap());
        let each = (opened.allocated() - before) / 100;
        assert!(each <= 256, "{device}: {each} bytes");
        step.set("m", &floats(m)).unwrap();
        // A state can be set again, and an input replaced.
        step.set("w", &floats([1.0; 4])).unwrap();
        step.set("x", &floats([0.0; 4])).unwrap();
        step.call().unwrap();
        (0..4).for_each(|i| w[i] = 1.0 + m[i]);
        assert_eq!(step.read("w").unwrap(), floats(w), "{device}");
    }
}

#[test]
fn a_result_is_an_argument_of_another_call_without_a_copy() {
    let module = module("local-sync");
    let mut first = bound(&module);
    first.call().unwrap();
    let loss = first.take("loss").unwrap();
    assert_eq!((loss.dtype(), loss.shape()), (Dtype::F32, &[][..]));
    assert_eq!(loss.read().unwrap(), HostTensor::scalar(0f32));
    let wrong = bound(&module).bind_device("x", &loss).unwrap_err();
    assert_eq!(
        report(&wrong),
        "error: argument 4 \"x\": found f32[], expected f32[4]\nhint: convert it before the call"
    );
    let taken = first.take("loss").unwrap_err();
    assert_eq!(
        report(&taken),
        "error: step has no result `loss` yet\nhint: call the function first; a result can be taken once"
    );
    let kept = first.take("next w").unwrap_err();
    assert_eq!(report(&kept), "error: step keeps `next w` for its next call\nhint: read it with `read`");
}

#[test]
fn a_tensor_on_another_device_is_refused() {
    let value = floats([1.0, 0.0, -1.0, 2.0]);
    let on = |module: &Module| DeviceTensor {
        tensor: Tensor::upload(module, value.dtype(), value.shape(), value.bytes()).unwrap(),
        dtype: value.dtype(),
        shape: value.shape().to_vec(),
    };
    let here = module("local-sync");
    // The second has a device of its own too.
    for other in ["local-task", "local-sync"] {
        let refused = bound(&here).bind_device("x", &on(&module(other))).unwrap_err();
        assert_eq!(
            report(&refused),
            "error: argument 4 \"x\": found a tensor on another device, expected one on the program's\n\
             hint: `read` it, and give what was read to `bind`",
            "{other}"
        );
    }
    let mut step = bound(&here).bind_device("x", &on(&here)).unwrap();
    step.call().unwrap();
    assert_eq!(step.read("m").unwrap(), value);
}

#[test]
fn a_number_of_a_program_is_a_tensor_and_every_type_passes() {
    let types = [
        ("a", Dtype::BOOL, &[2][..], vec![1, 0]),
        ("b", Dtype::U8, &[2], vec![200, 1]),
        ("c", Dtype::I16, &[2], vec![1, 2, 3, 4]),
        ("d", Dtype::U32, &[], vec![255; 4]),
        ("e", Dtype::U64, &[2], (0..16).collect()),
        ("f", Dtype::F16, &[2], vec![0, 60, 0, 188]),
        ("g", Dtype::BF16, &[2], vec![128, 63, 128, 191]),
        ("h", Dtype::F64, &[2], [1.5f64.to_le_bytes(), 2.5f64.to_le_bytes()].concat()),
        ("i", Dtype::C64, &[2], (16..32).collect()),
        ("j", Dtype::F32, &[0, 3], vec![]),
    ];
    let entry = Entry {
        name: "types".into(),
        arguments: types
            .iter()
            .map(|(name, dtype, shape, _)| argument(name, ArgumentKind::Input, *dtype, shape))
            .collect(),
        results: types.iter().map(|(name, dtype, shape, _)| result(name, *dtype, shape)).collect(),
        ..step_entry()
    };
    let mut function = Function::new(&module("local-sync"), &entry).unwrap();
    for (name, dtype, shape, bytes) in &types {
        function.set(name, &HostTensor::new(*dtype, shape, bytes.clone()).unwrap()).unwrap();
    }
    function.call().unwrap();
    for (name, _, _, bytes) in &types {
        assert_eq!(function.read(name).unwrap().bytes(), bytes, "{name}");
    }
}

#[test]
fn arguments_that_are_not_declared_so() {
    let module = module("local-sync");
    let step = || Function::new(&module, &step_entry()).unwrap();
    let refused = |result: Result<Function, Error>| report(&result.map(drop).unwrap_err());
    let x = floats([0.0; 4]);
    assert_eq!(
        refused(step().bind("y", &x)),
        "error: step takes no `y`, expected `m`, `w` or `count`\n\
         hint: `mlxcel-bundle inspect BUNDLE` shows the arguments"
    );
    assert_eq!(
        refused(step().bind("x", &HostTensor::of(&[3], &[0f64; 3]).unwrap())),
        "error: argument 4 \"x\": found f64[3], expected f32[4]\nhint: convert it before the call"
    );
    assert_eq!(
        refused(step().bind("w", &x)),
        "error: argument 2 \"w\" is a state, expected an input\nhint: use `state`"
    );
    assert_eq!(
        refused(step().state("x", &x)),
        "error: argument 4 \"x\" is an input, expected a state\nhint: use `bind`"
    );
    assert_eq!(
        report(&step().call().unwrap_err()),
        "error: argument 1 \"m\": found nothing, expected f32[4]\nhint: give it before the call"
    );
    assert_eq!(
        report(&bound(&module).read("lost").unwrap_err()),
        "error: step has no result and no state `lost`, expected `loss`, `next m` or `next w`\n\
         hint: `mlxcel-bundle inspect BUNDLE` shows them"
    );
    assert_eq!(
        report(&bound(&module).read("loss").unwrap_err()),
        "error: step has no result `loss` yet\nhint: call the function first; a result can be taken once"
    );
    // A state can be read before it was used.
    assert_eq!(bound(&module).read("w").unwrap(), x);
    let other = Entry { results: vec![], ..step_entry() };
    assert!(Function::new(&module, &Entry { name: "walk".into(), ..other }).is_err());
}
