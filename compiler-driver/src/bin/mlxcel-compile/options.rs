//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use mlxcel_artifacts::Name;
use mlxcel_compiler_driver::{CacheType, InputBits, Precision, Quant, WeightSource};

use crate::program::ProgramOptions;

/// Compile a language model or a StableHLO program into a bundle
#[derive(Parser)]
#[command(name = "mlxcel-compile", version, args_conflicts_with_subcommands = true)]
#[command(subcommand_negates_reqs = true)]
#[command(
    after_help = "Prints the bundle's path on stdout, or its name in the store. Messages go to stderr."
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) compile: Compile,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Args)]
pub(crate) struct Compile {
    /// Path to a StableHLO program to compile in place of a model: MLIR text, a portable artifact or a file of jax.export
    #[arg(conflicts_with_all = MODEL_OPTIONS)]
    pub(crate) program: Option<PathBuf>,
    /// Preset name, path to a folder with a config.json or to a GGUF file, or a repository of the Hugging Face hub:
    /// ORG/NAME, ORG/NAME@REVISION or ORG/NAME/FILE.gguf
    // Optional because the subcommands do without it; the parser requires it otherwise.
    #[arg(long, required_unless_present = "program")]
    pub(crate) model: Option<String>,
    /// Branch, tag or commit of a repository of the hub [default: main]
    #[arg(long, value_name = "REVISION", requires = "model")]
    pub(crate) revision: Option<String>,
    /// Use what is in the hub's cache, and download nothing, as HF_HUB_OFFLINE=1 does
    #[arg(long)]
    pub(crate) offline: bool,
    /// Targets to compile for, comma-separated
    #[arg(long, value_delimiter = ',', default_value = "cpu")]
    pub(crate) target: Vec<String>,
    /// Weights to put into the bundle [default: those in the model's folder; none for a preset]
    #[arg(long, value_name = "FOLDER|FILE.gguf|random[:SEED]|none")]
    pub(crate) weights: Option<WeightSource>,
    /// Element type of matrix products: auto (the checkpoint's), f32, bf16 or f16
    #[arg(long, default_value = "auto")]
    pub(crate) precision: Precision,
    /// Quantization of weights: auto (few bits stay as the checkpoint has them, where there are kernels), none, q8 (8 bits,
    /// one scale per output), q4 (GGUF's Q4_0) or q4k (superblocks of 4 to 6 bits, as GGUF's Q4_K; CPUs with kernels only)
    #[arg(long, default_value = "auto")]
    pub(crate) quant: Quant,
    /// Round the weights of --quant q4k by this text in UTF-8, so that the products of its tokens lose little. It should be of
    /// the kind that the model is for, with some 40,000 tokens
    #[arg(long, value_name = "FILE")]
    pub(crate) calibrate: Option<PathBuf>,
    /// Bits of the inputs of weights in groups (q4, q4k, and few bits of a checkpoint) on CPUs: 8, or 16, with which prompts take
    /// nearly twice as long [default: 16 for a quantized checkpoint that is no GGUF file, otherwise 8]
    #[arg(long, value_name = "8|16")]
    pub(crate) input_bits: Option<InputBits>,
    /// Element type of the key/value cache: f32, bf16, f16 or q8 (GGUF's Q8_0) [default: the precision]
    #[arg(long, value_name = "TYPE")]
    pub(crate) cache_type: Option<CacheType>,
    /// Context size in tokens [default: 4096, or the model's limit if that is less]
    #[arg(long, value_name = "N")]
    pub(crate) ctx_size: Option<usize>,
    /// Process prompts in calls of up to N tokens [default: several sizes that suit the target]
    #[arg(long, value_name = "N")]
    pub(crate) chunk: Option<usize>,
    /// Start every kernel by itself, so that `mlxcel-bench --profile` shows each [default: one start for a layer's kernels in
    /// small steps on CPUs, which is faster]
    #[arg(long)]
    pub(crate) separate_kernels: bool,
    #[command(flatten)]
    pub(crate) of_program: ProgramOptions,
    /// Folder to write the bundle to, replacing a bundle that exists [default: MODEL.bundle or PROGRAM.bundle]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: Option<PathBuf>,
    /// Save the bundle in the store under this name instead of in a folder
    #[arg(long, value_name = "NAME", conflicts_with = "out")]
    pub(crate) name: Option<Name>,
    /// Print an intermediate form on stdout, and make no bundle
    #[arg(long, conflicts_with_all = ["out", "name", "dump_dir"])]
    pub(crate) emit: Option<Emit>,
    /// Save the MLIR, the compiler flags and the compiled modules in this folder
    #[arg(long, value_name = "FOLDER")]
    pub(crate) dump_dir: Option<PathBuf>,
    /// Do not pack the weights: every start packs them in memory until mlxcel-pack has run
    #[arg(long)]
    pub(crate) no_pack: bool,
    /// Path to the store, which caches compiled modules [default: $MLXCEL_STORE, else
    /// $XDG_CACHE_HOME/mlxcel, else ~/.cache/mlxcel]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) store: Option<PathBuf>,
}

/// Options that say how a model is compiled.
const MODEL_OPTIONS: [&str; 12] = [
    "model",
    "revision",
    "offline",
    "weights",
    "precision",
    "quant",
    "calibrate",
    "input_bits",
    "cache_type",
    "ctx_size",
    "chunk",
    "separate_kernels",
];

/// An intermediate form of a program.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Emit {
    // StableHLO text.
    Mlir,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Show a model's architecture, sizes and memory needs, or a StableHLO program's functions and ops
    Explain {
        /// Preset name, path to a folder with a config.json or to a GGUF file, ORG/NAME on the hub, or path to a StableHLO program: MLIR text, a
        /// portable artifact or a file of jax.export
        model: String,
    },
    /// List the targets
    Targets,
    /// List the presets
    Models,
    /// List the model families: every `model_type` that config.json may have
    Families,
    /// Write the checkpoint of `--weights random:SEED` in Hugging Face's format
    RandomWeights {
        /// Preset name, path to a folder with a config.json, or ORG/NAME on the hub
        #[arg(long)]
        model: String,
        /// Seed of the random numbers
        #[arg(long, default_value_t = 0)]
        seed: u64,
        /// Folder to write; it must not exist
        #[arg(long, value_name = "FOLDER")]
        out: PathBuf,
    },
}
