//! Plans: precision, quantization, batch, context and buckets of a module.

use std::slice;

use mlxcel_artifacts::{
    CacheType, Float, Quant,
    entry::{Entry, Role},
};
use mlxcel_models::{Block, FeedForward, Head, ModelConfig};
use safetensors::Dtype;

use crate::{error::Error, kernels::Isa};

/// Prefill buckets: a question and a page. A longer prompt is processed in chunks of the largest.
const PREFILL: [usize; 2] = [32, 256];

/// Prefill buckets with kernels, which skip the padding. So a larger bucket costs a short prompt little, and long prompts read
/// the weights less often.
const PREFILL_WITH_KERNELS: [usize; 3] = [32, 128, 512];

/// The smallest decode bucket.
const MIN_DECODE: usize = 256;

/// The ratio of successive decode buckets. Every bucket takes seconds to compile, and the unused part of the cache is small
/// beside the weights.
const DECODE_GROWTH: usize = 4;

/// Positions in a block of prefill attention.
pub(crate) const ATTENTION_BLOCK: usize = 256;

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
    /// The instruction set of a GPU's kernels, which are for decode steps. Other code is generated.
    pub gpu: Option<Isa>,
}

impl Numerics {
    /// Returns the instruction set of the kernels for attention of a decode step, if there are any.
    #[must_use]
    pub fn attention_isa(self) -> Option<Isa> {
        match self.products {
            Products::Kernels(isa) => Some(isa),
            Products::Native | Products::Widened => self.gpu,
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
    /// How the cache stores keys and values.
    pub cache_type: CacheType,
    /// How the target computes.
    pub numerics: Numerics,
    /// The number of rows of a call.
    pub batch: usize,
    /// The longest sequence of a row, in tokens.
    pub context: usize,
    /// The tokens of the only prefill entry. If absent, the target decides how many entries there are.
    pub chunk: Option<usize>,
    /// The tokens of each prefill or encode entry, ascending. The last encode entry covers the context.
    pub prefill: Vec<usize>,
    /// The positions that each decode entry attends to, ascending. The last one covers the context. A module that embeds has no
    /// decode entry.
    pub decode: Vec<usize>,
}

impl Plan {
    /// Returns the default plan: one row, unquantized weights, a cache in the precision, and buckets for default numerics.
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
            cache_type: CacheType::Float(precision),
            numerics: Numerics::default(),
            batch: 1,
            context,
            chunk: None,
            prefill: Vec::new(),
            decode: Vec::new(),
        };
        plan.for_target(plan.numerics)
    }

    /// Returns this plan with the numerics and the buckets of a target.
    #[must_use]
    pub fn for_target(&self, numerics: Numerics) -> Self {
        let context = self.context;
        let has_kernels = matches!(numerics.products, Products::Kernels(_));
        let sizes = match &self.chunk {
            Some(chunk) => slice::from_ref(chunk),
            None if has_kernels => &PREFILL_WITH_KERNELS,
            None => &PREFILL[..],
        };
        let mut prefill: Vec<_> = sizes.iter().copied().filter(|&tokens| tokens <= context).collect();
        // An encoder takes a whole text at once.
        if prefill.is_empty() || self.task == Task::Embed && prefill.last() != Some(&context) {
            prefill.push(context);
        }
        if self.task == Task::Embed {
            return Self { numerics, prefill, decode: Vec::new(), ..self.clone() };
        }
        let growing = std::iter::successors(Some(MIN_DECODE), |&cache| cache.checked_mul(DECODE_GROWTH));
        let smaller = growing.take_while(|&cache| cache < context && numerics.attention_isa().is_none());
        let decode = smaller.chain([context]).collect();
        Self { numerics, prefill, decode, ..self.clone() }
    }

