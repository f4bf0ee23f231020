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
        @""
    );
}
