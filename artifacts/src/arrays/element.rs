//! Elements of tensors as numbers, to compare and to show them.

use std::fmt;

use safetensors::Dtype;

use super::value::Tensor;

/// An element of a tensor. Floats of fewer than 32 bits are exact in 32.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Element {
    /// A bool.
    Bool(bool),
    /// An integer of any size.
    Integer(i128),
    /// A float of up to 32 bits.
    Single(f32),
    /// A float of 64 bits.
    Double(f64),
    /// A complex number of two floats.
    Complex(f32, f32),
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => write!(f, "{value}"),
            Self::Integer(value) => write!(f, "{value}"),
            Self::Single(value) => write!(f, "{value:?}"),
            Self::Double(value) => write!(f, "{value:?}"),
            Self::Complex(real, imaginary) => write!(f, "{real:?}{imaginary:+?}i"),
        }
    }
}

/// How a float with few bits says that it is no number.
enum Special {
    /// The largest exponent is infinity, or no number if it has a mantissa.
    Ieee,
    /// All bits but the sign.
    Ones,
    /// The sign alone.
    NegativeZero,
}

impl Tensor {
    /// Returns the elements in order; none of types with less than a byte, or with parts that are not known.
    pub fn elements(&self) -> impl Iterator<Item = Element> {
        let decode = decoder(self.dtype());
        let size = (self.dtype().bitsize() / 8).max(1);
        decode.into_iter().flat_map(move |decode| self.bytes().chunks_exact(size).map(decode))
    }
}

/// Returns the function that makes an element of its bytes.
fn decoder(dtype: Dtype) -> Option<fn(&[u8]) -> Element> {
    macro_rules! integer {
        ($number:ty) => {
            |bytes| Element::Integer(<$number as super::value::Number>::of_bytes(bytes).into())
        };
    }
    Some(match dtype {
        Dtype::BOOL => |bytes| Element::Bool(bytes != [0]),
        Dtype::I8 => integer!(i8),
        Dtype::I16 => integer!(i16),
        Dtype::I32 => integer!(i32),
        Dtype::I64 => integer!(i64),
        Dtype::U8 => integer!(u8),
        Dtype::U16 => integer!(u16),
        Dtype::U32 => integer!(u32),
        Dtype::U64 => integer!(u64),
        Dtype::F16 => |bytes| small(bytes, 5, 10, 15, &Special::Ieee),
        Dtype::BF16 => |bytes| small(bytes, 8, 7, 127, &Special::Ieee),
        Dtype::F8_E5M2 => |bytes| small(bytes, 5, 2, 15, &Special::Ieee),
        Dtype::F8_E4M3 => |bytes| small(bytes, 4, 3, 7, &Special::Ones),
        Dtype::F8_E4M3FNUZ => |bytes| small(bytes, 4, 3, 8, &Special::NegativeZero),
        Dtype::F8_E5M2FNUZ => |bytes| small(bytes, 5, 2, 16, &Special::NegativeZero),
        Dtype::F8_E8M0 => |bytes| match bytes {
            [255] => Element::Single(f32::NAN),
            [exponent, ..] => Element::Single(2f32.powi(i32::from(*exponent) - 127)),
            [] => Element::Single(f32::NAN),
        },
        Dtype::F32 => |bytes| Element::Single(single(bytes)),
        Dtype::F64 => |bytes| Element::Double(bytes.try_into().map(f64::from_le_bytes).unwrap_or(f64::NAN)),
        Dtype::C64 => |bytes| {
            let (real, imaginary) = bytes.split_at(bytes.len() / 2);
            Element::Complex(single(real), single(imaginary))
        },
        _ => return None,
    })
}

fn single(bytes: &[u8]) -> f32 {
    bytes.try_into().map(f32::from_le_bytes).unwrap_or(f32::NAN)
}

