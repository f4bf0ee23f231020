//! The types of ops' results, and the operands that ops refuse.

use safetensors::Dtype;

use crate::{
    graph::{Graph, Tensor},
    kernels::{Argmax, Call, Grid, Isa, Matmul, MatmulOperands},
    module::Module,
    ops::{DotDimensions, GatherDimensions, Reduction, ScatterDimensions},
    types::TensorType,
};

/// Returns the type of the tensor that `build` returns, as text, or the error.
fn result_type(build: impl FnOnce(&mut Graph) -> Tensor) -> String {
    let mut g = Graph::new();
    let result = build(&mut g);
    let ty = g.type_of(result).to_string();
    g.finish("f", &[result]).map_or_else(|error| error.to_string(), |_| ty)
}

/// Returns the error of the graph that `build` builds, without the scope.
fn error<T>(build: impl FnOnce(&mut Graph) -> T) -> String {
    let mut g = Graph::new();
    build(&mut g);
    let error = g.finish("f", &[]).unwrap_err().to_string();
    error.strip_prefix("graph: ").unwrap().to_owned()
}

fn f32(g: &mut Graph, shape: &[usize]) -> Tensor {
    g.argument(Dtype::F32, shape)
}

fn i32(g: &mut Graph, shape: &[usize]) -> Tensor {
    g.argument(Dtype::I32, shape)
}

#[test]
fn elementwise() {
    let two = |build: fn(&mut Graph, Tensor, Tensor) -> Tensor| {
        result_type(|g| {
            let (x, y) = (f32(g, &[2, 3]), f32(g, &[2, 3]));
            build(g, x, y)
        })
    };
    assert_eq!(two(Graph::add), "tensor<2x3xf32>");
    assert_eq!(two(Graph::le), "tensor<2x3xi1>");
    assert_eq!(two(|g, x, _| g.rsqrt(x)), "tensor<2x3xf32>");
    assert_eq!(two(|g, x, _| g.is_finite(x)), "tensor<2x3xi1>");
    assert_eq!(two(|g, x, _| g.convert(x, Dtype::BF16)), "tensor<2x3xbf16>");
    assert_eq!(two(|g, x, _| g.bitcast_convert(x, Dtype::U32)), "tensor<2x3xui32>");
    assert_eq!(
        two(|g, x, y| {
            let condition = g.argument(Dtype::BOOL, &[]);
            g.select(condition, x, y)
        }),
        "tensor<2x3xf32>"
    );

    let wrong = |build: fn(&mut Graph, Tensor, Tensor) -> Tensor| {
        error(|g| {
            let (x, y) = (f32(g, &[2]), i32(g, &[3]));
            build(g, x, y)
        })
    };
    assert_eq!(
        wrong(|g, x, y| g.add(x, y)),
        "stablehlo.add: found tensor<2xf32> and tensor<3xi32>, expected two of one type"
    );
    assert_eq!(
        wrong(|g, x, y| g.lt(x, y)),
        "stablehlo.compare: found tensor<2xf32> and tensor<3xi32>, expected two of one type"
    );
    assert_eq!(
        wrong(|g, _, y| g.rsqrt(y)),
        "stablehlo.rsqrt: found tensor<3xi32>, expected a floating-point or complex type"
    );
    assert_eq!(
        wrong(|g, x, _| g.shift_left(x, x)),
        "stablehlo.shift_left: found tensor<2xf32>, expected an integer type"
    );
    assert_eq!(
        error(|g| {
            let x = g.argument(Dtype::U8, &[2]);
            g.abs(x);
        }),
        "stablehlo.abs: found tensor<2xui8>, expected a signed number type"
    );
    assert_eq!(
        wrong(|g, x, _| g.select(x, x, x)),
        "stablehlo.select: found condition tensor<2xf32>, expected tensor<2xi1> or tensor<i1>"
    );
    assert_eq!(
        wrong(|g, x, y| g.clamp(x, x, y)),
        "stablehlo.clamp: found bound tensor<3xi32>, expected tensor<2xf32> or a scalar of its type"
    );
    assert_eq!(
        wrong(|g, x, _| g.bitcast_convert(x, Dtype::I16)),
        "stablehlo.bitcast_convert: found I16, expected a type of 32 bits like tensor<2xf32>"
    );
    assert_eq!(
        wrong(|g, x, _| g.reduce_precision(x, 0, 7)),
        "stablehlo.reduce_precision: found tensor<2xf32> and 0 exponent bits, expected a floating-point type and at least \
         1"
    );
}

