//! Operands that no correct caller passes. Every op must end in an error, never in a panic.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "../common/mod.rs"]
mod common;

use common::{COMPARISON, FLOAT_BINARY, FLOAT_UNARY, INTEGER_BINARY, INTEGER_UNARY, LOGICAL_BINARY, tiny};
use mlxcel_emitter::{
    DotDimensions, GatherDimensions, Graph, Isa, Module, Numerics, Plan, Products, Reduction,
    ScatterDimensions, Tensor, TensorType, emit,
};
use safetensors::Dtype;

const DIMENSIONS: [&[usize]; 9] =
    [&[], &[0], &[1], &[5], &[0, 1], &[1, 0], &[0, 0], &[usize::MAX], &[usize::MAX, usize::MAX]];

const DTYPES: [Dtype; 5] = [Dtype::F32, Dtype::I32, Dtype::BOOL, Dtype::C64, Dtype::F4];

const REDUCTIONS: [Reduction; 5] =
    [Reduction::Sum, Reduction::Product, Reduction::Max, Reduction::And, Reduction::Or];

/// Returns a poisoned tensor, scalars, and tensors of other shapes and types.
fn operands(g: &mut Graph) -> Vec<Tensor> {
    let (two, three) = (g.argument(Dtype::F32, &[2]), g.argument(Dtype::F32, &[3]));
    let mut operands = vec![g.add(two, three), two];
    for dtype in [Dtype::F32, Dtype::I32, Dtype::U8, Dtype::BOOL] {
        operands.push(g.argument(dtype, &[]));
    }
    operands.extend([
        g.argument(Dtype::F32, &[2, 3]),
        g.argument(Dtype::I32, &[0]),
        g.argument(Dtype::I64, &[usize::MAX, usize::MAX]),
    ]);
    operands
}

/// Checks that the graph kept its first error: the op that made the poisoned operand.
fn assert_first_error_is_kept(g: Graph) {
    assert_eq!(
        g.finish("f", &[]).unwrap_err().to_string(),
        "graph: stablehlo.add: found tensor<2xf32> and tensor<3xf32>, expected two of one type"
    );
}

#[test]
fn elementwise_ops_accept_any_operands() {
    let mut g = Graph::new();
    let operands = operands(&mut g);
    let binary = [FLOAT_BINARY, INTEGER_BINARY, LOGICAL_BINARY, COMPARISON].concat();
    for &x in &operands {
        for op in FLOAT_UNARY.iter().chain(INTEGER_UNARY).copied().chain([Graph::is_finite, Graph::barrier]) {
            op(&mut g, x);
        }
        for dtype in DTYPES {
            g.convert(x, dtype);
            g.bitcast_convert(x, dtype);
        }
        g.reduce_precision(x, 0, u32::MAX);
        for &y in &operands {
            for op in &binary {
                op(&mut g, x, y);
            }
            for &z in &operands {
                g.select(x, y, z);
                g.clamp(x, y, z);
            }
        }
    }
    assert_first_error_is_kept(g);
}

#[test]
fn constants_accept_any_type_and_shape() {
    let mut g = Graph::new();
    let (two, three) = (g.argument(Dtype::F32, &[2]), g.argument(Dtype::F32, &[3]));
    g.add(two, three);
    for shape in DIMENSIONS {
        g.constant_f32(&[1.0, 2.0], shape);
        g.constant_i32(&[], shape);
        for dtype in DTYPES {
            for value in [f64::NAN, f64::INFINITY, -1e300, 1e-300, 0.0] {
                g.full(value, dtype, shape);
            }
            for dimension in [0, 7, usize::MAX] {
                g.iota(dtype, shape, dimension);
            }
        }
    }
    assert_first_error_is_kept(g);
}

#[test]
fn shape_ops_accept_any_dimensions() {
    let mut g = Graph::new();
    for x in operands(&mut g) {
        g.argmax(x);
        for a in DIMENSIONS {
            g.reshape(x, a);
            g.transpose(x, a);
            g.reverse(x, a);
            for dimension in a {
                g.concatenate(&[x, x], *dimension);
                g.concatenate(&[], *dimension);
                g.slice_dimension(x, *dimension, 1, usize::MAX);
                g.slice_dimension(x, *dimension, 2, 1);
            }
            for reduction in REDUCTIONS {
                g.reduce(x, reduction, a);
                g.reduce_broadcast(x, reduction, a);
            }
            for b in DIMENSIONS {
                g.broadcast_in_dim(x, a, b);
                g.slice(x, a, b);
                for c in DIMENSIONS {
                    g.slice_strided(x, a, b, c);
                    g.pad(x, x, a, b, c);
                }
            }
        }
    }
    assert_first_error_is_kept(g);
}

