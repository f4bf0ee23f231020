//! Integers.

use super::number::{Binary, Ternary, Unary, of};

/// Makes the function of the integers of these bits and sign.
macro_rules! by_type {
    ($bits:expr, $signed:expr, |$($x:ident),*| $result:expr) => {
        match ($bits, $signed) {
            (16, false) => of!(u16, |$($x),*| $result),
            (16, true) => of!(i16, |$($x),*| $result),
            (32, false) => of!(u32, |$($x),*| $result),
            (32, true) => of!(i32, |$($x),*| $result),
            (64, false) => of!(u64, |$($x),*| $result),
            (64, true) => of!(i64, |$($x),*| $result),
            _ => return None,
        }
    };
}

pub(super) fn unary(op: &str, bits: u32, signed: bool) -> Option<Unary> {
    Some(match (op, bits) {
        ("not", _) => by_type!(bits, signed, |x| !x),
        ("neg", _) => by_type!(bits, signed, |x| x.wrapping_neg()),
        ("abs", 16) => of!(i16, |x| x.wrapping_abs()),
        ("abs", 32) => of!(i32, |x| x.wrapping_abs()),
        ("abs", 64) => of!(i64, |x| x.wrapping_abs()),
        ("popc", 32) => of!(u32, |x| x.count_ones()),
        ("popc", 64) => of!(u64, |x| x.count_ones()),
        ("clz", 32) => of!(u32, |x| x.leading_zeros()),
        ("clz", 64) => of!(u64, |x| x.leading_zeros()),
        ("brev", 32) => of!(u32, |x| x.reverse_bits()),
        ("brev", 64) => of!(u64, |x| x.reverse_bits()),
        _ => return None,
    })
}

pub(super) fn binary(op: &str, modifiers: &[&str], bits: u32, signed: bool) -> Option<Binary> {
    Some(match op {
        "add" => by_type!(bits, signed, |x, y| x.wrapping_add(y)),
        "sub" => by_type!(bits, signed, |x, y| x.wrapping_sub(y)),
        "mul" if modifiers.contains(&"wide") => match (bits, signed) {
            (16, false) => of!(u16, |x, y| u32::from(x) * u32::from(y)),
            (16, true) => of!(i16, |x, y| i32::from(x) * i32::from(y)),
            (32, false) => of!(u32, |x, y| u64::from(x) * u64::from(y)),
            (32, true) => of!(i32, |x, y| i64::from(x) * i64::from(y)),
            _ => return None,
        },
        "mul" if modifiers.contains(&"hi") => match (bits, signed) {
            (16, false) => of!(u16, |x, y| (u32::from(x) * u32::from(y)) >> 16),
            (16, true) => of!(i16, |x, y| ((i32::from(x) * i32::from(y)) >> 16) as i16),
            (32, false) => of!(u32, |x, y| (u64::from(x) * u64::from(y)) >> 32),
            (32, true) => of!(i32, |x, y| ((i64::from(x) * i64::from(y)) >> 32) as i32),
            (64, false) => of!(u64, |x, y| ((u128::from(x) * u128::from(y)) >> 64) as u64),
            (64, true) => of!(i64, |x, y| ((i128::from(x) * i128::from(y)) >> 64) as i64),
            _ => return None,
        },
        "mul" => by_type!(bits, signed, |x, y| x.wrapping_mul(y)),
        // What GPUs give for a division by zero.
        "div" => by_type!(bits, signed, |x, y| if y == 0 { !0 } else { x.wrapping_div(y) }),
        "rem" => by_type!(bits, signed, |x, y| if y == 0 { x } else { x.wrapping_rem(y) }),
        "min" => by_type!(bits, signed, |x, y| x.min(y)),
        "max" => by_type!(bits, signed, |x, y| x.max(y)),
        "and" => by_type!(bits, signed, |x, y| x & y),
        "or" => by_type!(bits, signed, |x, y| x | y),
        "xor" => by_type!(bits, signed, |x, y| x ^ y),
        // The distance has 32 bits, whatever is shifted.
        "shl" => match bits {
            16 => |x, y| if y as u32 >= 16 { 0 } else { (x << (y as u32)) & 0xffff },
            32 => |x, y| if y as u32 >= 32 { 0 } else { (x << (y as u32)) & 0xffff_ffff },
            64 => |x, y| if y as u32 >= 64 { 0 } else { x << (y as u32) },
            _ => return None,
        },
        "shr" => match (bits, signed) {
            (16, false) => |x, y| (x & 0xffff).checked_shr(y as u32).unwrap_or(0),
            (32, false) => |x, y| (x & 0xffff_ffff).checked_shr(y as u32).unwrap_or(0),
            (64, false) => |x, y| x.checked_shr(y as u32).unwrap_or(0),
            (16, true) => |x, y| (i64::from(x as i16) >> (y as u32).min(63)) as u64,
            (32, true) => |x, y| (i64::from(x as i32) >> (y as u32).min(63)) as u64,
            (64, true) => |x, y| ((x as i64) >> (y as u32).min(63)) as u64,
            _ => return None,
        },
        _ => return None,
    })
}

