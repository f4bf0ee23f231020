//! The command line of mlxcel-run.

use std::{
    fs,
    hash::{BuildHasher as _, RandomState},
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, anyhow, bail};
use clap::Parser;
use mlxcel_artifacts::{Bundle, PublicKey};
use mlxcel_runtime::{
    CacheSize, DeviceOptions, DeviceSpec, Drawing, Error, GREEDY, LoadOptions, Request, Sampling, Trace,
    engine::Speculation,
};

use crate::{
    integer::integer,
    numbers::{number, stop_text},
    origin::{Origin, public_key},
    program::options::ProgramOptions,
    stdio::is_interactive,
};

/// The largest number of tokens of an answer without -n.
pub(crate) const DEFAULT_TOKENS: usize = 128;

/// Options that apply to continuing a text alone, and to neither embeddings nor self-tests.
const ANSWER_OPTIONS: [&str; 13] = [
    "temp",
    "top_k",
    "top_p",
    "min_p",
    "seed",
    "ignore_eos",
    "stop",
    "chat",
    "system",
    "logprobs",
    "speculate",
    "parallel",
    "output",
];

/// Requests in flight without --parallel.
const DEFAULT_PARALLEL: usize = 8;

const ALL_TOKENS_AT_0: &str = "0 draws from all tokens";
const ALL_TOKENS_AT_1: &str = "1 draws from all tokens";
const DEFAULT_THREADS: &str = "leave it out for one thread for each physical core";

/// Continue a text, chat or make embeddings with a compiled bundle
///
/// The answer goes to stdout while it is generated, and everything else to stderr. Without a tokenizer the answer is
/// written as token ids.
///
/// Without -p, -f or --tokens the prompt is read from standard input. On a terminal this starts a chat.
///
/// -f with a file whose name ends in .jsonl, or --parallel, answers a file of requests, several at a time. Each line is a
/// JSON object with prompt, messages or tokens, and options of its own.
#[derive(Debug, Parser)]
#[command(name = "mlxcel-run", version)]
pub(crate) struct Options {
    /// Folder of the bundle, or its name in the store
    pub(crate) bundle: PathBuf,

