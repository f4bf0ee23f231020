//! Transforms of rows.
//!
//! A size that is a product is transformed along both factors (Cooley and Tukey); small factors by a matrix product. A large
//! prime becomes a convolution, which is a product of transforms of a larger size (Bluestein).

use safetensors::Dtype;

use super::tables::{matrix, part, root, spectrum};
use crate::{
    graph::{Graph, Tensor},
    ops::DotDimensions,
    types::TensorType,
};

/// The largest factor that transforms are divided into.
const FACTOR: usize = 32;

/// The largest prime that is a matrix product.
const PRIME: usize = 128;

/// The most numbers of a table.
const TABLE: usize = 1 << 16;

/// Numbers, which are real if they have no imaginary parts.
#[derive(Clone, Copy)]
pub(super) struct Signal {
    pub(super) real: Tensor,
    imaginary: Option<Tensor>,
}

impl Signal {
    pub(super) fn new(g: &mut Graph, x: Tensor) -> Self {
        let ty = g.type_of(x);
        if ty.dtype != Dtype::C64 {
            return Self { real: x, imaginary: None };
        }
        let ty = TensorType::new(Dtype::F32, ty.shape);
        let real = g.op("stablehlo.real", &[x], vec![], ty.clone());
        Self { real, imaginary: Some(g.op("stablehlo.imag", &[x], vec![], ty)) }
    }

    /// Returns the imaginary parts.
    pub(super) fn imaginary(self, g: &mut Graph) -> Tensor {
        self.imaginary.unwrap_or_else(|| g.full_like(self.real, 0))
    }

    pub(super) fn map(self, mut f: impl FnMut(Tensor) -> Tensor) -> Self {
        Self { real: f(self.real), imaginary: self.imaginary.map(f) }
    }

    /// Returns the same with both parts exchanged, of which the transform is the inverse one with its parts exchanged.
    fn exchanged(self, g: &mut Graph) -> Self {
        Self { real: self.imaginary(g), imaginary: Some(self.real) }
    }

    fn multiply(self, g: &mut Graph, other: Self) -> Self {
        let (b, d) = (self.imaginary(g), other.imaginary(g));
        let (a, c) = (self.real, other.real);
        let [ac, bd, ad, bc] = [(a, c), (b, d), (a, d), (b, c)].map(|(x, y)| g.multiply(x, y));
        Self { real: g.subtract(ac, bd), imaginary: Some(g.add(ad, bc)) }
    }

    /// Returns a table of roots, `dimensions` of `shape`.
    fn table(g: &mut Graph, roots: &[[f64; 2]], shape: &[usize], dimensions: &[usize]) -> Self {
        let sizes: Vec<_> = dimensions.iter().map(|&d| shape[d]).collect();
        let [real, imaginary] = [0, 1].map(|index| {
            let table = g.constant_f32(&part(roots, index), &sizes);
            g.broadcast_in_dim(table, shape, dimensions)
        });
        Self { real, imaginary: Some(imaginary) }
    }
}

/// Transforms rows, `[batch, size]`.
pub(super) fn transform(g: &mut Graph, x: &Signal, is_inverse: bool) -> Signal {
    if !is_inverse {
        return forward(g, *x);
    }
    let size = g.shape(x.real).last().copied().unwrap_or(1);
    let turned = x.exchanged(g);
    let found = forward(g, turned).exchanged(g);
    #[expect(clippy::cast_precision_loss, reason = "sizes of tensors are below 2^52")]
    let scale = 1.0 / size as f64;
    found.map(|part| g.scale(part, scale))
}

fn forward(g: &mut Graph, x: Signal) -> Signal {
    let &[batch, size] = g.shape(x.real) else { return x };
    let prime = smallest_factor(size);
    if size <= FACTOR || (prime == size && size <= PRIME) {
        return by_matrix(g, x, 1).map(|part| g.reshape(part, &[batch, size]));
    }
    if prime == size {
        return by_convolution(g, x);
    }
    let first = (2..=FACTOR).rev().find(|factor| size.is_multiple_of(*factor)).unwrap_or(prime);
    let rest = size / first;
    // Rows of `first` times `rest` numbers.
    let inner = if first <= PRIME {
        by_matrix(g, x, rest)
    } else {
        let columns = x.map(|part| {
            let part = g.reshape(part, &[batch, first, rest]);
            let part = g.transpose(part, &[0, 2, 1]);
            g.reshape(part, &[batch * rest, first])
        });
        forward(g, columns).map(|part| g.reshape(part, &[batch, rest, first]))
    };
    let turned = twiddled(g, inner, size);
    let columns = turned.map(|part| {
        let part = g.transpose(part, &[0, 2, 1]);
        g.reshape(part, &[batch * first, rest])
    });
    forward(g, columns).map(|part| {
        let part = g.reshape(part, &[batch, first, rest]);
        let part = g.transpose(part, &[0, 2, 1]);
        g.reshape(part, &[batch, size])
    })
}

