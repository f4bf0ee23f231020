//! An entry point: from its arguments to its results.

use std::collections::HashMap;

use mlxcel_artifacts::entry::{ArgumentKind, ArgumentSpec, CallSizes, Entry, PAGE, ResultKind, Role};
use mlxcel_models::{Head, ModelConfig, Rope};
use safetensors::Dtype;

use super::{
    best::best,
    block::block,
    head::head,
    stage::{place_results, stage},
};
use crate::{
    chains,
    error::Error,
    graph::{Function, Graph, HostIndex, Tensor},
    layers::{
        attention::{Division, PageTable, Rows},
        builder::{Builder, KnownWeights},
        cache::{Cache, PoolValue},
        gather::gather_rows,
        linear::embedding,
        pooling::pooling,
        residual::Residual,
        rope::{self, Rotation},
    },
    module::Module,
    packing::Packing,
    plan::Plan,
};

/// The most rows of a step whose kernels are joined. In larger ones, the time between dispatches is little beside theirs.
const MAX_CHAINED_ROWS: usize = 16;

/// Builds the function of an entry.
pub(super) fn emit_entry(
    module: &mut Module,
    packing: &mut Packing,
    model: &ModelConfig,
    plan: &Plan,
    entry: &Entry,
    weights: KnownWeights<'_>,
) -> Result<Function, Error> {
    let mut b = Builder::new(module, packing, weights, plan);
    let results = entry_results(&mut b, model, plan, entry).unwrap_or_else(|problem| {
        b.graph.fail("func.func", problem);
        Vec::new()
    });
    let is_short = |sizes: CallSizes| sizes.rows <= MAX_CHAINED_ROWS;
    if plan.chains && entry.role.sizes().is_some_and(is_short) {
        chains::join(b.module, &mut b.graph, &results);
    }
    b.graph.finish(&entry.name, &results)
}

/// Builds the body of an entry's function and returns its results.
fn entry_results(
    b: &mut Builder<'_>,
    model: &ModelConfig,
    plan: &Plan,
    entry: &Entry,
) -> Result<Vec<Tensor>, String> {
    let in_place = entry.role.sizes().is_some_and(|sizes| sizes.in_place);
    let arguments = Arguments::new(&mut b.graph, &entry.arguments, in_place);
    if let Role::Best { .. } = entry.role {
        let logits = arguments.tensor(ArgumentKind::Logits)?;
        let made = best(b, logits, arguments.tensor(ArgumentKind::SelectedCount)?);
        return in_order(entry, &made, |_| None);
    }
    let sizes = entry.role.sizes().ok_or("found a role of an older format, expected step, best or embed")?;
    if model.blocks.is_empty() {
        return Err("found a model without blocks, expected at least one".into());
    }
    let shape = if sizes.uniform { [sizes.sequences, sizes.rows_of_a_sequence()] } else { [1, sizes.rows] };
    let tokens = arguments.tensor(ArgumentKind::Tokens)?;
    let tokens = b.graph.reshape(tokens, &shape);
    let positions = arguments.tensor(ArgumentKind::Positions)?;
    let positions = b.graph.reshape(positions, &shape);
    let mut pools = match entry.role {
        Role::Embed(_) => Vec::new(),
        _ => arguments.pools(plan, model)?,
    };
    let (positions, division) = match sizes.in_place {
        true => (stage(b, model, positions, &mut pools), Division::InPlace),
        false => (positions, arguments.division(sizes)?),
    };
    let rows = Rows { positions, division };
    let real = if sizes.uniform { ArgumentKind::Lengths } else { ArgumentKind::Rows };
    b.lengths = arguments.tensor(real).ok();
    let mut cache = match entry.role {
        Role::Embed(_) => transient_cache(b, model, &arguments, sizes)?,
        _ => Cache::new(&mut b.graph, model, pools),
    };
    let x = b.scope("embedding", |b| embedding(b, &model.embedding, tokens, positions));
    let mut stream = Residual::new(b, x);
    blocks(b, model, plan, &mut cache, &rows, &mut stream);
    let made = match &model.head {
        Head::Logits(_) => {
            select(b, &arguments, sizes, &mut stream)?;
            let x = match &model.final_norm {
                // The product of a single row normalizes it, or reads floats.
                Some(layer) if sizes.selected > 1 => b.scope("final_norm", |b| stream.input(b, layer)),
                _ => normed(b, model, &mut stream),
            };
            head(b, model, sizes.selected, x)
        }
        Head::Pooling(layer) => {
            let x = normed(b, model, &mut stream);
            let embedding = b.scope("pooling", |b| pooling(b, *layer, x, &rows));
            vec![(ResultKind::Embedding, embedding)]
        }
    };
    let mut results = in_order(entry, &made, |kind| match kind {
        ResultKind::Cache { pool, part } => cache.tensor(pool, part),
        _ => None,
    })?;
    if sizes.in_place {
        let places = [arguments.tensor(ArgumentKind::NextToken)?, arguments.tensor(ArgumentKind::Logits)?];
        place_results(b, &mut results, &places, sizes.rows_of_a_sequence() == 1);
    }
    Ok(results)
}

