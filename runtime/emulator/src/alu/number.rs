//! Numbers as the bits of a register.

use half::{bf16, f16};

/// A function of the bits of one register.
pub(crate) type Unary = fn(u64) -> u64;
/// A function of the bits of two registers.
pub(crate) type Binary = fn(u64, u64) -> u64;
/// A function of the bits of three registers.
pub(crate) type Ternary = fn(u64, u64, u64) -> u64;

/// A number of a register: its low bits are the number's.
pub(super) trait Number: Copy {
    fn of(bits: u64) -> Self;
    fn bits(self) -> u64;
}

macro_rules! integers {
    ($($ty:ty)*) => {$(
        impl Number for $ty {
            fn of(bits: u64) -> Self { bits as Self }
            fn bits(self) -> u64 { self as u64 }
        }
    )*};
}
integers!(u8 u16 u32 u64 i8 i16 i32 i64);

macro_rules! floats {
    ($($ty:ty, $bits:ty;)*) => {$(
        impl Number for $ty {
            fn of(bits: u64) -> Self { Self::from_bits(bits as $bits) }
            fn bits(self) -> u64 { self.to_bits().into() }
        }
    )*};
}
floats! { f16, u16; bf16, u16; f32, u32; f64, u64; }

/// Makes a function of bits of a function of numbers.
macro_rules! of {
    ($ty:ty, |$x:ident| $result:expr) => {
        |$x: u64| {
            let $x = <$ty as $crate::alu::number::Number>::of($x);
            $crate::alu::number::Number::bits($result)
        }
    };
    ($ty:ty, |$x:ident, $y:ident| $result:expr) => {
        |$x: u64, $y: u64| {
            let ($x, $y) =
                (<$ty as $crate::alu::number::Number>::of($x), <$ty as $crate::alu::number::Number>::of($y));
            $crate::alu::number::Number::bits($result)
        }
    };
    ($ty:ty, |$x:ident, $y:ident, $z:ident| $result:expr) => {
        |$x: u64, $y: u64, $z: u64| {
            let [$x, $y, $z] = [$x, $y, $z].map(<$ty as $crate::alu::number::Number>::of);
            $crate::alu::number::Number::bits($result)
        }
    };
}
pub(super) use of;

/// Makes a function of the bits of two floats of 16 bits each, of a function of numbers of `f32`.
macro_rules! of_pairs {
    ($ty:ty, |$($x:ident),*| $result:expr) => {
        |$($x: u64),*| {
            let half = |shift: u32| {
                $(let $x = <$ty>::from_bits(($x >> shift) as u16).to_f32();)*
                u64::from(<$ty>::from_f32($result).to_bits())
            };
            half(16) << 16 | half(0)
        }
    };
}
pub(super) use of_pairs;
