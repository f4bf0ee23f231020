//! Numbers of a kernel's call that are known at compile time.

use std::fmt;

/// A number that a C function takes and that is known at compile time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KernelConstant {
    /// An integer: of 64 bits on a CPU, of 32 bits on a GPU.
    Integer(i64),
    /// The bits of an `f32`.
    F32(u32),
    /// The bits of an `f64`, which only CPUs take.
    F64(u64),
}

impl KernelConstant {
    /// Reads the value of an attribute: `3 : i64`, `1.5 : f32`, `0x7FC00000 : f32` or `true`.
    pub(crate) fn read(text: &str) -> Option<Self> {
        match text {
            "true" => return Some(Self::Integer(1)),
            "false" => return Some(Self::Integer(0)),
            _ => {}
        }
        let (value, ty) = text.split_once(" : ")?;
        let bits = value.strip_prefix("0x").map(|digits| u64::from_str_radix(digits, 16));
        let bits = bits.transpose().ok()?;
        match (ty, bits) {
            ("f32", Some(bits)) => u32::try_from(bits).ok().map(Self::F32),
            ("f64", Some(bits)) => Some(Self::F64(bits)),
            ("f32", None) => value.parse().ok().map(|value: f32| Self::F32(value.to_bits())),
            ("f64", None) => value.parse().ok().map(|value: f64| Self::F64(value.to_bits())),
            _ if ty.starts_with(['i', 'u']) => {
                let unsigned = || value.parse().ok().map(u64::cast_signed);
                value.parse().ok().or_else(unsigned).map(Self::Integer)
            }
            _ => None,
        }
    }

    /// Returns the attribute that [`Self::read`] reads.
    pub(crate) fn attribute(self) -> String {
        format!("{} : {}", self.mlir_value(), self.attribute_type())
    }

    /// Returns the type of that attribute.
    pub(super) fn attribute_type(self) -> &'static str {
        match self {
            Self::Integer(_) => "i64",
            Self::F32(_) | Self::F64(_) => self.mlir_type(),
        }
    }

    /// Returns the type of the C function's parameter in MLIR.
    pub(super) fn mlir_type(self) -> &'static str {
        match self {
            Self::Integer(_) => "index",
            Self::F32(_) => "f32",
            Self::F64(_) => "f64",
        }
    }

    /// Returns the value in MLIR, without its type.
    pub(super) fn mlir_value(self) -> String {
        match self {
            Self::Integer(value) => value.to_string(),
            Self::F32(bits) => format!("0x{bits:08X}"),
            Self::F64(bits) => format!("0x{bits:016X}"),
        }
    }

    /// Returns the 32 bits that a kernel for GPUs takes, if the number has no more.
    pub(crate) fn word(self) -> Option<u32> {
        match self {
            Self::Integer(value) => {
                u32::try_from(value).ok().or_else(|| i32::try_from(value).ok().map(i32::cast_unsigned))
            }
            Self::F32(bits) => Some(bits),
            Self::F64(_) => None,
        }
    }
}

impl From<i64> for KernelConstant {
    fn from(value: i64) -> Self {
        Self::Integer(value)
    }
}

impl From<f32> for KernelConstant {
    fn from(value: f32) -> Self {
        Self::F32(value.to_bits())
    }
}

impl From<f64> for KernelConstant {
    fn from(value: f64) -> Self {
        Self::F64(value.to_bits())
    }
}

impl From<usize> for KernelConstant {
    /// No tensor has more elements than an `i64` counts.
    fn from(size: usize) -> Self {
        Self::Integer(i64::try_from(size).unwrap_or(i64::MAX))
    }
}

impl fmt::Display for KernelConstant {
    /// Writes it as a part of a symbol.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Integer(value @ 0..) => write!(f, "{value}"),
            Self::Integer(value) => write!(f, "m{}", value.unsigned_abs()),
            Self::F32(bits) => write!(f, "f{bits:x}"),
            Self::F64(bits) => write!(f, "d{bits:x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_read_to_the_last_bit() {
        let read = |text| KernelConstant::read(text);
        assert_eq!(read("-3 : i64"), Some(KernelConstant::Integer(-3)));
        assert_eq!(read("18446744073709551615 : ui64"), Some(KernelConstant::Integer(-1)));
        assert_eq!(read("true"), Some(KernelConstant::Integer(1)));
        assert_eq!(read("9.99999974E-6 : f32"), Some(KernelConstant::F32(1e-5_f32.to_bits())));
        assert_eq!(read("0x7FC00000 : f32"), Some(KernelConstant::F32(0x7fc0_0000)));
        assert_eq!(read("0.1 : f64"), Some(KernelConstant::F64(0.1_f64.to_bits())));
        for other in ["\"text\"", "array<i64: 1, 2>", "[1, 2]", "1.5 : bf16", "unit", "x : i64", "0xzz : f32"]
        {
            assert_eq!(read(other), None, "{other}");
        }
    }

    #[test]
    fn a_word_has_32_bits() {
        let word = |value| KernelConstant::Integer(value).word();
        assert_eq!((word(-1), word(i64::from(u32::MAX))), (Some(u32::MAX), Some(u32::MAX)));
        assert_eq!((word(1 << 32), word(-(1 << 32))), (None, None));
        assert_eq!(KernelConstant::F64(0).word(), None);
    }

    #[test]
    fn symbols_differ_by_value_and_type() {
        let all = [
            KernelConstant::Integer(-3),
            KernelConstant::Integer(3),
            KernelConstant::F32(3),
            KernelConstant::F64(3),
        ];
        assert_eq!(all.map(|constant| constant.to_string()), ["m3", "3", "f3", "d3"]);
    }
}
