//! Functions of the packing module that collect moments of inputs: of the model in floats, in parts that run one after the
//! other, each with its weights as arguments. So parts of one kind share a function, and memory holds one part's moments.

use std::collections::{BTreeMap, HashMap};

use mlxcel_artifacts::{
    Float, Quant,
    entry::{Calibration, CalibrationStep, Parameter},
};
use mlxcel_models::{Attention, Block, FeedForward, Head, ModelConfig, Storage, Weight};
use safetensors::Dtype;

use super::{block::block, entry::normed};
use crate::{
    collected::Collected,
    error::Error,
    form::{Form, Forms},
    graph::{Function, Graph, Tensor},
    group_form::{GroupForm, Scales},
    layers::{
        attention::{Division, PageTable, Rows},
        builder::{Builder, KnownWeights},
        cache::Cache,
        linear::embedding,
        residual::Residual,
        rope,
    },
    module::Module,
    ops::DotDimensions,
    packing::Packing,
    plan::{Numerics, Plan},
    types::TensorType,
};

/// The most tokens of a call.
const WINDOW: usize = 256;

/// Emits the functions that collect the moments of every input of weights that can be rounded by them.
pub(super) fn collect(
    model: &ModelConfig,
    plan: &Plan,
    storage_of: &dyn Fn(&Weight) -> Storage,
    forms: &Forms,
) -> Result<Collected, Error> {
    check(model, plan, storage_of)?;
    let numerics = Numerics::default();
    let plan = Plan { precision: Float::F32, quant: Quant::None, numerics, ..plan.clone() };
    let floats = Forms::new(model, &plan, storage_of);
    let weights = KnownWeights { storage_of, forms: &floats };
    let window = plan.context.min(WINDOW);
    let mut collector = Collector { model, plan: &plan, weights, forms, window, parts: Parts::default() };
    collector.embedding()?;
    for index in 0..model.blocks.len() {
        collector.block(index)?;
    }
    collector.head()?;
    let Parts { functions, steps, moments, .. } = collector.parts;
    let calibration = Some(Calibration { window, hidden: model.hidden, steps });
    Ok(Collected { functions, calibration, moments })
}

/// Checks that a model can be calibrated.
fn check(model: &ModelConfig, plan: &Plan, storage_of: &dyn Fn(&Weight) -> Storage) -> Result<(), Error> {
    let refuse =
        |found: String, expected: &str, hint| Err(Error::Plan { found, expected: expected.into(), hint });
    let is_mixture = |block: &Block| matches!(block.mlp.layer, FeedForward::Experts(_));
    if model.blocks.iter().any(is_mixture) {
        let expected = "calibration needs all tokens at the inputs of every layer";
        return refuse("a mixture of experts".into(), expected, "leave out --calibrate");
    }
    if let Head::Pooling(_) = model.head {
        return refuse("an encoder".into(), "calibration needs logits", "leave out --calibrate");
    }
    if plan.quant != Quant::Q4K {
        let expected = format!("calibration is for {}", Quant::Q4K);
        return refuse(format!("quantization is {}", plan.quant), &expected, "add --quant q4k");
    }
    if let Some(weight) = model.weights().into_iter().find(|weight| storage_of(weight).coding.is_some()) {
        let found = format!("{} is quantized in the checkpoint", weight.name);
        return refuse(found, "calibration needs floats", "give the model's original weights");
    }
    Ok(())
}

/// What is known while functions are emitted.
struct Collector<'m> {
    model: &'m ModelConfig,
    /// The plan of the model in floats.
    plan: &'m Plan,
    weights: KnownWeights<'m>,
    /// How products read the weights after they are packed.
    forms: &'m Forms,
    window: usize,
    parts: Parts,
}

/// What was emitted.
#[derive(Default)]
struct Parts {
    functions: Vec<Function>,
    /// Functions by all that matters about them.
    known: HashMap<String, String>,
    steps: Vec<CalibrationStep>,
    moments: BTreeMap<String, Parameter>,
}

