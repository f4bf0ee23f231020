//! Whole modules as text. `cargo xtask goldens` compiles each with iree-compile.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod common;

use common::{
    COMPARISON, FLOAT_BINARY, FLOAT_UNARY, INTEGER_BINARY, INTEGER_UNARY, LOGICAL_BINARY, tiny, tiny_of,
    tiny_of_vocab,
};
use mlxcel_artifacts::{Float, Quant};
use mlxcel_emitter::{
    Convolution, DotDimensions, Fft, GatherDimensions, Graph, Isa, Module, Numerics, Plan, Products, Program,
    Reduction, RngAlgorithm, ScatterDimensions, Tensor, TensorType, Window, emit,
};
use mlxcel_models::{ModelConfig, Storage, Weight};
use safetensors::Dtype;

/// Compares a module with its golden, whose header does not repeat the code that builds the module.
macro_rules! assert_golden {
    ($($argument:expr),+ $(,)?) => {{
        let mut settings = insta::Settings::clone_current();
        settings.set_omit_expression(true);
        settings.bind(|| insta::assert_snapshot!($($argument),+));
    }};
}

type Build<'a> = &'a dyn Fn(&mut Graph) -> Vec<Tensor>;

/// Returns a module of functions, each with its name and the closure that builds it.
fn module(functions: &[(&str, Build<'_>)]) -> String {
    let mut module = Module::new("golden");
    for (name, build) in functions {
        let mut g = Graph::new();
        let results = build(&mut g);
        module.add(g.finish(*name, &results).unwrap());
    }
    module.to_mlir().unwrap()
}

#[test]
fn elementwise() {
    let binary = |dtype, ops: &'static [common::Binary]| {
        move |g: &mut Graph| {
            let (x, y) = (g.argument(dtype, &[4]), g.argument(dtype, &[4]));
            ops.iter().map(|op| op(g, x, y)).collect()
        }
    };
    let unary = |dtype, ops: &'static [common::Unary]| {
        move |g: &mut Graph| {
            let x = g.argument(dtype, &[4]);
            ops.iter().map(|op| op(g, x)).collect()
        }
    };
    assert_golden!(module(&[
        ("float_unary", &unary(Dtype::F32, FLOAT_UNARY)),
        ("float_binary", &binary(Dtype::F32, FLOAT_BINARY)),
        ("float_comparison", &binary(Dtype::BF16, COMPARISON)),
        ("integer_unary", &unary(Dtype::I32, INTEGER_UNARY)),
        ("integer_binary", &binary(Dtype::I32, INTEGER_BINARY)),
        ("integer_comparison", &binary(Dtype::I64, COMPARISON)),
        ("unsigned_binary", &binary(Dtype::U8, INTEGER_BINARY)),
        ("unsigned_comparison", &binary(Dtype::U32, COMPARISON)),
        ("logical_unary", &unary(Dtype::BOOL, &[Graph::not])),
        ("logical_binary", &binary(Dtype::BOOL, LOGICAL_BINARY)),
    ]));
}

#[test]
fn conversion_and_choice() {
    assert_golden!(module(&[
        ("convert", &|g| {
            let x = g.argument(Dtype::F32, &[2, 3]);
            let all = [
                Dtype::F16,
                Dtype::BF16,
                Dtype::F64,
                Dtype::I8,
                Dtype::I32,
                Dtype::I64,
                Dtype::U8,
                Dtype::BOOL,
            ];
            let mut results: Vec<_> = all.iter().map(|&dtype| g.convert(x, dtype)).collect();
            results.push(g.bitcast_convert(x, Dtype::I32));
            results.push(g.reduce_precision(x, 8, 7));
            results.push(g.is_finite(x));
            results
        }),
        ("widen", &|g| {
            let integers = [Dtype::I8, Dtype::U8, Dtype::U16, Dtype::BOOL];
            integers
                .map(|dtype| {
                    let x = g.argument(dtype, &[3]);
                    g.convert(x, Dtype::F32)
                })
                .to_vec()
        }),
        ("choose", &|g| {
            let (x, y) = (g.argument(Dtype::F16, &[3]), g.argument(Dtype::F16, &[3]));
            let (each, one) = (g.argument(Dtype::BOOL, &[3]), g.argument(Dtype::BOOL, &[]));
            let (low, high) = (g.scalar(-1.0, Dtype::F16), g.scalar(1.0, Dtype::F16));
            vec![g.select(each, x, y), g.select(one, x, y), g.clamp(low, x, high), g.clamp(x, x, y)]
        }),
    ]));
}

