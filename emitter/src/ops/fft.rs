//! Fourier transforms.

use safetensors::Dtype;

use super::attributes::i64_array;
use crate::{
    graph::{Graph, Tensor},
    types::TensorType,
};

/// The kinds of Fourier transforms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fft {
    /// Complex numbers to complex numbers.
    Forward,
    /// The inverse of [`Self::Forward`].
    Inverse,
    /// Real numbers to the half of the complex numbers that determines the other.
    RealForward,
    /// The inverse of [`Self::RealForward`].
    RealInverse,
}

impl Fft {
    const ALL: [Self; 4] = [Self::Forward, Self::Inverse, Self::RealForward, Self::RealInverse];

    /// Returns StableHLO's name.
    const fn name(self) -> &'static str {
        match self {
            Self::Forward => "FFT",
            Self::Inverse => "IFFT",
            Self::RealForward => "RFFT",
            Self::RealInverse => "IRFFT",
        }
    }

    fn attribute(self) -> String {
        format!("#stablehlo<fft_type {}>", self.name())
    }

    /// Reads StableHLO's attribute.
    pub(crate) fn read(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.attribute() == text)
    }
}

impl Graph {
    /// Returns the Fourier transform along the last dimensions, which have these lengths as real or complex numbers.
    pub fn fft(&mut self, x: Tensor, kind: Fft, lengths: &[usize]) -> Tensor {
        const OP: &str = "stablehlo.fft";
        let ty = self.type_of(x);
        if Self::poisoned(&[x]) {
            return x;
        }
        let (from, to) = match kind {
            Fft::Forward | Fft::Inverse => (Dtype::C64, Dtype::C64),
            Fft::RealForward => (Dtype::F32, Dtype::C64),
            Fft::RealInverse => (Dtype::C64, Dtype::F32),
        };
        let rank = ty.rank();
        let Some(batch) = rank.checked_sub(lengths.len()).filter(|_| (1..=3).contains(&lengths.len())) else {
            return self
                .fail(OP, format!("found lengths {lengths:?}, expected those of 1 to 3 dimensions of {ty}"));
        };
        let full = [&ty.shape[..batch], lengths].concat();
        let mut half = full.clone();
        half[rank - 1] = half[rank - 1] / 2 + 1;
        let (taken, made) = match kind {
            Fft::Forward | Fft::Inverse => (full.clone(), full),
            Fft::RealForward => (full, half),
            Fft::RealInverse => (half, full),
        };
        let expected = TensorType::new(from, taken);
        if ty != expected {
            let name = kind.name();
            return self
                .fail(OP, format!("found {ty}, expected {expected} for {name} of lengths {lengths:?}"));
        }
        let attributes = vec![("fft_type", kind.attribute()), ("fft_length", i64_array(lengths))];
        self.op(OP, &[x], attributes, TensorType::new(to, made))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(dtype: Dtype, shape: &[usize], kind: Fft, lengths: &[usize]) -> String {
        let mut g = Graph::new();
        let x = g.argument(dtype, shape);
        let result = g.fft(x, kind, lengths);
        let ty = g.type_of(result).to_string();
        g.finish("f", &[result]).map_or_else(|error| error.to_string(), |_| ty)
    }

    #[test]
    fn real_transforms_have_half_the_complex_numbers() {
        assert_eq!(result(Dtype::F32, &[3, 8], Fft::RealForward, &[8]), "tensor<3x5xcomplex<f32>>");
        assert_eq!(result(Dtype::C64, &[3, 4], Fft::RealInverse, &[7]), "tensor<3x7xf32>");
        assert_eq!(result(Dtype::C64, &[2, 3, 4], Fft::Forward, &[3, 4]), "tensor<2x3x4xcomplex<f32>>");
    }

    #[test]
    fn lengths_must_be_those_of_the_last_dimensions() {
        assert_eq!(
            result(Dtype::F32, &[3, 8], Fft::Forward, &[8]),
            "graph: stablehlo.fft: found tensor<3x8xf32>, expected tensor<3x8xcomplex<f32>> for FFT of lengths [8]"
        );
        assert_eq!(
            result(Dtype::C64, &[3, 8], Fft::RealInverse, &[8]),
            "graph: stablehlo.fft: found tensor<3x8xcomplex<f32>>, expected tensor<3x5xcomplex<f32>> for IRFFT of lengths [8]"
        );
        assert_eq!(
            result(Dtype::C64, &[8], Fft::Forward, &[1, 8]),
            "graph: stablehlo.fft: found lengths [1, 8], expected those of 1 to 3 dimensions of tensor<8xcomplex<f32>>"
        );
    }
}
