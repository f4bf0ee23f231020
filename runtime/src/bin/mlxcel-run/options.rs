//! The command line.

use std::{
    fs,
    hash::{BuildHasher as _, RandomState},
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, anyhow, bail};
use clap::Parser;
use mlxcel_artifacts::Bundle;
use mlxcel_runtime::{DeviceSpec, Error, GenerateOptions, LoadOptions, Sampler, Sampling};

use crate::{
    integer::integer,
    numbers::{number, stop_text},
    origin::Origin,
    stdio::is_interactive,
};

/// The most tokens of one answer when -n does not say.
pub(crate) const DEFAULT_TOKENS: usize = 128;

/// What matters only where a text is continued for somebody: neither to an embedding nor to a self-test.
const OF_ANSWERS: [&str; 10] =
    ["temp", "top_k", "top_p", "min_p", "seed", "ignore_eos", "stop", "chat", "system", "logprobs"];

/// What a value of an option of sampling would mean.
const GREEDY: &str = "0 always takes the most likely token";
const ALL_TOKENS_AT_0: &str = "0 draws from all tokens";
const ALL_TOKENS_AT_1: &str = "1 draws from all tokens";

/// Continues a text, or chats, with a bundle that mlxcel-compile made.
///
/// The text goes to stdout as it is made, everything else to stderr; without a tokenizer token ids are written. Without
/// -p, -f and --tokens the prompt is read from standard input; on a terminal that is a chat, line by line.
#[derive(Debug, Parser)]
#[command(name = "mlxcel-run", version)]
pub(crate) struct Options {
    /// The bundle's folder, or its name in the store
    pub(crate) bundle: PathBuf,

