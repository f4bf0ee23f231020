//! A matrix product over tiles: `linalg.mmt4d`, the one op that StableHLO has no form of. Its code generation on CPUs is the
//! best that IREE has.

use safetensors::Dtype;

use crate::{
    Graph, Tensor, TensorType,
    types::{ValueType, is_float},
};

impl Graph {
    /// `result[m, n, i, j] = Σ_k lhs[m, k, i] · rhs[n, k, j]`: rows by columns, both in tiles, with the contracted dimension
    /// outside of the tile. `lhs`, `[m, k, i]`, is `f32`; `rhs`, `[n, k, j]`, is widened to that as it is read.
    pub fn mmt4d(&mut self, lhs: Tensor, rhs: Tensor) -> Tensor {
        const OP: &str = "linalg.mmt4d";
        let (a, b) = (self.type_of(lhs), self.type_of(rhs));
        if Self::poisoned(&[lhs, rhs]) {
            return Self::poison();
        }
        let (&[m, k, i], &[n, other, j]) = (a.shape.as_slice(), b.shape.as_slice()) else {
            return self.fail(OP, format!("found {a} and {b}, expected two of three dimensions"));
        };
        let narrower = is_float(b.dtype) && b.dtype.bitsize() <= 32;
        if a.dtype != Dtype::F32 || !narrower || k != other {
            return self.fail(
                OP,
                format!("found {a} and {b}, expected f32 and a float no wider, with one second dimension"),
            );
        }
        // The fourth dimension is how many contracted elements a tile holds.
        let lhs = self.reshape(lhs, &[m, k, i, 1]);
        let rhs = self.reshape(rhs, &[n, k, j, 1]);
        let result = TensorType::new(Dtype::F32, [m, n, i, j]);
        let zeros = self.zeros(result.clone());
        let [f32, narrow] = [Dtype::F32, b.dtype].map(ValueType::Scalar);
        let body = self.region(&[f32.clone(), narrow, f32], |g, elements| {
            let f32 = || vec![ValueType::Scalar(Dtype::F32)];
            let mut scalar =
                |name, operands: &[Tensor]| g.op_with_regions(name, operands, vec![], vec![], f32())[0];
            let wide = match b.dtype {
                Dtype::F32 => elements[1],
                _ => scalar("arith.extf", &[elements[1]]),
            };
            let product = scalar("arith.mulf", &[elements[0], wide]);
            vec![scalar("arith.addf", &[elements[2], product])]
        });
        self.destination_style(OP, &[lhs, rhs], zeros, body, result)
    }

    /// Zeros to add to, as ops in destination-passing style take them.
    fn zeros(&mut self, ty: TensorType) -> Tensor {
        let scalar = vec![ValueType::Scalar(ty.dtype)];
        let value = vec![("value", format!("0.0 : {}", crate::types::element(ty.dtype)))];
        let zero = self.op_with_regions("arith.constant", &[], value, vec![], scalar.clone())[0];
        let empty = self.op("tensor.empty", &[], vec![], ty.clone());
        let body = self.region(&[scalar[0].clone(), scalar[0].clone()], |_, elements| vec![elements[0]]);
        self.destination_style("linalg.fill", &[zero], empty, body, ty)
    }

    /// A linalg op that writes to `destination`.
    fn destination_style(
        &mut self,
        op: &'static str,
        inputs: &[Tensor],
        destination: Tensor,
        body: crate::graph::Region,
        result: TensorType,
    ) -> Tensor {
        let segments = vec![("operandSegmentSizes", format!("array<i32: {}, 1>", inputs.len()))];
        let operands: Vec<_> = inputs.iter().copied().chain([destination]).collect();
        self.op_with_regions(op, &operands, segments, vec![body], vec![result.into()])[0]
    }
}
