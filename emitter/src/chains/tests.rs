use safetensors::Dtype;

use super::join;
use crate::{
    graph::{Function, Graph, Op, Tensor},
    kernels::{
        Activate, ActivateSizes, ActivationKind, Append, AttentionShape, CachedKeyValues, F32Bits, Grid, Isa,
        KeyRows, Overwritten, QueryRows, RowTables, ValueRows,
    },
    module::Module,
    types::TensorType,
};

/// Builds a function whose kernels are joined.
fn joined(build: impl FnOnce(&mut Module, &mut Graph, Tensor) -> Vec<Tensor>) -> (Module, Function) {
    let (mut module, mut g) = (Module::new("m"), Graph::new());
    let x = g.argument(Dtype::F32, &[1, 1, 16]);
    let results = build(&mut module, &mut g, x);
    join(&mut module, &mut g, &results);
    (module, g.finish("f", &results).unwrap())
}

/// Calls a kernel that reads two tensors.
fn kernel(module: &mut Module, g: &mut Graph, x: Tensor, lengths: Tensor) -> Tensor {
    let sizes = ActivateSizes {
        batch: 1,
        tokens: 1,
        width: 16,
        chunk: 16,
        kind: ActivationKind::Tanh,
        steepness: F32Bits(1.0),
    };
    let out = TensorType::new(Dtype::F32, [1, 1, 16]);
    let call = Activate { x, lengths, out, stride: 16, first: 0, sizes };
    module.call(g, Isa::X86_64V3, call, Grid { items: 1, grain: 1 })[0]
}

/// Calls it for one real row.
fn activate(module: &mut Module, g: &mut Graph, x: Tensor) -> Tensor {
    let lengths = g.full(1.0, Dtype::I32, &[1]);
    kernel(module, g, x, lengths)
}

/// Returns the entries of a function's dispatches, and the names of other ops on tensors.
fn ops(function: &Function) -> Vec<String> {
    let name = |op: &Op| match op.attributes.first() {
        Some((name, entry)) if name == "entry_points" => {
            let entry = entry.trim_matches(['[', ']']).trim_start_matches("@kernels::@");
            entry.split('_').take(2).collect::<Vec<_>>().join("_")
        }
        _ => op.name.to_string(),
    };
    let is_host = |name: &str| name.starts_with("arith.") || name.starts_with("util.");
    let names = function.body.ops.iter().map(name);
    names
        .filter(|name| !is_host(name) && name != "stablehlo.constant" && name != "flow.tensor.splat")
        .collect()
}

/// Returns the number of operands and the types of results of the dispatch with this index.
fn dispatch(function: &Function, index: usize) -> (usize, Vec<String>) {
    let mut dispatches = function.body.ops.iter().filter(|op| op.name == "flow.dispatch");
    let op = dispatches.nth(index).unwrap();
    (op.operands.len(), op.results.iter().map(|&result| function.type_of(result).to_string()).collect())
}

#[test]
fn what_only_kernels_use_stays_in_a_chain() {
    let (_, function) = joined(|module, g, x| {
        let a = activate(module, g, x);
        let a = g.reshape(a, &[1, 16]);
        let b = activate_reshaped(module, g, a);
        let c = activate(module, g, b);
        vec![b, c]
    });
    assert_eq!(ops(&function), ["chain_0"]);
    // x, the lengths once, counters, and the index of the first link. Each of a, b and c is a cache line.
    let line = "tensor<1x1x16xf32>".to_owned();
    assert_eq!(
        dispatch(&function, 0),
        (4, vec![line.clone(), line, "tensor<64xi8>".into(), "tensor<96xi32>".into()])
    );
}

/// As [`activate`], of a row without its batch.
fn activate_reshaped(module: &mut Module, g: &mut Graph, x: Tensor) -> Tensor {
    let x = g.reshape(x, &[1, 1, 16]);
    activate(module, g, x)
}

#[test]
fn generated_code_ends_a_chain_that_it_reads() {
    let (_, function) = joined(|module, g, x| {
        let a = activate(module, g, x);
        let a = activate(module, g, a);
        // Does not depend on the chain, so it comes before it.
        let y = g.exponential(x);
        let a = g.add(a, y);
        let a = activate(module, g, a);
        vec![activate(module, g, a)]
    });
    assert_eq!(ops(&function), ["stablehlo.exponential", "chain_0", "stablehlo.add", "chain_0"]);
}