    /// The prompt: a text to continue, or with --chat a message.
    #[arg(short, long, value_name = "TEXT", group = "source", allow_hyphen_values = true)]
    prompt: Option<String>,
    /// Read the prompt from a file, without the newline at its end.
    #[arg(short, long, value_name = "FILE", group = "source")]
    file: Option<PathBuf>,
    /// The prompt as token ids; no special ones are added.
    #[arg(
        long,
        value_name = "IDS",
        group = "source",
        value_delimiter = ',',
        allow_hyphen_values = true,
        value_parser = integer::<u32>(0..=u32::MAX.into(), "separate token ids by commas: 1,2,3"),
        conflicts_with_all = ["chat", "system"]
    )]
    tokens: Option<Vec<u32>>,

    /// At most so many tokens [default: 128; in a chat on the terminal as many as fit].
    #[arg(short = 'n', long = "n-predict", value_name = "N", allow_negative_numbers = true, value_parser =
        integer::<usize>(0..=u64::MAX, "a large number goes on until the text ends or the context is full"))]
    max_tokens: Option<usize>,
    /// The checkpoint's folder, or a safetensors file [default: the weights in the bundle].
    ///
    /// The folder's tokenizer.json, tokenizer_config.json, chat_template.jinja and generation_config.json are used where
    /// the bundle carries none.
    #[arg(long, value_name = "PATH")]
    pub(crate) weights: Option<PathBuf>,
    /// Tokens of context [default: what the bundle was compiled for].
    #[arg(short, long, value_name = "N", allow_negative_numbers = true, value_parser =
        integer::<usize>(1..=u64::MAX, "leave it out for all of the context that the bundle was compiled for"))]
    pub(crate) ctx_size: Option<usize>,

    /// Temperature; 0 always takes the most likely token [default: 0, or 1 with another option of sampling].
    #[arg(long, value_name = "T", allow_negative_numbers = true, value_parser = number("0 or more", GREEDY))]
    temp: Option<f32>,
    /// Draw from the K most likely tokens; 0 is all.
    #[arg(long, value_name = "K", allow_negative_numbers = true, value_parser =
        integer::<usize>(0..=u64::MAX, ALL_TOKENS_AT_0))]
    top_k: Option<usize>,
    /// Draw from the most likely tokens that have this probability together; 1 is all.
    #[arg(long, value_name = "P", allow_negative_numbers = true, value_parser =
        number("above 0 and at most 1", ALL_TOKENS_AT_1))]
    top_p: Option<f32>,
    /// Draw from tokens with at least this share of the best one's probability; 0 is all.
    #[arg(long, value_name = "P", allow_negative_numbers = true, value_parser =
        number("0 to 1", ALL_TOKENS_AT_0))]
    min_p: Option<f32>,
    /// Where the random numbers start: the same seed gives the same text [default: another one each time].
    #[arg(long, value_name = "SEED", allow_negative_numbers = true, value_parser =
        integer::<u64>(0..=u64::MAX, "leave it out for another seed each time"))]
    seed: Option<u64>,

    /// Go on after the model says that the text ends.
    #[arg(long)]
    ignore_eos: bool,
    /// End before this text; may be given several times.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, value_parser = stop_text)]
    pub(crate) stop: Vec<String>,
    /// The prompt is a message, written as the checkpoint's chat template says.
    #[arg(long)]
    chat: bool,
    /// What a chat starts with; implies --chat.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) system: Option<String>,

    /// What to run on: auto, local-task, local-sync, cuda or cuda:1, vulkan or vulkan:1.
    ///
    /// auto is the best that is here and that the bundle has a target for: CUDA, a GPU by Vulkan, the CPU. local-task is
    /// the CPU with several threads, local-sync with one.
    #[arg(long, default_value_t)]
    device: DeviceSpec,
    /// Threads of local-task [default: one for each physical core].
    #[arg(short, long, value_name = "THREADS", allow_negative_numbers = true, value_parser =
        integer::<usize>(1..=u64::MAX, "leave it out for one thread for each physical core"))]
    threads: Option<usize>,

    /// With --json: the K best ids of every token, with their log-probabilities.
    #[arg(long, value_name = "K", requires = "json", allow_negative_numbers = true, value_parser =
        integer::<usize>(1..=u64::MAX, "leave it out to record none"))]
    logprobs: Option<usize>,
    /// One JSON object at the end instead of text.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) origin: Origin,

    /// Replay what was recorded of the model, and say whether it answers alike on this device.
    #[arg(long, conflicts_with_all = OF_ANSWERS, conflicts_with_all = ["json", "source", "max_tokens", "record_test", "embed"])]
    pub(crate) self_test: bool,
    /// Record in the bundle what the model answers here, for --self-test: to the prompt given, or to usual ones.
    #[arg(long, conflicts_with_all = OF_ANSWERS, conflicts_with_all = ["json", "embed"])]
    pub(crate) record_test: bool,

    /// Write the embedding of a text instead of continuing it, of a bundle that makes embeddings.
    ///
    /// -p gives one text; of a file or of standard input every line is one. Each gets a line of numbers, or with --json an
    /// object in a line of its own. A text longer than the context is cut.
    #[arg(long, conflicts_with_all = OF_ANSWERS, conflicts_with = "max_tokens")]
    pub(crate) embed: bool,
}

/// What to start from.
#[derive(Debug, PartialEq)]
pub(crate) enum Prompt {
    Text(String),
    Tokens(Vec<u32>),
    /// A person at a terminal will say.
    None,
}

impl Options {
    /// Whether prompts are messages.
    pub(crate) fn is_chat(&self) -> bool {
        self.chat || self.system.is_some()
    }

    /// The folder of --weights, which has the checkpoint's other files too.
    pub(crate) fn checkpoint(&self) -> Option<&Path> {
        self.weights.as_deref().filter(|path| !path.is_file())
    }

