//! Plans: precision, quantization, context and sizes of calls of a module.

use std::collections::BTreeSet;

use mlxcel_artifacts::{
    CacheType, Float, Quant, Serving,
    entry::{CallSizes, Entry, Interface, PAGE, Role},
};
use mlxcel_models::{Block, FeedForward, Head, ModelConfig};
use safetensors::Dtype;

use crate::{
    error::Error,
    kernels::{Isa, MAX_HEAD_DIM, has_gpu_attention},
    pools::pools,
};

/// Rows of steps with kernels, which skip the padding: a decode step, some, a chunk of a prompt, and a long prompt, for which
/// weights are read less often.
const STEPS_WITH_KERNELS: [usize; 4] = [1, 16, 128, 512];

/// Rows and sequences of generated steps: decode steps, and chunks of a prompt. Each takes seconds to compile.
const GENERATED_STEPS: [(usize, usize); 4] = [(1, 1), (8, 8), (32, 1), (256, 1)];

/// Those of steps on GPUs whose attention is kernels'. Products of more rows read weights less often, and of up to 64 sequences
/// attention knows which are padding.
const GPU_STEPS: [(usize, usize); 6] =
    [(1, 1), (8, 8), (32, 1), (MAX_SEQUENCES, MAX_SEQUENCES), (128, 1), (512, 1)];

/// Rows of calls of an encoder. The last one holds the whole context.
const EMBEDS: [usize; 3] = [32, 128, 512];

/// The least rows of the largest call of an encoder with kernels, which several texts share. See emitter/README.md.
const SHARED_EMBED: usize = 512;

/// The most sequences of a call with kernels, and the most rows whose logits it computes: of GPUs, `MOST_LIVE` of
/// `cuda/attention.h`.
pub(crate) const MAX_SEQUENCES: usize = 64;

/// How a target computes matrix products.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Products {
    /// StableHLO dot products in the plan's precision, for which the target has instructions.
    #[default]
    Native,
    /// StableHLO dot products in `f32`. Operands are stored in their type and widened when they are read.
    Widened,
    /// Kernels for this instruction set, which read packed weights.
    Kernels(Isa),
}

/// How a target computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Numerics {
    /// How it computes matrix products.
    pub products: Products,
    /// Whether it cannot load 16-bit floats. Then two are loaded as one 32-bit word and widened to `f32` by integer operations.
    pub floats_as_bits: bool,
    /// The instruction set of a GPU's kernels. What they are not for is generated.
    pub gpu: Option<Isa>,
}

impl Numerics {
    /// Returns the instruction set of the kernels for CPUs, if there are any.
    #[must_use]
    pub fn cpu_isa(self) -> Option<Isa> {
        match self.products {
            Products::Kernels(isa) => Some(isa),
            Products::Native | Products::Widened => None,
        }
    }
}

/// The task of a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// Continue texts, with a cache.
    Generate,
    /// Compute one vector for a whole text, without a cache.
    Embed,
}

/// The choices that a module is compiled for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The task of the module.
    pub task: Task,
    /// The element type of matrix products, on targets that have instructions for it. Sums, norms, softmax and the residual
    /// stream are always `f32`.
    pub precision: Float,
    /// How weights are quantized.
    pub quant: Quant,
    /// Whether the packing module can collect moments of inputs and round weights by them.
    pub calibration: bool,
    /// Rows of 8 bits whose sum an input of weights in groups is, for kernels on CPUs: 1, or 2 for the precision of 16 bits.
    pub input_terms: usize,
    /// How the cache stores keys and values.
    pub cache_type: CacheType,
    /// How the target computes.
    pub numerics: Numerics,
    /// The longest sequence, in tokens.
    pub context: usize,
    /// The rows of the only call for prompts. If absent, the target decides how many there are.
    pub chunk: Option<usize>,
    /// What fits in each kind of call, ascending by rows.
    pub calls: Vec<CallSizes>,
    /// Whether kernels of GPUs are for the attention of every layer.
    pub gpu_attention: bool,
    /// Whether kernels for CPUs share dispatches in steps of few rows. Otherwise a profile shows each of them.
    pub chains: bool,
    /// Elements of a weight that are packed at a time. If absent, the target decides how many there are.
    pub pack_elements: Option<usize>,
}

