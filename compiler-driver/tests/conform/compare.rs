//! What was found beside what is expected.

use half::{bf16, f16};
use mlxcel_artifacts::Tensor;
use safetensors::Dtype;

/// The units in the last place that count as equal: elementary functions differ by as many between libraries.
const PASS_ULP: u64 = 3;

/// The difference that counts as near, beside 1 or the larger number, by the element's type.
const fn tolerance(dtype: Dtype) -> f64 {
    match dtype {
        Dtype::BF16 => 2e-2,
        Dtype::F16 => 5e-3,
        Dtype::F64 => 1e-10,
        _ => 1e-4,
    }
}

/// The difference that `check.expect_almost_eq` allows.
const ALMOST: f64 = 1e-3;

/// Says what became of a check: `pass`, `near ulp=4` or `wrong: …`.
pub(crate) fn compare(kind: &str, found: &Tensor, expected: &Tensor) -> String {
    if (found.dtype(), found.shape()) != (expected.dtype(), expected.shape()) {
        return format!(
            "wrong: found {:?}{:?}, expected {:?}{:?}",
            found.dtype(),
            found.shape(),
            expected.dtype(),
            expected.shape()
        );
    }
    let floats = |tensor: &Tensor| floats(tensor.dtype(), tensor.bytes());
    let (Some(found_values), Some(values)) = (floats(found), floats(expected)) else {
        let size = found.dtype().bitsize() / 8;
        let pairs = found.bytes().chunks(size.max(1)).zip(expected.bytes().chunks(size.max(1)));
        let wrong = pairs.filter(|(found, expected)| found != expected).count();
        return if wrong == 0 { "pass".to_owned() } else { format!("wrong: {wrong} elements differ") };
    };
    let mut worst = 0;
    for (index, (a, b)) in found_values.iter().zip(&values).enumerate() {
        if a.value == b.value || (a.value.is_nan() && b.value.is_nan()) {
            continue;
        }
        let difference = (a.value - b.value).abs();
        if kind == "expect_almost_eq" && difference <= ALMOST {
            continue;
        }
        let ulp = a.place.abs_diff(b.place);
        let is_near = difference <= tolerance(found.dtype()) * b.value.abs().max(1.0);
        if ulp > PASS_ULP && !is_near {
            return format!("wrong: element {index} is {}, expected {}", a.value, b.value);
        }
        worst = worst.max(ulp);
    }
    if worst > PASS_ULP { format!("near ulp={worst}") } else { "pass".to_owned() }
}

/// A float, and its place among all floats of its type.
struct Placed {
    value: f64,
    place: i64,
}

/// Returns floats, or the parts of complex numbers; `None` if elements are others.
fn floats(dtype: Dtype, bytes: &[u8]) -> Option<Vec<Placed>> {
    let of = |size: usize, value: fn(&[u8]) -> f64| {
        let place = |bytes: &[u8]| {
            let bits = bytes.iter().rev().fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
            let sign = 1_u64 << (8 * size - 1);
            // Negative numbers stand in the opposite order.
            let size = (bits & (sign - 1)).cast_signed();
            if bits & sign == 0 { size } else { -size }
        };
        bytes.chunks_exact(size).map(|bytes| Placed { value: value(bytes), place: place(bytes) }).collect()
    };
    Some(match dtype {
        Dtype::F16 => of(2, |bytes| f16::from_le_bytes(bytes.try_into().unwrap()).to_f64()),
        Dtype::BF16 => of(2, |bytes| bf16::from_le_bytes(bytes.try_into().unwrap()).to_f64()),
        Dtype::F32 | Dtype::C64 => of(4, |bytes| f32::from_le_bytes(bytes.try_into().unwrap()).into()),
        Dtype::F64 => of(8, |bytes| f64::from_le_bytes(bytes.try_into().unwrap())),
        _ => return None,
    })
}

#[test]
fn near_and_wrong_differ() {
    let tensor = |values: &[f32]| Tensor::of(&[values.len()], values).unwrap();
    let of = |found: f32, expected: f32| compare("expect_close", &tensor(&[found]), &tensor(&[expected]));
    assert_eq!(of(1.0, 1.0 + 2.0 * f32::EPSILON), "pass");
    assert_eq!(of(1.0, 1.0 + 8.0 * f32::EPSILON), "near ulp=8");
    assert_eq!(of(f32::NAN, f32::NAN), "pass");
    assert_eq!(of(0.0, -0.0), "pass");
    assert!(of(1.0, 1.1).starts_with("wrong: element 0 is 1, expected 1.1"));
    assert!(of(f32::INFINITY, 1.0).starts_with("wrong"));
    assert!(of(f32::NAN, 1.0).starts_with("wrong"));
}
