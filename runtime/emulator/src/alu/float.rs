//! Floats.

use std::cmp::Ordering::{Equal, Greater, Less};

use half::{bf16, f16};

use super::number::{Binary, Ternary, Unary, of, of_pairs};
use crate::types::Type;

/// Makes the function of the floats of a type.
macro_rules! by_type {
    ($ty:expr, |$($x:ident),*| $result:expr) => {
        match $ty {
            Type::F32 => of!(f32, |$($x),*| $result),
            Type::F64 => of!(f64, |$($x),*| $result),
            _ => by_short_type!($ty, |$($x),*| $result),
        }
    };
}

/// Makes the function of the floats of a type of 16 bits. They are computed in `f32` and rounded, which is one rounding of sums,
/// differences and products.
macro_rules! by_short_type {
    ($ty:expr, |$($x:ident),*| $result:expr) => {
        match $ty {
            Type::F16 => of!(f16, |$($x),*| { $(let $x = $x.to_f32();)* f16::from_f32($result) }),
            Type::Bf16 => of!(bf16, |$($x),*| { $(let $x = $x.to_f32();)* bf16::from_f32($result) }),
            Type::F16x2 => of_pairs!(f16, |$($x),*| $result),
            Type::Bf16x2 => of_pairs!(bf16, |$($x),*| $result),
            _ => return None,
        }
    };
}

pub(super) fn unary(op: &str, ty: Type) -> Option<Unary> {
    // In f64 and rounded: at most half a unit in the last place and a little.
    macro_rules! precise {
        (|$x:ident| $result:expr) => {
            match ty {
                Type::F32 => of!(f32, |$x| {
                    let $x = f64::from($x);
                    ($result) as f32
                }),
                Type::F64 => of!(f64, |$x| $result),
                _ => return None,
            }
        };
    }
    Some(match op {
        "neg" => by_type!(ty, |x| -x),
        "abs" => by_type!(ty, |x| x.abs()),
        "sqrt" => precise!(|x| x.sqrt()),
        "rcp" => precise!(|x| 1.0 / x),
        "rsqrt" => precise!(|x| 1.0 / x.sqrt()),
        "ex2" => precise!(|x| x.exp2()),
        "lg2" => precise!(|x| x.log2()),
        "sin" => precise!(|x| x.sin()),
        "cos" => precise!(|x| x.cos()),
        "tanh" => precise!(|x| x.tanh()),
        _ => return None,
    })
}

pub(super) fn binary(op: &str, modifiers: &[&str], ty: Type) -> Option<Binary> {
    if let Some(direction) = direction_of(modifiers) {
        return if ty == Type::F32 { directed(op, direction) } else { None };
    }
    Some(match op {
        "add" => by_type!(ty, |x, y| x + y),
        "sub" => by_type!(ty, |x, y| x - y),
        "mul" => by_type!(ty, |x, y| x * y),
        "div" => by_type!(ty, |x, y| x / y),
        "min" if modifiers.contains(&"NaN") => {
            by_type!(ty, |x, y| if x.is_nan() || y.is_nan() { x + y } else { x.min(y) })
        }
        "max" if modifiers.contains(&"NaN") => {
            by_type!(ty, |x, y| if x.is_nan() || y.is_nan() { x + y } else { x.max(y) })
        }
        "min" => by_type!(ty, |x, y| x.min(y)),
        "max" => by_type!(ty, |x, y| x.max(y)),
        // The first operand's sign, the second one's size.
        "copysign" => by_type!(ty, |x, y| y.copysign(x)),
        _ => return None,
    })
}

/// Where results are rounded to, if that is not the nearest number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Zero,
    Down,
    Up,
}

fn direction_of(modifiers: &[&str]) -> Option<Direction> {
    let directions = [("rz", Direction::Zero), ("rm", Direction::Down), ("rp", Direction::Up)];
    directions.into_iter().find(|(name, _)| modifiers.contains(name)).map(|(_, direction)| direction)
}

/// Returns the exact product `x · y`, its sum with `z`, and what that lost, which is a float too (Knuth's TwoSum).
fn sum_of_product(x: f32, y: f32, z: f32) -> (f64, f64, f64) {
    let (product, z) = (f64::from(x) * f64::from(y), f64::from(z));
    let sum = product + z;
    let z_in_sum = sum - product;
    (product, sum, (product - (sum - z_in_sum)) + (z - z_in_sum))
}

