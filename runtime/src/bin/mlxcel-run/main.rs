//! `mlxcel-run`: continues a text, or chats, with a bundle.

mod answer;
mod chat;
mod interrupt;
mod options;
mod render;

use std::{
    io::{self, IsTerminal as _, Write as _},
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use clap::Parser as _;
use mlxcel_artifacts::{Bundle, report};
use mlxcel_runtime::{
    Capabilities, ChatTemplate, Error, Message, Sampler, Session, StopReason, Tokenizer, Weights,
    check_append, eos_ids, load,
};

use crate::{
    answer::{Answer, Request},
    interrupt::Interrupt,
    options::{Options, Prompt},
};

/// What a shell expects of a program that Ctrl-C ended.
const INTERRUPTED: u8 = 130;

/// A bundle that is ready to answer.
struct Model {
    bundle: Bundle,
    session: Box<dyn Session>,
    load: Duration,
}

fn main() -> ExitCode {
    let options = Options::parse();
    match run(&options) {
        Ok(code) => code,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            note(&report(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<ExitCode> {
    let start = Instant::now();
    let interrupt = Interrupt::install()?;
    let sampler = options.sampler()?;
    let prompt = options.read_prompt()?;
    let bundle = Bundle::open(&options.bundle)?;
    let tokenizer = match &prompt {
        // Without text in or out there is nothing to tokenize.
        Prompt::Tokens(_) if bundle.file("tokenizer.json").is_none() => None,
        _ => Some(Tokenizer::of_bundle(&bundle)?),
    };
    match (prompt, tokenizer) {
        (Prompt::None, Some(tokenizer)) => converse(options, start, bundle, &tokenizer, sampler, &interrupt),
        (Prompt::None, None) => bail!("no prompt"),
        (Prompt::Tokens(tokens), tokenizer) => {
            if tokenizer.is_none() && !options.stop.is_empty() {
                bail!(Error::NoTokenizer(options.bundle.clone()));
            }
            once(options, start, bundle, tokenizer.as_ref(), &tokens, sampler, &interrupt)
        }
        (Prompt::Text(text), tokenizer) => {
            let tokens = encode(options, &bundle, tokenizer.as_ref(), text)?;
            once(options, start, bundle, tokenizer.as_ref(), &tokens, sampler, &interrupt)
        }
    }
}

/// The tokens of a prompt, as it is or as the first message of a chat.
fn encode(
    options: &Options,
    bundle: &Bundle,
    tokenizer: Option<&Tokenizer>,
    text: String,
) -> Result<Vec<u32>> {
    let Some(tokenizer) = tokenizer else { bail!(Error::NoTokenizer(options.bundle.clone())) };
    if !options.is_chat() {
        return Ok(tokenizer.encode(&text, true)?);
    }
    let template = ChatTemplate::of_bundle(bundle)?;
    let mut messages: Vec<Message> =
        options.system.iter().map(|text| Message::new("system", text.as_str())).collect();
    messages.push(Message::new("user", text));
    Ok(tokenizer.encode(&template.render(&messages)?, false)?)
}

/// One prompt, one answer.
fn once(
    options: &Options,
    start: Instant,
    bundle: Bundle,
    tokenizer: Option<&Tokenizer>,
    prompt: &[u32],
    mut sampler: Option<Sampler>,
    interrupt: &Interrupt,
) -> Result<ExitCode> {
    check_prompt(options, &bundle, prompt)?;
    let limits = options.limits(eos_ids(&bundle)?, Some(options::DEFAULT_TOKENS));
    let mut model = open(options, start, bundle)?;
    let is_message = options.is_chat();
    let request = Request { tokenizer, prompt, limits: &limits, stops: &options.stop, is_message };
    let stdout = io::stdout();
    let answer = {
        let _answering = interrupt.answering();
        let mut sink = io::sink();
        let mut lock = stdout.lock();
        let out: &mut dyn io::Write = if options.json { &mut sink } else { &mut lock };
        answer::answer(model.session.as_mut(), &request, sampler.as_mut(), &interrupt.cancel, out)?
    };
    let Answer { generation, text } = &answer;
    if options.json {
        let facts = render::Facts {
            prompt,
            bundle: &options.bundle,
            device: &model.session.capabilities().device,
            load: model.load,
            seed: sampler.as_ref().map(Sampler::seed),
        };
        writeln!(stdout.lock(), "{}", render::json(&facts, generation, text.as_deref()))?;
    } else if !text.as_ref().is_some_and(|text| text.ends_with('\n')) {
        writeln!(stdout.lock())?;
    }
    note(&render::timing(&model.session.capabilities().device, model.load, generation));
    let interrupted = generation.stop_reason == StopReason::Cancelled;
    Ok(if interrupted { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}

/// A chat on the terminal.
fn converse(
    options: &Options,
    start: Instant,
    bundle: Bundle,
    tokenizer: &Tokenizer,
    sampler: Option<Sampler>,
    interrupt: &Interrupt,
) -> Result<ExitCode> {
    let template = match ChatTemplate::of_bundle(&bundle) {
        Err(Error::NoChatTemplate(_)) if !options.is_chat() => None,
        found => Some(found?),
    };
    let limits = options.limits(eos_ids(&bundle)?, None);
    let mut model = open(options, start, bundle)?;
    note(&format!(
        "{} on {}: {} · Ctrl-C stops an answer, Ctrl-D ends",
        model.bundle.manifest().model,
        model.session.capabilities().device,
        if template.is_some() { "chat" } else { "no chat template, every line is continued as text" },
    ));
    let mut chat = chat::Chat::new(tokenizer, template, options.system.clone(), limits, &options.stop);
    let (mut input, mut out) = (io::stdin().lock(), io::stdout().lock());
    chat.run(model.session.as_mut(), sampler, interrupt, &mut input, &mut out, &mut io::stderr())?;
    Ok(ExitCode::SUCCESS)
}

/// Before anything large is loaded: whether the bundle can take the prompt at all.
fn check_prompt(options: &Options, bundle: &Bundle, prompt: &[u32]) -> Result<()> {
    let plan = &bundle.manifest().plan;
    let context = options.ctx_size.map_or(plan.context, usize::from);
    if context > plan.context {
        bail!(Error::Context { asked: context, context: plan.context });
    }
    if prompt.is_empty() {
        bail!(
            "{}\nhint: give a text with -p, -f or on standard input, or ids with --tokens",
            Error::NoTokens
        );
    }
    let capabilities =
        Capabilities { context, vocab: plan.vocab, prefill: vec![], decode: vec![], device: String::new() };
    Ok(check_append(&capabilities, 0, prompt)?)
}

fn open(options: &Options, start: Instant, bundle: Bundle) -> Result<Model> {
    let weights = match &options.weights {
        Some(file) if file.is_file() => Weights::open(std::slice::from_ref(file))?,
        Some(folder) => Weights::in_folder(folder)?,
        None => Weights::of_bundle(&bundle)?,
    };
    let unused = weights.check(&bundle.manifest().parameters)?;
    if !unused.is_empty() {
        note(&render::unused(&unused));
    }
    let session = load(&bundle, weights, &options.load_options())?;
    Ok(Model { bundle, session, load: start.elapsed() })
}

/// Says something on stderr. That nobody hears it is no error.
fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Whether the reader of our output has gone: `mlxcel-run b -p x | head`.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
}

/// Whether a person sits in front of stdin.
fn is_interactive() -> bool {
    io::stdin().is_terminal()
}
