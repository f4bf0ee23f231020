//! The command line of mlxcel-bench.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{Parser, ValueEnum};
use mlxcel_runtime::{BatchCase, BenchCase, BenchWork, CacheSize, DeviceSpec, Trace};

use crate::{integer::integer, origin::Origin};

/// The hint for a bad list of numbers.
const LIST: &str = "give numbers with commas between them, as in 128,512";

/// The repetitions of each test without -r.
const REPETITIONS: usize = 5;

/// The largest window of `--perplexity` without --window.
const WINDOW: usize = 512;

/// Measure the speed of a bundle, in the form of llama-bench
///
/// Every test runs once to warm up, then -r times. The table has the mean and the standard deviation in tokens per
/// second.
///
/// For decode steps (tg), the table also has the share of the memory bandwidth. It compares the bytes of weights and cache
/// that the steps read with what is measured just before each repetition: on a CPU with a plain read of memory, by as many
/// threads, and on a GPU with a copy of its own memory, whose bytes are read and written.
#[derive(Debug, Parser)]
#[command(name = "mlxcel-bench", version)]
pub(crate) struct Options {
    /// Folder of the bundle, or its name in the store
    pub(crate) bundle: PathBuf,
    /// Prompt lengths (pp), separated by commas; 0 for none
    #[arg(short = 'p', long = "n-prompt", value_name = "N", value_delimiter = ',', default_value = "512",
        allow_negative_numbers = true, value_parser = integer::<usize>(0..=u64::MAX, LIST))]
    prompts: Vec<usize>,
    /// Numbers of tokens to generate (tg), separated by commas; 0 for none
    #[arg(short = 'n', long = "n-gen", value_name = "N", value_delimiter = ',', default_value = "128",
        allow_negative_numbers = true, value_parser = integer::<usize>(0..=u64::MAX, LIST))]
    steps: Vec<usize>,
    /// Numbers of tokens in the cache before each test, separated by commas
    #[arg(short = 'd', long = "n-depth", value_name = "N", value_delimiter = ',', default_value = "0",
        allow_negative_numbers = true, value_parser = integer::<usize>(0..=u64::MAX, LIST))]
    depths: Vec<usize>,
    /// Number of repetitions of each test, which is run once for a profile [default: 5]
    #[arg(short = 'r', long, value_name = "N", allow_negative_numbers = true,
        value_parser = integer::<usize>(1..=u64::MAX, "1 is the least"))]
    repetitions: Option<usize>,
    /// Number of threads of local-task [default: one for each physical core]
    #[arg(short, long, value_name = "N", allow_negative_numbers = true, value_parser =
        integer::<usize>(1..=u64::MAX, "leave it out for one thread for each physical core"))]
    pub(crate) threads: Option<usize>,
    /// Device: auto, local-task, local-sync, cuda, cuda:1, vulkan or vulkan:1
    #[arg(long, default_value = "auto")]
    pub(crate) device: DeviceSpec,
    /// Checkpoint folder or safetensors file to use as weights [default: the bundle's weights]
    #[arg(long, value_name = "PATH")]
    pub(crate) weights: Option<PathBuf>,
    /// Size of the context in tokens [default: the bundle's]
    #[arg(short, long, value_name = "N", allow_negative_numbers = true, value_parser =
        integer::<usize>(1..=u64::MAX, "leave it out for all of the context that the bundle was compiled for"))]
    pub(crate) ctx_size: Option<usize>,
    #[command(flatten)]
    pub(crate) origin: Origin,
    /// Output format
    #[arg(short, long, default_value = "md")]
    pub(crate) output: Output,
    /// Memory for keys and values, as in 4GiB [default: a context for each sequence, or what memory allows]
    #[arg(long, value_name = "SIZE")]
    pub(crate) cache_size: Option<CacheSize>,
    /// Run so many sequences at once, separated by commas: the table is that of llama-batched-bench
    #[arg(long, value_name = "B", value_delimiter = ',', allow_negative_numbers = true,
        conflicts_with = "depths", value_parser = integer::<usize>(1..=u64::MAX, LIST))]
    pub(crate) parallel: Vec<usize>,
    /// Profile each test: list its time by dispatch; with --parallel, that of generating
    #[arg(long)]
    pub(crate) profile: bool,
    /// Write a timeline of host and device, for ui.perfetto.dev; a picture if the name ends in .svg
    ///
    /// Recording takes time: a test is slower than without it, the more so the smaller its dispatches are.
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// The timeline, which is off without --trace.
    #[arg(skip)]
    pub(crate) timeline: Trace,
    /// Measure the perplexity on the text of this file instead
    #[arg(long, value_name = "FILE", help_heading = "Perplexity",
        conflicts_with_all = ["profile", "trace", "parallel", "prompts", "steps", "depths", "repetitions"])]
    pub(crate) perplexity: Option<PathBuf>,
    /// Also compare with this bundle: mean and 99th percentile of the KL divergence, and top-1 agreement
    #[arg(long, value_name = "BUNDLE", requires = "perplexity", help_heading = "Perplexity")]
    pub(crate) reference: Option<PathBuf>,
    /// Use at most this many tokens of the text
    #[arg(long, value_name = "N", requires = "perplexity", allow_negative_numbers = true,
        help_heading = "Perplexity", value_parser =
        integer::<usize>(2..=u64::MAX, "leave it out for the whole text"))]
    pub(crate) tokens: Option<usize>,
    /// Window length in tokens [default: 512, or the context if it is less]
    #[arg(long, value_name = "N", requires = "perplexity", allow_negative_numbers = true,
        help_heading = "Perplexity", value_parser =
        integer::<usize>(2..=u64::MAX, "leave it out for 512 tokens, or the context if it is less"))]
    window: Option<usize>,
}

