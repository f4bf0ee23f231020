//! Which ops gradients are. What they compute is compared with JAX by the compiler driver, which runs them.

use safetensors::Dtype;

use crate::{
    graph::{Function, Graph, Op, Region, Tensor},
    mlir::attributes::word,
    ops::{Reduction, ScatterDimensions, Window},
};

/// Returns the name of an op, or the direction of a comparison.
fn name(op: &Op) -> String {
    match op.attributes.first() {
        Some((attribute, text)) if attribute == "comparison_direction" => word(text).unwrap().to_owned(),
        _ => op.name.strip_prefix("stablehlo.").unwrap_or(&op.name).to_owned(),
    }
}

fn names(ops: &[Op]) -> Vec<String> {
    ops.iter().map(name).collect()
}

/// Returns the ops of the gradients of what `build` makes of arguments.
fn added(
    dtype: Dtype,
    shapes: &[&[usize]],
    build: impl FnOnce(&mut Graph, &[Tensor]) -> Tensor,
) -> Vec<String> {
    let mut g = Graph::new();
    let operands: Vec<_> = shapes.iter().map(|shape| g.argument(dtype, shape)).collect();
    let result = build(&mut g, &operands);
    let ty = g.type_of(result);
    let d = g.argument(ty.dtype, &ty.shape);
    let first = g.open_regions()[0].ops.len();
    let gradients = g.vjp(&[result], &[d], &operands);
    names(&g.finish("f", &gradients).unwrap().body.ops[first..])
}

#[test]
fn conventions_are_those_of_jax() {
    let abs = added(Dtype::F32, &[&[2]], |g, x| g.abs(x[0]));
    assert_eq!(abs, ["constant", "negate", "GE", "select"]);
    let clamp = added(Dtype::F32, &[&[2], &[2], &[2]], |g, x| g.clamp(x[0], x[1], x[2]));
    let [of_x, of_low, of_high] =
        [&["GT", "LT", "and", "select"][..], &["LT", "LT", "and", "select"], &["GT", "select"]];
    assert_eq!(clamp, [&["constant"], of_x, of_low, of_high].concat());
    // The gradient of what is behind an integer is zero.
    let whole = added(Dtype::F32, &[&[2]], |g, x| {
        let whole = g.convert(x[0], Dtype::I32);
        g.convert(whole, Dtype::F32)
    });
    assert_eq!(whole, ["constant"]);
}

#[test]
fn gradients_are_divided_once_and_late() {
    assert_eq!(added(Dtype::F32, &[&[2]], |g, x| g.log(x[0])), ["divide"]);
    assert_eq!(added(Dtype::F32, &[&[2]], |g, x| g.log_plus_one(x[0])), ["constant", "add", "divide"]);
    let atan2 = added(Dtype::F32, &[&[2], &[2]], |g, x| g.atan2(x[0], x[1]));
    assert_eq!(atan2, ["multiply", "multiply", "add", "divide", "multiply", "divide", "multiply", "negate"]);
}

#[test]
fn narrow_floats_are_summed_in_f32() {
    let sum = |dtype| added(dtype, &[&[1, 3]], |g, x| g.broadcast_in_dim(x[0], &[2, 3], &[0, 1]));
    assert_eq!(sum(Dtype::F32), ["constant", "reduce", "reshape"]);
    for narrow in [Dtype::BF16, Dtype::F16] {
        assert_eq!(sum(narrow), ["convert", "constant", "reduce", "convert", "reshape"]);
        let ties = added(narrow, &[&[4]], |g, x| g.reduce(x[0], Reduction::Max, &[0]));
        assert_eq!(
            ties,
            [
                "broadcast_in_dim",
                "EQ",
                "convert",
                "convert",
                "constant",
                "reduce",
                "convert",
                "divide",
                "broadcast_in_dim",
                "multiply"
            ]
        );
    }
}

#[test]
fn products_take_a_logarithmic_number_of_rounds() {
    let of = |count| {
        let ops = added(Dtype::F32, &[&[4, count]], |g, x| g.reduce(x[0], Reduction::Product, &[1]));
        ops.iter().filter(|op| *op == "multiply").count()
    };
    // Those before, those after, and two for both.
    assert_eq!([1, 2, 3, 4, 100].map(of), [2, 2, 4, 6, 16]);
}

/// Returns the comparison that a gradient sorts with, and the type of places.
fn sorted_again(dtypes: &[Dtype], stable: bool) -> (Vec<String>, String) {
    let mut g = Graph::new();
    let operands: Vec<_> = dtypes.iter().map(|&dtype| g.argument(dtype, &[4])).collect();
    let sorted = g.sort(&operands, 0, stable, |g, values| g.lt(values[0], values[1]));
    let d = g.argument(dtypes[0], &[4]);
    let gradients = g.vjp(&sorted[..1], &[d], &operands[..1]);
    let function = g.finish("f", &gradients).unwrap();
    let sort = function.body.ops.iter().rfind(|op| op.name == "stablehlo.sort").unwrap();
    let places = function.type_of(*sort.results.last().unwrap()).to_string();
    (names(&sort.regions[0].ops), places)
}