impl Collector<'_> {
    /// Emits the part that looks up tokens.
    fn embedding(&mut self) -> Result<(), Error> {
        let layer = &self.model.embedding;
        self.part((Dtype::I32, &[1, self.window]), |b, tokens| {
            let positions = positions(&mut b.graph, tokens);
            Some(embedding(b, layer, tokens, positions))
        })
    }

    /// Emits the part that computes a block.
    fn block(&mut self, index: usize) -> Result<(), Error> {
        let (model, capacity) = (self.model, self.plan.capacity());
        let Some(layer) = model.blocks.get(index) else { return Ok(()) };
        self.part((Dtype::F32, &[1, self.window, model.hidden]), |b, x| {
            let positions = positions(&mut b.graph, x);
            let rotation = |b: &mut Builder<'_>, layer: &Attention| {
                let rope = layer.rope.as_ref()?;
                Some(rope::rotation(b, rope, positions, capacity))
            };
            let rotation = rotation(b, &layer.attention.layer);
            let rows = Rows { positions, division: Division::Uniform { end: None } };
            // A text that attends to itself has no pages.
            let pages = b.graph.full(0.0, Dtype::I32, &[1, 1]);
            let mut cache =
                Cache::transient(b, model, 1, PageTable { pages, first_pages: None, slots: None });
            let mut stream = Residual::new(b, x);
            // Without its index, so that equal blocks have equal functions.
            b.scope("layer", |b| {
                if let Some(mut cache) = cache.layer(b.cache_type, index) {
                    block(b, layer, &mut cache, rotation, &rows, &mut stream);
                }
            });
            Some(stream.sum(b))
        })
    }

    /// Emits the part that collects the moments of the head's inputs.
    fn head(&mut self) -> Result<(), Error> {
        let model = self.model;
        let Head::Logits(layer) = &model.head else { return Ok(()) };
        let product = layer.effective_linear(&model.embedding);
        self.part((Dtype::F32, &[1, self.window, model.hidden]), |b, x| {
            let mut stream = Residual::new(b, x);
            let x = normed(b, model, &mut stream);
            b.observe([&product], x);
            None
        })
    }

    /// Emits a part of the model, which `body` computes of its input. It returns the next part's input.
    fn part(
        &mut self,
        (dtype, shape): (Dtype, &[usize]),
        body: impl FnOnce(&mut Builder<'_>, Tensor) -> Option<Tensor>,
    ) -> Result<(), Error> {
        // Weights are arguments, so that nothing is left of these.
        let (mut module, mut packing) = (Module::new(""), Packing::new(Collected::default()));
        let mut b = Builder::new(&mut module, &mut packing, self.weights, self.plan);
        (b.arguments, b.observed) = (Some(Vec::new()), Some(Vec::new()));
        let input = b.graph.argument(dtype, shape);
        let output = body(&mut b, input);
        let (sources, observed) =
            (b.arguments.take().unwrap_or_default(), b.observed.take().unwrap_or_default());
        let mut graph = b.graph;
        let mut moments = Vec::new();
        let mut results: Vec<_> = output.into_iter().collect();
        for (names, x) in observed {
            let Some(parameter) = self.new_moments(&names, graph.shape(x)) else { continue };
            results.push(with_moments(&mut graph, &parameter, x));
            moments.push(parameter);
        }
        let entry = format!("collect_{}", self.parts.functions.len());
        let function = graph.finish(&entry, &results)?;
        let key = function.without_name();
        let entry = match self.parts.known.get(&key) {
            Some(known) => known.clone(),
            None => {
                self.parts.known.insert(key, entry.clone());
                self.parts.functions.push(function);
                entry
            }
        };
        self.parts.steps.push(CalibrationStep { entry, sources, moments });
        Ok(())
    }

    /// Returns the moments of an input if any of its weights is rounded by them, and remembers them for these weights.
    fn new_moments(&mut self, names: &[String], shape: &[usize]) -> Option<Parameter> {
        let width = shape.last().copied()?;
        let new = |name: &&String| {
            self.forms.of_name(name).is_some_and(is_rounded) && !self.parts.moments.contains_key(*name)
        };
        let rounded: Vec<_> = names.iter().filter(new).cloned().collect();
        let first = rounded.first()?;
        let parameter = Parameter::new(format!("{first}.moments"), Dtype::F32, &[width, width]);
        self.parts.moments.extend(rounded.into_iter().map(|name| (name, parameter.clone())));
        Some(parameter)
    }
}