/// Adds the products of four signed bytes and four numbers.
fn dot(x: u64, sum: u64, of: impl Fn(u32) -> i32) -> u64 {
    let product = |i| i32::from(byte(x, i) as i8) * of(i);
    let sum = (0..4).map(product).fold(sum as i32, i32::wrapping_add);
    u64::from(sum.cast_unsigned())
}

fn byte(x: u64, number: u32) -> u8 {
    (x >> (8 * number)) as u8
}

pub(super) fn ternary(op: &str, modifiers: &[&str], bits: u32, signed: bool) -> Option<Ternary> {
    Some(match (op, bits) {
        ("mad", _) if modifiers.contains(&"wide") => match (bits, signed) {
            (16, false) => {
                |x, y, z| u64::from((u32::from(x as u16) * u32::from(y as u16)).wrapping_add(z as u32))
            }
            (16, true) => |x, y, z| (i32::from(x as i16) * i32::from(y as i16)).wrapping_add(z as i32) as u64,
            (32, false) => |x, y, z| (u64::from(x as u32) * u64::from(y as u32)).wrapping_add(z),
            (32, true) => |x, y, z| (i64::from(x as i32) * i64::from(y as i32)).wrapping_add(z as i64) as u64,
            _ => return None,
        },
        ("mad", _) if modifiers.contains(&"hi") => match (bits, signed) {
            (16, false) => of!(u16, |x, y, z| (((u32::from(x) * u32::from(y)) >> 16) as u16).wrapping_add(z)),
            (16, true) => of!(i16, |x, y, z| (((i32::from(x) * i32::from(y)) >> 16) as i16).wrapping_add(z)),
            (32, false) => of!(u32, |x, y, z| (((u64::from(x) * u64::from(y)) >> 32) as u32).wrapping_add(z)),
            (32, true) => of!(i32, |x, y, z| (((i64::from(x) * i64::from(y)) >> 32) as i32).wrapping_add(z)),
            (64, false) => {
                of!(u64, |x, y, z| (((u128::from(x) * u128::from(y)) >> 64) as u64).wrapping_add(z))
            }
            (64, true) => {
                of!(i64, |x, y, z| (((i128::from(x) * i128::from(y)) >> 64) as i64).wrapping_add(z))
            }
            _ => return None,
        },
        ("mad", _) => by_type!(bits, signed, |x, y, z| x.wrapping_mul(y).wrapping_add(z)),
        ("shf", 32) if modifiers.contains(&"l") && modifiers.contains(&"wrap") => {
            |low, high, by| (((high & 0xffff_ffff) << 32 | (low & 0xffff_ffff)) << (by & 31)) >> 32
        }
        ("shf", 32) if modifiers.contains(&"r") && modifiers.contains(&"wrap") => {
            |low, high, by| (((high & 0xffff_ffff) << 32 | (low & 0xffff_ffff)) >> (by & 31)) & 0xffff_ffff
        }
        ("dp4a", 32) if modifiers == ["s32", "s32"] => |x, y, z| dot(x, z, |i| i32::from(byte(y, i) as i8)),
        ("dp4a", 32) if modifiers == ["s32", "u32"] => |x, y, z| dot(x, z, |i| i32::from(byte(y, i))),
        ("prmt", 32) if modifiers == ["b32"] || modifiers.is_empty() => permuted,
        ("bfe", 32) if !signed => |x, at, count| {
            let field = (x & 0xffff_ffff) >> (at & 0xff).min(32);
            field & ((1 << (count & 0xff).min(32)) - 1)
        },
        // Beyond the highest bit, it is repeated.
        ("bfe", 32) => |x, at, count| {
            let (at, count) = ((at & 0xff).min(63), (count & 0xff).min(64));
            let field = i64::from(x as i32) >> at;
            if count == 0 { 0 } else { ((field << (64 - count)) >> (64 - count)).cast_unsigned() }
        },
        _ => return None,
    })
}

/// Chooses bytes of two words: four bits each say which, the highest of them that its sign is repeated.
fn permuted(low: u64, high: u64, choice: u64) -> u64 {
    let bytes = (high << 32) | (low & 0xffff_ffff);
    (0..4).fold(0, |result, place| {
        let selected = choice >> (4 * place) & 0xf;
        let byte = bytes >> (8 * (selected & 7)) & 0xff;
        let byte = if selected & 8 == 0 { byte } else { (byte >> 7) * 0xff };
        result | byte << (8 * place)
    })
}

pub(super) fn comparison(name: &str, bits: u32, signed: bool) -> Option<Binary> {
    Some(match name {
        "eq" => by_type!(bits, signed, |x, y| u8::from(x == y)),
        "ne" => by_type!(bits, signed, |x, y| u8::from(x != y)),
        "lt" => by_type!(bits, signed, |x, y| u8::from(x < y)),
        "le" => by_type!(bits, signed, |x, y| u8::from(x <= y)),
        "gt" => by_type!(bits, signed, |x, y| u8::from(x > y)),
        "ge" => by_type!(bits, signed, |x, y| u8::from(x >= y)),
        _ => return None,
    })
}
