//! A tensor on the host.

use std::fmt;

use safetensors::Dtype;

use crate::tensor::{tensor_bytes, type_text};

/// A tensor in the host's memory: its elements little-endian, the last dimension's next to each other.
#[derive(Clone, PartialEq, Eq)]
pub struct Tensor {
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

/// A tensor whose bytes are not those of its type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("found {found} bytes, expected those of {expected}\nhint: check the tensor's type and shape")]
pub struct TensorSizeError {
    found: usize,
    expected: String,
}

/// A number that tensors hold.
pub trait Number: Copy {
    /// The element type.
    const DTYPE: Dtype;

    /// Appends the number's bytes, little-endian.
    fn append_to(self, bytes: &mut Vec<u8>);

    /// Returns the number of these bytes, as many as one has.
    fn of_bytes(bytes: &[u8]) -> Self;
}

macro_rules! numbers {
    ($($number:ty = $dtype:ident),*) => {$(
        impl Number for $number {
            const DTYPE: Dtype = Dtype::$dtype;

            fn append_to(self, bytes: &mut Vec<u8>) {
                bytes.extend(self.to_le_bytes());
            }

            fn of_bytes(bytes: &[u8]) -> Self {
                bytes.try_into().map(Self::from_le_bytes).unwrap_or_default()
            }
        }
    )*};
}

numbers!(
    i8 = I8,
    i16 = I16,
    i32 = I32,
    i64 = I64,
    u8 = U8,
    u16 = U16,
    u32 = U32,
    u64 = U64,
    f32 = F32,
    f64 = F64
);

impl Number for bool {
    const DTYPE: Dtype = Dtype::BOOL;

    fn append_to(self, bytes: &mut Vec<u8>) {
        bytes.push(self.into());
    }

    fn of_bytes(bytes: &[u8]) -> Self {
        bytes != [0]
    }
}

impl Tensor {
    /// Returns a tensor of these bytes. Every byte of a bool that is not 0 becomes 1.
    ///
    /// # Errors
    /// The bytes are not as many as the type and the shape say.
    pub fn new(dtype: Dtype, shape: &[usize], mut bytes: Vec<u8>) -> Result<Self, TensorSizeError> {
        if tensor_bytes(dtype, shape) != Some(bytes.len()) {
            return Err(TensorSizeError { found: bytes.len(), expected: type_text(dtype, shape) });
        }
        if dtype == Dtype::BOOL {
            bytes.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
        }
        Ok(Self { dtype, shape: shape.to_vec(), bytes })
    }

    /// Returns a tensor of these numbers.
    ///
    /// # Errors
    /// The numbers are not as many as the shape says.
    pub fn of<N: Number>(shape: &[usize], numbers: &[N]) -> Result<Self, TensorSizeError> {
        let mut bytes = Vec::with_capacity(size_of_val(numbers));
        numbers.iter().for_each(|number| number.append_to(&mut bytes));
        Self::new(N::DTYPE, shape, bytes)
    }

    /// Returns a tensor without dimensions.
    #[must_use]
    pub fn scalar<N: Number>(number: N) -> Self {
        let mut bytes = Vec::new();
        number.append_to(&mut bytes);
        Self { dtype: N::DTYPE, shape: Vec::new(), bytes }
    }

    /// Returns the element type.
    #[must_use]
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// Returns the shape. That of a scalar is empty.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Returns the elements' bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the numbers, or `None` if they are of another type.
    #[must_use]
    pub fn numbers<N: Number>(&self) -> Option<Vec<N>> {
        let numbers = self.bytes.chunks_exact(size_of::<N>()).map(N::of_bytes);
        (self.dtype == N::DTYPE).then(|| numbers.collect())
    }
}

/// Shows the type: `f32[2,3]`.
impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&type_text(self.dtype, &self.shape))
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_round_trip() {
        let tensor = Tensor::of(&[2, 2], &[1.5f32, -0.0, f32::INFINITY, 1e-40]).unwrap();
        assert_eq!(tensor.numbers::<f32>().unwrap(), [1.5, -0.0, f32::INFINITY, 1e-40]);
        assert_eq!((tensor.numbers::<i32>(), tensor.to_string().as_str()), (None, "f32[2,2]"));
        assert_eq!(Tensor::scalar(-3i64).bytes(), (-3i64).to_le_bytes());
        assert!(Tensor::of(&[0, 3], &[0u8; 0]).unwrap().bytes().is_empty());
        let flags = Tensor::new(Dtype::BOOL, &[3], vec![0, 2, 255]).unwrap();
        assert_eq!(flags.numbers::<bool>().unwrap(), [false, true, true]);
    }

    #[test]
    fn a_size_that_does_not_fit_is_refused() {
        assert_eq!(
            Tensor::of(&[3], &[1i32, 2]).unwrap_err().to_string(),
            "found 8 bytes, expected those of i32[3]\nhint: check the tensor's type and shape"
        );
        assert!(Tensor::new(Dtype::F32, &[usize::MAX, 2], Vec::new()).is_err());
    }
}