    /// Returns the entry points in the order of the module.
    #[must_use]
    pub fn entries(&self, model: &ModelConfig) -> Vec<Entry> {
        let (prefill, width): (fn(usize) -> Role, _) = match self.task {
            Task::Generate => (|tokens| Role::Prefill { tokens }, model.vocab),
            Task::Embed => (|tokens| Role::Encode { tokens }, model.hidden),
        };
        let prefill = self.prefill.iter().map(|&tokens| prefill(tokens));
        let decode = self.decode.iter().map(|&cache| Role::Decode { cache });
        prefill.chain(decode).map(|role| Entry::new(role, self.batch, width)).collect()
    }

    /// Returns the number of positions in the cache. It exceeds the context, because padding is written and whole blocks are read.
    pub(crate) fn capacity(&self) -> usize {
        let padded = self.context + self.prefill.last().copied().unwrap_or(0);
        padded.next_multiple_of(ATTENTION_BLOCK)
    }

    /// Returns the number of positions in the cache of a layer with this window. A ring buffer has room for the window and the
    /// largest call with its padding, in whole blocks.
    pub(crate) fn cache_slots(&self, window: Option<usize>) -> usize {
        let written = self.prefill.last().copied().unwrap_or(0);
        let needed = |window: usize| window.saturating_add(written).next_multiple_of(ATTENTION_BLOCK);
        window.map_or(self.capacity(), |window| needed(window).min(self.capacity()))
    }

