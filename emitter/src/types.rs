//! Element types and tensor types, with their text in MLIR.

use std::fmt;

use safetensors::Dtype;

/// The size of a dimension that is known when a function runs, and not before: the pages of a cache.
pub(crate) const DYNAMIC: usize = usize::MAX;

/// The type of a tensor: element type and shape. A scalar has no dimensions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorType {
    /// The element type.
    pub dtype: Dtype,
    /// The sizes of the dimensions, outermost first.
    pub shape: Vec<usize>,
}

impl TensorType {
    /// Creates a type.
    pub fn new(dtype: Dtype, shape: impl Into<Vec<usize>>) -> Self {
        Self { dtype, shape: shape.into() }
    }

    /// Returns the number of dimensions.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// Returns whether the size of a dimension is known only when a function runs.
    pub(crate) fn is_dynamic(&self) -> bool {
        self.shape.contains(&DYNAMIC)
    }

    /// Returns the number of elements, or `usize::MAX` if it overflows.
    #[must_use]
    pub fn elements(&self) -> usize {
        self.shape.iter().fold(1, |product, &size| product.saturating_mul(size))
    }
}

/// The type of a value in a graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ValueType {
    /// A tensor on the device.
    Tensor(TensorType),
    /// A number on the host, for loops and entry points.
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
        for &dimension in &self.shape {
            match dimension {
                DYNAMIC => f.write_str("?x")?,
                size => write!(f, "{size}x")?,
            }
        }
        write!(f, "{}>", element(self.dtype))
    }
}

/// Element types in MLIR's syntax. Unsigned types are explicit, as in StableHLO.
const ELEMENTS: [(Dtype, &str); 16] = [
    (Dtype::BOOL, "i1"),
    (Dtype::I8, "i8"),
    (Dtype::I16, "i16"),
    (Dtype::I32, "i32"),
    (Dtype::I64, "i64"),
    (Dtype::U8, "ui8"),
    (Dtype::U16, "ui16"),
    (Dtype::U32, "ui32"),
    (Dtype::U64, "ui64"),
    (Dtype::F16, "f16"),
    (Dtype::BF16, "bf16"),
    (Dtype::F32, "f32"),
    (Dtype::F64, "f64"),
    (Dtype::F8_E5M2, "f8E5M2"),
    (Dtype::F8_E4M3, "f8E4M3FN"),
    (Dtype::C64, "complex<f32>"),
];

/// Returns an element type in MLIR's syntax.
///
/// Types below one byte have no use in a graph. They become `none`, which no op accepts.
#[must_use]
pub(crate) fn element(dtype: Dtype) -> &'static str {
    ELEMENTS.iter().find(|(known, _)| *known == dtype).map_or("none", |(_, text)| text)
}

/// Returns the element type that MLIR writes so, if a graph has a use for it.
pub(crate) fn dtype_of(element: &str) -> Option<Dtype> {
    ELEMENTS.iter().find(|(_, text)| *text == element).map(|(dtype, _)| *dtype)
}

/// Returns whether elements are floating-point numbers.
#[must_use]
pub(crate) fn is_float(dtype: Dtype) -> bool {
    matches!(dtype, Dtype::F16 | Dtype::BF16 | Dtype::F32 | Dtype::F64 | Dtype::F8_E5M2 | Dtype::F8_E4M3)
}

/// Returns whether elements are complex numbers.
#[must_use]
pub(crate) fn is_complex(dtype: Dtype) -> bool {
    dtype == Dtype::C64
}

/// Returns the integers as wide as floating-point numbers.
#[must_use]
pub(crate) fn bits_type(dtype: Dtype) -> Option<Dtype> {
    Some(match dtype {
        Dtype::F8_E5M2 | Dtype::F8_E4M3 => Dtype::I8,
        Dtype::F16 | Dtype::BF16 => Dtype::I16,
        Dtype::F32 => Dtype::I32,
        Dtype::F64 => Dtype::I64,
        _ => return None,
    })
}

/// Returns the signed type with as many bits as an unsigned one, otherwise the type itself.
#[must_use]
pub(crate) fn signed_type(dtype: Dtype) -> Dtype {
    match dtype {
        Dtype::U8 => Dtype::I8,
        Dtype::U16 => Dtype::I16,
        Dtype::U32 => Dtype::I32,
        Dtype::U64 => Dtype::I64,
        dtype => dtype,
    }
}

/// Returns whether elements are signed integers.
#[must_use]
pub(crate) fn is_signed(dtype: Dtype) -> bool {
    matches!(dtype, Dtype::I8 | Dtype::I16 | Dtype::I32 | Dtype::I64)
}

/// Returns whether elements are integers, signed or not. Booleans are not integers.
#[must_use]
pub(crate) fn is_integer(dtype: Dtype) -> bool {
    is_signed(dtype) || matches!(dtype, Dtype::U8 | Dtype::U16 | Dtype::U32 | Dtype::U64)
}
