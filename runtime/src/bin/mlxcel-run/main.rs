//! `mlxcel-run`: continues a text, chats or makes embeddings with a bundle, or calls a program's function.

mod answer;
mod chat;
mod embed;
#[path = "../shared/integer.rs"]
mod integer;
mod interrupt;
mod model;
mod numbers;
mod offline;
mod options;
#[path = "../shared/origin.rs"]
mod origin;
mod program;
#[path = "../shared/progress.rs"]
mod progress;
mod render;
mod replay;
mod self_test;
mod stdio;
#[path = "../shared/timeline.rs"]
mod timeline;

use std::{
    env,
    io::{self, Write as _},
    process::ExitCode,
    time::Instant,
};

use anyhow::{Context as _, Result, bail};
use mlxcel_artifacts::{Bundle, BundleKind, INTERRUPTED, parse_arguments, report};
use mlxcel_runtime::{
    ChatTemplate, CheckpointFiles, Error, Message, Request, Sampling, StopReason, Tokenizer, Weights,
    check_prompt, eos_ids, trace::Detail,
};

use crate::{
    answer::{Answer, Form, WRITING},
    chat::{Chat, ChatIo},
    interrupt::Interrupt,
    model::{open_engine, open_weights},
    options::{Options, Prompt},
    stdio::{is_broken_pipe, note},
};

/// The inputs of a run, collected before anything large is loaded.
struct Run<'a> {
    options: &'a Options,
    start: Instant,
    bundle: &'a Bundle,
    weights: Option<Weights>,
    files: CheckpointFiles<'a>,
    sampling: Option<Sampling>,
    interrupt: &'a Interrupt,
}

