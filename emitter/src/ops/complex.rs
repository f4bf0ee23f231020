//! Complex numbers.

use safetensors::Dtype;

use crate::{
    graph::{Graph, Tensor},
    types::{TensorType, is_complex},
};

impl Graph {
    /// Returns complex numbers with these parts, `f32`.
    pub fn complex(&mut self, real: Tensor, imaginary: Tensor) -> Tensor {
        const OP: &str = "stablehlo.complex";
        let (a, b) = (self.type_of(real), self.type_of(imaginary));
        if !Self::poisoned(&[real, imaginary]) && (a != b || a.dtype != Dtype::F32) {
            return self.fail(OP, format!("found {a} and {b}, expected two of one shape in f32"));
        }
        self.op(OP, &[real, imaginary], vec![], TensorType::new(Dtype::C64, a.shape))
    }

    /// Returns the real parts.
    pub fn real(&mut self, z: Tensor) -> Tensor {
        self.part("stablehlo.real", z)
    }

    /// Returns the imaginary parts.
    pub fn imag(&mut self, z: Tensor) -> Tensor {
        self.part("stablehlo.imag", z)
    }

    /// Returns the complex conjugates.
    pub fn conjugate(&mut self, z: Tensor) -> Tensor {
        let (real, imaginary) = (self.real(z), self.imag(z));
        let imaginary = self.negate(imaginary);
        self.complex(real, imaginary)
    }

    fn part(&mut self, op: &'static str, z: Tensor) -> Tensor {
        let ty = self.type_of(z);
        if !Self::poisoned(&[z]) && !is_complex(ty.dtype) {
            return self.fail(op, format!("found {ty}, expected complex numbers"));
        }
        self.op(op, &[z], vec![], TensorType::new(Dtype::F32, ty.shape))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_real_and_of_one_type() {
        let mut g = Graph::new();
        let x = g.argument(Dtype::F32, &[2]);
        let z = g.complex(x, x);
        assert_eq!(g.type_of(z).to_string(), "tensor<2xcomplex<f32>>");
        let [real, absolute] = [g.real(z), g.abs(z)];
        assert_eq!([g.dtype(real), g.dtype(absolute)], [Dtype::F32; 2]);
        g.imag(x);
        let error = g.finish("f", &[]).unwrap_err().to_string();
        assert_eq!(error, "graph: stablehlo.imag: found tensor<2xf32>, expected complex numbers");
    }
}
