//! An entry point: from its arguments to its results.

use mlxcel_artifacts::entry::{ArgumentKind, ArgumentSpec, Entry, ResultKind, Role};
use mlxcel_models::{Attention, Head, ModelConfig, Rope};
use safetensors::Dtype;

use super::{block::block, head::head};
use crate::{
    error::Error,
    graph::{Function, Graph, HostIndex, Tensor},
    layers::{
        attention::{Sequence, Span},
        builder::Builder,
        cache::Cache,
        linear::embedding,
        residual::Residual,
        rope::{self, Rotation},
    },
    module::Module,
    packing::Packing,
    plan::{ATTENTION_BLOCK, Plan},
};

/// Builds the function of an entry.
pub(super) fn emit_entry(
    module: &mut Module,
    packing: &mut Packing,
    model: &ModelConfig,
    plan: &Plan,
    entry: &Entry,
    dtype_of: &dyn Fn(&str) -> Dtype,
) -> Result<Function, Error> {
    let mut b = Builder::new(module, packing, dtype_of, plan);
    let results = entry_results(&mut b, model, plan, entry).unwrap_or_else(|problem| {
        b.graph.fail("func.func", problem);
        Vec::new()
    });
    b.graph.finish(&entry.name, &results)
}

/// Builds the body of an entry's function and returns its results.
fn entry_results(
    b: &mut Builder<'_>,
    model: &ModelConfig,
    plan: &Plan,
    entry: &Entry,
) -> Result<Vec<Tensor>, &'static str> {
    let arguments = EntryArguments::new(&mut b.graph, &entry.arguments);
    let tokens = arguments.tokens.ok_or("found an entry without tokens, expected them")?;
    let start = arguments.positions.unwrap_or_else(|| b.graph.full(0.0, Dtype::I32, &[plan.batch]));
    let span = match (entry.role, arguments.end) {
        (Role::Decode { cache: size } | Role::Encode { tokens: size }, _) => Span::Prefix(size),
        (Role::Prefill { .. }, Some(end)) => Span::Blocks { end, size: ATTENTION_BLOCK },
        (Role::Prefill { .. }, None) => return Err("found a prefill entry without an end, expected one"),
    };
    b.lengths = arguments.lengths;
    let sequence = sequence(&mut b.graph, span, tokens, start);
    let x = b.scope("embedding", |b| embedding(b, &model.embedding, tokens, sequence.positions));
    let first = model.blocks.first().ok_or("found a model without blocks, expected at least one")?;
    let cache = load_cache(b, model, &first.attention.layer, plan, entry.role);
    let mut stream = Residual::new(x);
    blocks(b, model, plan, cache, sequence, &mut stream);
    let generates = matches!(model.head, Head::Logits(_));
    if let (true, Some(lengths)) = (generates, arguments.lengths) {
        stream.select(b, |b, x| last_tokens(&mut b.graph, x, lengths));
    }
    let x = match &model.final_norm {
        Some(layer) => b.scope("final_norm", |b| stream.norm(b, layer)),
        None => stream.sum(b),
    };
    let made = head(b, model, plan, x);
    let result = |kind: ResultKind| {
        let found = made.iter().find(|(made, _)| *made == kind).map(|(_, tensor)| *tensor);
        found.unwrap_or_else(|| {
            let problem = format!("found no {kind}, expected the model's head to compute it");
            b.graph.fail("func.func", problem)
        })
    };
    Ok(entry.results.iter().map(|spec| spec.kind).map(result).collect())
}

/// The values of an entry's arguments.
#[derive(Default)]
struct EntryArguments {
    tokens: Option<Tensor>,
    positions: Option<Tensor>,
    lengths: Option<Tensor>,
    end: Option<HostIndex>,
}

impl EntryArguments {
    /// Declares the arguments of a function.
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

/// Returns the positions of all tokens, from the position of each row's first token.
fn sequence(g: &mut Graph, span: Span, tokens: Tensor, start: Tensor) -> Sequence {
    let shape = g.shape(tokens).to_vec();
    let offset = g.iota(Dtype::I32, &shape, 1);
    let first = g.broadcast_in_dim(start, &shape, &[0]);
    let positions = g.add(first, offset);
    Sequence { start, positions, span }
}

/// Returns the module's cache, or one for this call alone if the entry encodes.
fn load_cache(
    b: &mut Builder<'_>,
    model: &ModelConfig,
    attention: &Attention,
    plan: &Plan,
    role: Role,
) -> Cache {
    match role {
        Role::Encode { tokens } => Cache::transient(b, model, attention, plan.batch, tokens),
        Role::Prefill { .. } | Role::Decode { .. } => Cache::load(b, model, attention, plan),
    }
}

/// Computes all blocks, then stores the cache.
fn blocks(
    b: &mut Builder<'_>,
    model: &ModelConfig,
    plan: &Plan,
    mut cache: Cache,
    sequence: Sequence,
    stream: &mut Residual,
) {
    let mut rotations = Rotations::default();
    for (index, layer) in model.blocks.iter().enumerate() {
        b.scope(&format!("layer.{index}"), |b| {
            let rope = layer.attention.layer.rope.as_ref();
            let rotation = rope.map(|rope| rotations.get(b, rope, sequence, plan.capacity()));
            if let Some(mut cache) = cache.layer(index) {
                block(b, layer, &mut cache, rotation, sequence, stream);
            }
        });
    }
    cache.store(&mut b.graph);
}

/// Selects each row's token at `lengths - 1`: `[batch, tokens, hidden]` to `[batch, 1, hidden]`.
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

/// The rotations of a function, one for each distinct rope.
#[derive(Default)]
struct Rotations(Vec<(Rope, Rotation)>);

impl Rotations {
    /// Returns the rotation for a rope, and computes it on first use.
    fn get(&mut self, b: &mut Builder<'_>, rope: &Rope, sequence: Sequence, capacity: usize) -> Rotation {
        if let Some((_, rotation)) = self.0.iter().find(|(known, _)| known == rope) {
            return *rotation;
        }
        let rotation = b.scope("rope", |b| rope::rotation(&mut b.graph, rope, sequence.positions, capacity));
        self.0.push((rope.clone(), rotation));
        rotation
    }
}