fn main() -> ExitCode {
    let mut options = parse_arguments::<Options>(env::args_os());
    let path = options.trace.clone();
    let timeline = &mut options.timeline;
    let timeline = path.as_deref().map(|path| timeline::begin(path, timeline)).transpose();
    let code = timeline.and_then(|file| {
        let code = run(&options)?;
        file.map_or(Ok(()), timeline::end)?;
        Ok(code)
    });
    match code {
        Ok(code) => code,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            note(&report(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

/// Runs the mode that the options select.
fn run(options: &Options) -> Result<ExitCode> {
    let start = Instant::now();
    let interrupt = Interrupt::install()?;
    let sampling = options.sampling()?;
    options.without_effect().iter().for_each(|warning| note(warning));
    // An error comes where the bundle is needed, after those of what is read before it.
    let bundle = options.open_bundle();
    let is_program = |bundle: &Bundle| bundle.manifest().kind == BundleKind::Program;
    if options.program.are_given() || bundle.as_ref().is_ok_and(is_program) {
        return program::run(options, bundle?);
    }
    if options.self_test {
        return self_test::run(options, bundle?);
    }
    if options.record_test {
        return self_test::record_test(options, bundle?);
    }
    if let Some(file) = &options.replay {
        return replay::run(options, file, bundle, &interrupt);
    }
    if options.embed {
        return embed::run(options, start, bundle, &interrupt);
    }
    if options.is_offline() {
        return offline::run(options, start, bundle, &interrupt);
    }
    if !options.output.is_empty() {
        bail!(
            "found -o without requests, expected a file of them\n\
             hint: give -f requests.jsonl or --parallel, or redirect the answer to one prompt with >"
        );
    }
    let prompt = options.read_prompt()?;
    let bundle = bundle?;
    // Only mapped here, so that an error of the folder comes before one of a missing tokenizer.
    let weights = open_weights(options, &bundle)?;
    let files = CheckpointFiles::new(&bundle, options.checkpoint());
    let run = Run { options, start, bundle: &bundle, weights, files, sampling, interrupt: &interrupt };
    match prompt {
        Prompt::None => converse(run),
        Prompt::Text(text) => {
            let span = options.timeline.span("read the tokenizer");
            let tokenizer = Tokenizer::from_checkpoint(&files)?;
            drop(span);
            let tokens = encode(&run, &tokenizer, text)?;
            once(run, Some(&tokenizer), &tokens)
        }
        Prompt::Tokens(tokens) => {
            let tokenizer = decoder(&run)?;
            once(run, tokenizer.as_ref(), &tokens)
        }
    }
}

/// Opens the tokenizer for an answer to token ids; `None` if the answer is written as ids.
fn decoder(run: &Run<'_>) -> Result<Option<Tokenizer>> {
    match Tokenizer::from_checkpoint(&run.files) {
        Ok(tokenizer) => Ok(Some(tokenizer)),
        // Stop texts need a tokenizer.
        Err(error) if !run.options.stop.is_empty() => bail!(error),
        Err(Error::NoTokenizer(_)) => Ok(None),
        Err(error) => {
            note(&render::ids_instead_of_text(&error));
            Ok(None)
        }
    }
}

/// Encodes a prompt as it is, or as the first message of a chat.
fn encode(run: &Run<'_>, tokenizer: &Tokenizer, text: String) -> Result<Vec<u32>> {
    let mut span = run.options.timeline.span("tokenize");
    let tokens = encode_text(run, tokenizer, text)?;
    span.set(Detail::Tokens(tokens.len() as u64));
    Ok(tokens)
}

fn encode_text(run: &Run<'_>, tokenizer: &Tokenizer, text: String) -> Result<Vec<u32>> {
    if !run.options.is_chat() {
        return Ok(tokenizer.encode(&text, true)?);
    }
    let template = ChatTemplate::from_checkpoint(&run.files)?;
    let mut messages: Vec<Message> =
        run.options.system.iter().map(|text| Message::new("system", text.as_str())).collect();
    messages.push(Message::new("user", text));
    Ok(tokenizer.encode_chat(&template, &messages.into())?)
}

/// Answers one prompt.
fn once(run: Run<'_>, tokenizer: Option<&Tokenizer>, prompt: &[u32]) -> Result<ExitCode> {
    let Run { options, start, bundle, weights, files, sampling, interrupt } = run;
    check(options, bundle, prompt)?;
    let request = options.request(eos_ids(&files)?, Some(options::DEFAULT_TOKENS), sampling);
    let request = Request { prompt: prompt.to_vec(), ..request };
    let mut engine = open_engine(options, bundle, weights)?;
    let load = start.elapsed();
    let is_message = options.is_chat();
    let form = Form { tokenizer, stops: &options.stop, is_message };
    let stdout = io::stdout();
    let answer = {
        let _answering = interrupt.answering();
        let mut sink = io::sink();
        let mut lock = stdout.lock();
        let out: &mut dyn io::Write = if options.json { &mut sink } else { &mut lock };
        answer::answer(&mut engine, request, &form, &interrupt.cancel, out)?
    };
    let Answer { generation, text } = &answer;
    let device = &engine.device().name;
    if options.json {
        let seed = sampling.map(|sampling| sampling.seed);
        let facts = render::Facts { prompt, bundle: &options.bundle, device, load, seed };
        let object = render::json(&facts, generation, text.as_deref());
        writeln!(stdout.lock(), "{object}").context(WRITING)?;
    } else if !text.as_ref().is_some_and(|text| text.ends_with('\n')) {
        writeln!(stdout.lock()).context(WRITING)?;
    }
    note(&render::timing(device, load, generation));
    if generation.stop_reason == StopReason::Context {
        note(&render::cut_short(engine.limits().context, render::LARGER_CONTEXT));
    }
    let interrupted = generation.stop_reason == StopReason::Cancelled;
    Ok(if interrupted { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}

/// Holds a chat on the terminal.
fn converse(run: Run<'_>) -> Result<ExitCode> {
    let Run { options, start: _, bundle, weights, files, sampling, interrupt } = run;
    let tokenizer = Tokenizer::from_checkpoint(&files)?;
    let template = match ChatTemplate::from_checkpoint(&files) {
        Err(Error::NoChatTemplate(_)) if !options.is_chat() => None,
        found => Some(found?),
    };
    let request = options.request(eos_ids(&files)?, None, sampling);
    let mut engine = open_engine(options, bundle, weights)?;
    note(&format!(
        "{} on {}: {} · /help lists commands, Ctrl-C stops an answer, Ctrl-D ends",
        bundle.manifest().model,
        engine.device().name,
        if template.is_some() { "chat" } else { "no chat template, each line is continued as text" },
    ));
    let mut chat = Chat::new(&tokenizer, template, options.system.clone(), request, &options.stop);
    chat.run(&mut ChatIo {
        engine: &mut engine,
        interrupt,
        input: &mut io::stdin().lock(),
        out: &mut io::stdout().lock(),
        notes: &mut io::stderr(),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Checks that the bundle can take the prompt, before anything large is loaded.
fn check(options: &Options, bundle: &Bundle, prompt: &[u32]) -> Result<()> {
    let context = options.check_context(bundle)?;
    Ok(check_prompt(context, bundle.manifest().model_spec()?.vocab, prompt)?)
}
