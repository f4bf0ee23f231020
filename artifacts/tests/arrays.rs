//! Files of tensors: those of NumPy, and those that lie.
#![cfg(feature = "tensors")]
#![allow(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

use std::{
    collections::BTreeMap,
    fs,
    io::{Cursor, Write as _},
    path::{Path, PathBuf},
};

use mlxcel_artifacts::{Tensor, TensorFile, report, type_text, write_tensors};
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/arrays.npz")
}

/// Reads all tensors of a file, as text.
fn contents(path: &Path) -> Vec<String> {
    let file = TensorFile::open(path).unwrap();
    let all = file.tensors();
    let shown = all.iter().map(|(name, dtype, shape)| {
        let tensor = file.read(name).unwrap();
        assert_eq!((tensor.dtype(), tensor.shape()), (*dtype, *shape));
        let elements: Vec<_> = tensor.elements().map(|element| element.to_string()).collect();
        format!("{name} {} {}", type_text(*dtype, shape), elements.join(" ")).trim_end().to_owned()
    });
    shown.collect()
}

/// Writes bytes to a file of this name, and returns why it is refused, with the path as `F`.
fn refused(name: &str, bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    let error = TensorFile::open(&path).map(|_| ()).unwrap_err();
    report(&error).replace(&path.display().to_string(), "F")
}

/// Returns an npz file with this member.
fn npz(name: &str, bytes: &[u8]) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
    archive.start_file(name, options).unwrap();
    archive.write_all(bytes).unwrap();
    archive.finish().unwrap().into_inner()
}

/// Returns an npy header for `shape` bytes.
fn header(shape: &str) -> Vec<u8> {
    let text = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}}}");
    [&b"\x93NUMPY\x01\x00"[..], &u16::try_from(text.len()).unwrap().to_le_bytes(), text.as_bytes()].concat()
}

#[test]
fn numpys_arrays_are_read() {
    insta::assert_snapshot!(contents(&fixture()).join("\n"), @r"
    bits bf16[2] 1.0 -2.5
    brain bf16[2] 1.0 -2.5
    complex c64[2] 1.0+2.0i -0.0-3.0i
    counted f32[2,3] 0.0 1.0 2.0 3.0 4.0 5.0
    empty u16[0,4]
    flags bool[3] true false true
    fortran f32[2,3] 0.0 1.0 2.0 3.0 4.0 5.0
    p['w'] f64[1] 1.5
    scalar i64[] -7
    small f8_e4m3[2] 0.5 -448.0
    ");
}

#[test]
fn every_format_gives_the_same_tensors_again() {
    let file = TensorFile::open(&fixture()).unwrap();
    let names: Vec<String> = file.tensors().iter().map(|(name, ..)| (*name).to_owned()).collect();
    let all: BTreeMap<_, _> =
        names.into_iter().map(|name| (name.clone(), file.read(&name).unwrap())).collect();
    let folder = tempfile::tempdir().unwrap();
    for name in ["all.npz", "all.safetensors"] {
        let path = folder.path().join(name);
        write_tensors(&path, &all).unwrap();
        assert_eq!(contents(&path), contents(&fixture()), "{name}");
    }
    let path = folder.path().join("one.npy");
    let one = BTreeMap::from([("fortran".to_owned(), all["fortran"].clone())]);
    write_tensors(&path, &one).unwrap();
    assert_eq!(TensorFile::open(&path).unwrap().read("").unwrap(), all["fortran"]);
    let refused = |path: &str, tensors| report(&write_tensors(Path::new(path), tensors).unwrap_err());
    assert_eq!(
        refused("x.npy", &all),
        "error: x.npy: found 10 tensors, expected one in an npy file\n\
         hint: use a name that ends in .npz or .safetensors"
    );
    let brain = BTreeMap::from([("b".to_owned(), all["bits"].clone())]);
    assert_eq!(
        refused("x.npy", &brain),
        "error: x.npy: found a tensor of bfloat16, expected a type that numpy has\n\
         hint: use a name that ends in .npz or .safetensors"
    );
    assert_eq!(
        refused("x.txt", &one),
        "error: x.txt: found another end of the name, expected npy, npz or safetensors\n\
         hint: use a name that ends in .npz or .safetensors"
    );
    // Nothing was left beside the files.
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
    assert!(write_tensors(&folder.path().join("no/such.npz"), &one).is_err());
}

#[test]
fn files_that_lie_are_refused_before_they_take_memory() {
    let damaged = |text: &str| format!("error: F: {text}\nhint: write the file again, or copy it again");
    // 64 MiB of zeros in 64 KiB.
    let bomb = npz("x.npy", &[header("(4,)"), vec![0; 64 << 20]].concat());
    assert!(bomb.len() < 1 << 17);
    assert_eq!(
        refused("bomb.npz", &bomb),
        damaged("tensor `x`: found 67108929 bytes, expected 69 by its header")
    );
    let huge = npz("x.npy", &header("(1000000000000000,)"));
    assert_eq!(
        refused("huge.npz", &huge),
        damaged("tensor `x`: found 80 bytes, expected 1000000000000080 by its header")
    );
    assert_eq!(
        refused("cut.npy", &[header("(4,)"), vec![0; 3]].concat()),
        damaged("found 68 bytes, expected 69 by its header")
    );
    assert_eq!(
        refused("notes.npz", &npz("notes.txt", b"hello there")),
        damaged("tensor `notes.txt`: found no npy header")
    );
    let whole = fs::read(fixture()).unwrap();
    assert!(
        refused("cut.npz", &whole[..whole.len() / 2]).starts_with("error: F: found a damaged zip archive")
    );
    assert!(refused("empty", b"").starts_with("error: F: found neither npy, npz nor safetensors\nhint: "));
    assert!(
        refused("text", b"once upon a time").starts_with("error: F: found neither npy, npz nor safetensors")
    );
    assert!(
        refused("control.npz", &npz("a\x1b[2J.npy", b"")).starts_with("error: F: tensor `a\\u{1b}[2J`: ")
    );
    assert_eq!(
        report(&TensorFile::open(Path::new("/dev/zero")).map(|_| ()).unwrap_err()),
        "error: /dev/zero: is not a regular file\nhint: name a file of tensors"
    );
}

#[test]
fn no_cut_and_no_flipped_bit_panics() {
    let whole = fs::read(fixture()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.npz");
    let read = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        let Ok(file) = TensorFile::open(&path) else { return };
        file.tensors().iter().for_each(|(name, ..)| drop(file.read(name)));
    };
    for at in (0..whole.len()).step_by(3) {
        read(&whole[..at]);
        let mut flipped = whole.clone();
        flipped[at] ^= 1 << (at % 8);
        read(&flipped);
    }
    let tensor = Tensor::of(&[2], &[1u8, 2]).unwrap();
    assert_eq!(tensor.to_string(), "u8[2]");
}
