//! From a description to entry points.

use std::{collections::BTreeMap, slice};

use mlxcel_artifacts::entry::{ArgumentKind, ArgumentSpec, Entry, MODULE_NAME, Parameter, ResultKind, Role};
use mlxcel_models::{Block, Branch, Embedding, FeedForward, Head, Linear, Logits, Mlp, ModelConfig, Rope};
use safetensors::Dtype;

use crate::{
    Error, Function, Graph, HostIndex, Module, Plan, Program, Tensor, TensorType,
    kernels::Executable,
    layers::{
        Builder,
        attention::{Sequence, Span, attention},
        cache::{Cache, LayerCache},
        linear::{embedding, linear},
        mlp::feed_forward,
        norm::norm,
        pooling::pooling,
        rope,
        rope::Rotation,
    },
    packing::{Packed, Packing},
    plan::ATTENTION_BLOCK,
};

/// As in `kernels/cuda/argmax.c`.
const ARGMAX_THREADS: usize = 1024;

/// Builds the module of `model` for `plan`. `dtype_of` gives the element type of each weight in the checkpoint.
///
/// # Errors
/// [`Error::Plan`] when the plan does not fit the model. Other errors mean that the description is not consistent.
pub fn emit(model: &ModelConfig, plan: &Plan, dtype_of: &dyn Fn(&str) -> Dtype) -> Result<Program, Error> {
    plan.validate(model)?;
    let (mut module, mut packing) = (Module::new(MODULE_NAME), Packing::new());
    let entries = plan.entries(model);
    for entry in &entries {
        let function = emit_entry(&mut module, &mut packing, model, plan, entry, dtype_of)?;
        module.add(function);
    }
    let parameters = model.weights().into_iter().map(|weight| Parameter {
        aliases: model.spellings.others(&weight.name),
        ..Parameter::new(&weight.name, dtype_of(&weight.name), &weight.shape)
    });
    let parameters: Vec<_> = parameters.collect();
    let packed = if packing.makes_something() { Some(packing.finish()?) } else { None };
    let step_bytes = step_bytes(model, &parameters, packed.as_ref());
    Ok(Program {
        mlir: module.to_mlir()?,
        entries,
        parameters,
        packed,
        step_bytes,
        rewind: plan.rewind(model),
        dispatches: module.traffic(),
        objects: module.objects(),
    })
}

/// Bytes of parameters that a decode step reads: a row of each table, the active ones of a mixture's experts, and all of
/// what is neither.
fn step_bytes(model: &ModelConfig, parameters: &[Parameter], packed: Option<&Packed>) -> u64 {
    let Embedding { weight, positions, token_types, .. } = &model.embedding;
    let is_head = matches!(&model.head, Head::Logits(head) if head.tied);
    let tables = [(!is_head).then_some(weight), positions.as_ref(), token_types.as_ref()];
    let bytes = |of: &[Parameter]| of.iter().filter_map(Parameter::bytes).sum::<usize>();
    let mut of_experts = BTreeMap::new();
    for block in &model.blocks {
        if let FeedForward::Experts(layer) = &block.mlp.layer {
            let linears = layer.experts.iter().flat_map(Mlp::linears);
            let weights = linears.map(|linear| linear.weight.name.as_str());
            of_experts.extend(weights.map(|name| (name, (layer.active, layer.experts.len()))));
        }
    }
    let read = |name: &str, of: &[Parameter]| {
        let table = tables.into_iter().flatten().find(|table| table.name == name);
        let rows = table.and_then(|table| table.shape.first().copied()).unwrap_or(1);
        let (active, experts) = of_experts.get(name).copied().unwrap_or((1, 1));
        (bytes(of) / rows.max(1) * active / experts.max(1)) as u64
    };
    match packed {
        None => parameters.iter().map(|one| read(&one.name, slice::from_ref(one))).sum(),
        Some(Packed { steps, .. }) => steps.iter().map(|step| read(&step.sources[0], &step.results)).sum(),
    }
}

/// The tensors of an entry's arguments.
#[derive(Default)]
struct Arguments {
    tokens: Option<Tensor>,
    positions: Option<Tensor>,
    lengths: Option<Tensor>,
    end: Option<HostIndex>,
}

impl Arguments {
    fn new(g: &mut Graph, arguments: &[ArgumentSpec]) -> Self {
        let mut result = Self::default();
        for argument in arguments {
            let mut tensor = || Some(g.argument(argument.dtype, &argument.shape));
            match argument.kind {
                ArgumentKind::Tokens => result.tokens = tensor(),
                ArgumentKind::Positions => result.positions = tensor(),
                ArgumentKind::Lengths => result.lengths = tensor(),
                ArgumentKind::End => result.end = Some(g.host_argument()),
            }
        }
        result
    }
}