#[test]
fn a_sort_is_repeated_as_it_was() {
    let floats = [Dtype::F32];
    let places = "tensor<4xi32>".to_owned();
    assert_eq!(sorted_again(&floats, false), (vec!["LT".to_owned()], places.clone()));
    let by_place = ["LT", "LT", "LT", "not", "and", "or"].map(str::to_owned).to_vec();
    assert_eq!(sorted_again(&floats, true), (by_place, places));
    let counted = [Dtype::F32, Dtype::I32];
    assert_eq!(sorted_again(&counted, false), (vec!["LT".to_owned()], "tensor<4xi64>".to_owned()));
}

#[test]
fn a_loop_without_rounds_returns_what_it_begins_with() {
    let mut g = Graph::new();
    let (x, d) = (g.argument(Dtype::F32, &[3]), g.argument(Dtype::F32, &[3]));
    let last = g.repeat(0, &[x], |g, _, state| vec![g.sine(state[0])]);
    assert_eq!(g.vjp(&last, &[d], &[x]), [d]);
}

#[test]
fn a_loop_of_too_many_rounds_is_an_error() {
    let mut g = Graph::new();
    let (x, zero) = (g.argument(Dtype::F32, &[3]), g.scalar(0.0, Dtype::I64));
    let last = g.while_loop(
        &[zero, x],
        |g, state| {
            let end = g.scalar(3e9, Dtype::I64);
            g.lt(state[0], end)
        },
        |g, state| {
            let one = g.scalar(1.0, Dtype::I64);
            vec![g.add(state[0], one), g.sine(state[1])]
        },
    );
    let gradients = g.vjp(&last[1..], &[x], &[x]);
    assert_eq!(
        g.finish("f", &gradients).unwrap_err().to_string(),
        "graph: stablehlo.while: found 3000000000 times, expected at most 2147483647"
    );
}

#[test]
fn what_no_round_of_a_loop_changes_is_not_kept() {
    let mut g = Graph::new();
    let (x, factor) = (g.argument(Dtype::F32, &[3]), g.argument(Dtype::F32, &[3]));
    let last = g.repeat(9, &[x, factor], |g, _, state| vec![g.multiply(state[0], state[1]), state[1]]);
    let d = g.argument(Dtype::F32, &[3]);
    let gradients = g.vjp(&last[..1], &[d], &[x, factor]);
    let function = g.finish("f", &gradients).unwrap();
    let is_kept = |op: &&Op| {
        op.name == "stablehlo.constant" && function.type_of(op.results[0]).to_string() == "tensor<9x3xf32>"
    };
    assert_eq!(function.body.ops.iter().filter(is_kept).count(), 1);
}

/// Returns the ops of the gradient of the updates of a scatter into `size` elements.
fn of_updates(size: usize, index: &[usize], window: &[usize], dims: &ScatterDimensions<'_>) -> Vec<String> {
    let mut g = Graph::new();
    let x = g.argument(Dtype::F32, &[size]);
    let (indices, updates) = (g.argument(Dtype::I32, index), g.argument(Dtype::F32, window));
    let y = g.scatter(x, indices, updates, dims, Graph::add);
    let d = g.argument(Dtype::F32, &[size]);
    let gradients = g.vjp(&[y], &[d], &[updates]);
    assert_eq!(g.shape(gradients[0]), window);
    names(&g.finish("f", &gradients).unwrap().body.ops[1..])
}

#[test]
fn updates_are_read_where_they_were_added() {
    let elements = ScatterDimensions {
        update_window: &[],
        inserted_window: &[0],
        scatter_to_operand: &[0],
        index_vector: 1,
    };
    let windows = ScatterDimensions { update_window: &[1], inserted_window: &[], ..elements.clone() };
    let has_margin = |ops: Vec<String>| ops.iter().any(|op| op == "pad");
    assert!(!has_margin(of_updates(5, &[4, 1], &[4], &elements)));
    assert!(has_margin(of_updates(5, &[4, 1], &[4, 2], &windows)));
    // There is nothing to read.
    assert_eq!(of_updates(0, &[4, 1], &[4], &elements), ["constant"]);
}

/// Returns how often an op is in a region and in those within it.
fn count(region: &Region, op: &str) -> usize {
    let within = |op_of: &Op| op_of.regions.iter().map(|region| count(region, op)).sum::<usize>();
    region.ops.iter().map(|found| usize::from(found.name == op) + within(found)).sum()
}

#[test]
fn the_largest_of_windows_have_gradients_of_any_order() {
    let third = |window: &Window| -> Function {
        let mut g = Graph::new();
        let x = g.argument(Dtype::F32, &[9]);
        let largest = g.reduce_window(x, Reduction::Max, window);
        let mut result = g.multiply(largest, largest);
        for _ in 0..3 {
            let ones = g.full_like(result, 1);
            let gradient = g.vjp(&[result], &[ones], &[x])[0];
            result = g.multiply(gradient, gradient);
        }
        g.finish("f", &[result]).unwrap()
    };
    let overlapping = Window { strides: vec![2], padding: vec![(1, 1)], ..Window::new(&[3]) };
    for window in [overlapping, Window::tiles(&[3])] {
        assert_eq!(count(&third(&window).body, "stablehlo.select_and_scatter"), 0);
    }
}
