//! Weights that are damaged, or forged.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};

use mlxcel_artifacts::{entry::Parameter, report};
use mlxcel_runtime::{Error, Weights};
use safetensors::Dtype;

#[path = "../../../xtask/fuzz/src/lib.rs"]
#[expect(unreachable_pub, reason = "the fuzz targets call it")]
mod framing;

/// Makes a safetensors file with this header and this many bytes of data.
fn file(header: &str, data: usize) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend((0..data).map(|i| i as u8));
    bytes
}

fn tensor(name: &str, dtype: &str, shape: &str, from: usize, to: usize) -> String {
    format!(r#""{name}":{{"dtype":"{dtype}","shape":{shape},"data_offsets":[{from},{to}]}}"#)
}

/// Makes a valid file with one f32 tensor of two elements.
fn good(name: &str) -> Vec<u8> {
    file(&format!("{{{}}}", tensor(name, "F32", "[2]", 0, 8)), 8)
}

const HINT: &str = "hint: name the checkpoint's folder, or a safetensors file, with --weights";

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn with(self, name: &str, bytes: impl AsRef<[u8]>) -> Self {
        fs::write(self.path().join(name), bytes).unwrap();
        self
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Returns the report of the error of opening the folder, without its path.
    fn refused(&self) -> String {
        self.shown(&Weights::from_folder(self.path()).unwrap_err())
    }

    fn shown(&self, error: &Error) -> String {
        report(error).replace(&format!("{}/", self.path().display()), "")
    }
}

/// Returns the reason in the message of a damaged file.
fn reason(message: &str, file: &str) -> String {
    let reason = message.strip_prefix(&format!("error: {file} is damaged: ")).unwrap();
    reason.strip_suffix("\nhint: download or copy the checkpoint again").unwrap().to_string()
}

/// Returns the reason why a `model.safetensors` with these bytes is refused.
fn refused(bytes: impl AsRef<[u8]>) -> String {
    let message = Folder::new().with("model.safetensors", bytes).refused();
    reason(&message, "model.safetensors")
}

#[test]
fn a_valid_file() {
    let header = format!(
        "{{{},{},\"__metadata__\":{{\"format\":\"pt\"}}}}",
        tensor("b", "F32", "[2]", 0, 8),
        tensor("a", "BF16", "[1,1]", 8, 10)
    );
    let folder = Folder::new().with("model.safetensors", file(&header, 10));
    let weights = Weights::from_folder(folder.path()).unwrap();
    assert_eq!(weights.names().collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(weights.tensor("b").unwrap(), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(weights.tensor("a").unwrap(), [8, 9]);
    assert_eq!(weights.tensor("c"), None);
    assert_eq!(format!("{weights:?}"), "Weights(2 tensors in 1 files)");
    // The mapping outlives the folder and the other handle.
    let clone = weights.clone();
    drop((weights, folder));
    assert_eq!(clone.tensor("a").unwrap(), [8, 9]);
}

#[test]
fn seeds_of_fuzzing_are_valid() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../xtask/fuzz/corpus/weights");
    for (seed, whole) in [("single.bin", true), ("indexed.bin", true), ("overflow.bin", false)] {
        let bytes = fs::read(folder.join(seed)).unwrap();
        let (file, index) = framing::two_files(&bytes);
        let at = match index {
            [] => Folder::new().with("model.safetensors", file),
            _ => Folder::new()
                .with("model-00001-of-00001.safetensors", file)
                .with("model.safetensors.index.json", index),
        };
        match whole {
            true => assert_eq!(Weights::from_folder(at.path()).unwrap().names().count(), 2, "{seed}"),
            // Refused for its length, after the rest was read.
            false => assert!(at.refused().contains("by its header"), "{seed}"),
        }
    }
}

#[test]
fn headers_that_are_cut_short() {
    assert_eq!(refused(b""), "found 0 bytes, expected at least 8");
    assert_eq!(refused(b"1234567"), "found 7 bytes, expected at least 8");
    assert_eq!(
        refused(0u64.to_le_bytes()),
        "invalid JSON in header: EOF while parsing a value at line 1 column 0"
    );
    let whole = good("a");
    assert_eq!(
        refused(&whole[..40]),
        format!("found a header of {} bytes in a file of 40", whole.len() - 16)
    );
}

#[test]
fn headers_longer_than_the_file() {
    for length in [1_000, u64::MAX, u64::MAX - 7, 1 << 63] {
        let bytes = [length.to_le_bytes().as_slice(), b"{}"].concat();
        assert_eq!(refused(bytes), format!("found a header of {length} bytes in a file of 10"));
    }
}

#[test]
fn headers_longer_than_the_format_allows() {
    let folder = Folder::new().with("model.safetensors", 100_000_001u64.to_le_bytes());
    // A sparse file, which takes no disk space.
    let path = folder.path().join("model.safetensors");
    File::options().write(true).open(path).unwrap().set_len(1 << 30).unwrap();
    assert_eq!(
        reason(&folder.refused(), "model.safetensors"),
        "found a header of 100000001 bytes in a file of 1073741824"
    );
}

#[test]
fn data_that_is_cut_short_or_too_long() {
    let mut bytes = good("a");
    bytes.pop();
    assert_eq!(
        refused(&bytes),
        format!("found {} bytes, expected {} by its header", bytes.len(), bytes.len() + 1)
    );
    let mut bytes = good("a");
    bytes.push(0);
    assert_eq!(
        refused(&bytes),
        format!("found {} bytes, expected {} by its header", bytes.len(), bytes.len() - 1)
    );
}

#[test]
fn every_truncation_is_refused() {
    let whole = good("a");
    for length in 0..whole.len() {
        refused(&whole[..length]);
    }
}

#[test]
fn wrong_offsets() {
    let two = |a: (usize, usize), b: (usize, usize), data| {
        let header = [tensor("a", "F32", "[2]", a.0, a.1), tensor("b", "F32", "[2]", b.0, b.1)].join(",");
        refused(file(&format!("{{{header}}}"), data))
    };
    // Overlapping, with a hole, backwards, past the end of the file, and past the end of the address space.
    assert_eq!(two((0, 8), (4, 12), 12), "invalid offset for tensor `b`");
    assert_eq!(two((0, 8), (12, 20), 20), "invalid offset for tensor `b`");
    assert_eq!(two((8, 0), (8, 16), 16), "invalid offset for tensor `a`");
    assert_eq!(two((0, 8), (8, 16), 8), two((0, 8), (8, 16), 8));
    assert!(two((0, 8), (8, 16), 8).starts_with("found "));
    assert_eq!(two((0, 8), (usize::MAX - 7, 16), 16), "invalid offset for tensor `b`");
    assert_eq!(
        two((0, 8), (8, usize::MAX), 16),
        format!("tensor `b`: found {} bytes, expected 8 of f32[2]", usize::MAX - 8)
    );
}

#[test]
fn offsets_to_the_end_of_the_address_space() {
    // 8 tensors of 2^61 - 1 bytes. Each fits the address space, and so does their sum, but not with the header.
    let size = (1usize << 61) - 1;
    let tensors: Vec<String> = (0..8)
        .map(|i| tensor(&format!("t{i}"), "U8", &format!("[{size}]"), i * size, (i + 1) * size))
        .collect();
    let bytes = file(&format!("{{{}}}", tensors.join(",")), 0);
    let expected = 8 * size as u128 + bytes.len() as u128;
    assert_eq!(refused(&bytes), format!("found {} bytes, expected {expected} by its header", bytes.len()));
}

#[test]
fn types_with_wrong_sizes() {
    let one = |dtype: &str, shape: &str, to| {
        refused(file(&format!("{{{}}}", tensor("a", dtype, shape, 0, to)), to))
    };
    assert_eq!(one("F32", "[3]", 8), "tensor `a`: found 8 bytes, expected 12 of f32[3]");
    assert_eq!(one("F16", "[2]", 8), "tensor `a`: found 8 bytes, expected 4 of f16[2]");
    for shape in ["18446744073709551615,18446744073709551615", "9223372036854775807"] {
        assert_eq!(
            one("F32", &format!("[{shape}]"), 8),
            format!("tensor `a`: found 8 bytes, expected those of f32[{shape}], more than any file has")
        );
    }
    assert!(one("F31", "[2]", 8).starts_with("tensor `a`: unknown variant `F31`, expected one of "));
    assert!(one("F32", "[-2]", 8).starts_with("tensor `a`: invalid value: integer `-2`, expected usize"));
    assert_eq!(refused(file(r#"{"__metadata__": {}, "a": {}}"#, 0)), "tensor `a`: missing field `dtype`");
    // The data is not a whole number of bytes.
    assert!(!one("F4", "[3]", 2).is_empty());
}

#[test]
fn a_tensor_twice_in_one_file() {
    let header = format!("{{{},{}}}", tensor("a", "F32", "[2]", 0, 8), tensor("a", "F32", "[2]", 8, 16));
    assert_eq!(refused(file(&header, 16)), "invalid offset for tensor `a`");
}

#[test]
fn data_that_is_not_a_header() {
    assert!(refused(file("[]", 0)).starts_with("invalid JSON in header: "));
    assert!(refused(file("{\u{7f}", 0)).starts_with("invalid JSON in header: "));
    let mut bytes = file("{}", 0);
    bytes[8] = 0xff;
    assert!(refused(bytes).starts_with("invalid UTF-8 in header: "));
    // Deep enough to overflow the stack of a recursive parser.
    assert!(refused(file(&"[".repeat(1_000_000), 0)).starts_with("invalid JSON in header: "));
    // Names from a file are escaped before they are printed.
    let header = format!("{{{}}}", tensor("\\u001b[2Ja", "F32", "[2]", 1, 9));
    assert_eq!(refused(file(&header, 9)), "invalid offset for tensor `\\u{1b}[2Ja`");
}

#[test]
fn shards() {
    let index = |map: &str| format!(r#"{{"metadata": {{"total_size": 16}}, "weight_map": {{{map}}}}}"#);
    let folder = |map: &str| {
        Folder::new()
            .with("model.safetensors.index.json", index(map))
            .with("1.safetensors", good("a"))
            .with("2.safetensors", good("b"))
    };
    let whole = folder(r#""a": "1.safetensors", "b": "2.safetensors""#);
    assert_eq!(Weights::from_folder(whole.path()).unwrap().names().count(), 2);

    let damaged = |map: &str| {
        let message = folder(map).refused();
        reason(&message, "model.safetensors.index.json")
    };
    assert_eq!(
        damaged(r#""a": "1.safetensors", "b": "3.safetensors", "c": "4.safetensors""#),
        "it names shards that are not there: 3.safetensors, 4.safetensors"
    );
    assert_eq!(
        damaged(r#""a": "2.safetensors", "b": "2.safetensors""#),
        "it expects tensor `a` in 2.safetensors, which lacks it"
    );
    assert_eq!(
        damaged(r#""a": "2.safetensors", "b": "1.safetensors""#),
        "it expects tensor `a` in 2.safetensors, which lacks it"
    );
    for path in [
        "../1.safetensors",
        "/etc/x.safetensors",
        "..\\1.safetensors",
        "1.safetensors/../1.safetensors",
        "/etc/passwd",
        "..",
    ] {
        let escaped = path.replace('\\', "\\\\");
        assert_eq!(
            damaged(&format!(r#""a": "{escaped}""#)),
            format!("shard `{escaped}`, expected the name of a safetensors file")
        );
    }
    assert!(damaged("\"a\"").starts_with("expected `:`"));
}

#[test]
fn a_tensor_in_two_shards() {
    let folder = Folder::new()
        .with(
            "model.safetensors.index.json",
            r#"{"weight_map": {"a": "1.safetensors", "b": "2.safetensors"}}"#,
        )
        .with("1.safetensors", good("a"))
        .with("2.safetensors", good("a"));
    assert_eq!(
        folder.refused(),
        "error: tensor `a` is both in 1.safetensors and in 2.safetensors, expected it in one\n\
         hint: download or copy the checkpoint again"
    );
}

#[test]
fn a_damaged_shard_is_named() {
    let folder = Folder::new()
        .with("model.safetensors.index.json", r#"{"weight_map": {"a": "1.safetensors"}}"#)
        .with("1.safetensors", "x");
    assert_eq!(reason(&folder.refused(), "1.safetensors"), "found 1 bytes, expected at least 8");
}

#[test]
fn missing_and_irregular_files() {
    let folder = Folder::new();
    let shown = folder.path().display();
    assert_eq!(
        folder.refused(),
        format!(
            "error: found no weights in {shown}, expected model.safetensors or model.safetensors.index.json\n\
             hint: name the checkpoint's folder, or a safetensors file, with --weights"
        )
    );
    let error = Weights::from_folder(&folder.path().join("none")).unwrap_err();
    assert_eq!(
        folder.shown(&error),
        "error: found nothing at none, expected a folder with weights or a safetensors file\n\
         hint: name the checkpoint's folder, or a safetensors file, with --weights"
    );
    let error = Weights::from_files(&[folder.path().join("none")]).unwrap_err();
    assert_eq!(
        folder.shown(&error),
        format!(
            "error: cannot read none: No such file or directory (os error 2)\nhint: ls {shown} shows what is there"
        )
    );
    let error = Weights::from_files(&[folder.path().to_path_buf()]).unwrap_err();
    assert_eq!(
        report(&error),
        format!("error: {shown} is not a regular file, expected a safetensors file\n{HINT}")
    );
    assert_eq!(
        report(&Weights::from_files(&[PathBuf::from("/dev/zero")]).unwrap_err()),
        format!("error: /dev/zero is not a regular file, expected a safetensors file\n{HINT}")
    );
}

#[test]
fn a_pointer_of_git_lfs() {
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 3743104\n";
    let folder = Folder::new().with("model.safetensors", pointer);
    assert_eq!(
        folder.refused(),
        format!(
            "error: model.safetensors is a pointer of Git LFS, expected the tensors\nhint: run git lfs pull in {}",
            folder.path().display()
        )
    );
}

#[test]
fn a_single_file_takes_precedence_over_an_index() {
    let folder = Folder::new().with("model.safetensors", good("a")).with("model.safetensors.index.json", "{");
    assert_eq!(Weights::from_folder(folder.path()).unwrap().names().collect::<Vec<_>>(), ["a"]);
}

#[test]
fn weights_of_another_model() {
    let header = [
        tensor("right", "F32", "[2]", 0, 8),
        tensor("misshapen", "F32", "[1,2]", 8, 16),
        tensor("mistyped", "BF16", "[2]", 16, 20),
        tensor("extra.b", "F32", "[]", 20, 24),
        tensor("extra.a", "F32", "[0]", 24, 24),
    ];
    let bytes = file(&format!("{{{}}}", header.join(",")), 24);
    let folder = Folder::new().with("model.safetensors", bytes);
    let weights = Weights::from_folder(folder.path()).unwrap();
    let parameter = |name: &str| Parameter::new(name, Dtype::F32, &[2]);
    assert_eq!(
        weights.check(&[parameter("right")]).unwrap(),
        ["extra.a", "extra.b", "misshapen", "mistyped"]
    );
    let all = ["missing", "right", "misshapen", "mistyped", "also.missing"].map(parameter);
    assert_eq!(
        report(&weights.check(&all).unwrap_err()),
        "error: the weights do not fit the bundle: 4 of 5 tensors\n  \
           missing: missing, expected f32[2]\n  \
           misshapen: f32[1,2], expected f32[2]\n  \
           mistyped: bf16[2], expected f32[2]\n  \
           also.missing: missing, expected f32[2]\n\
         hint: give the checkpoint that the bundle was compiled from, or compile it for this one"
    );
}
