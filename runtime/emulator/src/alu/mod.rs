//! What single lanes compute: functions of bits.

mod convert;
mod float;
mod integer;
mod number;

pub(crate) use convert::{conversion, pair_of_floats};
use number::{Binary, Ternary, Unary};

use crate::types::Type;

/// Returns a function of one operand.
pub(crate) fn unary(op: &str, ty: Type) -> Option<Unary> {
    match ty {
        Type::Predicate => (op == "not").then_some(|x| u64::from(x == 0)),
        Type::Integer { bits, signed } => integer::unary(op, bits, signed),
        _ => float::unary(op, ty),
    }
}

/// Returns a function of two operands.
pub(crate) fn binary(op: &str, modifiers: &[&str], ty: Type) -> Option<Binary> {
    match ty {
        Type::Predicate => Some(match op {
            "and" => |x, y| x & y,
            "or" => |x, y| x | y,
            "xor" => |x, y| x ^ y,
            _ => return None,
        }),
        Type::Integer { bits, signed } => integer::binary(op, modifiers, bits, signed),
        _ => float::binary(op, modifiers, ty),
    }
}

/// Returns a function of three operands.
pub(crate) fn ternary(op: &str, modifiers: &[&str], ty: Type) -> Option<Ternary> {
    match (op, ty) {
        ("selp", _) => Some(|x, y, chosen| if chosen == 0 { y } else { x }),
        (_, Type::Predicate) => None,
        (_, Type::Integer { bits, signed }) => integer::ternary(op, modifiers, bits, signed),
        _ => float::ternary(op, modifiers, ty),
    }
}

/// Returns whether a comparison holds, 0 or 1.
pub(crate) fn comparison(name: &str, ty: Type) -> Option<Binary> {
    match ty {
        Type::Predicate => None,
        Type::Integer { bits, signed } => integer::comparison(name, bits, signed),
        _ => float::comparison(name, ty),
    }
}

