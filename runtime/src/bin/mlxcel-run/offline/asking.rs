//! What a line asks of the engine.

use anyhow::{Result, bail};
use mlxcel_artifacts::report;
use mlxcel_runtime::{
    ChatTemplate, CheckpointFiles, Drawing, Error, GREEDY, Message, Request, TextStream, Tokenizer, eos_ids,
};
use serde_json::Value;

use super::{
    fields::{self, Fields, Prompt},
    lines::{LONGEST, Line},
};
use crate::{
    options::{DEFAULT_TOKENS, Options},
    render,
    stdio::note,
};

/// Turns lines into requests, with what the command line says as defaults.
pub(super) struct Asker {
    /// The tokenizer, or why there is none.
    tokenizer: Result<Tokenizer, String>,
    /// The chat template, or why there is none.
    template: Result<ChatTemplate, String>,
    is_chat: bool,
    system: Option<String>,
    drawing: Drawing,
    /// The seed of a line without one is this plus its number.
    seed: u64,
    stop: Vec<String>,
    eos: Vec<u32>,
    /// Everything else, without a prompt.
    request: Request,
}

/// A request for the engine, and how its answer is read.
pub(super) struct Asked {
    pub(super) request: Request,
    /// Decodes the answer; `None` without a tokenizer.
    pub(super) stream: Option<TextStream>,
}

impl Asker {
    /// Reads the checkpoint's small files.
    pub(super) fn new(options: &Options, files: &CheckpointFiles<'_>) -> Result<Self> {
        let tokenizer = match Tokenizer::from_checkpoint(files) {
            Ok(tokenizer) => Ok(tokenizer),
            // Every line needs it.
            Err(error) if !options.stop.is_empty() || options.is_chat() => bail!(error),
            Err(error) => {
                if !matches!(error, Error::NoTokenizer(_)) {
                    note(&render::ids_instead_of_text(&error));
                }
                Err(without_tokenizer(&error))
            }
        };
        let template = match ChatTemplate::from_checkpoint(files) {
            Err(error) if options.is_chat() => bail!(error),
            found => found.map_err(|error| without_template(&error)),
        };
        Ok(Self::with(options, tokenizer, template, eos_ids(files)?))
    }

    /// Takes the defaults of the options.
    pub(super) fn with(
        options: &Options,
        tokenizer: Result<Tokenizer, String>,
        template: Result<ChatTemplate, String>,
        eos: Vec<u32>,
    ) -> Self {
        Self {
            tokenizer,
            template,
            is_chat: options.is_chat(),
            system: options.system.clone(),
            drawing: options.drawing(),
            seed: options.seed(),
            stop: options.stop.clone(),
            request: options.request(eos.clone(), Some(DEFAULT_TOKENS), None),
            eos,
        }
    }

    /// Returns the id of a line if it has one, and its request.
    pub(super) fn ask(&self, line: &Line) -> (Option<Value>, Result<Asked, String>) {
        if line.is_too_long {
            let error = format!(
                "the line is longer than {} MiB, expected at most that\n\
                 hint: write each request in one line of its own",
                LONGEST >> 20
            );
            return (None, Err(error));
        }
        let (id, fields) = fields::parse(&line.text);
        (id, fields.and_then(|fields| self.request(line.number, fields)))
    }

    fn request(&self, number: u64, fields: Fields) -> Result<Asked, String> {
        let Fields { prompt, max_tokens, drawing, stop, logprobs, ignore_eos } = fields;
        let own_seed = drawing.seed;
        let drawing = drawing.or(self.drawing);
        if let Some(seed) = own_seed.filter(|_| drawing.temperature() == 0.0) {
            return Err(format!(
                "found the seed {seed} and temperature 0, expected no seed\n\
                 hint: {}: leave out the seed, or raise the temperature",
                GREEDY
            ));
        }
        let seed = own_seed.unwrap_or(self.seed.wrapping_add(number));
        let sampling = drawing.sampling(seed).map_err(|error| error.message(error.name))?;
        let has_stop = stop.as_ref().is_some_and(|stop| !stop.is_empty());
        let is_message = match prompt {
            Prompt::Text(_) => self.is_chat,
            Prompt::Messages(_) => true,
            Prompt::Tokens(_) => false,
        };
        let prompt = self.encode(prompt)?;
        let stream = match &self.tokenizer {
            Ok(tokenizer) => {
                let before = if is_message { &[][..] } else { &prompt };
                let stops = stop.as_ref().unwrap_or(&self.stop);
                Some(tokenizer.stream(before, stops).map_err(|error| message(&error))?)
            }
            Err(reason) if has_stop => return Err(reason.clone()),
            Err(_) => None,
        };
        let defaults = self.request.clone();
        let eos = match ignore_eos {
            Some(true) => vec![],
            Some(false) => self.eos.clone(),
            None => defaults.eos,
        };
        let request = Request {
            prompt,
            max_tokens: max_tokens.unwrap_or(defaults.max_tokens),
            eos,
            sampling,
            logprobs: logprobs.or(defaults.logprobs).filter(|&count| count > 0),
            speculate: defaults.speculate,
            ..Request::default()
        };
        Ok(Asked { request, stream })
    }

    /// Returns the tokens of a prompt, at least one.
    fn encode(&self, prompt: Prompt) -> Result<Vec<u32>, String> {
        let with_template = |messages: Vec<Message>| {
            let (template, tokenizer) = (self.template()?, self.tokenizer()?);
            tokenizer.encode_chat(template, &messages.into()).map_err(|error| match error {
                Error::ChatTemplate(_) => refused_chat(&error),
                error => message(&error),
            })
        };
        let system = self.system.iter().map(|text| Message::new("system", text.as_str()));
        let tokens = match prompt {
            Prompt::Tokens(tokens) => tokens,
            Prompt::Messages(messages) if messages[0].role == "system" => with_template(messages)?,
            Prompt::Messages(messages) => with_template(system.chain(messages).collect())?,
            Prompt::Text(text) if self.is_chat => {
                with_template(system.chain([Message::new("user", text)]).collect())?
            }
            Prompt::Text(text) if text.is_empty() => {
                return Err("the prompt is empty, expected a text\nhint: messages may be empty texts".into());
            }
            Prompt::Text(text) => self.tokenizer()?.encode(&text, true).map_err(|error| message(&error))?,
        };
        if tokens.is_empty() {
            return Err("the prompt has no tokens, expected at least one\nhint: give a longer text".into());
        }
        Ok(tokens)
    }

    fn tokenizer(&self) -> Result<&Tokenizer, String> {
        self.tokenizer.as_ref().map_err(Clone::clone)
    }

    fn template(&self) -> Result<&ChatTemplate, String> {
        self.template.as_ref().map_err(Clone::clone)
    }
}

/// Renders an error as the text of an answer's `error`.
pub(super) fn message(error: &(dyn std::error::Error + 'static)) -> String {
    let report = report(error);
    report.strip_prefix("error: ").map(str::to_owned).unwrap_or(report)
}

/// Renders an error without its hints, which name options that no line has.
fn reason(error: &Error) -> String {
    message(error).lines().next().unwrap_or_default().to_owned()
}

fn without_tokenizer(error: &Error) -> String {
    format!(
        "{}, to read texts and stop texts\n\
         hint: give the prompt as tokens, or name a checkpoint's folder that has a tokenizer with --weights",
        reason(error)
    )
}

fn without_template(error: &Error) -> String {
    format!("{}\nhint: give a prompt in place of messages", reason(error))
}

fn refused_chat(error: &Error) -> String {
    format!("{}\nhint: check the order of the roles, or give a prompt in place of messages", reason(error))
}