#[test]
fn shape() {
    assert_golden!(module(&[("shape", &|g| {
        let (x, y) = (g.argument(Dtype::F32, &[2, 3]), g.argument(Dtype::F32, &[2, 1]));
        let zero = g.scalar(0.0, Dtype::F32);
        vec![
            g.broadcast_in_dim(x, &[4, 2, 3], &[1, 2]),
            g.broadcast_in_dim(y, &[2, 3], &[0, 1]),
            g.broadcast_like(zero, x),
            g.reshape(x, &[3, 1, 2]),
            g.transpose(x, &[1, 0]),
            g.concatenate(&[x, y, x], 1),
            g.pad(x, zero, &[1, 0], &[0, 2], &[0, 1]),
            g.reverse(x, &[0, 1]),
            g.iota(Dtype::I32, &[2, 3], 1),
            g.barrier(x),
        ]
    })]));
}

#[test]
fn slice() {
    assert_golden!(module(&[("slice", &|g| {
        let (x, part) = (g.argument(Dtype::F32, &[4, 6]), g.argument(Dtype::F32, &[1, 2]));
        let (row, column) = (g.argument(Dtype::I32, &[]), g.argument(Dtype::I32, &[]));
        vec![
            g.slice(x, &[1, 0], &[3, 6]),
            g.slice_strided(x, &[0, 1], &[4, 6], &[2, 3]),
            g.slice_dimension(x, 1, 2, 4),
            g.dynamic_slice(x, &[row, column], &[1, 2]),
            g.dynamic_update_slice(x, part, &[row, column]),
        ]
    })]));
}

#[test]
fn dot() {
    assert_golden!(module(&[
        ("matrices", &|g| {
            let (x, y) = (g.argument(Dtype::F32, &[2, 4]), g.argument(Dtype::F32, &[3, 4]));
            let dims = DotDimensions { lhs_contract: &[1], rhs_contract: &[1], ..DotDimensions::default() };
            vec![g.dot_general(x, y, &dims, Dtype::F32)]
        }),
        ("batches_summed_wider", &|g| {
            let (x, y) = (g.argument(Dtype::BF16, &[5, 2, 4]), g.argument(Dtype::BF16, &[5, 4, 3]));
            let dims =
                DotDimensions { lhs_batch: &[0], rhs_batch: &[0], lhs_contract: &[2], rhs_contract: &[1] };
            vec![g.dot_general(x, y, &dims, Dtype::F32)]
        }),
        ("integers", &|g| {
            let (x, y) = (g.argument(Dtype::I8, &[2, 4]), g.argument(Dtype::I8, &[4]));
            let dims = DotDimensions { lhs_contract: &[1], rhs_contract: &[0], ..DotDimensions::default() };
            vec![g.dot_general(x, y, &dims, Dtype::I32)]
        }),
    ]));
}

#[test]
fn reduce() {
    let all = |dtype: Dtype, reductions: &'static [Reduction]| {
        move |g: &mut Graph| {
            let x = g.argument(dtype, &[2, 3]);
            reductions.iter().map(|&reduction| g.reduce(x, reduction, &[1])).collect()
        }
    };
    const INTEGERS: &[Reduction] = &[Reduction::Sum, Reduction::Product];
    const FLOATS: &[Reduction] = &[Reduction::Sum, Reduction::Product, Reduction::Max];
    assert_golden!(module(&[
        ("floats", &all(Dtype::F32, FLOATS)),
        ("halves", &all(Dtype::BF16, FLOATS)),
        ("integers", &all(Dtype::I64, INTEGERS)),
        ("bytes", &all(Dtype::U8, INTEGERS)),
        ("truths", &all(Dtype::BOOL, &[Reduction::And, Reduction::Or])),
        ("whole", &|g| {
            let x = g.argument(Dtype::F32, &[2, 3]);
            vec![g.reduce(x, Reduction::Sum, &[1, 0]), g.reduce_broadcast(x, Reduction::Max, &[0])]
        }),
        ("argmax", &|g| {
            let x = g.argument(Dtype::F32, &[2, 5]);
            vec![g.argmax(x)]
        }),
    ]));
}

