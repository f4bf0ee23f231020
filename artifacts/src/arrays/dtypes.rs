//! Names of element types: NumPy's, those in keys of npz files, and MLIR's.

use safetensors::Dtype;

/// Element types that NumPy lacks. An npz file has their bits as unsigned integers, under a key that ends with the name.
const NAMED: [(&str, Dtype); 6] = [
    ("bfloat16", Dtype::BF16),
    ("float8_e4m3fn", Dtype::F8_E4M3),
    ("float8_e5m2", Dtype::F8_E5M2),
    ("float8_e4m3fnuz", Dtype::F8_E4M3FNUZ),
    ("float8_e5m2fnuz", Dtype::F8_E5M2FNUZ),
    ("float8_e8m0fnu", Dtype::F8_E8M0),
];

/// NumPy's descriptions of element types, without the order of bytes.
const NUMPY: [(&str, Dtype); 13] = [
    ("b1", Dtype::BOOL),
    ("i1", Dtype::I8),
    ("i2", Dtype::I16),
    ("i4", Dtype::I32),
    ("i8", Dtype::I64),
    ("u1", Dtype::U8),
    ("u2", Dtype::U16),
    ("u4", Dtype::U32),
    ("u8", Dtype::U64),
    ("f2", Dtype::F16),
    ("f4", Dtype::F32),
    ("f8", Dtype::F64),
    ("c8", Dtype::C64),
];

/// MLIR's names, those of StableHLO's text and of iree-run-module among them.
const MLIR: [(&str, Dtype); 31] = [
    ("i1", Dtype::BOOL),
    ("bool", Dtype::BOOL),
    ("i8", Dtype::I8),
    ("si8", Dtype::I8),
    ("i16", Dtype::I16),
    ("si16", Dtype::I16),
    ("i32", Dtype::I32),
    ("si32", Dtype::I32),
    ("i64", Dtype::I64),
    ("si64", Dtype::I64),
    ("u8", Dtype::U8),
    ("ui8", Dtype::U8),
    ("u16", Dtype::U16),
    ("ui16", Dtype::U16),
    ("u32", Dtype::U32),
    ("ui32", Dtype::U32),
    ("u64", Dtype::U64),
    ("ui64", Dtype::U64),
    ("f16", Dtype::F16),
    ("bf16", Dtype::BF16),
    ("f32", Dtype::F32),
    ("f64", Dtype::F64),
    ("c64", Dtype::C64),
    ("complex64", Dtype::C64),
    ("complex<f32>", Dtype::C64),
    ("f8E4M3FN", Dtype::F8_E4M3),
    ("f8E5M2", Dtype::F8_E5M2),
    ("f8E4M3FNUZ", Dtype::F8_E4M3FNUZ),
    ("f8E5M2FNUZ", Dtype::F8_E5M2FNUZ),
    ("f8E8M0FNU", Dtype::F8_E8M0),
    ("f8e4m3fn", Dtype::F8_E4M3),
];

fn find(table: &[(&str, Dtype)], name: &str) -> Option<Dtype> {
    table.iter().find(|(known, _)| *known == name).map(|(_, dtype)| *dtype)
}

/// Returns the name of an element type in NumPy, or else in ml_dtypes: `float32`, `bfloat16`. `None` if it has none.
#[must_use]
pub fn numpy_name(dtype: Dtype) -> Option<String> {
    if let Some((name, _)) = NAMED.iter().find(|(_, known)| *known == dtype) {
        return Some((*name).to_owned());
    }
    let (code, _) = NUMPY.iter().find(|(_, known)| *known == dtype)?;
    let kind = match code.as_bytes()[0] {
        b'i' => "int",
        b'u' => "uint",
        b'f' => "float",
        b'c' => "complex",
        _ => return Some("bool".to_owned()),
    };
    Some(format!("{kind}{}", dtype.bitsize()))
}

/// Returns the element type that has this name in NumPy or ml_dtypes.
#[must_use]
pub fn dtype_of_numpy(name: &str) -> Option<Dtype> {
    let mut known = NAMED.iter().chain(&NUMPY).map(|(_, dtype)| *dtype);
    known.find(|dtype| numpy_name(*dtype).as_deref() == Some(name))
}

/// Returns the element type that MLIR calls so: `f32`, `i1`, `ui8`, `complex<f32>`.
#[must_use]
pub fn dtype_of_mlir(name: &str) -> Option<Dtype> {
    find(&MLIR, name)
}

/// Returns the element type that NumPy describes so, without the order of bytes: `f4`.
pub(super) fn of_numpy(description: &str) -> Option<Dtype> {
    find(&NUMPY, description)
}

/// Returns NumPy's description of an element type, or of unsigned integers with its bits.
pub(super) fn numpy(dtype: Dtype) -> Option<&'static str> {
    let bits = match dtype.bitsize() {
        _ if NUMPY.iter().any(|(_, known)| *known == dtype) => dtype,
        8 => Dtype::U8,
        16 => Dtype::U16,
        _ => return None,
    };
    NUMPY.iter().find(|(_, known)| *known == bits).map(|(name, _)| *name)
}

/// Splits a key of an npz file into a tensor's name and the element type that it names: `w:bfloat16`.
pub(super) fn split_key(key: &str) -> (&str, Option<Dtype>) {
    let named = key.rsplit_once(':').and_then(|(name, suffix)| Some((name, find(&NAMED, suffix)?)));
    named.map_or((key, None), |(name, dtype)| (name, Some(dtype)))
}

/// Returns the name that follows a tensor's in the key of an npz file, if NumPy lacks its element type.
pub(super) fn suffix(dtype: Dtype) -> Option<&'static str> {
    NAMED.iter().find(|(_, known)| *known == dtype).map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_numpy_round_trip() {
        for (_, dtype) in NAMED.iter().chain(&NUMPY) {
            assert_eq!(numpy_name(*dtype).as_deref().and_then(dtype_of_numpy), Some(*dtype));
        }
        assert_eq!(numpy_name(Dtype::U16).as_deref(), Some("uint16"));
        assert_eq!(numpy_name(Dtype::C64).as_deref(), Some("complex64"));
        assert_eq!((numpy_name(Dtype::F4), dtype_of_numpy("str"), dtype_of_numpy("f4")), (None, None, None));
    }
}