/// Returns whether weights of a form can be rounded by moments.
fn is_rounded(form: Form) -> bool {
    let superblocks = |form: GroupForm| matches!(form.scales, Scales::Superblocks | Scales::Halves);
    matches!(form, Form::Groups(form) if superblocks(form))
}

/// Returns the positions of a window, `[1, window]`, whose tokens or hidden states `x` has.
fn positions(g: &mut Graph, x: Tensor) -> Tensor {
    let window = g.shape(x).get(1).copied().unwrap_or(1);
    g.iota(Dtype::I32, &[1, window], 1)
}

/// Adds the moments of `x`, `[1, window, inputs]`, to those of an argument.
fn with_moments(g: &mut Graph, parameter: &Parameter, x: Tensor) -> Tensor {
    let TensorType { dtype, shape } = TensorType::new(parameter.dtype, parameter.shape.as_slice());
    let before = g.argument(dtype, &shape);
    let &[_, window, inputs] = g.shape(x) else { return before };
    let rows = g.reshape(x, &[window, inputs]);
    // Otherwise the product reads what it is fused with once for each output.
    let rows = g.barrier(rows);
    let over_rows = DotDimensions { lhs_contract: &[0], rhs_contract: &[0], ..DotDimensions::default() };
    let own = g.dot_general(rows, rows, &over_rows, Dtype::F32);
    g.add(before, own)
}

#[cfg(test)]
mod tests {
    use mlxcel_models::Preset;

    use super::*;
    use crate::{kernels::Isa, plan::Products};

    /// Emits what collects moments of a preset, with this change of its config.json and plan.
    fn collected(name: &str, change: impl FnOnce(&mut Plan)) -> Result<Collected, Error> {
        let model = Preset::find(name).unwrap().model().unwrap();
        let numerics = Numerics { products: Products::Kernels(Isa::X86_64V3), ..Numerics::default() };
        let mut plan = Plan { quant: Quant::Q4K, ..Plan::new(&model, Float::Bf16, 512) }.for_target(numerics);
        change(&mut plan);
        let stored = Storage::all(Dtype::BF16);
        collect(&model, &plan, &stored, &Forms::new(&model, &plan, &stored))
    }

    #[test]
    fn blocks_of_one_kind_share_a_function() {
        let Collected { functions, calibration, moments } = collected("llama-3.2-1b", |_| ()).unwrap();
        let Calibration { window, hidden, steps } = calibration.unwrap();
        assert_eq!((window, hidden, steps.len(), functions.len()), (256, 2048, 18, 3));
        assert_eq!(steps[1].entry, steps[16].entry);
        let names: Vec<_> =
            steps[1].moments.iter().map(|moments| (moments.name.as_str(), moments.shape[0])).collect();
        let of = |layer: &str, width| (format!("model.layers.0.{layer}.weight.moments"), width);
        let expected = [
            of("self_attn.q_proj", 2048),
            of("self_attn.o_proj", 2048),
            of("mlp.gate_proj", 2048),
            of("mlp.down_proj", 8192),
        ];
        assert_eq!(names, expected.each_ref().map(|(name, width)| (name.as_str(), *width)));
        assert_eq!(steps[17].moments[0].name, "model.embed_tokens.weight.moments");
        assert_eq!(moments["model.layers.0.self_attn.v_proj.weight"], steps[1].moments[0]);
    }

    #[test]
    fn layers_with_a_window_have_functions_of_their_own() {
        let Collected { functions, .. } = collected("gemma-3-1b", |plan| plan.context = 100).unwrap();
        assert_eq!(functions.len(), 4);
    }

    #[test]
    fn what_cannot_be_calibrated_is_refused() {
        let message = |name, change: fn(&mut Plan)| collected(name, change).unwrap_err().to_string();
        assert_eq!(
            message("llama-3.2-1b", |plan| plan.quant = Quant::Q4),
            "quantization is q4, but calibration is for q4k\nhint: add --quant q4k"
        );
        assert_eq!(
            message("mixtral-8x7b", |_| ()),
            "a mixture of experts, but calibration needs all tokens at the inputs of every layer\n\
             hint: leave out --calibrate"
        );
    }
}