#[test]
fn ops_with_several_operands_accept_any() {
    let mut g = Graph::new();
    let operands = operands(&mut g);
    for &x in &operands {
        for &y in &operands {
            g.broadcast_like(x, y);
            g.take_rows(x, y);
            g.concatenate(&[x, y], 0);
            g.sort(&[x, y], 0, true, |_, values| values[0]);
            g.sort(&[], usize::MAX, false, |_, _| x);
            g.pad(x, y, &[1], &[usize::MAX], &[usize::MAX]);
            g.dynamic_slice(x, &[y], &[1]);
            g.dynamic_slice(x, &[], &[]);
            g.dynamic_slice(x, &[y, x], &[usize::MAX, 0]);
            g.dynamic_update_slice(x, y, &[]);
            g.dynamic_update_slice(x, y, &[x, y]);
            for a in DIMENSIONS {
                for b in DIMENSIONS {
                    let dims = DotDimensions { lhs_batch: a, rhs_batch: b, lhs_contract: b, rhs_contract: a };
                    g.dot_general(x, y, &dims, Dtype::F32);
                    index_ops(&mut g, [x, y], a, b);
                }
            }
        }
    }
    assert_first_error_is_kept(g);
}

fn index_ops(g: &mut Graph, [x, y]: [Tensor; 2], a: &[usize], b: &[usize]) {
    for index_vector in [0, 1, usize::MAX] {
        let gather = GatherDimensions { offset: a, collapsed_slice: b, start_index_map: a, index_vector };
        g.gather(x, y, &gather, a);
        let scatter =
            ScatterDimensions { update_window: a, inserted_window: b, scatter_to_operand: b, index_vector };
        g.scatter(x, y, x, &scatter, |_, old, _| old);
    }
}

#[test]
fn control_flow_accepts_any_state() {
    let mut g = Graph::new();
    let end = g.host_argument();
    let operands = operands(&mut g);
    let global = Module::new("m").state("state", TensorType::new(Dtype::F32, [2]));
    for &x in &operands {
        g.store(&global, x);
        for &y in &operands {
            for step in [0, 1] {
                g.for_loop(end, step, &[x], |_, _, _| vec![y]);
                g.for_loop(end, step, &[x, y], |_, _, _| vec![]);
            }
            g.while_loop(&[x], |_, _| y, |_, _| vec![y]);
            g.while_loop(&[], |_, _| y, |_, _| vec![x, y]);
            g.if_else(x, |_| vec![x], |_| vec![y]);
            g.if_else(x, |_| vec![x], |_| vec![]);
        }
    }
    assert_first_error_is_kept(g);
}

#[test]
fn tensors_of_another_graph_are_refused() {
    let mut other = Graph::new();
    let foreign = [(); 8].map(|()| other.argument(Dtype::F32, &[2]))[7];
    assert_eq!(
        Graph::new().finish("f", &[foreign]).unwrap_err().to_string(),
        "graph: func.return: found a result of another graph, expected tensors of this one"
    );

    let mut g = Graph::new();
    let result = g.negate(foreign);
    let mut module = Module::new("m");
    module.add(g.finish("f", &[result]).unwrap());
    let error = module.to_mlir().unwrap_err();
    assert_eq!(
        error.to_string(),
        "mlir refused stablehlo.negate: an operand is not a value of this function"
    );
}

#[test]
fn types_that_mlir_does_not_have_are_refused() {
    let mut g = Graph::new();
    let x = g.argument(Dtype::F4, &[2]);
    let y = g.argument(Dtype::F32, &[usize::MAX - 1]);
    let mut module = Module::new("m");
    module.add(g.finish("f", &[x, y]).unwrap());
    let signature = "(tensor<2xnone>, tensor<18446744073709551614xf32>)";
    assert_eq!(
        module.to_mlir().unwrap_err().to_string(),
        format!("mlir refused func.func: {signature} -> {signature}: invalid tensor element type")
    );
}

#[test]
fn an_inconsistent_description_is_refused_with_its_scope() {
    let mut plan = Plan::new(&tiny(), mlxcel_artifacts::Float::F32, 40);
    let refused = |plan: &Plan, change: fn(&mut mlxcel_models::ModelConfig)| {
        let mut model = tiny();
        change(&mut model);
        emit(&model, plan, &mlxcel_models::Storage::all(Dtype::F32)).unwrap_err().to_string()
    };
    let with_kernels = Isa::ALL.into_iter().filter(|isa| !isa.is_gpu()).map(Products::Kernels);
    for products in [Products::Native, Products::Widened].into_iter().chain(with_kernels) {
        plan.numerics = Numerics { products, ..Numerics::default() };
        let wrong_weight = refused(&plan, |m| m.blocks[0].attention.layer.query.weight.shape = vec![8, 17]);
        assert_eq!(
            wrong_weight,
            "layer.0.attention.q_proj: linear: found a weight of shape [8, 17], expected 16 inputs"
        );
        let changes: [fn(&mut mlxcel_models::ModelConfig); 7] = [
            |m| m.blocks[0].attention.layer.kv_heads = 0,
            |m| m.blocks[0].attention.layer.head_dim = 7,
            |m| m.blocks[0].attention.layer.heads = 3,
            |m| {
                if let mlxcel_models::FeedForward::Mlp(mlp) = &mut m.blocks[0].mlp.layer {
                    mlp.down.weight.shape = vec![0, 0];
                }
            },
            |m| {
                if let Some(norm) = &mut m.final_norm {
                    norm.weights[0].shape = vec![];
                }
            },
            |m| m.embedding.weight.shape = vec![],
            |m| m.blocks.clear(),
        ];
        for change in changes {
            refused(&plan, change);
        }
    }
}