#[test]
fn windows_and_transforms() {
    assert_golden!(module(&[
        ("convolution", &|g| {
            let (x, kernel) = (g.argument(Dtype::F32, &[2, 8, 8, 3]), g.argument(Dtype::F32, &[3, 3, 3, 4]));
            let padded = Convolution { padding: vec![(1, 1); 2], ..Convolution::channels_last(2) };
            vec![g.convolution(x, kernel, &padded)]
        }),
        ("reduce_window", &|g| {
            let x = g.argument(Dtype::F32, &[2, 8, 8, 3]);
            let pooled = g.reduce_window(x, Reduction::Max, &Window::tiles(&[1, 2, 2, 1]));
            vec![pooled, g.cumulative(pooled, Reduction::Sum, 1)]
        }),
        ("fft", &|g| {
            let x = g.argument(Dtype::F32, &[2, 8]);
            let transform = g.fft(x, Fft::RealForward, &[8]);
            let conjugate = g.conjugate(transform);
            let spectrum = g.multiply(transform, conjugate);
            vec![g.abs(transform), g.fft(spectrum, Fft::RealInverse, &[8])]
        }),
        ("random", &|g| {
            let state = g.argument(Dtype::U64, &[2]);
            let (state, numbers) = g.normal(state, &[4]);
            let (state, bits) = g.rng_bit_generator(state, RngAlgorithm::Philox, Dtype::U32, &[4]);
            vec![state, numbers, bits]
        }),
    ]));
}

/// Names are locations and result attributes, and what is given away is an alias, as JAX writes them.
#[test]
fn names() {
    let mut g = Graph::new();
    let (w, x) = (g.named_argument("w", Dtype::F32, &[4]), g.named_argument("x", Dtype::F32, &[3, 4]));
    let y = g.scope("model", |g| g.matmul(x, w));
    let loss = g.reduce(y, Reduction::Sum, &[0]);
    let gradient = g.gradient(loss, &[w])[0];
    let next = g.subtract(w, gradient);
    let next = g.replaces(w, next);
    let mut module = Module::new("golden");
    module.add(g.finish_named("step", &[("loss", loss), ("w", next)]).unwrap());
    assert_golden!(module.to_mlir().unwrap());
}

#[test]
fn gather_and_scatter() {
    assert_golden!(module(&[
        ("rows", &|g| {
            let (table, at) = (g.argument(Dtype::BF16, &[8, 4]), g.argument(Dtype::I32, &[2, 3]));
            vec![g.take_rows(table, at)]
        }),
        ("windows", &|g| {
            let (x, at) = (g.argument(Dtype::F32, &[8, 4]), g.argument(Dtype::I32, &[3, 2]));
            let dims = GatherDimensions {
                offset: &[1],
                collapsed_slice: &[0],
                start_index_map: &[0, 1],
                index_vector: 1,
            };
            vec![g.gather(x, at, &dims, &[1, 2])]
        }),
        ("scatter", &|g| {
            let (x, at) = (g.argument(Dtype::F32, &[8, 4]), g.argument(Dtype::I32, &[3, 1]));
            let updates = g.argument(Dtype::F32, &[3, 4]);
            let dims = ScatterDimensions {
                update_window: &[1],
                inserted_window: &[0],
                scatter_to_operand: &[0],
                index_vector: 1,
            };
            vec![g.scatter(x, at, updates, &dims, Graph::add)]
        }),
    ]));
}

#[test]
fn sort() {
    assert_golden!(module(&[("sort", &|g| {
        let x = g.argument(Dtype::F32, &[2, 5]);
        let index = g.iota(Dtype::I32, &[2, 5], 1);
        g.sort(&[x, index], 1, true, |g, values| g.gt(values[0], values[1]))
    })]));
}

