//! Batches of matrices, `[batch, rows, columns]`, and what decompositions do with them.
//!
//! Complex numbers are two tensors. So what is computed are real numbers alone, which all targets have.

use safetensors::Dtype;

use crate::{
    graph::{Graph, Tensor},
    ops::DotDimensions,
    types::TensorType,
};

/// The rows of a block. Decompositions go through larger matrices block by block.
pub(super) const BLOCK: usize = 32;

/// A batch of matrices: their real parts, and their imaginary parts if they have any.
#[derive(Debug, Clone)]
pub(super) struct Matrices {
    parts: Vec<Tensor>,
}

/// What a matrix is once its rows and columns are exchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flip {
    Transpose,
    /// With conjugates.
    Adjoint,
}

impl Matrices {
    /// Returns a tensor's last two dimensions as matrices, in a type that can be computed with.
    pub(super) fn new(g: &mut Graph, x: Tensor) -> Self {
        let TensorType { dtype, shape } = g.type_of(x);
        let [batch @ .., rows, columns] = shape.as_slice() else {
            return Self { parts: vec![g.fail("stablehlo.cholesky", "found a vector, expected matrices")] };
        };
        let shape = [batch.iter().product(), *rows, *columns];
        let parts = match dtype {
            Dtype::C64 => ["stablehlo.real", "stablehlo.imag"]
                .map(|name| g.op(name, &[x], vec![], TensorType::new(Dtype::F32, g.shape(x))))
                .to_vec(),
            Dtype::F64 => vec![x],
            _ => vec![g.convert(x, Dtype::F32)],
        };
        Self { parts }.map(|part| g.reshape(part, &shape))
    }

    /// Returns a tensor of this type.
    pub(super) fn tensor(self, g: &mut Graph, ty: &TensorType) -> Tensor {
        let parts = self.map(|part| g.reshape(part, &ty.shape)).parts;
        match parts.as_slice() {
            [real, imaginary] => g.op("stablehlo.complex", &[*real, *imaginary], vec![], ty.clone()),
            parts => g.convert(parts[0], ty.dtype),
        }
    }

    /// Returns what tensors are that were state of a loop.
    pub(super) fn from_state(state: &[Tensor]) -> Self {
        Self { parts: state.to_vec() }
    }

    /// Returns the tensors.
    pub(super) fn parts(&self) -> &[Tensor] {
        &self.parts
    }

    /// Returns the number of matrices, of rows and of columns.
    pub(super) fn shape(&self, g: &Graph) -> [usize; 3] {
        <[usize; 3]>::try_from(g.shape(self.parts[0])).unwrap_or_default()
    }

    /// Returns the type of the numbers' parts.
    pub(super) fn dtype(&self, g: &Graph) -> Dtype {
        g.dtype(self.parts[0])
    }

    /// Returns matrices of another shape with zeros.
    pub(super) fn zeros(&self, g: &mut Graph, shape: [usize; 3]) -> Self {
        let dtype = self.dtype(g);
        let zero = g.full(0.0, dtype, &shape);
        Self { parts: vec![zero; self.parts.len()] }
    }

    pub(super) fn map(&self, f: impl FnMut(Tensor) -> Tensor) -> Self {
        Self { parts: self.parts.iter().copied().map(f).collect() }
    }

    fn zip(&self, other: &Self, mut f: impl FnMut(Tensor, Tensor) -> Tensor) -> Self {
        Self { parts: self.parts.iter().zip(&other.parts).map(|(a, b)| f(*a, *b)).collect() }
    }

    /// Returns `self` where a mask of its shape is true, otherwise `other`.
    pub(super) fn select(&self, g: &mut Graph, mask: Tensor, other: &Self) -> Self {
        self.zip(other, |a, b| g.select(mask, a, b))
    }

    /// Returns `self` where a mask is true, otherwise zero.
    pub(super) fn masked(&self, g: &mut Graph, mask: Tensor) -> Self {
        let shape = self.shape(g);
        let zeros = self.zeros(g, shape);
        self.select(g, mask, &zeros)
    }

    /// Returns `self` with a real number where a mask is true.
    pub(super) fn with_real(&self, g: &mut Graph, mask: Tensor, number: Tensor) -> Self {
        let zeros = self.zeros(g, self.shape(g));
        let mut numbers = zeros;
        numbers.parts[0] = number;
        numbers.select(g, mask, self)
    }

    pub(super) fn subtract(&self, g: &mut Graph, other: &Self) -> Self {
        self.zip(other, |a, b| g.subtract(a, b))
    }

    pub(super) fn add(&self, g: &mut Graph, other: &Self) -> Self {
        self.zip(other, |a, b| g.add(a, b))
    }

    /// Returns a function of the real parts, as real numbers.
    pub(super) fn real(&self, g: &mut Graph, f: fn(&mut Graph, Tensor) -> Tensor) -> Self {
        let mut result = self.zeros(g, self.shape(g));
        result.parts[0] = f(g, self.parts[0]);
        result
    }

    /// Returns the sizes of numbers as LAPACK compares them. That of NaN is infinite.
    pub(super) fn magnitudes(&self, g: &mut Graph) -> Tensor {
        let sizes = self.map(|part| g.abs(part)).parts;
        let size = sizes.into_iter().reduce(|sum, size| g.add(sum, size)).unwrap_or(self.parts[0]);
        let (is_number, dtype, shape) = (g.eq(size, size), g.dtype(size), g.shape(size).to_vec());
        let infinite = g.full(f64::INFINITY, dtype, &shape);
        g.select(is_number, size, infinite)
    }