/// Returns a float of so many bits for exponent and mantissa.
fn small(bytes: &[u8], exponent_bits: u32, mantissa_bits: u32, bias: i32, special: &Special) -> Element {
    let bits = bytes.iter().rev().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte));
    let (sign, rest) =
        (bits >> (exponent_bits + mantissa_bits), bits & ((1 << (exponent_bits + mantissa_bits)) - 1));
    let (exponent, mantissa) = (rest >> mantissa_bits, rest & ((1 << mantissa_bits) - 1));
    let largest = (1 << exponent_bits) - 1;
    let value = match special {
        Special::Ieee if exponent == largest && mantissa == 0 => f32::INFINITY,
        Special::Ieee if exponent == largest => f32::NAN,
        Special::Ones if exponent == largest && mantissa + 1 == 1 << mantissa_bits => f32::NAN,
        Special::NegativeZero if sign == 1 && rest == 0 => return Element::Single(f32::NAN),
        _ => {
            // Subnormals have the exponent of 1, and no bit before the mantissa. Fits: exponents have 8 bits.
            let whole = if exponent == 0 { mantissa } else { mantissa | 1 << mantissa_bits };
            let exponent = exponent.max(1) as i32 - bias - mantissa_bits as i32;
            (f64::from(whole) * 2f64.powi(exponent)) as f32
        }
    };
    Element::Single(if sign == 1 { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the floats of these bits, as ml_dtypes reads them (`tests/fixtures/arrays.py` prints them).
    #[track_caller]
    fn check(dtype: Dtype, expected: [f32; 12]) {
        let bits = [0, 1, 8, 0x39, 0x7C, 0x7E, 0x7F, 0x80, 0x81, 0xC4, 0xFE, 0xFF];
        let bytes = match dtype.bitsize() {
            16 => bits.iter().flat_map(|&byte| [0, byte]).collect(),
            _ => bits.to_vec(),
        };
        let tensor = Tensor::new(dtype, &[12], bytes).unwrap();
        let found: Vec<_> = tensor.elements().map(|element| element.to_string()).collect();
        assert_eq!(found, expected.map(|value| format!("{value:?}")));
    }

    #[test]
    fn small_floats_are_those_of_ml_dtypes() {
        let (inf, nan) = (f32::INFINITY, f32::NAN);
        check(
            Dtype::F8_E4M3,
            [0.0, 0.001953125, 0.015625, 1.125, 384.0, 448.0, nan, -0.0, -0.001953125, -3.0, -448.0, nan],
        );
        check(
            Dtype::F8_E5M2,
            [0.0, 1.5258789e-05, 0.00012207031, 0.625, inf, nan, nan, -0.0, -1.5258789e-05, -4.0, nan, nan],
        );
        check(
            Dtype::F8_E4M3FNUZ,
            [
                0.0,
                0.0009765625,
                0.0078125,
                0.5625,
                192.0,
                224.0,
                240.0,
                nan,
                -0.0009765625,
                -1.5,
                -224.0,
                -240.0,
            ],
        );
        check(
            Dtype::F8_E5M2FNUZ,
            [
                0.0,
                7.6293945e-06,
                6.1035156e-05,
                0.3125,
                32768.0,
                49152.0,
                57344.0,
                nan,
                -7.6293945e-06,
                -2.0,
                -49152.0,
                -57344.0,
            ],
        );
        check(
            Dtype::F8_E8M0,
            [
                5.877_472e-39,
                1.1754944e-38,
                1.5046328e-36,
                8.4703295e-22,
                0.125,
                0.5,
                1.0,
                2.0,
                4.0,
                5.902958e20,
                1.7014118e38,
                nan,
            ],
        );
        check(
            Dtype::BF16,
            [
                0.0,
                2.3509887e-38,
                3.85186e-34,
                0.00012207031,
                2.658456e36,
                4.2535296e37,
                1.7014118e38,
                -0.0,
                -2.3509887e-38,
                -512.0,
                -4.2535296e37,
                -1.7014118e38,
            ],
        );
    }

    #[test]
    fn other_elements_are_shown_as_they_are() {
        let text = |tensor: Tensor| tensor.elements().map(|e| e.to_string()).collect::<Vec<_>>().join(" ");
        assert_eq!(text(Tensor::of(&[2], &[true, false]).unwrap()), "true false");
        assert_eq!(text(Tensor::of(&[2], &[u64::MAX, 0]).unwrap()), "18446744073709551615 0");
        assert_eq!(text(Tensor::of(&[2], &[0.1f32, f32::NAN]).unwrap()), "0.1 NaN");
        let complex =
            Tensor::new(Dtype::C64, &[1], [1f32.to_le_bytes(), (-2f32).to_le_bytes()].concat()).unwrap();
        assert_eq!(text(complex), "1.0-2.0i");
        assert_eq!(Tensor::new(Dtype::F4, &[2], vec![0]).unwrap().elements().count(), 0);
    }
}