/// Returns an entry's results in its order, of those that were made and others.
fn in_order(
    entry: &Entry,
    made: &[(ResultKind, Tensor)],
    other: impl Fn(ResultKind) -> Option<Tensor>,
) -> Result<Vec<Tensor>, String> {
    let result = |kind: ResultKind| {
        let found = made.iter().find(|(made, _)| *made == kind).map(|(_, tensor)| *tensor);
        let missing = || format!("found no {kind}, expected the entry to compute it");
        found.or_else(|| other(kind)).ok_or_else(missing)
    };
    entry.results.iter().map(|spec| result(spec.kind)).collect()
}

/// The values of an entry's arguments.
#[derive(Default)]
struct Arguments {
    tensors: HashMap<ArgumentKind, Tensor>,
    end: Option<HostIndex>,
}

impl Arguments {
    /// Declares the arguments of a function.
    fn new(g: &mut Graph, arguments: &[ArgumentSpec], in_place: bool) -> Self {
        let mut result = Self::default();
        for ArgumentSpec { name: _, kind, dtype, shape } in arguments {
            let tensor = match kind {
                ArgumentKind::End => {
                    result.end = Some(g.host_argument());
                    continue;
                }
                ArgumentKind::Cache { .. } if shape.first() == Some(&0) => {
                    g.overwritten_argument(*dtype, shape.get(1..).unwrap_or_default())
                }
                ArgumentKind::Cache { .. } | ArgumentKind::NextToken => g.consumed_argument(*dtype, shape),
                ArgumentKind::Logits if in_place => g.consumed_argument(*dtype, shape),
                _ => g.argument(*dtype, shape),
            };
            result.tensors.insert(*kind, tensor);
        }
        result
    }

    fn tensor(&self, kind: ArgumentKind) -> Result<Tensor, String> {
        let found = self.tensors.get(&kind).copied();
        found.ok_or_else(|| format!("found an entry without {kind}, expected it"))
    }

    fn division(&self, sizes: CallSizes) -> Result<Division, String> {
        if sizes.uniform {
            return Ok(Division::Uniform { end: self.end });
        }
        let begins = self.tensor(ArgumentKind::Begins)?;
        Ok(Division::Ragged { begins, starts: self.tensor(ArgumentKind::Starts)? })
    }