    /// Prompt: a text to continue, or a message with --chat
    #[arg(
        short,
        long,
        value_name = "TEXT",
        group = "source",
        allow_hyphen_values = true,
        help_heading = "Prompt"
    )]
    prompt: Option<String>,
    /// Read the prompt from a file, without the newline at its end; requests if its name ends in .jsonl
    #[arg(short, long, value_name = "FILE", group = "source", help_heading = "Prompt")]
    pub(crate) file: Option<PathBuf>,
    /// Prompt as token ids, without adding special tokens
    #[arg(
        long,
        value_name = "IDS",
        group = "source",
        value_delimiter = ',',
        allow_hyphen_values = true,
        value_parser = integer::<u32>(0..=u32::MAX.into(), "separate token ids by commas: 1,2,3"),
        conflicts_with_all = ["chat", "system"],
        help_heading = "Prompt"
    )]
    tokens: Option<Vec<u32>>,
    /// Apply the checkpoint's chat template to the prompt
    #[arg(long, help_heading = "Prompt")]
    chat: bool,
    /// System message of the chat; implies --chat
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, help_heading = "Prompt")]
    pub(crate) system: Option<String>,

    /// Number of tokens to generate [default: 128; in a chat on a terminal, until the context is full]
    #[arg(short = 'n', long = "n-predict", value_name = "N", allow_negative_numbers = true,
        help_heading = "Generation", value_parser =
        integer::<usize>(0..=u64::MAX, "a large number goes on until the text ends or the context is full"))]
    max_tokens: Option<usize>,
    /// Size of the context in tokens [default: the bundle's]
    #[arg(short, long, value_name = "N", allow_negative_numbers = true, help_heading = "Generation", value_parser =
        integer::<usize>(1..=u64::MAX, "leave it out for all of the context that the bundle was compiled for"))]
    pub(crate) ctx_size: Option<usize>,
    /// Continue after the end-of-text token
    #[arg(long, help_heading = "Generation")]
    ignore_eos: bool,
    /// Stop before this text; may be repeated
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, value_parser = stop_text,
        help_heading = "Generation")]
    pub(crate) stop: Vec<String>,

    /// Guess tokens from the text so far and verify several in one step; the answer is the same
    ///
    /// Worth it for text that repeats phrases of the prompt or of itself, such as code and JSON.
    #[arg(long, help_heading = "Generation")]
    speculate: bool,

    /// Temperature; 0 is greedy [default: 0, or 1 if another sampling option is given]
    #[arg(long, value_name = "T", allow_negative_numbers = true, help_heading = "Sampling",
        value_parser = number("0 or more", GREEDY))]
    temp: Option<f32>,
    /// Keep the K most likely tokens; 0 keeps all
    #[arg(long, value_name = "K", allow_negative_numbers = true, help_heading = "Sampling", value_parser =
        integer::<usize>(0..=u64::MAX, ALL_TOKENS_AT_0))]
    top_k: Option<usize>,
    /// Keep the most likely tokens with total probability P; 1 keeps all
    #[arg(long, value_name = "P", allow_negative_numbers = true, help_heading = "Sampling", value_parser =
        number("above 0 and at most 1", ALL_TOKENS_AT_1))]
    top_p: Option<f32>,
    /// Keep tokens with at least P times the probability of the most likely one; 0 keeps all
    #[arg(long, value_name = "P", allow_negative_numbers = true, help_heading = "Sampling", value_parser =
        number("0 to 1", ALL_TOKENS_AT_0))]
    min_p: Option<f32>,
    /// Seed of the random numbers; a seed gives the same text each time [default: random]
    #[arg(long, value_name = "SEED", allow_negative_numbers = true, help_heading = "Sampling", value_parser =
        integer::<u64>(0..=u64::MAX, "leave it out for another seed each time"))]
    seed: Option<u64>,

    /// Checkpoint folder or safetensors file to use as weights [default: the bundle's weights]
    ///
    /// tokenizer.json, tokenizer_config.json, chat_template.jinja and generation_config.json are read from the folder if
    /// the bundle does not carry them.
    #[arg(long, value_name = "PATH", help_heading = "Weights and device")]
    pub(crate) weights: Option<PathBuf>,
    /// Device: auto, local-task, local-sync, cuda, cuda:1, vulkan or vulkan:1
    ///
    /// auto takes the best device that the bundle has a target for: CUDA, a GPU by Vulkan, or the CPU. local-task is the
    /// CPU with several threads, local-sync with one.
    #[arg(long, default_value_t, help_heading = "Weights and device")]
    device: DeviceSpec,
    /// Number of threads of local-task [default: one for each physical core]
    #[arg(short, long, value_name = "N", allow_negative_numbers = true, help_heading = "Weights and device",
        value_parser = integer::<usize>(1..=u64::MAX, DEFAULT_THREADS))]
    threads: Option<usize>,
    /// Memory for keys and values, as in 4GiB [default: one context, or what memory allows]
    #[arg(long, value_name = "SIZE", help_heading = "Weights and device")]
    cache_size: Option<CacheSize>,

    /// Write one JSON object at the end instead of text
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// Add the K most likely ids of each token with their log-probabilities to the JSON object
    #[arg(long, value_name = "K", requires = "json", allow_negative_numbers = true, help_heading = "Output",
        value_parser = integer::<usize>(1..=u64::MAX, "leave it out to record none"))]
    logprobs: Option<usize>,
    /// Write a timeline of host and device, for ui.perfetto.dev; a picture if the name ends in .svg
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) trace: Option<PathBuf>,
    /// The timeline, which is off without --trace.
    #[arg(skip)]
    pub(crate) timeline: Trace,

    /// Answer requests, one JSON object in each line of -f or standard input, N at a time [default: 8 with -f X.jsonl]
    #[arg(long, value_name = "N", allow_negative_numbers = true, conflicts_with_all = ["prompt", "tokens"],
        help_heading = "Requests",
        value_parser = integer::<usize>(1..=u64::MAX, "1 answers one request after the other"))]
    pub(crate) parallel: Option<usize>,
    /// Add the answers to a file [default: standard output]; the same command resumes an interrupted run. With a program, write
    /// its results: @FILE.npz, NAME=@FILE.npy or - (in short)
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["prompt", "tokens"], help_heading = "Requests")]
    pub(crate) output: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) program: ProgramOptions,

    #[command(flatten)]
    pub(crate) origin: Origin,

    /// Write embeddings, with a bundle that makes them
    ///
    /// -p gives one text. In a file or standard input each line is a text. Each text gets a line of numbers, or with
    /// --json an object in a line. Texts longer than the context are truncated.
    #[arg(long, conflicts_with_all = ANSWER_OPTIONS, conflicts_with = "max_tokens", help_heading = "Modes")]
    pub(crate) embed: bool,
    /// Compare this device's answers with those recorded in the bundle
    #[arg(long, conflicts_with_all = ANSWER_OPTIONS,
        conflicts_with_all = ["json", "source", "max_tokens", "ctx_size", "record_test", "embed"],
        help_heading = "Modes")]
    pub(crate) self_test: bool,
    /// Record this device's answers in the bundle for --self-test, to -p, --tokens or default prompts
    #[arg(long, conflicts_with_all = ANSWER_OPTIONS, conflicts_with_all = ["json", "file", "embed"],
        help_heading = "Modes")]
    pub(crate) record_test: bool,
    /// Make the answer of a receipt again, and compare all tokens
    ///
    /// The file is a receipt, or the answer of a server to a request with "receipt": true.
    #[arg(long, value_name = "FILE", conflicts_with_all = ANSWER_OPTIONS,
        conflicts_with_all = ["json", "source", "max_tokens", "ctx_size", "record_test", "self_test", "embed"],
        help_heading = "Modes")]
    pub(crate) replay: Option<PathBuf>,
    /// Replay only receipts that are signed with this minisign key: a public key or its file
    #[arg(long, value_name = "KEY", requires = "replay", value_parser = public_key, help_heading = "Modes")]
    pub(crate) receipt_public_key: Option<PublicKey>,
}