#[test]
fn control_flow() {
    assert_golden!(module(&[
        ("for_loop", &|g| {
            let end = g.host_argument();
            let x = g.argument(Dtype::I32, &[2]);
            g.for_loop(end, 3, &[x], |g, i, state| {
                let i = g.host_scalar(i);
                let i = g.broadcast_like(i, state[0]);
                vec![g.add(state[0], i)]
            })
        }),
        ("while_loop", &|g| {
            let (count, x) = (g.argument(Dtype::I32, &[]), g.argument(Dtype::F32, &[2]));
            let (zero, one) = (g.scalar(0.0, Dtype::I32), g.scalar(1.0, Dtype::I32));
            g.while_loop(
                &[count, x],
                |g, state| g.gt(state[0], zero),
                |g, state| vec![g.subtract(state[0], one), g.add(state[1], state[1])],
            )
        }),
        ("if_else", &|g| {
            let (condition, x) = (g.argument(Dtype::BOOL, &[]), g.argument(Dtype::F32, &[2]));
            g.if_else(condition, |g| vec![g.sine(x)], |g| vec![g.cosine(x)])
        }),
        ("host_number", &|g| {
            let number = g.host_number(7);
            vec![g.host_scalar(number)]
        }),
    ]));
}

#[test]
fn globals() {
    let mut module = Module::new("golden");
    let weight = module.parameter("model", "layers.0.weight", TensorType::new(Dtype::BF16, [2]));
    let state = module.state("state", TensorType::new(Dtype::F32, [2]));
    let mut g = Graph::new();
    let (weight, sum) = (g.load(&weight), g.load(&state));
    let weight = g.convert(weight, Dtype::F32);
    let sum = g.add(sum, weight);
    g.store(&state, sum);
    module.add(g.finish("step", &[sum]).unwrap());
    assert_golden!(module.to_mlir().unwrap());
}

#[test]
fn constants() {
    let each = |dtype: Dtype, values: &'static [f64]| {
        move |g: &mut Graph| values.iter().map(|&value| g.full(value, dtype, &[2])).collect()
    };
    const FLOATS: &[f64] = &[0.0, -0.0, 1e-5, 1.5e10, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
    const INTEGERS: &[f64] = &[0.0, -1.9, 1e30, f64::NEG_INFINITY];
    assert_golden!(module(&[
        ("f16", &each(Dtype::F16, &FLOATS[..3])),
        ("f16_special", &each(Dtype::F16, &FLOATS[4..])),
        ("bf16", &each(Dtype::BF16, FLOATS)),
        ("f32", &each(Dtype::F32, FLOATS)),
        ("f64", &each(Dtype::F64, FLOATS)),
        ("i8", &each(Dtype::I8, INTEGERS)),
        ("i16", &each(Dtype::I16, INTEGERS)),
        ("i32", &each(Dtype::I32, INTEGERS)),
        ("i64", &each(Dtype::I64, INTEGERS)),
        ("u8", &each(Dtype::U8, INTEGERS)),
        ("u16", &each(Dtype::U16, INTEGERS)),
        ("u32", &each(Dtype::U32, INTEGERS)),
        ("u64", &each(Dtype::U64, INTEGERS)),
        ("bool", &each(Dtype::BOOL, &[0.0, 2.0])),
        ("scalars_and_lists", &|g| {
            vec![
                g.scalar(0.1, Dtype::F32),
                g.constant_f32(&[1.0, f32::MIN_POSITIVE, -0.1], &[3]),
                g.constant_f32(&[0.5], &[1]),
                g.constant_i32(&[1, -2, 3, 4], &[2, 2]),
            ]
        }),
    ]));
}

/// Returns a program of the tiny model, with few steps: without kernels, each takes seconds to compile.
fn program(precision: Float, numerics: Numerics, storage_of: &dyn Fn(&Weight) -> Storage) -> Program {
    let model = tiny();
    let plan = Plan { chunk: Some(8), ..Plan::new(&model, precision, 40) };
    emit(&model, &plan.for_target(numerics), storage_of).unwrap()
}

/// Returns a program of the tiny model with kernels, for a checkpoint in bf16.
fn program_with(isa: Isa, precision: Float, quant: Quant) -> Program {
    let numerics = Numerics { products: Products::Kernels(isa), ..Numerics::default() };
    let model = tiny();
    let plan = Plan { quant, ..Plan::new(&model, precision, 40) }.for_target(numerics);
    emit(&model, &plan, &Storage::all(Dtype::BF16)).unwrap()
}

#[test]
fn program_native() {
    let numerics = Numerics { products: Products::Native, ..Numerics::default() };
    assert_golden!(program(Float::Bf16, numerics, &Storage::all(Dtype::BF16)).mlir);
}