#[test]
fn constants() {
    assert_eq!(result_type(|g| g.full(1.0, Dtype::BF16, &[2, 3])), "tensor<2x3xbf16>");
    assert_eq!(result_type(|g| g.scalar(1.0, Dtype::I32)), "tensor<i32>");
    assert_eq!(result_type(|g| g.constant_i32(&[1, 2], &[2, 1])), "tensor<2x1xi32>");
    assert_eq!(result_type(|g| g.iota(Dtype::I32, &[2, 3], 1)), "tensor<2x3xi32>");
    assert_eq!(
        error(|g| g.constant_f32(&[1.0], &[2])),
        "stablehlo.constant: found 4 bytes, expected those of tensor<2xf32>"
    );
    assert_eq!(
        error(|g| g.iota(Dtype::I32, &[2], 1)),
        "stablehlo.iota: found dimension 1, expected one of shape [2]"
    );
    assert_eq!(error(|g| g.iota(Dtype::BOOL, &[2], 0)), "stablehlo.iota: found i1, expected a number type");
}

#[test]
fn shape() {
    let of = |build: fn(&mut Graph, Tensor) -> Tensor| {
        result_type(|g| {
            let x = f32(g, &[2, 3]);
            build(g, x)
        })
    };
    assert_eq!(of(|g, x| g.broadcast_in_dim(x, &[2, 4, 3], &[0, 2])), "tensor<2x4x3xf32>");
    assert_eq!(of(|g, x| g.reshape(x, &[6])), "tensor<6xf32>");
    assert_eq!(of(|g, x| g.transpose(x, &[1, 0])), "tensor<3x2xf32>");
    assert_eq!(of(|g, x| g.concatenate(&[x, x], 1)), "tensor<2x6xf32>");
    assert_eq!(of(|g, x| g.slice_strided(x, &[0, 0], &[2, 3], &[1, 2])), "tensor<2x2xf32>");
    assert_eq!(of(|g, x| g.slice_dimension(x, 1, 1, 2)), "tensor<2x1xf32>");
    assert_eq!(
        of(|g, x| {
            let zero = g.scalar(0.0, Dtype::F32);
            g.pad(x, zero, &[1, 0], &[0, 1], &[0, 2])
        }),
        "tensor<3x8xf32>"
    );
    assert_eq!(
        of(|g, x| {
            let at = i32(g, &[]);
            g.dynamic_slice(x, &[at, at], &[1, 3])
        }),
        "tensor<1x3xf32>"
    );
    assert_eq!(
        of(|g, x| g.broadcast_in_dim(x, &[2, 4], &[0, 1])),
        "graph: stablehlo.broadcast_in_dim: found tensor<2x3xf32> at dimensions [0, 1], expected them to fit [2, 4]"
    );
    assert_eq!(
        of(|g, x| g.reshape(x, &[7])),
        "graph: stablehlo.reshape: found tensor<2x3xf32>, expected as many elements as tensor<7xf32>"
    );
    assert_eq!(
        of(|g, x| g.transpose(x, &[0, 0])),
        "graph: stablehlo.transpose: found permutation [0, 0], expected one of tensor<2x3xf32>"
    );
    assert_eq!(
        of(|g, x| {
            let y = f32(g, &[3, 3]);
            g.concatenate(&[x, y], 1)
        }),
        "graph: stablehlo.concatenate: found tensor<2x3xf32> and tensor<3x3xf32>, expected all but dimension 1 alike"
    );
    assert_eq!(
        of(|g, x| g.concatenate(&[x], 2)),
        "graph: stablehlo.concatenate: found dimension 2 of no tensor, expected one that all have"
    );
    assert_eq!(
        of(|g, x| g.reverse(x, &[0, 0])),
        "graph: stablehlo.reverse: found dimensions [0, 0], expected different ones of tensor<2x3xf32>"
    );
    assert_eq!(
        of(|g, x| g.slice(x, &[0, 1], &[2, 4])),
        "graph: stablehlo.slice: found [[0, 1], [2, 4]) by [1, 1], expected a range of tensor<2x3xf32>"
    );
    assert_eq!(
        of(|g, x| g.dynamic_slice(x, &[x, x], &[1, 1])),
        "graph: stablehlo.dynamic_slice: found start tensor<2x3xf32>, expected an integer scalar such as tensor<i32>"
    );
    assert_eq!(
        of(|g, x| {
            let (at, wide) = (i32(g, &[]), g.argument(Dtype::I64, &[]));
            g.dynamic_slice(x, &[at, wide], &[1, 1])
        }),
        "graph: stablehlo.dynamic_slice: found starts tensor<i32> and tensor<i64>, expected one type"
    );
}