/// The prompt of a run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Prompt {
    Text(String),
    Tokens(Vec<u32>),
    /// None was given, and stdin is a terminal.
    None,
}

impl Options {
    /// Returns whether an option was given that only language models have.
    pub(crate) fn asks_for_a_model(&self) -> bool {
        let has_prompt = self.prompt.is_some() || self.file.is_some() || self.tokens.is_some();
        let answers =
            self.is_chat() || self.max_tokens.is_some() || self.ctx_size.is_some() || self.temp.is_some();
        let modes = self.embed || self.record_test || self.replay.is_some() || self.parallel.is_some();
        has_prompt || answers || modes
    }

    /// Returns the file for the answers to requests.
    pub(crate) fn answer_file(&self) -> Result<Option<&Path>> {
        match self.output.as_slice() {
            [] => Ok(None),
            [path] => Ok(Some(path)),
            more => bail!("found {} -o, expected one file for the answers\nhint: give -o once", more.len()),
        }
    }

    /// Returns the device for a program.
    pub(crate) fn device_options(&self) -> DeviceOptions {
        DeviceOptions { device: self.device, threads: self.threads, trace: self.timeline.clone() }
    }

    /// Returns whether prompts are messages of a chat.
    pub(crate) fn is_chat(&self) -> bool {
        self.chat || self.system.is_some()
    }

    /// Returns the folder of --weights, which also has the checkpoint's small files.
    pub(crate) fn checkpoint(&self) -> Option<&Path> {
        self.weights.as_deref().filter(|path| !path.is_file())
    }

    /// Reads the prompt of a run that continues a text.
    pub(crate) fn read_prompt(&self) -> Result<Prompt> {
        match self.read_source()? {
            // A message of a chat may be empty, but an empty text cannot be continued.
            Prompt::Text(text) if text.is_empty() && !self.is_chat() => bail!(
                "the prompt is empty, expected a text\n\
                 hint: give a text with -p, -f or on standard input, or ids with --tokens"
            ),
            Prompt::None if self.json => {
                bail!("no prompt for --json\nhint: give one with -p, -f, --tokens or on standard input")
            }
            prompt => Ok(prompt),
        }
    }

    /// Reads the texts to embed: the text of -p, or every line of another source.
    pub(crate) fn read_texts(&self) -> Result<Vec<Prompt>> {
        Ok(match self.read_source()? {
            Prompt::Text(text) if text.is_empty() && self.prompt.is_none() => {
                bail!("found no text, expected one in each line\nhint: -p \"\" gives an empty one")
            }
            Prompt::Text(text) if self.prompt.is_none() => {
                text.split('\n').map(|line| Prompt::Text(line.trim_end_matches('\r').into())).collect()
            }
            Prompt::None => bail!(
                "no text for --embed\nhint: give one with -p, or lines of them with -f or on standard input"
            ),
            given => vec![given],
        })
    }

    /// Returns the prompt on the command line, if there is one.
    pub(crate) fn given_prompt(&self) -> Option<Prompt> {
        let text = || self.prompt.clone().map(Prompt::Text);
        self.tokens.clone().map(Prompt::Tokens).or_else(text)
    }

    /// Returns the number of tokens to record.
    pub(crate) fn recorded_tokens(&self, default: usize) -> usize {
        self.max_tokens.unwrap_or(default).max(1)
    }

    /// Reads the prompt from the command line, a file or standard input.
    fn read_source(&self) -> Result<Prompt> {
        if let Some(tokens) = &self.tokens {
            return Ok(Prompt::Tokens(tokens.clone()));
        }
        if let Some(text) = &self.prompt {
            return Ok(Prompt::Text(text.clone()));
        }
        let (bytes, from) = match &self.file {
            Some(path) => {
                let bytes = fs::read(path).with_context(|| {
                    format!(
                        "cannot read {}\nhint: -f names a file, -p gives the prompt itself",
                        path.display()
                    )
                })?;
                (bytes, path.display().to_string())
            }
            None if is_interactive() => return Ok(Prompt::None),
            None => {
                let mut bytes = Vec::new();
                io::stdin()
                    .lock()
                    .read_to_end(&mut bytes)
                    .context("cannot read standard input\nhint: give the prompt with -p or -f")?;
                (bytes, "standard input".into())
            }
        };
        Ok(Prompt::Text(text(bytes, &from)?))
    }

