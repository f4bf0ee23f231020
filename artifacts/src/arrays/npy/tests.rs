use super::*;

/// Returns an npy file with this header.
fn file(header: &str, data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(header.len()).unwrap().to_le_bytes();
    [MAGIC, &[1, 0], &length, header.as_bytes(), data].concat()
}

fn read(bytes: &[u8], named: Option<Dtype>) -> Result<Tensor, Problem> {
    let mut rest = bytes;
    Header::read(&mut rest, named)?.read_data(&mut rest)
}

#[track_caller]
fn refused(bytes: &[u8]) -> String {
    read(bytes, None).unwrap_err().text
}

#[test]
fn what_is_written_is_numpys() {
    // numpy.save of numpy.arange(3, dtype="f4").
    let mut numpys =
        file(&format!("{:<117}\n", "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }"), &[]);
    numpys.extend([0f32, 1.0, 2.0].iter().flat_map(|number| number.to_le_bytes()));
    let tensor = Tensor::of(&[3], &[0f32, 1.0, 2.0]).unwrap();
    let mut written = Vec::new();
    write(&tensor, &mut written).unwrap();
    assert_eq!(written, numpys);
    assert_eq!(read(&written, None).unwrap(), tensor);
    for tensor in [Tensor::scalar(true), Tensor::of(&[2, 0], &[0u16; 0]).unwrap(), Tensor::scalar(1i64)] {
        let mut written = Vec::new();
        write(&tensor, &mut written).unwrap();
        assert_eq!(read(&written, None).unwrap(), tensor);
    }
}

#[test]
fn types_that_no_program_takes_are_refused() {
    let of = |descr: &str| {
        refused(&file(&format!("{{'descr': {descr}, 'fortran_order': False, 'shape': ()}}"), &[0; 64]))
    };
    assert_eq!(of("'|O'"), "found Python objects (`|O`), expected numbers");
    assert_eq!(of("'>f4'"), "found numbers of another order of bytes (`>f4`), expected numbers");
    assert_eq!(of("'<c16'"), "found another type (`<c16`), expected numbers");
    assert_eq!(of("'<U8'"), "found another type (`<U8`), expected numbers");
    assert_eq!(of("'|V1'"), "found another type (`|V1`), expected numbers");
    assert_eq!(of("[('a', '<f4')]"), "found records of fields, expected numbers");
    assert_eq!(of("''"), "found another type (``), expected numbers");
    let float = file("{'descr': '<f4', 'fortran_order': False, 'shape': ()}", &[0; 4]);
    assert_eq!(
        read(&float, Some(Dtype::BF16)).unwrap_err().text,
        "found `<f4` for BF16, expected its bits as uint16"
    );
}

#[test]
fn broken_files_are_refused() {
    let of = |header: &str| refused(&file(header, &[0; 64]));
    let unreadable = |header: &str| {
        let shown: String = header.chars().take(80).collect();
        format!("found the npy header `{shown}`, expected descr, fortran_order and shape")
    };
    for header in [
        "",
        "{",
        "{'descr': '<f4'}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)} x",
        "{'descr': '<f4', 'fortran_order': 0, 'shape': (3,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-3,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999999,)}",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (3,)}",
    ] {
        assert_eq!(of(header), unreadable(header));
    }
    let deep = "(".repeat(60_000);
    assert_eq!(of(&deep), unreadable(&deep));
    let many = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({})}}", "1,".repeat(65));
    assert!(of(&many).starts_with("found the npy header"));
    assert_eq!(
        of("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}"),
        "found the shape [4294967296, 4294967296], which no memory holds"
    );
    let whole = file("{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", &[0; 12]);
    assert_eq!(refused(&whole[..whole.len() - 1]), "found 11 bytes of elements, expected 12");
    assert_eq!(refused(&[&whole[..], b"x"].concat()), "found more than 12 bytes of elements, expected 12");
    assert_eq!(refused(&whole[..9]), "it ends within a tensor");
    assert_eq!(refused(b"\x93NUMPZ\x01\x00"), "found no npy header");
    assert_eq!(
        refused(b"\x93NUMPY\x09\x00\x01\x00\x00\x00"),
        "found an npy header of version 9 with 1 bytes, expected 1 to 3 with at most 65536"
    );
    assert_eq!(
        refused(b"\x93NUMPY\x02\x00\xff\xff\xff\xff"),
        "found an npy header of version 2 with 4294967295 bytes, expected 1 to 3 with at most 65536"
    );
}