#[test]
fn dot() {
    let of = |dims: &DotDimensions<'_>, accumulate| {
        result_type(|g| {
            let (x, y) = (g.argument(Dtype::BF16, &[5, 2, 4]), g.argument(Dtype::BF16, &[5, 3, 4]));
            g.dot_general(x, y, dims, accumulate)
        })
    };
    let dims = DotDimensions { lhs_batch: &[0], rhs_batch: &[0], lhs_contract: &[2], rhs_contract: &[2] };
    assert_eq!(of(&dims, Dtype::F32), "tensor<5x2x3xf32>");
    assert_eq!(
        of(&DotDimensions { rhs_contract: &[1], ..dims.clone() }, Dtype::F32),
        "graph: stablehlo.dot_general: found tensor<5x2x4xbf16> and tensor<5x3x4xbf16>, expected contracting \
         dimensions [2] and [1] to match"
    );
    assert_eq!(
        of(&dims, Dtype::I32),
        "graph: stablehlo.dot_general: found accumulator I32, expected one as wide as tensor<5x2x4xbf16> and of its \
         kind"
    );
    assert_eq!(
        of(&DotDimensions { lhs_contract: &[0], rhs_contract: &[0], ..dims }, Dtype::F32),
        "graph: stablehlo.dot_general: found a dimension of tensor<5x2x4xbf16> named twice, expected each once"
    );
}

#[test]
fn a_kernel_refuses_operands_of_other_types() {
    let mut g = Graph::new();
    let [w, a] = [[1, 4, 16].as_slice(), &[2, 4]].map(|shape| f32(&mut g, shape));
    let lengths = i32(&mut g, &[1]);
    let out = TensorType::new(Dtype::F32, [2, 16]);
    let operands = MatmulOperands::F32 { w, a };
    let matmul = Matmul { operands, lengths, out, batch: 1, tokens: 2, n: 16, k: 4 };
    let call = Call::new(&g, Isa::X86_64V3, matmul, Grid { items: 1, grain: 1 });
    let of = |shape: &[usize]| {
        result_type(|g| {
            let (w, a, lengths) = (f32(g, &[1, 4, 16]), f32(g, shape), i32(g, &[1]));
            g.dispatch(&call.executable, &[w, a, lengths], &[])[0]
        })
    };
    assert_eq!(of(&[2, 4]), "tensor<2x16xf32>");
    assert_eq!(
        of(&[2, 5]),
        "graph: flow.dispatch: found tensor<1x4x16xf32>, tensor<2x5xf32>, tensor<1xi32> and 0 numbers, \
         expected tensor<1x4x16xf32>, tensor<2x4xf32>, tensor<1xi32> and 0 for matmul_f32"
    );
}

