//! Element types and tensor types as MLIR spells them.

use std::fmt;

use safetensors::Dtype;

/// The type of a tensor: element type and static shape. A shape without dimensions is a scalar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorType {
    /// Element type.
    pub dtype: Dtype,
    /// Dimensions, outermost first.
    pub shape: Vec<usize>,
}

impl TensorType {
    /// A type.
    pub fn new(dtype: Dtype, shape: impl Into<Vec<usize>>) -> Self {
        Self { dtype, shape: shape.into() }
    }

    /// Dimensions.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// Elements; `usize::MAX` where that does not fit.
    #[must_use]
    pub fn elements(&self) -> usize {
        self.shape.iter().fold(1, |product, &size| product.saturating_mul(size))
    }
}

/// The type of a value in a graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ValueType {
    /// On the device.
    Tensor(TensorType),
    /// A number on the host, as loops and entry points take it.
    Host(HostType),
}

/// The type of a number on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostType {
    I32,
    Index,
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tensor(ty) => ty.fmt(f),
            Self::Host(HostType::I32) => f.write_str("i32"),
            Self::Host(HostType::Index) => f.write_str("index"),
        }
    }
}

impl From<TensorType> for ValueType {
    fn from(ty: TensorType) -> Self {
        Self::Tensor(ty)
    }
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("tensor<")?;
        for dimension in &self.shape {
            write!(f, "{dimension}x")?;
        }
        write!(f, "{}>", element(self.dtype))
    }
}

/// MLIR's spelling of an element type. Unsigned types keep their sign, as StableHLO has them.
///
/// Sub-byte and micro-scaling types have no use in a graph and come out as the signless integer of their width, which
/// no op accepts.
#[must_use]
pub(crate) fn element(dtype: Dtype) -> &'static str {
    match dtype {
        Dtype::BOOL => "i1",
        Dtype::I8 => "i8",
        Dtype::I16 => "i16",
        Dtype::I32 => "i32",
        Dtype::I64 => "i64",
        Dtype::U8 => "ui8",
        Dtype::U16 => "ui16",
        Dtype::U32 => "ui32",
        Dtype::U64 => "ui64",
        Dtype::F16 => "f16",
        Dtype::BF16 => "bf16",
        Dtype::F32 => "f32",
        Dtype::F64 => "f64",
        Dtype::F8_E5M2 => "f8E5M2",
        Dtype::F8_E4M3 => "f8E4M3FN",
        Dtype::C64 => "complex<f32>",
        _ => "none",
    }
}

/// Whether values are floating-point numbers.
#[must_use]
pub(crate) fn is_float(dtype: Dtype) -> bool {
    matches!(dtype, Dtype::F16 | Dtype::BF16 | Dtype::F32 | Dtype::F64 | Dtype::F8_E5M2 | Dtype::F8_E4M3)
}

/// Whether values are integers with a sign.
#[must_use]
pub(crate) fn is_signed(dtype: Dtype) -> bool {
    matches!(dtype, Dtype::I8 | Dtype::I16 | Dtype::I32 | Dtype::I64)
}

/// Whether values are integers, signed or not. A truth value is none.
#[must_use]
pub(crate) fn is_integer(dtype: Dtype) -> bool {
    is_signed(dtype) || matches!(dtype, Dtype::U8 | Dtype::U16 | Dtype::U32 | Dtype::U64)
}
