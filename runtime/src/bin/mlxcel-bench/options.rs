//! The command line.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{Parser, ValueEnum};
use mlxcel_runtime::{BenchCase, BenchWork, DeviceSpec};

use crate::{integer::integer, origin::Origin};

/// What to do about a list that is none.
const LIST: &str = "give numbers with commas between them, as in 128,512";

/// The longest window of `--perplexity` when --window does not say.
const WINDOW: usize = 512;

/// Measures how fast a bundle is, in the form of llama-bench.
///
/// Every test runs once to warm up and then -r times; the mean and the deviation are given in tokens a second. For steps
/// (tg) on a CPU the share of the memory's bandwidth is given too: the bytes of weights and cache that the steps read, beside a
/// plain read of the same weights by as many threads just before.
#[derive(Debug, Parser)]
#[command(name = "mlxcel-bench", version)]
pub(crate) struct Options {
    /// The bundle's folder, or its name in the store
    pub(crate) bundle: PathBuf,
    /// Tokens of a prompt; several with commas between them, 0 for none
    #[arg(short = 'p', long = "n-prompt", value_name = "N", value_delimiter = ',', default_value = "512",
        allow_negative_numbers = true, value_parser = integer::<usize>(0..=u64::MAX, LIST))]
    prompts: Vec<usize>,
    /// Steps of one token; several with commas between them, 0 for none
    #[arg(short = 'n', long = "n-gen", value_name = "N", value_delimiter = ',', default_value = "128",
        allow_negative_numbers = true, value_parser = integer::<usize>(0..=u64::MAX, LIST))]
    steps: Vec<usize>,
    /// Tokens in the cache before; several with commas between them
    #[arg(short = 'd', long = "n-depth", value_name = "N", value_delimiter = ',', default_value = "0",
        allow_negative_numbers = true, value_parser = integer::<usize>(0..=u64::MAX, LIST))]
    depths: Vec<usize>,
    /// How often every test is repeated
    #[arg(short = 'r', long, value_name = "N", default_value_t = 5, allow_negative_numbers = true,
        value_parser = integer::<usize>(1..=u64::MAX, "1 is the least"))]
    pub(crate) repetitions: usize,
    /// Threads of local-task [default: one for each physical core]
    #[arg(short, long, value_name = "N", allow_negative_numbers = true, value_parser =
        integer::<usize>(1..=u64::MAX, "leave it out for one thread for each physical core"))]
    pub(crate) threads: Option<usize>,
    /// What to run on: auto, local-task, local-sync, cuda or vulkan, or the second one as cuda:1
    #[arg(long, default_value = "auto")]
    pub(crate) device: DeviceSpec,
    /// The checkpoint's folder, or a safetensors file [default: the weights in the bundle]
    #[arg(long, value_name = "PATH")]
    pub(crate) weights: Option<PathBuf>,
    /// Tokens of context, at most what the bundle was compiled for
    #[arg(short, long, value_name = "N", allow_negative_numbers = true, value_parser =
        integer::<usize>(1..=u64::MAX, "leave it out for all of the context that the bundle was compiled for"))]
    pub(crate) ctx_size: Option<usize>,
    #[command(flatten)]
    pub(crate) origin: Origin,
    /// The form of the results
    #[arg(short, long, default_value = "md")]
    pub(crate) output: Output,
    /// List where the time of each test goes, by dispatch
    #[arg(long)]
    pub(crate) profile: bool,
    /// Predict the text of this file instead, and give the perplexity
    #[arg(long, value_name = "FILE",
        conflicts_with_all = ["profile", "prompts", "steps", "depths", "repetitions"])]
    pub(crate) perplexity: Option<PathBuf>,
    /// A bundle whose predictions are compared with: gives mean and 99th percentile of the divergence, and agreement
    #[arg(long, value_name = "BUNDLE", requires = "perplexity")]
    pub(crate) reference: Option<PathBuf>,
    /// Tokens of the text at most
    #[arg(long, value_name = "N", requires = "perplexity", allow_negative_numbers = true, value_parser =
        integer::<usize>(2..=u64::MAX, "leave it out for the whole text"))]
    pub(crate) tokens: Option<usize>,
    /// Tokens that are predicted from each other [default: 512 or the context, whichever is less]
    #[arg(long, value_name = "N", requires = "perplexity", allow_negative_numbers = true, value_parser =
        integer::<usize>(2..=u64::MAX, "leave it out for 512 tokens, or the context where it is less"))]
    window: Option<usize>,
}

/// The form of the results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// A Markdown table
    Md,
    /// Comma-separated values
    Csv,
    /// JSON
    Json,
}

impl Options {
    /// What is to be measured: depth by depth, prompts before steps.
    pub(crate) fn cases(&self) -> Result<Vec<BenchCase>> {
        let works = || {
            let prompts = self.prompts.iter().filter(|&&n| n > 0).map(|&n| BenchWork::Prompt(n));
            prompts.chain(self.steps.iter().filter(|&&n| n > 0).map(|&n| BenchWork::Decode(n)))
        };
        let at = |&depth: &usize| works().map(move |work| BenchCase { work, depth });
        let cases: Vec<_> = self.depths.iter().flat_map(at).collect();
        if cases.is_empty() {
            bail!("nothing to measure\nhint: give -p or -n a number above 0");
        }
        Ok(cases)
    }

    /// Tokens of a window.
    pub(crate) fn window(&self, context: usize) -> usize {
        self.window.unwrap_or(WINDOW.min(context))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cases(arguments: &[&str]) -> Vec<String> {
        let options = Options::parse_from([&["mlxcel-bench", "b"], arguments].concat());
        options.cases().unwrap().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn cases_are_llama_benchs() {
        assert_eq!(cases(&[]), ["pp512", "tg128"]);
        assert_eq!(
            cases(&["-p", "16,32", "-n", "0", "-d", "0,100"]),
            ["pp16", "pp32", "pp16 @ d100", "pp32 @ d100"]
        );
        let nothing = Options::parse_from(["mlxcel-bench", "b", "-p", "0", "-n", "0"]);
        assert!(nothing.cases().unwrap_err().to_string().starts_with("nothing to measure"));
    }
}