#[test]
fn a_transpose_that_moves_no_element_is_a_reshape() {
    let ops = |permutation: &[usize]| {
        let mut g = Graph::new();
        let x = f32(&mut g, &[2, 1, 3]);
        let y = g.transpose(x, permutation);
        let function = g.finish("f", &[y]).unwrap();
        (function.body.ops[0].name.clone(), function.type_of(y).to_string())
    };
    assert_eq!(ops(&[1, 0, 2]), ("stablehlo.reshape".into(), "tensor<1x2x3xf32>".into()));
    assert_eq!(ops(&[2, 1, 0]), ("stablehlo.transpose".into(), "tensor<3x1x2xf32>".into()));
}

#[test]
fn reduce_and_sort() {
    let of = |build: fn(&mut Graph, Tensor) -> Tensor| {
        result_type(|g| {
            let x = f32(g, &[2, 3]);
            build(g, x)
        })
    };
    assert_eq!(of(|g, x| g.reduce(x, Reduction::Sum, &[0])), "tensor<3xf32>");
    assert_eq!(of(|g, x| g.reduce_broadcast(x, Reduction::Max, &[1])), "tensor<2x3xf32>");
    assert_eq!(of(|g, x| g.argmax(x)), "tensor<2xi32>");
    assert_eq!(
        of(|g, x| g.sort(&[x], 1, true, |g, values| g.lt(values[0], values[1]))[0]),
        "tensor<2x3xf32>"
    );
    assert_eq!(
        of(|g, x| g.reduce(x, Reduction::Sum, &[0, 2])),
        "graph: stablehlo.reduce: found dimensions [0, 2], expected different ones of tensor<2x3xf32>"
    );
    assert_eq!(
        of(|g, x| g.reduce(x, Reduction::And, &[0])),
        "graph: stablehlo.reduce: found tensor<2x3xf32> to reduce with And, expected truth values for and/or alone"
    );
    assert_eq!(
        of(|g, _| {
            let x = f32(g, &[]);
            g.argmax(x)
        }),
        "graph: argmax: found tensor<f32>, expected a dimension to search"
    );
    assert_eq!(
        of(|g, x| g.first_true(x)),
        "graph: first_true: found tensor<2x3xf32>, expected truth values with a dimension to search"
    );
    assert_eq!(
        of(|g, x| {
            let x = g.convert(x, Dtype::I32);
            g.reduce(x, Reduction::Max, &[0])
        }),
        "graph: stablehlo.reduce: found tensor<2x3xi32> to reduce with Max, expected floats"
    );
    assert_eq!(
        of(|g, x| g.sort(&[x], 2, true, |g, values| g.lt(values[0], values[1]))[0]),
        "graph: stablehlo.sort: found dimension 2 of tensor<2x3xf32>, expected one shape with that dimension"
    );
    assert_eq!(
        of(|g, x| g.sort(&[x], 0, true, |_, values| values[0])[0]),
        "graph: stablehlo.sort: found comparison tensor<f32>, expected tensor<i1>"
    );
}

#[test]
fn gather_and_scatter() {
    assert_eq!(
        result_type(|g| {
            let (table, at) = (f32(g, &[8, 4]), i32(g, &[2, 3]));
            g.take_rows(table, at)
        }),
        "tensor<2x3x4xf32>"
    );
    assert_eq!(
        result_type(|g| {
            let (x, at) = (f32(g, &[8, 4]), i32(g, &[5, 1]));
            let dims = GatherDimensions {
                offset: &[0],
                collapsed_slice: &[1],
                start_index_map: &[1],
                index_vector: 1,
            };
            g.gather(x, at, &dims, &[3, 1])
        }),
        "tensor<3x5xf32>"
    );
    assert_eq!(
        result_type(|g| {
            let table = f32(g, &[8, 4]);
            g.take_rows(table, table)
        }),
        "graph: stablehlo.gather: found indices tensor<8x4xf32>, expected integers"
    );
    let dims = ScatterDimensions {
        update_window: &[1],
        inserted_window: &[0],
        scatter_to_operand: &[0],
        index_vector: 1,
    };
    let scatter = |updates: &[usize], combine: fn(&mut Graph, Tensor, Tensor) -> Tensor| {
        result_type(|g| {
            let (x, at, updates) = (f32(g, &[8, 4]), i32(g, &[3, 1]), f32(g, updates));
            g.scatter(x, at, updates, &dims, combine)
        })
    };
    assert_eq!(scatter(&[3, 4], Graph::add), "tensor<8x4xf32>");
    assert!(scatter(&[2, 4], Graph::add).starts_with(
        "graph: stablehlo.scatter: found tensor<8x4xf32>, indices tensor<3x1xi32>, updates tensor<2x4xf32>, \
             expected them to fit ScatterDimensions {"
    ));
    assert_eq!(
        scatter(&[3, 4], Graph::lt),
        "graph: stablehlo.scatter: found combination tensor<i1>, expected tensor<f32>"
    );
}