    /// Returns conjugates.
    pub(super) fn conjugate(&self, g: &mut Graph) -> Self {
        let mut parts = self.parts.clone();
        parts.iter_mut().skip(1).for_each(|part| *part = g.negate(*part));
        Self { parts }
    }

    pub(super) fn flip(&self, g: &mut Graph, flip: Flip) -> Self {
        let flipped = self.map(|part| g.transpose(part, &[0, 2, 1]));
        if flip == Flip::Adjoint { flipped.conjugate(g) } else { flipped }
    }

    /// Returns the matrix products, with the adjoint of `other` if `flip` is that.
    pub(super) fn product(&self, g: &mut Graph, other: &Self, flip: Option<Flip>) -> Self {
        let contract = if flip.is_some() { [2] } else { [1] };
        let dims =
            DotDimensions { lhs_batch: &[0], rhs_batch: &[0], lhs_contract: &[2], rhs_contract: &contract };
        let dtype = self.dtype(g);
        let dot = |g: &mut Graph, a: Tensor, b: Tensor| g.dot_general(a, b, &dims, dtype);
        let ([a, c], [b, d]) = (self.parts.as_slice(), other.parts.as_slice()) else {
            return Self { parts: vec![dot(g, self.parts[0], other.parts[0])] };
        };
        let [ab, cd, ad, cb] = [(a, b), (c, d), (a, d), (c, b)].map(|(x, y)| dot(g, *x, *y));
        let parts = if flip == Some(Flip::Adjoint) {
            vec![g.add(ab, cd), g.subtract(cb, ad)]
        } else {
            vec![g.subtract(ab, cd), g.add(ad, cb)]
        };
        Self { parts }
    }

    /// Returns quotients, where `other` has one column or row for all.
    pub(super) fn divide(&self, g: &mut Graph, other: &Self) -> Self {
        let shape = self.shape(g);
        let other = other.map(|part| g.broadcast_in_dim(part, &shape, &[0, 1, 2]));
        let ([a, b], [c, d]) = (self.parts.as_slice(), other.parts.as_slice()) else {
            return self.zip(&other, |a, b| g.divide(a, b));
        };
        let (cc, dd) = (g.multiply(*c, *c), g.multiply(*d, *d));
        let square = g.add(cc, dd);
        let [ac, bd, bc, ad] = [(a, c), (b, d), (b, c), (a, d)].map(|(x, y)| g.multiply(*x, *y));
        let (real, imaginary) = (g.add(ac, bd), g.subtract(bc, ad));
        Self { parts: vec![g.divide(real, square), g.divide(imaginary, square)] }
    }

    /// Returns as many rows and columns from a place on.
    pub(super) fn window(&self, g: &mut Graph, at: [Tensor; 2], size: [usize; 2]) -> Self {
        let (batch, zero) = (self.shape(g)[0], g.scalar(0.0, Dtype::I32));
        self.map(|part| g.dynamic_slice(part, &[zero, at[0], at[1]], &[batch, size[0], size[1]]))
    }

    /// Returns `self` with a part replaced.
    pub(super) fn updated(&self, g: &mut Graph, part: &Self, at: [Tensor; 2]) -> Self {
        let zero = g.scalar(0.0, Dtype::I32);
        self.zip(part, |whole, part| g.dynamic_update_slice(whole, part, &[zero, at[0], at[1]]))
    }

    /// Returns rows and columns up to a size.
    pub(super) fn cut(&self, g: &mut Graph, rows: usize, columns: usize) -> Self {
        self.map(|part| {
            let part = g.slice_dimension(part, 1, 0, rows);
            g.slice_dimension(part, 2, 0, columns)
        })
    }

    /// Returns square matrices with more rows and columns, which are those of the identity.
    pub(super) fn enlarged(&self, g: &mut Graph, size: usize) -> Self {
        let [batch, old, _] = self.shape(g);
        if old == size {
            return self.clone();
        }
        let larger = self.map(|part| {
            let part = g.pad_end(part, 1, size);
            g.pad_end(part, 2, size)
        });
        let shape = [batch, size, size];
        let (row, column) = (g.iota(Dtype::I32, &shape, 1), g.iota(Dtype::I32, &shape, 2));
        let limit = g.full_like(row, old);
        let (is_diagonal, is_new) = (g.eq(row, column), g.ge(row, limit));
        let mask = g.and(is_diagonal, is_new);
        let one = g.full(1.0, self.dtype(g), &shape);
        larger.with_real(g, mask, one)
    }

    /// Repeats `body` on matrices for rows `0, step, …`.
    pub(super) fn for_rows(
        g: &mut Graph,
        rows: usize,
        step: usize,
        state: &[Self],
        body: impl FnOnce(&mut Graph, Tensor, &[Self]) -> Vec<Self>,
    ) -> Vec<Self> {
        let count = state.first().map_or(1, |matrices| matrices.parts.len()).max(1);
        let split = |tensors: &[Tensor]| tensors.chunks(count).map(Self::from_state).collect::<Vec<_>>();
        let first = g.scalar(0.0, Dtype::I32);
        let tensors: Vec<_> =
            std::iter::once(first).chain(state.iter().flat_map(|matrices| matrices.parts.clone())).collect();
        let results = g.while_loop(
            &tensors,
            |g, state| {
                let end = g.full_like(state[0], rows);
                g.lt(state[0], end)
            },
            |g, state| {
                let step = g.full_like(state[0], step);
                let next = g.add(state[0], step);
                let matrices = body(g, state[0], &split(&state[1..]));
                std::iter::once(next)
                    .chain(matrices.into_iter().flat_map(|matrices| matrices.parts))
                    .collect()
            },
        );
        split(results.get(1..).unwrap_or_default())
    }
}