impl Plan {
    /// Returns the default plan: unquantized weights, a cache in the precision, and calls for default numerics.
    #[must_use]
    pub fn new(model: &ModelConfig, precision: Float, context: usize) -> Self {
        let context = context.min(model.max_positions).max(1);
        let task = match model.head {
            Head::Logits(_) => Task::Generate,
            Head::Pooling(_) => Task::Embed,
        };
        let plan = Self {
            task,
            precision,
            quant: Quant::None,
            calibration: false,
            input_terms: 1,
            cache_type: CacheType::Float(precision),
            numerics: Numerics::default(),
            context,
            chunk: None,
            calls: Vec::new(),
            gpu_attention: model.blocks.iter().all(|block| has_gpu_attention(&block.attention.layer)),
            chains: true,
            pack_elements: None,
        };
        plan.for_target(plan.numerics)
    }

    /// Returns this plan with the numerics and the calls of a target.
    #[must_use]
    pub fn for_target(&self, numerics: Numerics) -> Self {
        let has_kernels = numerics.cpu_isa().is_some();
        let ragged = |rows: usize| {
            let sequences = rows.min(MAX_SEQUENCES);
            CallSizes { rows, sequences, selected: sequences, uniform: false, in_place: false }
        };
        let in_place = numerics.gpu.is_some() && self.gpu_attention && self.task == Task::Generate;
        let uniform =
            |(rows, sequences)| CallSizes { rows, sequences, selected: sequences, uniform: true, in_place };
        let chunk = self.chunk.map(|chunk| chunk.max(2));
        let calls: Vec<_> = match (self.task, has_kernels) {
            (Task::Generate, true) => match chunk {
                Some(chunk) => [1, chunk].map(ragged).to_vec(),
                None => STEPS_WITH_KERNELS.map(ragged).to_vec(),
            },
            (Task::Generate, false) => match chunk {
                Some(chunk) => [(1, 1), (chunk, 1)].map(uniform).to_vec(),
                None if in_place => GPU_STEPS.map(uniform).to_vec(),
                None => GENERATED_STEPS.map(uniform).to_vec(),
            },
            (Task::Embed, _) => {
                // A text goes through in one call.
                let is_shared = has_kernels && chunk.is_none();
                let largest = if is_shared { self.context.max(SHARED_EMBED) } else { self.context };
                let smaller = EMBEDS.into_iter().filter(|&rows| rows < largest && chunk.is_none());
                let rows = smaller.chain([largest]);
                rows.map(|rows| if has_kernels { ragged(rows) } else { uniform((rows, 1)) }).collect()
            }
        };
        Self { numerics, calls, ..self.clone() }
    }

    /// Returns the entry points in the order of the module: calls, then one for each number of rows whose logits they compute.
    #[must_use]
    pub fn entries(&self, model: &ModelConfig) -> Vec<Entry> {
        let pools = self.serving(model).pools;
        let (role, width): (fn(CallSizes) -> Role, _) = match self.task {
            Task::Generate => (Role::Step, model.vocab),
            Task::Embed => (Role::Embed, model.hidden),
        };
        let interface = Interface { context: self.context, width, pools: &pools };
        let mut roles: Vec<_> = self.calls.iter().map(|&sizes| role(sizes)).collect();
        if self.task == Task::Generate {
            let rows: BTreeSet<_> = self.calls.iter().map(|sizes| sizes.selected).collect();
            roles.extend(rows.into_iter().map(|rows| Role::Best { rows }));
        }
        roles.into_iter().map(|role| Entry::new(role, &interface)).collect()
    }

    /// Returns how the module serves several sequences.
    #[must_use]
    pub fn serving(&self, model: &ModelConfig) -> Serving {
        let pools = match self.task {
            Task::Generate => pools(model, self.cache_type),
            Task::Embed => Vec::new(),
        };
        Serving { page: PAGE, exact: self.numerics.cpu_isa().is_some(), pools }
    }