#[test]
fn loops() {
    let wrong = |build: fn(&mut Graph, Tensor)| {
        error(|g| {
            let x = f32(g, &[2]);
            build(g, x);
        })
    };
    assert_eq!(
        wrong(|g, x| {
            let end = g.host_argument();
            g.for_loop(end, 1, &[x, x], |_, _, state| vec![state[0]]);
        }),
        "scf.for: found next state tensor<2xf32>, expected tensor<2xf32>, tensor<2xf32>"
    );
    assert_eq!(
        wrong(|g, x| {
            let end = g.host_argument();
            g.for_loop(end, 0, &[x], |_, _, state| vec![state[0]]);
        }),
        "scf.for: found step 0, expected at least 1"
    );
    assert_eq!(
        wrong(|g, x| {
            g.while_loop(&[x], |_, state| state[0], |_, state| state.to_vec());
        }),
        "stablehlo.while: found condition tensor<2xf32>, expected tensor<i1>"
    );
    assert_eq!(
        wrong(|g, x| {
            let truth = g.argument(Dtype::BOOL, &[]);
            g.while_loop(&[x], |_, _| truth, |g, state| vec![g.convert(state[0], Dtype::F16)]);
        }),
        "stablehlo.while: found next state tensor<2xf16>, expected tensor<2xf32>"
    );
}

#[test]
fn branches_and_globals() {
    let wrong = |build: fn(&mut Graph, Tensor)| {
        error(|g| {
            let x = f32(g, &[2]);
            build(g, x);
        })
    };
    assert_eq!(
        wrong(|g, x| {
            let truth = g.argument(Dtype::BOOL, &[]);
            g.if_else(truth, |_| vec![x], |_| vec![x, truth]);
        }),
        "stablehlo.if: found branches tensor<2xf32> and tensor<2xf32>, tensor<i1>, expected the same types"
    );
    assert_eq!(
        wrong(|g, x| {
            g.if_else(x, |_| vec![x], |_| vec![x]);
        }),
        "stablehlo.if: found condition tensor<2xf32>, expected tensor<i1>"
    );
    assert_eq!(
        wrong(|g, x| {
            let global = Module::new("m").state("cache", TensorType::new(Dtype::F32, [3]));
            g.store(&global, x);
        }),
        "util.global.store: found tensor<2xf32>, expected tensor<3xf32> for @cache"
    );
    assert_eq!(
        wrong(|g, x| {
            let global = Module::new("m").parameter("model", "weight", TensorType::new(Dtype::F32, [2]));
            g.store(&global, x);
        }),
        "util.global.store: found the parameter @weight, expected a mutable global"
    );
}

#[test]
fn sizes_above_32_bits_are_refused_on_gpus() {
    let call = |length: usize| {
        move |g: &mut Graph| {
            let logits = f32(g, &[2]);
            let (argmax, _) = Argmax::of(logits, [2, 1], (1.0, None));
            let argmax = Argmax { length, ..argmax };
            let call = Call::new(g, Isa::Sm80, argmax, Grid { items: 1, grain: 1 });
            g.dispatch(&call.executable, &call.operands, &call.numbers)[0]
        }
    };
    assert_eq!(result_type(call((1 << 32) - 1)), "tensor<2xi32>");
    assert_eq!(error(call(1 << 32)), "flow.dispatch: found 4294967296 : i64, expected at most 32 bits");
}
