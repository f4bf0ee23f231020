//! What a folder has to run: everything, or as much as an emulated driver gets through.

use crate::tasks::WHOLE as WHOLE_WORKSPACE;

/// The variants of the model of full shape, and their flags.
pub(super) const VARIANTS: [(&str, [&str; 4]); 4] = [
    ("f32", ["--precision", "f32", "--quant", "none"]),
    ("bf16", ["--precision", "bf16", "--quant", "none"]),
    ("q8", ["--precision", "bf16", "--quant", "q8"]),
    ("q4", ["--precision", "bf16", "--quant", "q4"]),
];

/// The contents of a folder.
pub(super) struct Kit {
    /// The name of the model of full shape, which is that of a preset unless `config` has its shape.
    pub(super) model: &'static str,
    /// config.json of a model that is no preset.
    pub(super) config: Option<&'static str>,
    /// The folders in `models/` of what has recorded answers.
    pub(super) cases: &'static [&'static str],
    /// Those of them that are also compiled for the target whose kernels overlap.
    pub(super) overlapped: &'static [&'static str],
    /// How many prompts of each, and how many tokens of each answer.
    pub(super) prompts: usize,
    pub(super) tokens: usize,
    /// The longest time of a program, in seconds.
    pub(super) seconds: u32,
    /// The memory that the model of full shape takes: of the disk, and of the GPU in f32 with a cache.
    pub(super) disk_mib: u32,
    pub(super) gpu_mib: u32,
    /// Whether the driver is the emulated one.
    pub(super) is_rehearsal: bool,
}

/// For a GPU.
///
/// The fixtures are grouped heads, bf16, f16, more layers, rope scaling, every option at once; head sizes without a kernel, a
/// window, soft caps, sinks with experts without kernels and with them, one expert per token, a tensor that layers share, and
/// experts in 4 bits. Those that overlap are one for each kind of attention and of product.
pub(super) const WHOLE: Kit = Kit {
    model: "llama-3.2-1b",
    config: None,
    cases: &[
        "demo",
        "oracle/fixtures/gqa",
        "oracle/fixtures/bf16",
        "oracle/fixtures/f16",
        "oracle/fixtures/deep",
        "oracle/fixtures/rope-llama3",
        "oracle/fixtures/everything",
        "oracle/fixtures/odd-sizes",
        "oracle/fixtures/mistral-window",
        "oracle/fixtures/gemma2-hub",
        "oracle/fixtures/gpt-oss-hub",
        "oracle/fixtures/gpt-oss-q4",
        "oracle/fixtures/gpt-oss-wide",
        "oracle/fixtures/mixtral-one",
        "oracle/fixtures/phi4-mini",
        "oracle/fixtures/qwen2-moe-q4",
    ],
    overlapped: &[
        "oracle/fixtures/gqa",
        "oracle/fixtures/bf16",
        "oracle/fixtures/everything",
        "oracle/fixtures/gemma2-hub",
        "oracle/fixtures/qwen2-moe-q4",
    ],
    prompts: usize::MAX,
    tokens: usize::MAX,
    seconds: 60,
    disk_mib: 3 << 10,
    gpu_mib: 8 << 10,
    is_rehearsal: false,
};

/// For the emulated driver, which takes a second for a token of the demo model: weights in f32, bf16 and 4 bits, three prompts of
/// each, and a model of two layers that has the kernels of the one of full shape.
pub(super) const REHEARSAL: Kit = Kit {
    model: "small",
    config: Some(include_str!("small.json")),
    cases: &["oracle/fixtures/gqa", "oracle/fixtures/bf16", "oracle/fixtures/qwen2-moe-q4"],
    overlapped: &["oracle/fixtures/gqa", "oracle/fixtures/qwen2-moe-q4"],
    prompts: 3,
    tokens: 6,
    seconds: 120,
    disk_mib: 64,
    gpu_mib: 64,
    is_rehearsal: true,
};

impl Kit {
    /// Returns what `--model` of random-weights takes in the folder of the programs.
    pub(super) fn source(&self) -> &'static str {
        if self.config.is_some() { "./model" } else { self.model }
    }

    /// Returns what cargo builds, and in which folder: for a rehearsal what tests have built too, and the emulated driver.
    pub(super) fn build(&self) -> (String, &'static str) {
        if self.is_rehearsal {
            (format!("{WHOLE_WORKSPACE} --example cuda"), "debug")
        } else {
            ("--release -p mlxcel-compiler-driver -p mlxcel-runtime".to_owned(), "release")
        }
    }
}

/// Returns the name of what has recorded answers, as bundles have it.
pub(super) fn name_of(folder: &str) -> &str {
    folder.rsplit('/').next().unwrap_or(folder)
}