/// Returns what an atomic operation leaves in memory, of what is there and two operands.
pub(crate) fn atomic(modifiers: &[&str], ty: Type) -> Option<Ternary> {
    let has = |name: &str| modifiers.contains(&name);
    Some(match ty {
        _ if has("exch") => |_, x, _| x,
        Type::Integer { .. } if has("cas") => |old, expected, new| if old == expected { new } else { old },
        Type::Integer { .. } if has("add") => |old, x, _| old.wrapping_add(x),
        Type::Integer { .. } if has("and") => |old, x, _| old & x,
        Type::Integer { .. } if has("or") => |old, x, _| old | x,
        // Counts to a number, and begins again with zero.
        Type::Integer { bits: 32, signed: false } if has("inc") => {
            |old, last, _| if old >= last & 0xffff_ffff { 0 } else { old + 1 }
        }
        Type::Integer { bits: 32, signed: false } if has("max") => |old, x, _| old.max(x & 0xffff_ffff),
        Type::Integer { bits: 32, signed: false } if has("min") => |old, x, _| old.min(x & 0xffff_ffff),
        Type::Integer { bits: 32, signed: true } if has("max") => {
            |old, x, _| u64::from((old as u32).cast_signed().max((x as u32).cast_signed()).cast_unsigned())
        }
        Type::Integer { bits: 32, signed: true } if has("min") => {
            |old, x, _| u64::from((old as u32).cast_signed().min((x as u32).cast_signed()).cast_unsigned())
        }
        Type::F32 if has("add") => {
            |old, x, _| u64::from((f32::from_bits(old as u32) + f32::from_bits(x as u32)).to_bits())
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const U32: Type = Type::Integer { bits: 32, signed: false };
    const S32: Type = Type::Integer { bits: 32, signed: true };

    fn f(x: f32) -> u64 {
        u64::from(x.to_bits())
    }

    #[test]
    fn integers_wrap_and_shifts_end() {
        let two = |op: &str, modifiers: &[&str], ty, x: u64, y: u64| binary(op, modifiers, ty).unwrap()(x, y);
        assert_eq!(two("add", &[], U32, 0xffff_ffff, 2), 1);
        assert_eq!(two("sub", &[], U32, 0, 1), 0xffff_ffff);
        assert_eq!(two("mul", &["wide"], U32, 0xffff_ffff, 2), 0x1_ffff_fffe);
        assert_eq!(two("mul", &["wide"], S32, 0xffff_ffff, 2), (-2_i64).cast_unsigned());
        assert_eq!(two("mul", &["hi"], U32, 0xffff_ffff, 2), 1);
        assert_eq!(two("mul", &["lo"], U32, 0xffff_ffff, 2), 0xffff_fffe);
        assert_eq!((two("shl", &[], U32, 1, 32), two("shr", &[], U32, 8, 3)), (0, 1));
        assert_eq!(two("shr", &[], S32, 0x8000_0000, 40) as u32, u32::MAX);
        assert_eq!(two("div", &[], S32, (-7_i64).cast_unsigned(), 2) as u32, (-3_i32).cast_unsigned());
        assert_eq!(two("min", &[], S32, 0xffff_ffff, 1) as u32, u32::MAX);
        assert_eq!(two("min", &[], U32, 0xffff_ffff, 1), 1);
        let three = |op: &str, modifiers: &[&str], x, y, z| ternary(op, modifiers, U32).unwrap()(x, y, z);
        assert_eq!(three("shf", &["l", "wrap", "b32"], 0x8000_0000, 1, 1), 3);
        assert_eq!(three("shf", &["r", "wrap", "b32"], 2, 1, 1), 0x8000_0001);
        assert_eq!(three("prmt", &[], 0x3322_1100, 0x7766_5544, 0x7410), 0x7744_1100);
        assert_eq!(three("prmt", &[], 0x80, 0, 0x8888), 0xffff_ffff);
        assert_eq!(three("bfe", &[], 0xabcd, 4, 8), 0xbc);
        let dot = |other| ternary("dp4a", &["s32", other], S32).unwrap()(0xff02_0380, 0x0180_ff05, 7);
        // -1 * 1 + 2 * y2 + 3 * y1 - 128 * 5 + 7, where y2 and y1 are signed or not.
        assert_eq!(dot("s32") as u32, (-1 - 256 - 3 - 640 + 7_i32).cast_unsigned());
        assert_eq!(dot("u32") as u32, (-1 + 256 + 765 - 640 + 7_i32).cast_unsigned());
        let hi = |ty, x: u64| ternary("mad", &["hi"], ty).unwrap()(x, 1 << 31, 5) as u32;
        assert_eq!((hi(U32, 4), hi(S32, 4)), (2 + 5, (-2_i32 + 5).cast_unsigned()));
        let inc = atomic(&["inc"], U32).unwrap();
        assert_eq!((inc(1, 3, 0), inc(3, 3, 0)), (2, 0));
    }

    #[test]
    fn floats_know_nan() {
        let two = |op: &str, modifiers: &[&str], x: f32, y: f32| {
            f32::from_bits(binary(op, modifiers, Type::F32).unwrap()(f(x), f(y)) as u32)
        };
        assert_eq!((two("max", &[], f32::NAN, 1.0), two("min", &[], 2.0, f32::NAN)), (1.0, 2.0));
        assert!(two("max", &["NaN"], f32::NAN, 1.0).is_nan());
        assert_eq!(two("copysign", &[], -1.0, 3.0), -3.0);
        assert_eq!(
            (two("add", &["rz"], 1.0, -1e-20), two("add", &["rm"], 1.0, -1e-20)),
            (1.0_f32.next_down(), 1.0_f32.next_down())
        );
        assert_eq!(
            (two("add", &["rp"], 1.0, 1e-20), two("mul", &["rp"], 3.0, 0.5)),
            (1.0_f32.next_up(), 1.5)
        );
        assert_eq!(
            (two("mul", &["rz"], f32::MAX, 2.0), two("mul", &["rp"], f32::MAX, 2.0)),
            (f32::MAX, f32::INFINITY)
        );
        let holds = |name: &str, x: f32, y: f32| comparison(name, Type::F32).unwrap()(f(x), f(y));
        assert_eq!(
            (holds("lt", 1.0, f32::NAN), holds("ltu", 1.0, f32::NAN), holds("ne", 1.0, f32::NAN)),
            (0, 1, 0)
        );
        assert_eq!((holds("num", 1.0, 2.0), holds("nan", 1.0, f32::NAN), holds("neu", 1.0, 1.0)), (1, 1, 0));
        let one = |op: &str, x: f32| f32::from_bits(unary(op, Type::F32).unwrap()(f(x)) as u32);
        assert_eq!((one("ex2", 3.0), one("rsqrt", 4.0), one("rcp", 8.0)), (8.0, 0.5, 0.125));
    }

    #[test]
    fn conversions_round_and_saturate() {
        let of = |modifiers: &[&str], to, from, x: u64| conversion(modifiers, to, from).unwrap()(x);
        assert_eq!(of(&["rzi"], S32, Type::F32, f(-2.7)) as u32, (-2_i32).cast_unsigned());
        assert_eq!(of(&["rni"], S32, Type::F32, f(2.5)), 2);
        assert_eq!(of(&["rzi"], U32, Type::F32, f(-1.0)), 0);
        assert_eq!(of(&["rzi"], S32, Type::F32, f(f32::NAN)), 0);
        assert_eq!(of(&["rzi"], S32, Type::F64, f64::NAN.to_bits()) as u32, 1 << 31);
        assert_eq!(of(&["rzi"], Type::Integer { bits: 64, signed: false }, Type::F32, f(f32::NAN)), 1 << 63);
        // 257 · 2^23 + 1 is above halfway between two numbers of bf16; as f32 it would be halfway.
        assert_eq!(of(&["rn"], Type::Bf16, U32, (257 << 23) + 1), 0x4f01);
        assert_eq!(of(&["rn"], Type::Bf16, U32, 257 << 23), 0x4f00);
        assert_eq!(of(&["rmi"], Type::F32, Type::F32, f(-1.5)), f(-2.0));
        assert_eq!(of(&["rn"], Type::F32, U32, 7), f(7.0));
        assert_eq!(of(&[], Type::Integer { bits: 64, signed: true }, S32, 0xffff_ffff), u64::MAX);
        let s8 = Type::Integer { bits: 8, signed: true };
        assert_eq!(of(&[], s8, S32, 0x1234_56ff), u64::MAX);
        assert_eq!(of(&[], Type::Integer { bits: 16, signed: false }, S32, u64::MAX), 0xffff);
        assert_eq!(of(&["rn"], Type::Bf16, Type::F32, f(1.0)), 0x3f80);
        assert_eq!(of(&[], Type::F32, Type::F16, 0x3c00), f(1.0));
        assert_eq!(pair_of_floats(true)(f(2.0), f(1.0)), 0x4000_3f80);
    }
}
