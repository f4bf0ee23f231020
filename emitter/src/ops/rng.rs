//! Random numbers.

use safetensors::Dtype;

use crate::{
    graph::{Graph, Tensor},
    types::{TensorType, is_integer},
};

/// The algorithms of [`Graph::rng_bit_generator`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RngAlgorithm {
    /// Threefry, with a state of two `u64`.
    ThreeFry,
    /// Philox, with a state of two or three `u64`.
    Philox,
}

impl Graph {
    /// Returns the state of a random number generator as a constant: a key and a counter at zero.
    pub fn rng_state(&mut self, seed: u64) -> Tensor {
        let bytes = [seed.to_le_bytes(), 0_u64.to_le_bytes()].concat();
        self.constant_bytes(&bytes, TensorType::new(Dtype::U64, [2]))
    }

    /// Returns the next state, and unsigned integers whose bits are random. Each state gives the same bits every time.
    pub fn rng_bit_generator(
        &mut self,
        state: Tensor,
        algorithm: RngAlgorithm,
        dtype: Dtype,
        shape: &[usize],
    ) -> (Tensor, Tensor) {
        const OP: &str = "stablehlo.rng_bit_generator";
        let ty = self.type_of(state);
        let (name, sizes) = match algorithm {
            RngAlgorithm::ThreeFry => ("THREE_FRY", 2..=2),
            RngAlgorithm::Philox => ("PHILOX", 2..=3),
        };
        let state_fits = ty.dtype == Dtype::U64 && ty.rank() == 1 && sizes.contains(&ty.shape[0]);
        if !Self::poisoned(&[state]) && !state_fits {
            let expected = TensorType::new(Dtype::U64, [2]);
            return (self.fail(OP, format!("found state {ty}, expected {expected}")), Self::poison());
        }
        if !is_integer(dtype) {
            return (self.fail(OP, format!("found {dtype}, expected an integer type")), Self::poison());
        }
        let attributes = vec![("rng_algorithm", format!("#stablehlo<rng_algorithm {name}>"))];
        let results = vec![ty.into(), TensorType::new(dtype, shape).into()];
        let results = self.op_with_regions(OP, &[state], attributes, vec![], results);
        (results[0], results[1])
    }

    /// Returns the next state, and `f32` numbers that are uniform in `[0, 1)`.
    pub fn uniform(&mut self, state: Tensor, shape: &[usize]) -> (Tensor, Tensor) {
        let (state, bits) = self.rng_bit_generator(state, RngAlgorithm::ThreeFry, Dtype::U32, shape);
        // The upper bits become the mantissa of a number in [1, 2).
        let mantissa = self.with_number(bits, 9, Self::shift_right_logical);
        let number = self.with_number(mantissa, 0x3F80_0000, Self::or);
        let number = self.bitcast_convert(number, Dtype::F32);
        let one = self.full(1.0, Dtype::F32, shape);
        (state, self.subtract(number, one))
    }

    /// Returns the next state, and `f32` numbers of the standard normal distribution.
    pub fn normal(&mut self, state: Tensor, shape: &[usize]) -> (Tensor, Tensor) {
        let (state, uniform) = self.uniform(state, shape);
        // The inverse of the distribution function, of numbers between -1 and 1. Neither end is among them.
        let doubled = self.scale(uniform, 2.0);
        let least = self.full(f64::from(f32::EPSILON) - 1.0, Dtype::F32, shape);
        let centered = self.add(doubled, least);
        let inverse = self.erf_inv(centered);
        (state, self.scale(inverse, std::f64::consts::SQRT_2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generator_returns_its_next_state() {
        let mut g = Graph::new();
        let state = g.rng_state(7);
        let (next, numbers) = g.normal(state, &[2, 3]);
        assert_eq!(g.type_of(next), g.type_of(state));
        assert_eq!(g.type_of(numbers), TensorType::new(Dtype::F32, [2, 3]));
        g.rng_bit_generator(numbers, RngAlgorithm::Philox, Dtype::U32, &[2]);
        let error = g.finish("f", &[]).unwrap_err().to_string();
        assert_eq!(
            error,
            "graph: stablehlo.rng_bit_generator: found state tensor<2x3xf32>, expected tensor<2xui64>"
        );
    }
}