    /// Returns a number that all positions are below.
    pub(crate) fn capacity(&self) -> usize {
        self.context.next_multiple_of(PAGE)
    }

    /// Checks that the plan fits the model.
    ///
    /// # Errors
    /// [`Error::Plan`] names the value that does not fit.
    pub fn validate(&self, model: &ModelConfig) -> Result<(), Error> {
        let refuse = |found: String, expected: String, hint| Err(Error::Plan { found, expected, hint });
        let whole = self.cache_type.group_size();
        let odd = |block: &&Block| !block.attention.layer.head_dim.is_multiple_of(whole);
        if let Some(block) = model.blocks.iter().find(odd) {
            let found = format!("heads have {} dimensions", block.attention.layer.head_dim);
            let expected = format!("a cache in {} needs a multiple of {whole}", self.cache_type);
            return refuse(found, expected, "choose another --cache-type");
        }
        let long = |block: &&Block| block.attention.layer.head_dim > MAX_HEAD_DIM;
        if self.numerics.cpu_isa().is_some()
            && let Some(block) = model.blocks.iter().find(long)
        {
            let found = format!("heads have {} dimensions", block.attention.layer.head_dim);
            let expected = format!("kernels for this target have room for {MAX_HEAD_DIM}");
            return refuse(found, expected, "choose a target without kernels, such as cpu-x86-64-v2");
        }
        if self.context == 0 || self.context > model.max_positions {
            let expected = format!("the model supports 1 to {} positions", model.max_positions);
            return refuse(format!("context is {}", self.context), expected, "choose another --ctx-size");
        }
        let whole = self.quant.group_size();
        // The embedding has the width of other layers' inputs.
        if let Some(linear) = model.linears().find(|linear| !linear.inputs().is_multiple_of(whole)) {
            let found = format!("{} has {} inputs", linear.weight.name, linear.inputs());
            let expected = format!("{} needs a multiple of {whole}", self.quant);
            return refuse(found, expected, "choose another --quant");
        }
        let mixture = |block: &Block| matches!(block.mlp.layer, FeedForward::Experts(_));
        let has_kernels = matches!(self.numerics.products, Products::Kernels(_));
        if self.quant == Quant::Q4K && !has_kernels {
            let found = format!("{} on a target without kernels", self.quant);
            let expected = "a CPU with AVX2, or an ARM CPU with dot products, is needed".into();
            return refuse(found, expected, "choose --quant q4, or build a separate bundle for this target");
        }
        if self.numerics.floats_as_bits && model.dtype != Dtype::F32 && model.blocks.iter().any(mixture) {
            let found = "a mixture of experts in 16 bits on a target that cannot load them".into();
            return refuse(found, "weights in f32 are needed".into(), "choose another --target");
        }
        let ascending = self.calls.windows(2).all(|pair| pair[0].rows < pair[1].rows);
        let fits = |sizes: &CallSizes| {
            let &CallSizes { rows, sequences, selected, uniform, in_place: _ } = sizes;
            let divides = !uniform || rows.is_multiple_of(sequences.max(1));
            (1..=rows).contains(&sequences) && (1..=rows).contains(&selected) && divides
        };
        let reach = self.calls.iter().map(|sizes| sizes.rows_of_a_sequence()).max().unwrap_or(0);
        let needed = if self.task == Task::Embed { self.context } else { 1 };
        if !ascending || !self.calls.iter().all(fits) || reach < needed {
            let sizes: Vec<_> = self.calls.iter().map(|sizes| (sizes.rows, sizes.sequences)).collect();
            let found = format!("calls have the rows and sequences {sizes:?}");
            let expected = format!("ascending ones with at least {needed} rows of a sequence are needed");
            return refuse(found, expected, "let Plan::new choose them");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use mlxcel_models::Preset;

    use super::*;

    type Change = fn(&mut Plan);

    /// Returns a model for 131072 positions.
    fn model() -> ModelConfig {
        let preset = Preset::find("llama-3.2-1b").unwrap();
        ModelConfig::from_json(preset.config).unwrap()
    }

    /// Returns rows, sequences and selected rows of each call.
    fn sizes(plan: &Plan) -> Vec<(usize, usize, usize)> {
        plan.calls.iter().map(|sizes| (sizes.rows, sizes.sequences, sizes.selected)).collect()
    }

    #[test]
    fn calls_depend_on_the_target() {
        let with_kernels = Numerics { products: Products::Kernels(Isa::X86_64V3), ..Numerics::default() };
        let plan = Plan::new(&model(), Float::Bf16, 4096);
        assert_eq!(sizes(&plan), [(1, 1, 1), (8, 8, 8), (32, 1, 1), (256, 1, 1)]);
        assert!(plan.calls.iter().all(|sizes| sizes.uniform));
        let kernels = plan.for_target(with_kernels);
        assert_eq!(sizes(&kernels), [(1, 1, 1), (16, 16, 16), (128, 64, 64), (512, 64, 64)]);
        assert!(kernels.calls.iter().all(|sizes| !sizes.uniform));
        let chunked = Plan { chunk: Some(48), ..plan };
        assert_eq!(sizes(&chunked.for_target(Numerics::default())), [(1, 1, 1), (48, 1, 1)]);
        assert_eq!(sizes(&chunked.for_target(with_kernels)), [(1, 1, 1), (48, 48, 48)]);
        let names =
            |plan: &Plan| plan.entries(&model()).into_iter().map(|entry| entry.name).collect::<Vec<_>>();
        assert_eq!(
            names(&kernels),
            ["step_1", "step_16", "step_128", "step_512", "best_1", "best_16", "best_64"]
        );
        assert_eq!(names(&chunked.for_target(Numerics::default())), ["step_1", "step_48", "best_1"]);
        for plan in [kernels, chunked.for_target(with_kernels)] {
            assert_eq!(plan.validate(&model()).map_err(|error| error.to_string()), Ok(()));
        }
        assert_eq!(Plan::new(&model(), Float::F32, usize::MAX).context, 131_072);
    }

    #[test]
    fn an_encoder_takes_whole_texts() {
        let encoder = Preset::find("all-minilm-l6-v2").unwrap().model().unwrap();
        let with_kernels = Numerics { products: Products::Kernels(Isa::X86_64V3), ..Numerics::default() };
        let plan = Plan::new(&encoder, Float::F32, 300);
        assert_eq!(sizes(&plan), [(32, 1, 1), (128, 1, 1), (300, 1, 1)]);
        let shared = plan.for_target(with_kernels);
        assert_eq!(sizes(&shared), [(32, 32, 32), (128, 64, 64), (512, 64, 64)]);
        assert_eq!(shared.validate(&encoder).map_err(|error| error.to_string()), Ok(()));
        let chunked = Plan { chunk: Some(300), ..plan.clone() };
        assert_eq!(sizes(&chunked.for_target(with_kernels)), [(300, 64, 64)]);
        assert!(plan.serving(&encoder).pools.is_empty());
    }

    #[test]
    fn layers_with_one_window_share_a_pool() {
        let gemma = Preset::find("gemma-2-2b").unwrap().model().unwrap();
        let serving = Plan::new(&gemma, Float::Bf16, 8192).serving(&gemma);
        let pools: Vec<_> = serving.pools.iter().map(|pool| (pool.window, pool.page_bytes())).collect();
        // 13 layers of each kind · 2 · 4 heads · 64 positions · 256 dimensions · 2 bytes.
        let bytes = Some(13 * 2 * 4 * 64 * 256 * 2);
        assert_eq!(pools, [(None, bytes), (Some(4096), bytes)]);
    }

    #[test]
    fn a_plan_that_does_not_fit_is_refused() {
        let model = model();
        let refused = |change: Change| {
            let mut plan = Plan::new(&model, Float::F32, 300);
            change(&mut plan);
            plan.validate(&model).unwrap_err().to_string()
        };
        let context = "but the model supports 1 to 131072 positions\nhint: choose another --ctx-size";
        assert_eq!(refused(|plan| plan.context = 0), format!("context is 0, {context}"));
        assert_eq!(refused(|plan| plan.context = 131_073), format!("context is 131073, {context}"));
        let calls = "but ascending ones with at least 1 rows of a sequence are needed\nhint: let Plan::new choose them";
        let one = CallSizes { rows: 1, sequences: 1, selected: 1, uniform: true, in_place: false };
        let cases: [(Vec<CallSizes>, &str); 5] = [
            (vec![], "[]"),
            (vec![one, one], "[(1, 1), (1, 1)]"),
            (vec![CallSizes { rows: 0, ..one }], "[(0, 1)]"),
            (vec![CallSizes { sequences: 0, ..one }], "[(1, 0)]"),
            (vec![CallSizes { rows: 8, sequences: 3, ..one }], "[(8, 3)]"),
        ];
        for (changed, found) in cases {
            let plan = Plan { calls: changed, ..Plan::new(&model, Float::F32, 300) };
            let error = plan.validate(&model).unwrap_err().to_string();
            assert_eq!(error, format!("calls have the rows and sequences {found}, {calls}"));
        }
    }

    #[test]
    fn a_quantized_cache_needs_whole_groups() {
        let json =
            Preset::find("llama-3.2-1b").unwrap().config.replace("\"head_dim\": 64", "\"head_dim\": 72");
        let model = ModelConfig::from_json(&json).unwrap();
        let plan = |cache_type| Plan { cache_type, ..Plan::new(&model, Float::F32, 300) };
        assert!(plan(CacheType::Float(Float::F16)).validate(&model).is_ok());
        assert_eq!(
            plan(CacheType::Q8).validate(&model).unwrap_err().to_string(),
            "heads have 72 dimensions, but a cache in q8 needs a multiple of 32\nhint: choose another --cache-type"
        );
    }

    #[test]
    fn kernels_have_room_for_heads_of_256() {
        let wide = |dimensions: &str| {
            let json = Preset::find("llama-3.2-1b").unwrap().config.replace("\"head_dim\": 64", dimensions);
            ModelConfig::from_json(&json).unwrap()
        };
        let with_kernels = Numerics { products: Products::Kernels(Isa::X86_64V3), ..Numerics::default() };
        let validated = |dimensions: &str, numerics| {
            let model = wide(dimensions);
            Plan::new(&model, Float::F32, 300).for_target(numerics).validate(&model)
        };
        assert!(validated("\"head_dim\": 256", with_kernels).is_ok());
        assert!(validated("\"head_dim\": 258", Numerics::default()).is_ok());
        assert_eq!(
            validated("\"head_dim\": 258", with_kernels).unwrap_err().to_string(),
            "heads have 258 dimensions, but kernels for this target have room for 256\n\
             hint: choose a target without kernels, such as cpu-x86-64-v2"
        );
    }

    #[test]
    fn superblocks_need_kernels() {
        let plan = Plan { quant: Quant::Q4K, ..Plan::new(&model(), Float::F32, 300) };
        assert_eq!(
            plan.validate(&model()).unwrap_err().to_string(),
            "q4k on a target without kernels, but a CPU with AVX2, or an ARM CPU with dot products, is needed\n\
             hint: choose --quant q4, or build a separate bundle for this target"
        );
        let with_kernels = Numerics { products: Products::Kernels(Isa::X86_64V3), ..Numerics::default() };
        assert!(plan.for_target(with_kernels).validate(&model()).is_ok());
    }

    #[test]
    fn quantized_weights_need_whole_groups() {
        let json = Preset::find("llama-3.2-1b").unwrap().config.replace("8192", "8180");
        let model = ModelConfig::from_json(&json).unwrap();
        let plan = |quant| Plan { quant, ..Plan::new(&model, Float::F32, 300) };
        assert!(plan(Quant::Q8).validate(&model).is_ok());
        assert_eq!(
            plan(Quant::Q4).validate(&model).unwrap_err().to_string(),
            "model.layers.0.mlp.down_proj.weight has 8180 inputs, but q4 needs a multiple of 32\n\
             hint: choose another --quant"
        );
    }
}
