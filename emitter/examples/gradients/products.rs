//! Products, convolutions, transforms and linear algebra.

use mlxcel_emitter::{Convolution, DotDimensions, Fft, Graph, Reduction, Tensor, TriangularSolve, Window};
use safetensors::Dtype;

use super::Case;

/// Returns a symmetric matrix with a large diagonal.
fn positive(g: &mut Graph, x: Tensor) -> Tensor {
    let transposed = g.transpose(x, &[1, 0]);
    let sum = g.add(x, transposed);
    let (row, column) = (g.iota(Dtype::I32, &[3, 3], 0), g.iota(Dtype::I32, &[3, 3], 1));
    let diagonal = g.eq(row, column);
    let diagonal = g.convert(diagonal, Dtype::F32);
    let diagonal = g.scale(diagonal, 8.0);
    g.add(sum, diagonal)
}

/// Returns a matrix with a large diagonal.
fn dominant(g: &mut Graph, x: Tensor) -> Tensor {
    let (row, column) = (g.iota(Dtype::I32, &[3, 3], 0), g.iota(Dtype::I32, &[3, 3], 1));
    let diagonal = g.eq(row, column);
    let diagonal = g.convert(diagonal, Dtype::F32);
    let diagonal = g.scale(diagonal, 4.0);
    g.add(x, diagonal)
}

const LEFT: TriangularSolve =
    TriangularSolve { left_side: true, lower: true, unit_diagonal: false, transpose: false };

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "dot",
        shapes: &[&[2, 4], &[3, 4]],
        body: |g, x| {
            let dims = DotDimensions { lhs_contract: &[1], rhs_contract: &[1], ..DotDimensions::default() };
            g.dot_general(x[0], x[1], &dims, Dtype::F32)
        },
    },
    Case {
        name: "dot_of_batches",
        shapes: &[&[3, 2, 5, 2], &[2, 2, 3, 4]],
        body: |g, x| {
            let dims = DotDimensions {
                lhs_batch: &[1],
                rhs_batch: &[0],
                lhs_contract: &[3, 0],
                rhs_contract: &[1, 2],
            };
            g.dot_general(x[0], x[1], &dims, Dtype::F32)
        },
    },
    Case {
        name: "dot_with_vector",
        shapes: &[&[3, 4], &[4]],
        body: |g, x| {
            let dims = DotDimensions { lhs_contract: &[1], rhs_contract: &[0], ..DotDimensions::default() };
            g.dot_general(x[0], x[1], &dims, Dtype::F32)
        },
    },
    Case {
        name: "convolution",
        shapes: &[&[2, 6, 5, 3], &[3, 2, 3, 4]],
        body: |g, x| {
            let convolution = Convolution {
                strides: vec![2, 1],
                padding: vec![(1, 2), (0, 1)],
                ..Convolution::channels_last(2)
            };
            g.convolution(x[0], x[1], &convolution)
        },
    },
    Case {
        name: "convolution_with_dilation",
        shapes: &[&[1, 5, 2], &[3, 2, 2]],
        body: |g, x| {
            let convolution = Convolution {
                strides: vec![2],
                padding: vec![(3, -1)],
                input_dilation: vec![3],
                kernel_dilation: vec![2],
                ..Convolution::channels_last(1)
            };
            g.convolution(x[0], x[1], &convolution)
        },
    },
    Case {
        name: "convolution_in_groups",
        shapes: &[&[2, 5, 4], &[3, 2, 6]],
        body: |g, x| {
            let convolution =
                Convolution { feature_groups: 2, padding: vec![(1, 1)], ..Convolution::channels_last(1) };
            g.convolution(x[0], x[1], &convolution)
        },
    },
    Case {
        name: "convolution_in_groups_of_examples",
        shapes: &[&[4, 5, 2], &[3, 2, 6]],
        body: |g, x| {
            let convolution = Convolution { batch_groups: 2, ..Convolution::channels_last(1) };
            g.convolution(x[0], x[1], &convolution)
        },
    },
    Case {
        name: "convolution_and_windows",
        shapes: &[&[2, 9, 8, 2], &[3, 3, 2, 4]],
        body: |g, x| {
            let padded = Convolution { padding: vec![(1, 1); 2], ..Convolution::channels_last(2) };
            let y = g.convolution(x[0], x[1], &padded);
            let window = Window {
                strides: vec![1, 2, 2, 1],
                padding: vec![(0, 0), (1, 1), (1, 1), (0, 0)],
                ..Window::new(&[1, 3, 3, 1])
            };
            g.reduce_window(y, Reduction::Max, &window)
        },
    },
    Case {
        name: "second_derivative_of_convolution",
        shapes: &[&[1, 5, 2], &[2, 2, 3]],
        body: |g, x| {
            let convolution = Convolution { strides: vec![2], ..Convolution::channels_last(1) };
            let y = g.convolution(x[0], x[1], &convolution);
            let square = g.multiply(y, y);
            g.vjp(&[square], &[y], &[x[1]])[0]
        },
    },
    Case { name: "complex_fft", shapes: &[&[2, 8]], body: |g, x| g.fft(x[0], Fft::Forward, &[8]) },
    Case { name: "complex_ifft", shapes: &[&[2, 8]], body: |g, x| g.fft(x[0], Fft::Inverse, &[8]) },
    Case {
        name: "rfft",
        shapes: &[&[2, 8]],
        body: |g, x| {
            let z = g.fft(x[0], Fft::RealForward, &[8]);
            g.multiply(z, z)
        },
    },
    Case { name: "complex_irfft", shapes: &[&[2, 5]], body: |g, x| g.fft(x[0], Fft::RealInverse, &[8]) },
    Case {
        name: "cholesky",
        shapes: &[&[3, 3]],
        body: |g, x| {
            let matrix = positive(g, x[0]);
            let factor = g.cholesky(matrix, true);
            let (row, column) = (g.iota(Dtype::I32, &[3, 3], 0), g.iota(Dtype::I32, &[3, 3], 1));
            let lower = g.ge(row, column);
            let zero = g.full(0.0, Dtype::F32, &[3, 3]);
            g.select(lower, factor, zero)
        },
    },
    Case {
        name: "triangular_solve",
        shapes: &[&[3, 3], &[3, 2]],
        body: |g, x| {
            let matrix = dominant(g, x[0]);
            g.triangular_solve(matrix, x[1], LEFT)
        },
    },
    Case {
        name: "triangular_solve_from_the_right",
        shapes: &[&[3, 3], &[2, 3]],
        body: |g, x| {
            let options =
                TriangularSolve { left_side: false, lower: false, transpose: true, unit_diagonal: true };
            g.triangular_solve(x[0], x[1], options)
        },
    },
];
