use std::path::PathBuf;

use mlxcel_artifacts::{report, sample, write_tensors};
use tempfile::TempDir;

use super::*;

/// Reads arguments of `step(w, x)`, vectors of 100 numbers. Paths in messages are `F`.
fn read_step(folder: &TempDir, inputs: &[&str]) -> Result<BTreeMap<String, Tensor>, String> {
    let step = sample::function();
    let path = folder.path().display().to_string();
    let inputs: Vec<String> = inputs.iter().map(|input| input.replace('F', &path)).collect();
    let read = read(&inputs, &[&step]).map(|(_, tensors)| tensors);
    read.map_err(|error| report(error.as_ref()).replace(&path, "F"))
}

fn write(folder: &TempDir, name: &str, tensors: &[(&str, Tensor)]) -> PathBuf {
    let path = folder.path().join(name);
    let tensors = tensors.iter().map(|(name, tensor)| ((*name).to_owned(), tensor.clone()));
    write_tensors(&path, &tensors.collect()).unwrap();
    path
}

fn vector(value: f32) -> Tensor {
    Tensor::of(&[100], &[value; 100]).unwrap()
}

#[test]
fn every_form_gives_the_same_arguments() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder, "w.npy", &[("any", vector(1.0))]);
    write(&folder, "x.npz", &[("any", vector(2.0))]);
    write(&folder, "both.npz", &[("w", vector(1.0)), ("x", vector(2.0))]);
    write(&folder, "both.safetensors", &[("w", vector(1.0)), ("x", vector(2.0))]);
    let expected = BTreeMap::from([("w".to_owned(), vector(1.0)), ("x".to_owned(), vector(2.0))]);
    for inputs in [
        &["w=@F/w.npy", "x=@F/x.npz"][..],
        &["w=1", "x=100xf32=2"],
        &["@F/both.npz"],
        &["@F/both.safetensors"],
        &["x=2", "w=@F/both.npz"],
    ] {
        assert_eq!(read_step(&folder, inputs).unwrap(), expected, "{inputs:?}");
    }
}

#[test]
fn messages_name_the_argument() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder, "short.npy", &[("any", Tensor::of(&[3], &[1f32; 3]).unwrap())]);
    write(&folder, "double.npz", &[("x", Tensor::of(&[100], &[1f64; 100]).unwrap())]);
    write(&folder, "other.npz", &[("ww", vector(1.0))]);
    write(&folder, "w.npy", &[("any", vector(1.0))]);
    let refused = |inputs: &[&str]| read_step(&folder, inputs).unwrap_err();
    insta::assert_snapshot!(
        [
            refused(&["w=1"]),
            refused(&["w=1", "w=2", "x=1"]),
            refused(&["w=@F/short.npy"]),
            refused(&["@F/double.npz"]),
            refused(&["@F/other.npz"]),
            refused(&["@F/w.npy"]),
            refused(&["v=1"]),
            refused(&["w"]),
            refused(&["w=one"]),
            refused(&["w=3xf32=1"]),
            refused(&["w=@F/none.npy"]),
        ]
        .join("\n"),
        @r#"
    error: argument 2 "x": found nothing, expected f32[100]
    hint: give it with --input "x"=@FILE.npy, or all in one file with --input @FILE.npz
    error: argument 1 "w": found two values, expected one
    hint: leave one out
    error: F/short.npy: argument 1 "w": found f32[3], expected f32[100]
    hint: convert the tensor, or write it again
    error: F/double.npz: argument 2 "x": found f64[100], expected f32[100]
    hint: convert the tensor, or write it again
    error: F/other.npz: found `ww`, expected a name of the arguments: w, x
    hint: name each tensor as the program does
    error: F/w.npy has one array without a name, expected NAME=@F/w.npy
    hint: name the argument
    error: found no argument `v`, expected `w` or `x`
    hint: `mlxcel-bundle inspect BUNDLE` shows the arguments
    error: found --input `w`, expected NAME=VALUE, NAME=@FILE or @FILE
    hint: the arguments are w, x
    error: argument 1 "w": found `one`, expected a number of type f32
    hint: write w=0.1, w=4xf32=1 2 3 4 or w=@FILE.npy
    error: argument 1 "w": found f32[3], expected f32[100]
    hint: write w=0.1, w=4xf32=1 2 3 4 or w=@FILE.npy
    error: F/none.npy: cannot read it: No such file or directory (os error 2)
    hint: check the path, its permissions and the disk
    "#
    );
}

#[test]
fn shapes_choose_the_entry_point() {
    let small = sample::function();
    let mut large = small.clone();
    large.name = "step_200".into();
    large.arguments.iter_mut().for_each(|argument| argument.shape = vec![200]);
    let inputs = ["w=1".to_owned(), "x=200xf32=1".to_owned()];
    assert_eq!(read(&inputs, &[&small, &large]).unwrap().0.name, "step_200");
    assert_eq!(
        read(&inputs[..1], &[&small, &large]).unwrap_err().to_string().lines().next(),
        Some("argument 2 \"x\": found nothing, expected f32[100]")
    );
}