    /// Returns the pools of the cache with their page tables.
    fn pools(&self, plan: &Plan, model: &ModelConfig) -> Result<Vec<PoolValue>, String> {
        let pools = plan.serving(model).pools;
        let value = |(pool, spec): (usize, &mlxcel_artifacts::entry::Pool)| {
            let part = |part| self.tensor(ArgumentKind::Cache { pool, part });
            let table = PageTable {
                pages: self.tensor(ArgumentKind::Pages { pool })?,
                first_pages: self.tensor(ArgumentKind::FirstPages { pool }).ok(),
                slots: self.tensor(ArgumentKind::Slots { pool }).ok(),
            };
            let parts = (0..spec.parts.len()).map(part).collect::<Result<_, String>>()?;
            Ok(PoolValue { parts, table, staged: None })
        };
        pools.iter().enumerate().map(value).collect()
    }
}

/// Returns the cache of an encoder's call, which nothing keeps. Generated code has none: texts attend to themselves.
fn transient_cache(
    b: &mut Builder<'_>,
    model: &ModelConfig,
    arguments: &Arguments,
    sizes: CallSizes,
) -> Result<Cache, String> {
    let pages = match sizes.uniform {
        true => b.graph.full(0.0, Dtype::I32, &[sizes.sequences, 1]),
        false => arguments.tensor(ArgumentKind::Pages { pool: 0 })?,
    };
    // Each sequence may fill its last page in part. Page 0 belongs to none.
    let count = if sizes.uniform { 1 } else { 1 + sizes.rows / PAGE + sizes.sequences };
    Ok(Cache::transient(b, model, count, PageTable { pages, first_pages: None, slots: None }))
}

/// Computes all blocks.
fn blocks(
    b: &mut Builder<'_>,
    model: &ModelConfig,
    plan: &Plan,
    cache: &mut Cache,
    rows: &Rows,
    stream: &mut Residual,
) {
    let mut rotations = Rotations::default();
    for (index, layer) in model.blocks.iter().enumerate() {
        b.scope(&format!("layer.{index}"), |b| {
            let rope = layer.attention.layer.rope.as_ref();
            let rotation = rope.map(|rope| rotations.get(b, rope, rows.positions, plan.capacity()));
            if let Some(mut cache) = cache.layer(b.cache_type, index) {
                block(b, layer, &mut cache, rotation, rows, stream);
            }
        });
    }
}

/// Selects the rows whose logits are wanted: `[batch, tokens, hidden]` becomes `[1, selected, hidden]`.
fn select(
    b: &mut Builder<'_>,
    arguments: &Arguments,
    sizes: CallSizes,
    stream: &mut Residual,
) -> Result<(), String> {
    let selected = arguments.tensor(ArgumentKind::Selected)?;
    b.lengths = arguments.tensor(ArgumentKind::SelectedCount).ok();
    if sizes.rows == 1 {
        return Ok(());
    }
    stream.select(b, |b, x| {
        let hidden = b.graph.shape(x).last().copied().unwrap_or(0);
        let flat = b.graph.reshape(x, &[sizes.rows, hidden]);
        let rows = gather_rows(b, flat, selected);
        b.graph.reshape(rows, &[1, sizes.selected, hidden])
    });
    Ok(())
}

/// Applies the norm after the last block.
pub(super) fn normed(b: &mut Builder<'_>, model: &ModelConfig, stream: &mut Residual) -> Tensor {
    match &model.final_norm {
        Some(layer) => b.scope("final_norm", |b| stream.norm(b, layer)),
        None => stream.sum(b),
    }
}

/// The rotations of a function, one for each distinct rope.
#[derive(Default)]
struct Rotations(Vec<(Rope, Rotation)>);

impl Rotations {
    /// Returns the rotation for a rope, and computes it on first use.
    fn get(&mut self, b: &mut Builder<'_>, rope: &Rope, positions: Tensor, capacity: usize) -> Rotation {
        if let Some((_, rotation)) = self.0.iter().find(|(known, _)| known == rope) {
            return *rotation;
        }
        let rotation = b.scope("rope", |b| rope::rotation(b, rope, positions, capacity));
        self.0.push((rope.clone(), rotation));
        rotation
    }
}