/// Kernels for GPUs compute products of single rows; other products are generated.
#[test]
fn program_with_kernels_of_a_gpu() {
    let numerics = Numerics { gpu: Some(Isa::Sm80), ..Numerics::default() };
    assert_golden!(program(Float::Bf16, numerics, &Storage::all(Dtype::BF16)).mlir);
}

#[test]
fn program_with_kernels() {
    let program = program_with(Isa::X86_64V3, Float::F32, Quant::None);
    assert_golden!(program.mlir);
    assert_golden!("packing", program.packed.unwrap().mlir);
}

#[test]
fn program_with_kernels_in_bf16() {
    let program = program_with(Isa::X86_64V4Bf16, Float::Bf16, Quant::None);
    assert_golden!(program.mlir);
    assert_golden!("packing_in_pairs", program.packed.unwrap().mlir);
}

#[test]
fn program_with_kernels_in_8_bits() {
    let program = program_with(Isa::X86_64V4Vnni, Float::Bf16, Quant::Q8);
    assert_golden!(program.mlir);
    assert_golden!("packing_in_bytes", program.packed.unwrap().mlir);
}

/// Kernels of the packing module quantize.
#[test]
fn packing_in_superblocks() {
    let numerics = Numerics { products: Products::Kernels(Isa::X86_64V3), ..Numerics::default() };
    let model = tiny_of(&[("hidden_size", 256), ("intermediate_size", 512), ("head_dim", 128)]);
    let plan = Plan { quant: Quant::Q4K, ..Plan::new(&model, Float::Bf16, 40) }.for_target(numerics);
    let packed = emit(&model, &plan, &Storage::all(Dtype::BF16)).unwrap().packed.unwrap();
    let objects: Vec<_> = packed.objects.iter().map(|object| &*object.name).collect();
    assert_eq!(objects, ["quantize_halves-x86_64_v3.o", "quantize_superblocks-x86_64_v3.o"]);
    assert_golden!(packed.mlir);
}

/// A checkpoint with both types of 16-bit floats.
#[test]
fn program_widened_from_bits() {
    let numerics = Numerics { products: Products::Widened, floats_as_bits: true, ..Numerics::default() };
    let halves = ["model.norm.weight", "model.layers.0.self_attn.k_proj.weight"];
    let storage_of = |weight: &Weight| {
        let is_half = halves.contains(&weight.name.as_str());
        Storage::plain(weight, if is_half { Dtype::F16 } else { Dtype::BF16 })
    };
    assert_golden!(program(Float::F32, numerics, &storage_of).mlir);
}

/// Returns the generated functions that find the best tokens, as a module of their own. The runtime's tests run it.
fn best_tokens_of(vocab: usize) -> String {
    let model = tiny_of_vocab(vocab);
    let program = emit(&model, &Plan::new(&model, Float::F32, 40), &Storage::all(Dtype::F32)).unwrap();
    // They are the last ones.
    let begin = program.mlir.find("  func.func @best_").unwrap();
    format!("module @model {{\n{}", &program.mlir[begin..])
}

/// 547 chunks of 128 tokens, of which the last one has padding, then 513 of 16 and of 2, and 129 single tokens.
#[test]
fn best_tokens() {
    assert_golden!(best_tokens_of(70_001));
}

/// Of Qwen: 595 chunks of 256 tokens, then 513 of 32 and of 4, and 257 single tokens.
#[test]
fn best_tokens_of_a_large_vocabulary() {
    assert_golden!(best_tokens_of(151_936));
}

#[test]
fn best_tokens_of_a_small_vocabulary() {
    assert_golden!(best_tokens_of(40));
}

/// A BERT that is small in every way, with one entry for a whole text.
#[test]
fn program_of_an_encoder() {
    let config = r#"{
        "model_type": "bert",
        "hidden_size": 8,
        "intermediate_size": 12,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "max_position_embeddings": 16,
        "vocab_size": 32
    }"#;
    let model = ModelConfig::from_json(config).unwrap();
    let plan = Plan::new(&model, Float::F32, 16);
    assert_eq!(plan.calls.iter().map(|sizes| sizes.rows).collect::<Vec<_>>(), [16]);
    assert_golden!(emit(&model, &plan, &Storage::all(Dtype::F32)).unwrap().mlir);
}
