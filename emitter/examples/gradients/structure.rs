//! Ops that move, choose and reduce elements, and control flow.

use mlxcel_emitter::{GatherDimensions, Graph, Reduction, ScatterDimensions, Tensor, Window};
use safetensors::Dtype;

use super::Case;

/// Adds updates to rows, of which some occur twice.
fn add_to_rows(g: &mut Graph, x: &[Tensor], rows: &[i32]) -> Tensor {
    let rows = g.constant_i32(rows, &[4, 1]);
    g.scatter(x[0], rows, x[1], &ROWS, Graph::add)
}

const ROWS: ScatterDimensions<'static> = ScatterDimensions {
    update_window: &[1],
    inserted_window: &[0],
    scatter_to_operand: &[0],
    index_vector: 1,
};

/// Windows of two elements.
const PAIRS: ScatterDimensions<'static> = ScatterDimensions {
    update_window: &[1],
    inserted_window: &[],
    scatter_to_operand: &[0],
    index_vector: 1,
};

/// Returns the gradient of the sum of all elements.
fn of_sum(g: &mut Graph, y: Tensor, x: Tensor) -> Tensor {
    let shape = g.shape(y).to_vec();
    let ones = g.full(1.0, Dtype::F32, &shape);
    g.vjp(&[y], &[ones], &[x])[0]
}

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "broadcast",
        shapes: &[&[1, 3]],
        body: |g, x| g.broadcast_in_dim(x[0], &[2, 4, 3], &[1, 2]),
    },
    Case { name: "reshape", shapes: &[&[2, 6]], body: |g, x| g.reshape(x[0], &[3, 4]) },
    Case { name: "transpose", shapes: &[&[2, 3, 4]], body: |g, x| g.transpose(x[0], &[2, 0, 1]) },
    Case { name: "reverse", shapes: &[&[2, 5]], body: |g, x| g.reverse(x[0], &[1]) },
    Case {
        name: "concatenate",
        shapes: &[&[2, 2], &[2, 3]],
        body: |g, x| g.concatenate(&[x[0], x[1], x[0]], 1),
    },
    Case {
        name: "pad",
        shapes: &[&[2, 3], &[]],
        body: |g, x| g.pad_or_crop(x[0], x[1], &[1, -1], &[0, 2], &[0, 1]),
    },
    Case { name: "slice", shapes: &[&[4, 6]], body: |g, x| g.slice_strided(x[0], &[1, 0], &[4, 6], &[2, 4]) },
    Case {
        name: "dynamic_slice",
        shapes: &[&[4, 5]],
        body: |g, x| {
            // The second index is clamped.
            let (row, column) = (g.scalar(1.0, Dtype::I32), g.scalar(4.0, Dtype::I32));
            g.dynamic_slice(x[0], &[row, column], &[2, 3])
        },
    },
    Case {
        name: "dynamic_update_slice",
        shapes: &[&[4, 5], &[2, 3]],
        body: |g, x| {
            let (row, column) = (g.scalar(1.0, Dtype::I32), g.scalar(4.0, Dtype::I32));
            g.dynamic_update_slice(x[0], x[1], &[row, column])
        },
    },
    Case { name: "reduce_sum", shapes: &[&[2, 3, 4]], body: |g, x| g.reduce(x[0], Reduction::Sum, &[0, 2]) },
    Case { name: "reduce_max", shapes: &[&[4, 6]], body: |g, x| g.reduce(x[0], Reduction::Max, &[1]) },
    Case { name: "reduce_min", shapes: &[&[4, 6]], body: |g, x| g.reduce(x[0], Reduction::Min, &[0]) },
    Case {
        name: "reduce_max_of_equals",
        shapes: &[&[6]],
        body: |g, x| {
            let floor = g.floor(x[0]);
            let whole = g.add(floor, x[0]);
            let rest = g.subtract(whole, x[0]);
            let rest = g.convert(rest, Dtype::F32);
            let doubled = g.concatenate(&[x[0], x[0]], 0);
            let largest = g.reduce(doubled, Reduction::Max, &[0]);
            let sum = g.reduce(rest, Reduction::Sum, &[0]);
            g.add(largest, sum)
        },
    },
    Case {
        name: "reduce_product",
        shapes: &[&[2, 3, 4]],
        body: |g, x| g.reduce(x[0], Reduction::Product, &[0, 2]),
    },
    Case {
        name: "reduce_product_of_zeros",
        shapes: &[&[3, 5]],
        body: |g, x| {
            // The elements of the third column become zero.
            let column = g.iota(Dtype::I32, &[3, 5], 1);
            let two = g.full(2.0, Dtype::I32, &[3, 5]);
            let is_third = g.eq(column, two);
            let zeros = g.full(0.0, Dtype::F32, &[3, 5]);
            let constant = g.stop_gradient(x[0]);
            let change = g.select(is_third, constant, zeros);
            let y = g.subtract(x[0], change);
            g.reduce(y, Reduction::Product, &[1])
        },
    },
    Case {
        name: "second_derivative_of_product",
        shapes: &[&[3, 5]],
        body: |g, x| {
            let product = g.reduce(x[0], Reduction::Product, &[1]);
            of_sum(g, product, x[0])
        },
    },
    Case {
        name: "sum_of_bf16",
        shapes: &[&[1]],
        body: |g, x| {
            let half = g.convert(x[0], Dtype::BF16);
            let halves = g.broadcast_in_dim(half, &[512], &[0]);
            let floats = g.convert(halves, Dtype::F32);
            g.reduce(floats, Reduction::Sum, &[0])
        },
    },
    Case {
        name: "take_rows",
        shapes: &[&[5, 3]],
        body: |g, x| {
            let rows = g.constant_i32(&[2, 0, 2, 9], &[2, 2]);
            g.take_rows(x[0], rows)
        },
    },
    Case {
        name: "gather",
        shapes: &[&[5, 4]],
        body: |g, x| {
            let at = g.constant_i32(&[1, 0, 4, 2, 1, 7], &[3, 2]);
            let dims = GatherDimensions {
                offset: &[],
                collapsed_slice: &[0, 1],
                start_index_map: &[0, 1],
                index_vector: 1,
            };
            g.gather(x[0], at, &dims, &[1, 1])
        },
    },
    Case { name: "scatter_add", shapes: &[&[5, 3], &[4, 3]], body: |g, x| add_to_rows(g, x, &[2, 0, 2, 4]) },
    Case {
        name: "scatter_add_outside",
        shapes: &[&[5, 3], &[4, 3]],
        body: |g, x| add_to_rows(g, x, &[2, -1, 2, 9]),
    },
    Case {
        name: "scatter_replace",
        shapes: &[&[5, 3], &[4, 3]],
        body: |g, x| {
            let rows = g.constant_i32(&[2, 0, 4, 1], &[4, 1]);
            g.scatter(x[0], rows, x[1], &ROWS, |_, _, new| new)
        },
    },
    Case {
        name: "scatter_replace_twice",
        shapes: &[&[5, 3], &[4, 3]],
        body: |g, x| {
            let rows = g.constant_i32(&[2, 0, 2, 1], &[4, 1]);
            g.scatter(x[0], rows, x[1], &ROWS, |_, _, new| new)
        },
    },
    Case {
        name: "scatter_add_outside_in_part",
        shapes: &[&[5], &[4, 2]],
        body: |g, x| {
            let at = g.constant_i32(&[4, -1, 2, -7], &[4, 1]);
            g.scatter(x[0], at, x[1], &PAIRS, Graph::add)
        },
    },
    Case {
        name: "scatter_replace_outside_in_part",
        shapes: &[&[5], &[4, 2]],
        body: |g, x| {
            let at = g.constant_i32(&[4, -1, 3, 9], &[4, 1]);
            g.scatter(x[0], at, x[1], &PAIRS, |_, _, new| new)
        },
    },
    Case {
        name: "sort",
        shapes: &[&[2, 6]],
        body: |g, x| g.sort(&[x[0]], 1, true, |g, values| g.lt(values[0], values[1]))[0],
    },
    Case {
        name: "sort_by_key",
        shapes: &[&[6, 2], &[6, 2]],
        body: |g, x| {
            let sorted = g.sort(x, 0, true, |g, values| g.lt(values[0], values[1]));
            g.multiply(sorted[0], sorted[1])
        },
    },
    Case {
        name: "sort_unstable",
        shapes: &[&[8], &[8]],
        body: |g, x| {
            // A sum of what was sorted is that of its gradient, wherever equal elements go.
            let key = g.floor(x[0]);
            let weights = g.iota(Dtype::F32, &[8], 0);
            let sorted = g.sort(&[key, x[1]], 0, false, |g, values| g.lt(values[0], values[1]))[1];
            let gradient = g.vjp(&[sorted], &[weights], &[x[1]])[0];
            let [of_sorted, of_gradient] = [(sorted, weights), (x[1], gradient)].map(|(a, b)| {
                let product = g.multiply(a, b);
                g.reduce(product, Reduction::Sum, &[0])
            });
            g.subtract(of_sorted, of_gradient)
        },
    },
    Case { name: "cumulative_sum", shapes: &[&[3, 4]], body: |g, x| g.cumulative(x[0], Reduction::Sum, 0) },
    Case {
        name: "sum_of_windows",
        shapes: &[&[2, 7, 6]],
        body: |g, x| {
            let window = Window {
                strides: vec![1, 2, 1],
                dilation: vec![1, 1, 2],
                base_dilation: vec![1, 1, 2],
                padding: vec![(0, 0), (1, 2), (0, -1)],
                ..Window::new(&[1, 3, 2])
            };
            g.reduce_window(x[0], Reduction::Sum, &window)
        },
    },
    Case {
        name: "largest_of_windows",
        shapes: &[&[2, 7, 6]],
        body: |g, x| {
            let window = Window {
                strides: vec![1, 2, 1],
                padding: vec![(0, 0), (1, 2), (0, 1)],
                ..Window::new(&[1, 3, 2])
            };
            g.reduce_window(x[0], Reduction::Max, &window)
        },
    },
    Case {
        name: "largest_of_tiles",
        shapes: &[&[2, 7, 6]],
        body: |g, x| {
            let doubled = g.round_nearest_even(x[0]);
            let ties = g.subtract(x[0], doubled);
            let ties = g.stop_gradient(ties);
            let ties = g.subtract(x[0], ties);
            g.reduce_window(ties, Reduction::Max, &Window::tiles(&[1, 3, 2]))
        },
    },
    Case {
        name: "largest_of_tiles_with_nan",
        shapes: &[&[2, 6]],
        body: |g, x| {
            let one = g.full(1.0, Dtype::F32, &[2, 6]);
            let nan = g.full(f64::NAN, Dtype::F32, &[2, 6]);
            let is_large = g.gt(x[0], one);
            let some = g.select(is_large, nan, x[0]);
            let largest = g.reduce_window(some, Reduction::Max, &Window::tiles(&[1, 2]));
            of_sum(g, largest, x[0])
        },
    },
    Case {
        name: "second_derivative_of_largest_of_windows",
        shapes: &[&[7]],
        body: |g, x| {
            let window = Window { strides: vec![2], padding: vec![(1, 1)], ..Window::new(&[3]) };
            let largest = g.reduce_window(x[0], Reduction::Max, &window);
            let square = g.multiply(largest, largest);
            of_sum(g, square, x[0])
        },
    },
    Case {
        name: "repeat_without_rounds",
        shapes: &[&[3], &[3]],
        body: |g, x| {
            let last = g.repeat(0, &[x[0]], |g, _, state| vec![g.sine(state[0])]);
            g.multiply(last[0], x[1])
        },
    },
    Case {
        name: "repeat_with_constants",
        shapes: &[&[3], &[3]],
        body: |g, x| {
            // The factor is carried, and read from outside.
            let last = g.repeat(9, &[x[0], x[1]], |g, _, state| {
                let product = g.multiply(state[0], state[1]);
                let sum = g.add(product, x[1]);
                vec![g.tanh(sum), state[1]]
            });
            g.multiply(last[0], last[1])
        },
    },
    Case {
        name: "repeat",
        shapes: &[&[3], &[3], &[2]],
        body: |g, x| {
            let factor = g.sine(x[1]);
            let last = g.repeat(4, &[x[0], x[2]], |g, round, state| {
                let product = g.multiply(state[0], factor);
                let round = g.convert(round, Dtype::F32);
                let round = g.broadcast_like(round, product);
                let sum = g.add(product, round);
                let other = g.reduce(state[1], Reduction::Sum, &[0]);
                let other = g.broadcast_like(other, sum);
                let next = g.multiply(sum, other);
                vec![g.tanh(next), g.cosine(state[1])]
            });
            g.multiply(last[0], x[1])
        },
    },
    Case {
        name: "if_else",
        shapes: &[&[3], &[3]],
        body: |g, x| {
            let sum = g.reduce(x[0], Reduction::Sum, &[0]);
            let zero = g.scalar(0.0, Dtype::F32);
            let condition = g.lt(sum, zero);
            let product = g.multiply(x[0], x[1]);
            let chosen = g.if_else(
                condition,
                |g| vec![g.multiply(product, x[0])],
                |g| {
                    let sine = g.sine(x[1]);
                    vec![g.add(sine, product)]
                },
            );
            g.add(chosen[0], product)
        },
    },
];
