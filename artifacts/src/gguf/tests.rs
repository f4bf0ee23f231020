use serde_json::Value;

use super::*;

/// A file under construction.
#[derive(Clone)]
struct Writer(Vec<u8>);

impl Writer {
    fn u32(mut self, number: u32) -> Self {
        self.0.extend(number.to_le_bytes());
        self
    }

    fn u64(mut self, number: u64) -> Self {
        self.0.extend(number.to_le_bytes());
        self
    }

    fn text(self, text: &str) -> Self {
        let mut writer = self.u64(text.len() as u64);
        writer.0.extend(text.as_bytes());
        writer
    }

    fn tensor(self, name: &str, shape: &[u64], ty: u32, offset: u64) -> Self {
        let writer =
            shape.iter().fold(self.text(name).u32(shape.len() as u32), |writer, &size| writer.u64(size));
        writer.u32(ty).u64(offset)
    }

    /// Adds data of so many bytes after the header.
    fn read(mut self, data: u64) -> Result<GgufHeader, String> {
        let length = (self.0.len() as u64).next_multiple_of(32) + data;
        self.0.resize(usize::try_from(length).unwrap(), 0);
        match GgufHeader::read(self.0.as_slice(), length) {
            Ok(header) => Ok(header),
            Err(GgufError::Damaged(problem)) => Err(problem),
            Err(GgufError::Io(error)) => panic!("{error}"),
        }
    }
}

fn header(tensors: u64, values: u64) -> Writer {
    Writer(GGUF_MAGIC.to_vec()).u32(3).u64(tensors).u64(values)
}

#[test]
fn a_header() {
    let file = header(2, 3)
        .text("general.architecture")
        .u32(8)
        .text("llama")
        .text("l")
        .u32(9)
        .u32(4)
        .u64(2)
        .u32(7)
        .u32(8)
        .text("x")
        .u32(6)
        .u32(1.5f32.to_bits())
        .tensor("a", &[64, 3], 2, 0)
        .tensor("b", &[5], 0, 128);
    let found = file.read(148).unwrap();
    use MetadataValue::{Float, Integer, List, Text};
    let expected = [
        ("general.architecture".to_owned(), Text("llama".into())),
        ("l".to_owned(), List(vec![Integer(7), Integer(8)])),
        ("x".to_owned(), Float(1.5)),
    ];
    assert_eq!(found.metadata, BTreeMap::from(expected));
    let start = found.tensors["a"].range.start;
    assert_eq!(found.tensors["a"].stored(), (Dtype::U8, vec![3, 36]));
    assert_eq!(found.tensors["a"].range, start..start + 108);
    assert_eq!(found.tensors["b"].stored(), (Dtype::F32, vec![5]));
    assert_eq!(found.tensors["b"].range, start + 128..start + 148);
}