fn emit_entry(
    module: &mut Module,
    packing: &mut Packing,
    model: &ModelConfig,
    plan: &Plan,
    entry: &Entry,
    dtype_of: &dyn Fn(&str) -> Dtype,
) -> Result<Function, Error> {
    let mut b = Builder::new(module, packing, dtype_of, plan);
    let arguments = Arguments::new(&mut b.graph, &entry.arguments);
    let Some(tokens) = arguments.tokens else {
        b.graph.fail("func.func", "found an entry without tokens, expected them");
        return b.graph.finish(&entry.name, &[]);
    };
    let start = arguments.positions.unwrap_or_else(|| b.graph.full(0.0, Dtype::I32, &[plan.batch]));
    let span = match (entry.role, arguments.end) {
        (Role::Decode { cache: size } | Role::Encode { tokens: size }, _) => Span::Prefix(size),
        (Role::Prefill { .. }, Some(end)) => Span::Blocks { end, size: ATTENTION_BLOCK },
        (Role::Prefill { .. }, None) => {
            b.graph.fail("func.func", "found a prefill entry without an end, expected one");
            return b.graph.finish(&entry.name, &[]);
        }
    };
    b.lengths = arguments.lengths;
    let sequence = sequence(&mut b.graph, span, tokens, start);
    let mut x = b.scope("embedding", |b| embedding(b, &model.embedding, tokens, sequence.positions));
    let mut rotations = Rotations::default();
    let Some(first) = model.blocks.first() else {
        b.graph.fail("func.func", "found a model without blocks, expected one at least");
        return b.graph.finish(&entry.name, &[]);
    };
    let mut cache = match entry.role {
        Role::Encode { tokens } => Cache::of_call(&mut b, model, &first.attention.layer, plan.batch, tokens),
        Role::Prefill { .. } | Role::Decode { .. } => {
            Cache::load(&mut b, model, &first.attention.layer, plan)
        }
    };
    for (index, layer) in model.blocks.iter().enumerate() {
        x = b.scope(&format!("layer.{index}"), |b| {
            let rope = layer.attention.layer.rope.as_ref();
            let rotation = rope.map(|rope| rotations.get(b, rope, sequence, plan.capacity()));
            match cache.layer(index) {
                Some(mut cache) => block(b, layer, &mut cache, rotation, sequence, x),
                None => x,
            }
        });
    }
    cache.store(&mut b.graph);
    let generates = matches!(model.head, Head::Logits(_));
    if let (true, Some(lengths)) = (generates, arguments.lengths) {
        x = last_tokens(&mut b.graph, x, lengths);
    }
    if let Some(layer) = &model.final_norm {
        x = b.scope("final_norm", |b| norm(b, layer, x));
    }
    let made = match &model.head {
        Head::Logits(layer) => {
            let product = layer.product(&model.embedding);
            let logits = b.scope("head", |b| head(b, layer, &product, x));
            let logits = b.graph.reshape(logits, &[plan.batch, model.vocab]);
            let next = b.scope("argmax", |b| argmax(b, logits));
            vec![(ResultKind::NextToken, next), (ResultKind::Logits, logits)]
        }
        Head::Pooling(layer) => vec![(ResultKind::Embedding, b.scope("pooling", |b| pooling(b, *layer, x)))],
    };
    let mut results = Vec::new();
    for outcome in &entry.results {
        let found = made.iter().find(|(kind, _)| *kind == outcome.kind).map(|(_, tensor)| *tensor);
        results.push(found.unwrap_or_else(|| {
            let problem = format!("found no {}, expected the model's head to make it", outcome.kind);
            b.graph.fail("func.func", problem)
        }));
    }
    b.graph.finish(&entry.name, &results)
}

/// The token with the largest logit of each row of `[batch, vocab]`, as [`Graph::argmax`](crate::Graph::argmax). On GPUs a
/// kernel finds it: generated code takes one small workgroup for it, or, fused with what scales logits, does not compile.
fn argmax(b: &mut Builder<'_>, logits: Tensor) -> Tensor {
    let (Some(isa), &[batch, vocab]) = (b.numerics.gpu, b.graph.shape(logits)) else {
        return b.graph.argmax(logits);
    };
    let executable = Executable {
        isa,
        file: "argmax",
        function: "cuda_argmax",
        operands: vec![b.graph.type_of(logits)],
        cache: 0..0,
        results: vec![TensorType::new(Dtype::I32, [batch])],
        numbers: 0,
        sizes: vec![vocab],
        items: batch,
        grain: ARGMAX_THREADS,
    };
    b.module.call(&mut b.graph, executable, &[logits], &[])[0]
}