/// Transforms every `rest`-th number of rows, and returns `[batch, rest, size / rest]`.
fn by_matrix(g: &mut Graph, x: Signal, rest: usize) -> Signal {
    let &[batch, size] = g.shape(x.real) else { return x };
    let first = size / rest;
    let parts: Vec<_> = std::iter::once(x.real).chain(x.imaginary).collect();
    let parts: Vec<_> = parts.into_iter().map(|part| g.reshape(part, &[batch, 1, first, rest])).collect();
    let both = g.concatenate(&parts, 1);
    let matrix = g.constant_f32(&matrix(first, parts.len()), &[parts.len(), first, 2, first]);
    let dims = DotDimensions { lhs_contract: &[1, 2], rhs_contract: &[0, 1], ..DotDimensions::default() };
    let found = g.dot_general(both, matrix, &dims, Dtype::F32);
    let [real, imaginary] = [0, 1].map(|index| {
        let part = g.slice_dimension(found, 2, index, index + 1);
        g.reshape(part, &[batch, rest, first])
    });
    Signal { real, imaginary: Some(imaginary) }
}

/// Multiplies `[batch, rest, first]` by the roots of unity that a transform of `size` has between those of its factors.
fn twiddled(g: &mut Graph, x: Signal, size: usize) -> Signal {
    let &[batch, rest, first] = g.shape(x.real) else { return x };
    let roots = |count: usize, step: usize| -> Vec<_> {
        (0..count)
            .flat_map(|row| (0..first).map(move |column| root(row * step % size * column, size)))
            .collect()
    };
    if size <= TABLE {
        let table = Signal::table(g, &roots(rest, 1), &[batch, rest, first], &[1, 2]);
        return x.multiply(g, table);
    }
    // A table of all would be large: it is the product of one of steps and one of what is between them.
    let step = (1..=rest.isqrt()).rev().find(|step| rest.is_multiple_of(*step)).unwrap_or(1);
    let shape = [batch, rest / step, step, first];
    let steps = Signal::table(g, &roots(rest / step, step), &shape, &[1, 3]);
    let between = Signal::table(g, &roots(step, 1), &shape, &[2, 3]);
    let table = steps.multiply(g, between);
    let x = x.map(|part| g.reshape(part, &shape));
    x.multiply(g, table).map(|part| g.reshape(part, &[batch, rest, first]))
}

/// Transforms rows whose size is a prime.
fn by_convolution(g: &mut Graph, x: Signal) -> Signal {
    let &[batch, size] = g.shape(x.real) else { return x };
    let larger = (2 * size - 1).next_power_of_two();
    let chirp: Vec<_> = (0..size).map(|n| root(n * n % (2 * size), 2 * size)).collect();
    let mut filter = vec![[0.0; 2]; larger];
    for (n, [real, imaginary]) in chirp.iter().enumerate() {
        filter[n] = [*real, -imaginary];
        filter[(larger - n) % larger] = [*real, -imaginary];
    }
    let table = Signal::table(g, &chirp, &[batch, size], &[1]);
    let turned = x.multiply(g, table).map(|part| g.pad_end(part, 1, larger));
    let found = forward(g, turned);
    let filter = Signal::table(g, &spectrum(&filter), &[batch, larger], &[1]);
    let product = found.multiply(g, filter);
    let found = transform(g, &product, true).map(|part| g.slice_dimension(part, 1, 0, size));
    found.multiply(g, table)
}

fn smallest_factor(size: usize) -> usize {
    (2..=size.isqrt()).find(|factor| size.is_multiple_of(*factor)).unwrap_or(size)
}