    /// Returns whether each line of the input is a request of its own.
    pub(crate) fn is_offline(&self) -> bool {
        let is_jsonl =
            |path: &PathBuf| path.extension().is_some_and(|kind| kind.eq_ignore_ascii_case("jsonl"));
        self.parallel.is_some() || self.file.as_ref().is_some_and(is_jsonl)
    }

    /// Returns the number of requests in flight.
    pub(crate) fn parallel(&self) -> usize {
        self.parallel.unwrap_or(DEFAULT_PARALLEL)
    }

    /// Returns the settings of sampling that were given.
    pub(crate) fn drawing(&self) -> Drawing {
        let &Self { temp: temperature, top_k, top_p, min_p, seed, .. } = self;
        Drawing { temperature, top_k, top_p, min_p, seed }
    }

    /// Returns the seed, another one each time if none was given.
    pub(crate) fn seed(&self) -> u64 {
        // The only source of randomness in std.
        self.seed.unwrap_or_else(|| RandomState::new().hash_one(0))
    }

    /// Returns the settings of sampling; `None` is greedy.
    pub(crate) fn sampling(&self) -> Result<Option<Sampling>> {
        self.drawing().sampling(self.seed()).map_err(|error| {
            let name = if error.name == "temperature" { "temp" } else { error.name };
            anyhow!(error.message(&format!("--{}", name.replace('_', "-"))))
        })
    }

    /// Checks that the bundle has the context that was asked for. Returns the context.
    pub(crate) fn check_context(&self, bundle: &Bundle) -> Result<usize> {
        let largest = bundle.manifest().model_spec()?.context;
        let context = self.ctx_size.unwrap_or(largest);
        if context > largest {
            bail!(Error::ContextSize { asked: context, context: largest });
        }
        Ok(context)
    }

    /// Returns warnings of options that change nothing.
    pub(crate) fn without_effect(&self) -> Vec<String> {
        let mut found: Vec<String> = self.device.threads_without_effect(self.threads).into_iter().collect();
        let given = [
            ("--top-k", self.top_k.is_some()),
            ("--top-p", self.top_p.is_some()),
            ("--min-p", self.min_p.is_some()),
            ("--seed", self.seed.is_some()),
        ];
        let given: Vec<&str> =
            given.iter().filter(|(_, is_given)| *is_given).map(|(flag, _)| *flag).collect();
        if self.temp == Some(0.0) && !given.is_empty() {
            let (list, has) = (given.join(", "), if given.len() == 1 { "has" } else { "have" });
            found.push(format!("warning: {list} {has} no effect: --temp {GREEDY}"));
        }
        found
    }

    /// Returns a request without its prompt. `default` tokens apply without -n; `None` is no limit.
    pub(crate) fn request(
        &self,
        eos: Vec<u32>,
        default: Option<usize>,
        sampling: Option<Sampling>,
    ) -> Request {
        Request {
            prompt: Vec::new(),
            sampling,
            speculate: self.speculate.then(Speculation::default),
            max_tokens: self.max_tokens.or(default).unwrap_or(usize::MAX),
            eos: if self.ignore_eos { vec![] } else { eos },
            logprobs: self.logprobs,
            ..Request::default()
        }
    }

    /// Opens the bundle without its weights, and checks the signature that is required.
    pub(crate) fn open_bundle(&self) -> Result<Bundle> {
        let _span = self.timeline.span("open the bundle");
        let bundle = self.origin.open(&self.bundle)?;
        self.origin.check(&bundle)?;
        Ok(bundle)
    }

    /// Returns the options of loading the bundle.
    pub(crate) fn load_options(&self) -> LoadOptions {
        let default = if self.is_offline() && !self.embed {
            CacheSize::Sequences(self.parallel())
        } else {
            CacheSize::default()
        };
        LoadOptions {
            device: self.device,
            threads: self.threads,
            context: self.ctx_size,
            cache: self.cache_size.unwrap_or(default),
            cache_memory: None,
            trace: self.timeline.clone(),
        }
    }
}

/// Decodes a prompt, without the newline that editors and `echo` put at the end.
fn text(bytes: Vec<u8>, from: &str) -> Result<String> {
    let mut text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        anyhow!("{from} is not UTF-8 at offset {at}, expected text\nhint: convert it with iconv -t UTF-8")
    })?;
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests;