    /// Returns how many positions a sequence can rewind without recomputing tokens: what ring buffers keep beyond the window.
    /// Without a ring buffer it is `None`, which means any number.
    #[must_use]
    pub fn rewind(&self, model: &ModelConfig) -> Option<usize> {
        let windows = model.blocks.iter().filter_map(|block| block.attention.layer.window);
        let rings = windows.filter(|&window| self.cache_slots(Some(window)) < self.capacity());
        rings.map(|window| self.cache_slots(Some(window)) - window).min()
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
        if self.batch == 0 {
            return refuse("batch is 0".into(), "at least one row is needed".into(), "choose a batch of 1");
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
        if self.quant != Quant::None && !has_kernels && model.blocks.iter().any(mixture) {
            let found = format!("a mixture of experts in {} on a target without kernels", self.quant);
            return refuse(found, "a target with kernels is needed".into(), "choose --quant none");
        }
        if self.numerics.floats_as_bits && model.dtype != Dtype::F32 && model.blocks.iter().any(mixture) {
            let found = "a mixture of experts in 16 bits on a target that cannot load them".into();
            return refuse(found, "weights in f32 are needed".into(), "choose another --target");
        }
        let ascending = |sizes: &[usize]| sizes.windows(2).all(|pair| pair[0] < pair[1]);
        let fits = |sizes: &[usize]| sizes.iter().all(|&size| (1..=self.context).contains(&size));
        let valid = [&self.prefill, &self.decode].iter().all(|sizes| ascending(sizes) && fits(sizes));
        let last = match self.task {
            Task::Generate => self.decode.last(),
            Task::Embed => self.prefill.last().filter(|_| self.decode.is_empty()),
        };
        if !valid || self.prefill.is_empty() || last != Some(&self.context) {
            let found = format!("buckets are {:?} and {:?}", self.prefill, self.decode);
            let expected = format!("ascending ones up to the context of {} are needed", self.context);
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

    #[test]
    fn buckets_grow_up_to_the_context() {
        let model = model();
        let cases: [(usize, &[usize], &[usize]); 8] = [
            (0, &[1], &[1]),
            (1, &[1], &[1]),
            (16, &[16], &[16]),
            (40, &[32], &[40]),
            (256, &[32, 256], &[256]),
            (300, &[32, 256], &[256, 300]),
            (4096, &[32, 256], &[256, 1024, 4096]),
            (131_072, &[32, 256], &[256, 1024, 4096, 16384, 65536, 131_072]),
        ];
        for (context, prefill, decode) in cases {
            let plan = Plan::new(&model, Float::Bf16, context);
            assert_eq!((plan.prefill.as_slice(), plan.decode.as_slice()), (prefill, decode), "{context}");
            assert_eq!(plan.validate(&model).map_err(|error| error.to_string()), Ok(()));
        }
        assert_eq!(Plan::new(&model, Float::F32, usize::MAX).context, 131_072);
    }

    #[test]
    fn kernels_need_fewer_buckets() {
        let numerics = Numerics { products: Products::Kernels(Isa::X86_64V3), ..Numerics::default() };
        for (context, prefill) in [(16, &[16][..]), (300, &[32, 128]), (4096, &[32, 128, 512])] {
            let plan = Plan::new(&model(), Float::Bf16, context).for_target(numerics);
            assert_eq!((plan.prefill.as_slice(), plan.decode.as_slice()), (prefill, &[context][..]));
            assert_eq!(plan.validate(&model()).map_err(|error| error.to_string()), Ok(()));
        }
    }

    #[test]
    fn a_chunk_is_the_only_prefill_bucket() {
        let with_kernels = Numerics { products: Products::Kernels(Isa::X86_64V3), ..Numerics::default() };
        for numerics in [Numerics::default(), with_kernels] {
            let prefill = |chunk, context| {
                let plan = Plan { chunk: Some(chunk), ..Plan::new(&model(), Float::Bf16, context) };
                plan.for_target(numerics).prefill
            };
            assert_eq!((prefill(48, 300), prefill(512, 300)), (vec![48], vec![300]));
        }
    }

    #[test]
    fn the_cache_has_room_for_a_padded_prefill_in_whole_blocks() {
        for (context, capacity) in [(1, 256), (40, 256), (256, 512), (300, 768), (4096, 4352)] {
            assert_eq!(Plan::new(&model(), Float::F32, context).capacity(), capacity);
        }
    }

    #[test]
    fn ring_buffers_have_room_for_the_window_and_a_call() {
        let plan = Plan::new(&model(), Float::F32, 4096);
        // 256 tokens a prefill.
        for (window, slots) in [(1, 512), (256, 512), (257, 768), (3840, 4096), (4096, 4352), (1 << 30, 4352)]
        {
            assert_eq!(plan.cache_slots(Some(window)), slots, "{window}");
        }
        assert_eq!((plan.cache_slots(None), plan.rewind(&model())), (4352, None));
        let gemma = Preset::find("gemma-2-2b").unwrap().model().unwrap();
        let long = Plan::new(&gemma, Float::F32, 8192);
        assert_eq!(
            (long.capacity(), long.cache_slots(Some(4096)), long.rewind(&gemma)),
            (8448, 4352, Some(256))
        );
    }

    #[test]
    fn entries_are_prefill_then_decode() {
        let model = model();
        let entries = Plan::new(&model, Float::F32, 300).entries(&model);
        let names: Vec<_> = entries.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["prefill_32", "prefill_256", "decode_256", "decode_300"]);
    }

    #[test]
    fn a_plan_that_does_not_fit_is_refused() {
        let model = model();
        let refused = |change: Change| {
            let mut plan = Plan::new(&model, Float::F32, 300);
            change(&mut plan);
            plan.validate(&model).unwrap_err().to_string()
        };
        assert_eq!(
            refused(|plan| plan.batch = 0),
            "batch is 0, but at least one row is needed\nhint: choose a batch of 1"
        );
        let context = "but the model supports 1 to 131072 positions\nhint: choose another --ctx-size";
        assert_eq!(refused(|plan| plan.context = 0), format!("context is 0, {context}"));
        assert_eq!(refused(|plan| plan.context = 131_073), format!("context is 131073, {context}"));
        let buckets =
            "but ascending ones up to the context of 300 are needed\nhint: let Plan::new choose them";
        let cases: [(Change, &str); 6] = [
            (|plan| plan.prefill = vec![], "[] and [256, 300]"),
            (|plan| plan.prefill = vec![0], "[0] and [256, 300]"),
            (|plan| plan.prefill = vec![32, 32], "[32, 32] and [256, 300]"),
            (|plan| plan.prefill = vec![301], "[301] and [256, 300]"),
            (|plan| plan.decode = vec![], "[32, 256] and []"),
            (|plan| plan.decode = vec![256], "[32, 256] and [256]"),
        ];
        for (change, found) in cases {
            assert_eq!(refused(change), format!("buckets are {found}, {buckets}"));
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