    pub(crate) fn read_prompt(&self) -> Result<Prompt> {
        match self.read_source()? {
            // A chat may open with a message that is empty; there is nothing to continue of an empty text.
            Prompt::Text(text) if text.is_empty() && !self.is_chat() => bail!(
                "the prompt is empty, expected a text\n\
                 hint: give one with -p, -f or on standard input, or with --tokens the ids to begin with"
            ),
            Prompt::None if self.json => {
                bail!("no prompt for --json\nhint: give one with -p, -f, --tokens or on standard input")
            }
            prompt => Ok(prompt),
        }
    }

    /// What to embed: the one text of -p, or every line of another source.
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

    /// The prompt on the command line, if there is one.
    pub(crate) fn given_prompt(&self) -> Option<Prompt> {
        let text = || self.prompt.clone().map(Prompt::Text);
        self.tokens.clone().map(Prompt::Tokens).or_else(text)
    }

    /// How many tokens to record.
    pub(crate) fn recorded_tokens(&self, default: usize) -> usize {
        self.max_tokens.unwrap_or(default).max(1)
    }

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
                io::stdin().lock().read_to_end(&mut bytes).context("cannot read standard input")?;
                (bytes, "standard input".into())
            }
        };
        Ok(Prompt::Text(text(bytes, &from)?))
    }

    /// `None` is greedy.
    pub(crate) fn sampler(&self) -> Result<Option<Sampler>> {
        let &Self { temp, top_k, top_p, min_p, seed, .. } = self;
        let asked = top_k.is_some() || top_p.is_some() || min_p.is_some() || seed.is_some();
        let temperature = temp.unwrap_or(if asked { 1.0 } else { 0.0 });
        if !temperature.is_finite() || temperature < 0.0 {
            bail!("--temp is {temperature}, expected 0 or more\nhint: {GREEDY}");
        }
        let all = Sampling::default();
        let settings = Sampling {
            temperature: if temperature > 0.0 { temperature } else { all.temperature },
            top_k: top_k.unwrap_or(all.top_k),
            top_p: top_p.unwrap_or(all.top_p),
            min_p: min_p.unwrap_or(all.min_p),
            // The one source of chance that std has.
            seed: seed.unwrap_or_else(|| RandomState::new().hash_one(0)),
        };
        // Settings that mean nothing are refused even where they would not be used.
        let sampler = Sampler::new(settings).map_err(|error| match error {
            Error::BadSampling { name: "top_p", value, expected } => {
                anyhow!("--top-p is {value}, expected {expected}\nhint: {ALL_TOKENS_AT_1}")
            }
            Error::BadSampling { name: "min_p", value, expected } => {
                anyhow!("--min-p is {value}, expected {expected}\nhint: {ALL_TOKENS_AT_0}")
            }
            other => other.into(),
        })?;
        Ok((temperature > 0.0).then_some(sampler))
    }

    /// Warnings of options that change nothing.
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

    /// How much to generate; `default` is for where -n does not say, `None` no limit.
    pub(crate) fn limits(&self, eos: Vec<u32>, default: Option<usize>) -> GenerateOptions {
        GenerateOptions {
            max_tokens: self.max_tokens.or(default).unwrap_or(usize::MAX),
            eos: if self.ignore_eos { vec![] } else { eos },
            logprobs: self.logprobs.unwrap_or(0),
        }
    }

    /// The bundle, without its weights, if it may be run.
    pub(crate) fn open_bundle(&self) -> Result<Bundle> {
        let bundle = Bundle::open_without_weights(&self.bundle)?;
        self.origin.check(&bundle)?;
        Ok(bundle)
    }

    pub(crate) fn load_options(&self) -> LoadOptions {
        LoadOptions { device: self.device, threads: self.threads, context: self.ctx_size }
    }
}

/// A prompt without the newline that editors and `echo` put at the end.
fn text(bytes: Vec<u8>, from: &str) -> Result<String> {
    let mut text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        anyhow!(
            "{from} has bytes that are not utf-8 at offset {at}, expected text\nhint: convert it to utf-8"
        )
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