#[test]
fn headers_that_are_refused() {
    let key = |kind: u32| header(0, 1).text("k").u32(kind);
    let refused = |file: Writer| file.read(64).unwrap_err();
    let one = |shape: &[u64], ty, offset| refused(header(1, 0).tensor("t", shape, ty, offset));
    insta::assert_snapshot!(
        [
            refused(Writer(b"GGML".to_vec()).u64(0)),
            refused(Writer(GGUF_MAGIC.to_vec()).u32(1).u64(0)),
            refused(Writer(GGUF_MAGIC.to_vec()).u32(3_u32.swap_bytes()).u64(0)),
            refused(header(u64::MAX, 0)),
            refused(header(0, 1 << 40)),
            refused(header(0, 1).u64(4 << 30)),
            refused(header(0, 1).u64(u64::MAX)),
            refused(key(13)),
            refused(key(7).u32(2)),
            refused(key(9).u32(0).u64(1 << 60)),
            refused(key(9).u32(9).u64(1).u32(9).u64(1).u32(9).u64(1)),
            refused(header(0, 2).text("k").u32(4).u32(0).text("k").u32(4).u32(0)),
            refused(header(0, 1).text("k\nhint: \u{1b}[2J").u32(4).u32(0)),
            refused(header(0, 1).text(&"k".repeat(1025)).u32(4).u32(0)),
            refused(header(1, 0).tensor("t\u{9b}", &[4], 0, 0)),
            refused(header(0, 1).text(ALIGNMENT_KEY).u32(4).u32(0)),
            one(&[], 0, 0),
            one(&[1; 5], 0, 0),
            one(&[0], 0, 0),
            one(&[4], 4, 0),
            one(&[4], 2, 0),
            one(&[1 << 40, 1 << 40], 0, 0),
            one(&[4], 0, 1),
            one(&[17], 0, 0),
            one(&[4], 0, u64::MAX),
            refused(header(2, 0).tensor("a", &[4], 0, 0).tensor("a", &[4], 0, 32)),
            refused(header(2, 0).tensor("a", &[16], 0, 0).tensor("b", &[8], 0, 32)),
        ]
        .join("\n"),
        @r#"
    found the bytes [71, 71, 77, 76], expected GGUF
    found version 1, expected 2 or 3
    found a big-endian file, expected little-endian numbers
    found 18446744073709551615 tensors, expected at most 3 in the rest of the file
    found 1099511627776 values, expected at most 5 in the rest of the file
    found 4294967296 bytes of a key, expected at most 64 in the rest of the file
    found 18446744073709551615 bytes of a key, expected at most 64 in the rest of the file
    `k` has the kind 13, expected one of 0 to 12, with lists at most 2 deep
    `k` is the boolean 2, expected 0 or 1
    found 1152921504606846976 values of `k`, expected at most 79 in the rest of the file
    `k` has the kind 9, expected one of 0 to 12, with lists at most 2 deep
    the key `k` is there twice, expected it once
    a key has 12 bytes and begins with "k\nhint: \u{1b}[2J", expected at most 1024 without control characters
    a key has 1025 bytes and begins with "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk", expected at most 1024 without control characters
    the name of a tensor has 3 bytes and begins with "t\u{9b}", expected at most 1024 without control characters
    `general.alignment` is 0, expected a number from 1 to 65536
    tensor `t`: found 0 dimensions, expected 1 to 4
    tensor `t`: found 5 dimensions, expected 1 to 4
    tensor `t`: found a dimension of 0, expected at least 1
    tensor `t`: found the element type 4, expected one that ggml had in 2026
    tensor `t`: found rows of 4 elements, expected a multiple of 32 for Q4_0
    tensor `t`: the shape [1099511627776, 1099511627776] has too many elements
    tensor `t`: found the offset 1, expected a multiple of 32
    tensor `t`: found 68 bytes at 0 of the data, expected a place in the file of 128 bytes
    tensor `t`: found 16 bytes at 18446744073709551615 of the data, expected a place in the file of 128 bytes
    tensor `a`: is there twice, expected it once
    tensor `b`: overlaps another tensor, expected a place of its own
    "#
    );
}

#[test]
fn lists_that_take_too_much_memory_are_refused() {
    let count = (1 << 23) + 1;
    let mut file = header(0, 1).text("k").u32(9).u32(0).u64(count);
    file.0.resize(file.0.len() + count as usize, 0);
    assert_eq!(
        file.read(0).unwrap_err(),
        "found 8388609 values in lists up to `k`, expected at most 8388608"
    );
}

#[test]
fn headers_that_end_early_are_refused() {
    let whole = header(1, 2)
        .text("general.architecture")
        .u32(8)
        .text("llama")
        .text("l")
        .u32(9)
        .u32(8)
        .u64(1)
        .text("x")
        .tensor("a", &[64, 3], 2, 0);
    for length in 0..whole.0.len() {
        let cut = &whole.0[..length];
        let error = GgufHeader::read(cut, length as u64);
        assert!(matches!(error, Err(GgufError::Damaged(_))), "{length}: {error:?}");
        // The file may also be shorter than the system said.
        let error = GgufHeader::read(cut, whole.0.len() as u64 + 200);
        assert!(matches!(error, Err(GgufError::Io(_))), "{length}: {error:?}");
    }
}

#[test]
fn single_numbers_become_the_fractions_that_they_came_from() {
    let json = |number| MetadataValue::Float(number).to_json();
    assert_eq!(json(f64::from(0.22f32)), Value::from(0.22));
    assert_eq!(json(f64::from(1e-5f32)), Value::from(1e-5));
    assert_eq!(json(0.1), Value::from(0.1));
    assert_eq!(json(f64::INFINITY), Value::Null);
    assert_eq!(MetadataValue::Integer(-3).to_json(), Value::from(-3));
    assert_eq!(MetadataValue::Integer(u64::MAX.into()).to_json(), Value::from(u64::MAX));
}
