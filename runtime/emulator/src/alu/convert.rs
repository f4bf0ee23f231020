//! Conversions between types.

use half::{bf16, f16};

use super::number::{Binary, Unary, of};
use crate::types::Type;

/// Returns the conversion of a type to another.
pub(crate) fn conversion(modifiers: &[&str], to: Type, from: Type) -> Option<Unary> {
    let rounding = ["rni", "rzi", "rmi", "rpi"].into_iter().find(|name| modifiers.contains(name));
    match (to, from) {
        (Type::Integer { .. }, Type::Integer { .. }) if modifiers.contains(&"sat") => None,
        (Type::Integer { bits, signed }, Type::Integer { bits: of, signed: of_signed }) => {
            // The narrower one says what is left, and its sign whether the rest repeats it.
            if bits < of { of_width(bits, signed) } else { of_width(of, of_signed) }
        }
        (Type::Integer { bits, signed }, Type::F32) => to_integer_f32(rounding?, bits, signed),
        (Type::Integer { bits, signed }, Type::F64) => to_integer_f64(rounding?, bits, signed),
        (_, Type::Integer { bits, signed }) => of_integer(to, bits, signed),
        // It is there for what modifiers change.
        (Type::F32, Type::F32)
            if ["sat", "ftz", "relu"].iter().any(|name| modifiers.contains(name)) && rounding.is_none() =>
        {
            Some(|x| x)
        }
        (Type::F32, Type::F32) => Some(match rounding? {
            "rni" => of!(f32, |x| x.round_ties_even()),
            "rzi" => of!(f32, |x| x.trunc()),
            "rmi" => of!(f32, |x| x.floor()),
            _ => of!(f32, |x| x.ceil()),
        }),
        (Type::F64, Type::F64) => Some(match rounding? {
            "rni" => of!(f64, |x| x.round_ties_even()),
            "rzi" => of!(f64, |x| x.trunc()),
            "rmi" => of!(f64, |x| x.floor()),
            _ => of!(f64, |x| x.ceil()),
        }),
        (Type::F16, Type::F16) => Some(match rounding? {
            "rni" => of!(f16, |x| f16::from_f32(x.to_f32().round_ties_even())),
            "rzi" => of!(f16, |x| f16::from_f32(x.to_f32().trunc())),
            "rmi" => of!(f16, |x| f16::from_f32(x.to_f32().floor())),
            _ => of!(f16, |x| f16::from_f32(x.to_f32().ceil())),
        }),
        (Type::F32, Type::F16) => Some(of!(f16, |x| x.to_f32())),
        (Type::F32, Type::Bf16) => Some(of!(bf16, |x| x.to_f32())),
        (Type::F16, Type::F32) => Some(of!(f32, |x| f16::from_f32(x))),
        (Type::Bf16, Type::F32) => Some(of!(f32, |x| bf16::from_f32(x))),
        (Type::F32, Type::F64) => Some(of!(f64, |x| x as f32)),
        (Type::F64, Type::F32) => Some(of!(f32, |x| f64::from(x))),
        _ => None,
    }
}

/// Returns two floats rounded to 16 bits, the first in the upper half.
pub(crate) fn pair_of_floats(is_bf16: bool) -> Binary {
    if is_bf16 {
        |upper, lower| {
            let half = |bits: u64| u64::from(bf16::from_f32(f32::from_bits(bits as u32)).to_bits());
            half(upper) << 16 | half(lower)
        }
    } else {
        |upper, lower| {
            let half = |bits: u64| u64::from(f16::from_f32(f32::from_bits(bits as u32)).to_bits());
            half(upper) << 16 | half(lower)
        }
    }
}

/// Returns the integer in the lowest bits.
fn of_width(bits: u32, signed: bool) -> Option<Unary> {
    Some(match (bits, signed) {
        (8, false) => of!(u8, |x| x),
        (8, true) => of!(i8, |x| x),
        (16, false) => of!(u16, |x| x),
        (16, true) => of!(i16, |x| x),
        (32, false) => of!(u32, |x| x),
        (32, true) => of!(i32, |x| x),
        (64, _) => |x| x,
        _ => return None,
    })
}

/// Makes the conversion of a float to an integer. `as` saturates. NaN is zero if neither type has 64 bits, and else the highest bit.
macro_rules! to_integer {
    ($float:ty, $rounding:expr, $bits:expr, $signed:expr) => {{
        macro_rules! to {
            ($integer:ty) => {{
                const IS_LONG: bool = size_of::<$float>() == 8 || size_of::<$integer>() == 8;
                const NAN: $integer = if IS_LONG { 1 << (<$integer>::BITS - 1) } else { 0 };
                match $rounding {
                    "rni" => of!($float, |x| if x.is_nan() { NAN } else { x.round_ties_even() as $integer }),
                    "rzi" => of!($float, |x| if x.is_nan() { NAN } else { x.trunc() as $integer }),
                    "rmi" => of!($float, |x| if x.is_nan() { NAN } else { x.floor() as $integer }),
                    _ => of!($float, |x| if x.is_nan() { NAN } else { x.ceil() as $integer }),
                }
            }};
        }
        Some(match ($bits, $signed) {
            (8, false) => to!(u8),
            (8, true) => to!(i8),
            (16, false) => to!(u16),
            (16, true) => to!(i16),
            (32, false) => to!(u32),
            (32, true) => to!(i32),
            (64, false) => to!(u64),
            (64, true) => to!(i64),
            _ => return None,
        })
    }};
}

fn to_integer_f32(rounding: &str, bits: u32, signed: bool) -> Option<Unary> {
    to_integer!(f32, rounding, bits, signed)
}

fn to_integer_f64(rounding: &str, bits: u32, signed: bool) -> Option<Unary> {
    to_integer!(f64, rounding, bits, signed)
}

/// Returns an integer with at most 24 bits, of which the last is 1 if others are lost. Rounding it to 16 bits then gives what rounding
/// once would.
fn odd(x: i128) -> f32 {
    let size = x.unsigned_abs();
    let lost = (128 - size.leading_zeros()).saturating_sub(24);
    let kept = size >> lost;
    let kept = (kept | u128::from(kept << lost != size)) << lost;
    if x < 0 { -(kept as f32) } else { kept as f32 }
}

fn of_integer(to: Type, bits: u32, signed: bool) -> Option<Unary> {
    macro_rules! to {
        (|$x:ident| $result:expr) => {
            match (bits, signed) {
                (8, false) => of!(u8, |$x| $result),
                (8, true) => of!(i8, |$x| $result),
                (16, false) => of!(u16, |$x| $result),
                (16, true) => of!(i16, |$x| $result),
                (32, false) => of!(u32, |$x| $result),
                (32, true) => of!(i32, |$x| $result),
                (64, false) => of!(u64, |$x| $result),
                (64, true) => of!(i64, |$x| $result),
                _ => return None,
            }
        };
    }
    Some(match to {
        Type::F32 => to!(|x| x as f32),
        Type::F64 => to!(|x| x as f64),
        Type::F16 => to!(|x| f16::from_f32(odd(x.into()))),
        Type::Bf16 => to!(|x| bf16::from_f32(odd(x.into()))),
        _ => return None,
    })
}