/// The format of the results.
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
    /// Returns the benchmarks: depth by depth, prompts before steps.
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

    /// Returns the benchmarks of several sequences, in the order of llama-batched-bench.
    pub(crate) fn batch_cases(&self) -> Result<Vec<BatchCase>> {
        let of = |&prompt: &usize| self.steps.iter().map(move |&generate| (prompt, generate));
        let pairs = self.prompts.iter().flat_map(of);
        let case = |(prompt, generate)| {
            let of = move |&sequences: &usize| BatchCase { prompt, generate, sequences };
            self.parallel.iter().map(of)
        };
        let cases: Vec<_> = pairs.flat_map(case).collect();
        if let Some(case) = cases.iter().find(|case| case.prompt == 0 || case.generate == 0) {
            bail!(
                "--parallel with -p {} and -n {}, expected at least 1 of each\n\
                 hint: sequences have a prompt, and time is taken of both",
                case.prompt,
                case.generate
            );
        }
        Ok(cases)
    }

    /// Returns the number of repetitions of each test.
    pub(crate) fn repetitions(&self) -> usize {
        self.repetitions.unwrap_or(REPETITIONS)
    }

    /// Returns a warning if repetitions are asked for that a profile does not make.
    pub(crate) fn repetitions_without_effect(&self) -> Option<String> {
        let given = self.repetitions.filter(|&given| self.profile && given > 1)?;
        Some(format!("warning: -r {given} has no effect with --profile, which runs each test once"))
    }

    /// Returns the window length.
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
    fn a_profile_has_one_repetition() {
        let of = |arguments: &[&str]| {
            let options = Options::parse_from([&["mlxcel-bench", "b"], arguments].concat());
            (options.repetitions(), options.repetitions_without_effect())
        };
        assert_eq!(of(&[]), (5, None));
        assert_eq!(of(&["-r", "3"]), (3, None));
        assert_eq!(of(&["--profile"]).1, None);
        assert_eq!(of(&["--profile", "-r", "1"]).1, None);
        let warning = "warning: -r 3 has no effect with --profile, which runs each test once";
        assert_eq!(of(&["--profile", "-r", "3"]).1.as_deref(), Some(warning));
    }

    #[test]
    fn cases_are_in_the_order_of_llama_bench() {
        assert_eq!(cases(&[]), ["pp512", "tg128"]);
        assert_eq!(
            cases(&["-p", "16,32", "-n", "0", "-d", "0,100"]),
            ["pp16", "pp32", "pp16 @ d100", "pp32 @ d100"]
        );
        let parallel =
            Options::parse_from(["mlxcel-bench", "b", "--parallel", "1,8", "-p", "128,1024", "-n", "64"]);
        let found = parallel.batch_cases().unwrap();
        let found: Vec<_> = found.iter().map(|case| (case.prompt, case.generate, case.sequences)).collect();
        assert_eq!(found, [(128, 64, 1), (128, 64, 8), (1024, 64, 1), (1024, 64, 8)]);
        let none = Options::parse_from(["mlxcel-bench", "b", "--parallel", "1", "-n", "0"]);
        assert!(none.batch_cases().unwrap_err().to_string().starts_with("--parallel with -p 512 and -n 0"));
        let nothing = Options::parse_from(["mlxcel-bench", "b", "-p", "0", "-n", "0"]);
        assert!(nothing.cases().unwrap_err().to_string().starts_with("nothing to measure"));
    }
}