fn block(
    b: &mut Builder<'_>,
    layer: &Block,
    cache: &mut LayerCache<'_>,
    rotation: Option<Rotation>,
    sequence: Sequence,
    x: Tensor,
) -> Tensor {
    let attended = b.scope("attention", |b| {
        branch(b, &layer.attention, x, |b, layer, x| attention(b, layer, cache, rotation, sequence, x))
    });
    let input = if layer.parallel { x } else { sum(b, &layer.attention, x, attended) };
    let fed = b.scope("mlp", |b| branch(b, &layer.mlp, input, feed_forward));
    let fed = sum(b, &layer.mlp, input, fed);
    if layer.parallel { sum(b, &layer.attention, fed, attended) } else { fed }
}

/// The residual stream `x` with what a branch adds to it.
fn sum<T>(b: &mut Builder<'_>, branch: &Branch<T>, x: Tensor, added: Tensor) -> Tensor {
    let sum = b.graph.add(x, added);
    branch.after_sum.as_ref().map_or(sum, |layer| b.scope("norm_after_sum", |b| norm(b, layer, sum)))
}

/// What a branch adds to `x`.
fn branch<T>(
    b: &mut Builder<'_>,
    branch: &Branch<T>,
    x: Tensor,
    layer: impl FnOnce(&mut Builder<'_>, &T, Tensor) -> Tensor,
) -> Tensor {
    let normed = branch.before.as_ref().map_or(x, |before| b.scope("norm", |b| norm(b, before, x)));
    let mut y = layer(b, &branch.layer, normed);
    if let Some(after) = &branch.after {
        y = b.scope("norm_after", |b| norm(b, after, y));
    }
    b.graph.scale(y, branch.scale)
}

/// Logits of the last hidden state.
fn head(b: &mut Builder<'_>, layer: &Logits, product: &Linear, x: Tensor) -> Tensor {
    let logits = linear(b, ("lm_head", product), x);
    let scaled = b.graph.scale(logits, layer.scale);
    let scaled = layer.soft_cap.map_or(scaled, |cap| b.graph.soft_cap(scaled, cap));
    // Fused with the search for the largest, all of them would go to the stack, which is too small for them.
    if scaled == logits { logits } else { b.graph.barrier(scaled) }
}

/// Positions of every token, from those of each row's first.
fn sequence(g: &mut Graph, span: Span, tokens: Tensor, start: Tensor) -> Sequence {
    let shape = g.shape(tokens).to_vec();
    let offset = g.iota(Dtype::I32, &shape, 1);
    let first = g.broadcast_in_dim(start, &shape, &[0]);
    let positions = g.add(first, offset);
    Sequence { start, positions, span }
}

/// Each row's token at `lengths - 1`: `[batch, tokens, hidden]` → `[batch, 1, hidden]`.
fn last_tokens(g: &mut Graph, x: Tensor, lengths: Tensor) -> Tensor {
    let &[batch, _, hidden] = g.shape(x) else {
        return x;
    };
    let (zero, one) = (g.scalar(0.0, Dtype::I32), g.scalar(1.0, Dtype::I32));
    let rows: Vec<_> = (0..batch)
        .map(|row| {
            let part = g.slice_dimension(x, 0, row, row + 1);
            let length = g.slice(lengths, &[row], &[row + 1]);
            let length = g.reshape(length, &[]);
            let last = g.subtract(length, one);
            g.dynamic_slice(part, &[zero, last, zero], &[1, 1, hidden])
        })
        .collect();
    g.concatenate(&rows, 0)
}

/// The rotations of a function, one for each kind of rope among its layers.
#[derive(Default)]
struct Rotations(Vec<(Rope, Rotation)>);

impl Rotations {
    fn get(&mut self, b: &mut Builder<'_>, rope: &Rope, sequence: Sequence, capacity: usize) -> Rotation {
        if let Some((_, rotation)) = self.0.iter().find(|(known, _)| known == rope) {
            return *rotation;
        }
        let rotation = b.scope("rope", |b| rope::rotation(&mut b.graph, rope, sequence.positions, capacity));
        self.0.push((rope.clone(), rotation));
        rotation
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::cuda::stated;

    #[test]
    fn what_the_kernel_states_is_what_is_given_to_it() {
        assert_eq!(stated("argmax", "threads"), Some(ARGMAX_THREADS));
    }
}