#[test]
fn a_view_of_a_result_comes_after_the_chain_if_it_is_used() {
    let of = |used: bool| {
        let (_, function) = joined(|module, g, x| {
            let a = activate(module, g, x);
            let slice = g.slice_dimension(a, 2, 0, 4);
            let flat = g.reshape(slice, &[4]);
            let b = activate(module, g, a);
            if used { vec![b, flat] } else { vec![b] }
        });
        ops(&function)
    };
    assert_eq!(of(false), ["chain_0"]);
    assert_eq!(of(true), ["chain_0", "stablehlo.slice", "stablehlo.reshape"]);
}

#[test]
fn equal_layers_are_chains_of_one_entry() {
    let (module, function) = joined(|module, g, x| {
        let layer = |g: &mut Graph, module: &mut Module, name: &str, x| {
            g.enter(name);
            let a = activate(module, g, x);
            let a = activate(module, g, a);
            g.leave();
            a
        };
        let x = layer(g, module, "layer.0.mlp", x);
        let x = layer(g, module, "layer.1.mlp", x);
        let x = layer(g, module, "layer.10.mlp", x);
        vec![activate(module, g, x)]
    });
    // A kernel that is alone has a dispatch of its own.
    assert_eq!(ops(&function), ["chain_0", "chain_0", "chain_0", "activate_16"]);
    let traffic: Vec<_> = module.traffic().into_keys().collect();
    assert_eq!(traffic.len(), 1, "before the function is added, chains alone are dispatched: {traffic:?}");
}

/// Calls a kernel that reads `x` and overwrites `cache`.
fn append(module: &mut Module, g: &mut Graph, x: Tensor, cache: Tensor) -> Vec<Tensor> {
    let numbers = g.full(0.0, Dtype::I32, &[1]);
    let call = Append {
        q: x,
        k: x,
        v: x,
        cos: x,
        sin: x,
        tables: RowTables { begins: numbers, starts: numbers, pages: numbers },
        cache: Overwritten(CachedKeyValues::F32(cache)),
        q_out: TensorType::new(Dtype::F32, [1, 1, 16]),
        layer: g.host_number(0),
        shape: AttentionShape {
            rows: 1,
            sequences: 1,
            heads: 1,
            kv_heads: 1,
            head_dim: 16,
            parts: 2,
            table: 1,
        },
        query_rows: QueryRows { q_stride: 16, q_offset: 0 },
        key_rows: KeyRows { k_stride: 16, k_offset: 0 },
        value_rows: ValueRows { v_stride: 16, v_offset: 0 },
        rope_width: 0,
        interleaved: false,
        q_scale: F32Bits(1.0),
        items: 1,
    };
    module.call(g, Isa::X86_64V3, call, Grid { items: 1, grain: 1 })
}

#[test]
fn what_a_chain_makes_is_overwritten_after_it() {
    let (_, function) = joined(|module, g, x| {
        let cache = activate(module, g, x);
        let flat = g.reshape(cache, &[16]);
        append(module, g, x, flat)
    });
    assert_eq!(ops(&function), ["activate_16", "stablehlo.reshape", "append_f32"]);
    let (_, function) = joined(|module, g, x| {
        let cache = g.argument(Dtype::F32, &[16]);
        let first = append(module, g, x, cache);
        let again = append(module, g, first[0], first[1]);
        vec![activate(module, g, again[0]), again[1]]
    });
    assert_eq!(ops(&function), ["append_f32", "chain_0"]);
}

#[test]
fn a_chain_has_no_more_tensors_than_a_dispatch_can() {
    let (_, function) = joined(|module, g, x| {
        let lengths: Vec<_> = (0..40).map(|_| g.argument(Dtype::I32, &[1])).collect();
        vec![lengths.into_iter().fold(x, |x, lengths| kernel(module, g, x, lengths))]
    });
    assert_eq!(ops(&function), ["chain_0", "chain_1"]);
    // 28 lengths, x, counters and a number; the result and memory are the other two of 32 tensors.
    assert_eq!(dispatch(&function, 0).0, 31);
}