/// Returns `x · y + z` rounded once to a direction.
fn round_to(direction: Direction, x: f32, y: f32, z: f32) -> f32 {
    let (product, sum, lost) = sum_of_product(x, y, z);
    let rounded = sum as f32;
    if !sum.is_finite() {
        return rounded;
    }
    // Infinity is above every sum.
    let rest = if rounded.is_infinite() { -sum.signum() } else { (sum - f64::from(rounded)) + lost };
    let is_down = match direction {
        Direction::Zero => sum > 0.0,
        Direction::Down => true,
        Direction::Up => false,
    };
    if rest == 0.0 {
        // An exact zero of numbers that are none is negative if it is rounded down.
        let cancels = sum == 0.0 && (product != 0.0 || z.is_sign_negative() != product.is_sign_negative());
        if cancels && direction == Direction::Down { -0.0 } else { rounded }
    } else if is_down && rest < 0.0 {
        rounded.next_down()
    } else if !is_down && rest > 0.0 {
        rounded.next_up()
    } else {
        rounded
    }
}

/// Makes a function of floats that rounds to a direction.
macro_rules! by_direction {
    ($direction:expr, |$direct:ident, $($x:ident),*| $result:expr) => {
        match $direction {
            Direction::Zero => of!(f32, |$($x),*| { let $direct = Direction::Zero; $result }),
            Direction::Down => of!(f32, |$($x),*| { let $direct = Direction::Down; $result }),
            Direction::Up => of!(f32, |$($x),*| { let $direct = Direction::Up; $result }),
        }
    };
}

fn directed(op: &str, direction: Direction) -> Option<Binary> {
    Some(match op {
        "add" => by_direction!(direction, |to, x, y| round_to(to, x, 1.0, y)),
        "sub" => by_direction!(direction, |to, x, y| round_to(to, x, 1.0, -y)),
        // A zero of the product's sign changes nothing.
        "mul" => by_direction!(direction, |to, x, y| round_to(to, x, y, 0.0_f32.copysign(x * y))),
        _ => return None,
    })
}

pub(super) fn ternary(op: &str, modifiers: &[&str], ty: Type) -> Option<Ternary> {
    if !matches!(op, "fma" | "mad") {
        return None;
    }
    if let Some(direction) = direction_of(modifiers) {
        if ty != Type::F32 {
            return None;
        }
        return Some(by_direction!(direction, |to, x, y, z| round_to(to, x, y, z)));
    }
    Some(match ty {
        Type::F32 => of!(f32, |x, y, z| x.mul_add(y, z)),
        Type::F64 => of!(f64, |x, y, z| x.mul_add(y, z)),
        _ => by_short_type!(ty, |x, y, z| odd_multiply_add(x, y, z)),
    })
}

/// Returns `x · y + z` of floats of 16 bits, with a last bit of 1 if it is not exact. Rounding it to 16 bits then gives what
/// rounding once would: it is never halfway between two of them by chance.
fn odd_multiply_add(x: f32, y: f32, z: f32) -> f32 {
    let (_, sum, lost) = sum_of_product(x, y, z);
    let rounded = sum as f32;
    if !rounded.is_finite() {
        return rounded;
    }
    // What both roundings lost.
    let rest = (sum - f64::from(rounded)) + lost;
    let bits = rounded.to_bits();
    if rest == 0.0 || bits & 1 == 1 {
        rounded
    } else if rounded == 0.0 {
        f32::from_bits(1).copysign(rest as f32)
    } else {
        f32::from_bits(if (rest > 0.0) == (rounded > 0.0) { bits + 1 } else { bits - 1 })
    }
}

/// Returns whether a comparison holds. Names that end with `u` also hold if one is NaN; `ne` does not.
pub(super) fn comparison(name: &str, ty: Type) -> Option<Binary> {
    macro_rules! by_order {
        ($($order:expr),*) => {
            match ty {
                Type::F32 => of!(f32, |x, y| u8::from([$($order),*].contains(&x.partial_cmp(&y)))),
                Type::F64 => of!(f64, |x, y| u8::from([$($order),*].contains(&x.partial_cmp(&y)))),
                Type::F16 => of!(f16, |x, y| u8::from([$($order),*].contains(&x.partial_cmp(&y)))),
                Type::Bf16 => of!(bf16, |x, y| u8::from([$($order),*].contains(&x.partial_cmp(&y)))),
                _ => return None,
            }
        };
    }
    Some(match name {
        "eq" => by_order!(Some(Equal)),
        "ne" => by_order!(Some(Less), Some(Greater)),
        "lt" => by_order!(Some(Less)),
        "le" => by_order!(Some(Less), Some(Equal)),
        "gt" => by_order!(Some(Greater)),
        "ge" => by_order!(Some(Greater), Some(Equal)),
        "equ" => by_order!(None, Some(Equal)),
        "neu" => by_order!(None, Some(Less), Some(Greater)),
        "ltu" => by_order!(None, Some(Less)),
        "leu" => by_order!(None, Some(Less), Some(Equal)),
        "gtu" => by_order!(None, Some(Greater)),
        "geu" => by_order!(None, Some(Greater), Some(Equal)),
        "num" => by_order!(Some(Less), Some(Equal), Some(Greater)),
        "nan" => by_order!(None),
        _ => return None,
    })
}
