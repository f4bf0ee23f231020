//! `--embed`: writes embeddings of texts, batch by batch.

use std::{
    io::{self, BufWriter, IsTerminal as _, Write},
    path::Path,
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use indicatif::ProgressBar;
use mlxcel_artifacts::{Bundle, INTERRUPTED};
use mlxcel_runtime::{Cancel, CheckpointFiles, Encoder, Error, Tokenizer, Trace, load_encoder};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    interrupt::Interrupt,
    model::{check_weights, note_packing, open_weights},
    options::{Options, Prompt},
    progress::bar,
    render,
    stdio::note,
};

/// How many of the largest calls the texts of a batch fill: enough that few rows of a batch's last call are free, and few
/// enough that Ctrl-C ends soon.
const CALLS_OF_A_BATCH: usize = 8;

/// The most texts of a batch, however short they are.
const MAX_TEXTS: usize = 512;

/// A text as tokens.
struct Encoded {
    tokens: Vec<u32>,
    /// True if the text was longer than the context.
    is_truncated: bool,
}

/// The embedding of one text.
struct Answer<'a> {
    text: &'a Encoded,
    embedding: &'a [f32],
    /// The texts of the batch.
    batch: usize,
    /// The time that the device took for the batch.
    took: Duration,
}

/// Facts about a run that are not part of an embedding.
struct Facts<'a> {
    bundle: &'a Path,
    device: &'a str,
    load: Duration,
    json: bool,
}

/// Totals of a run.
#[derive(Debug, Default)]
struct Totals {
    texts: usize,
    tokens: usize,
    /// The time of everything after loading: encoding, computing and writing.
    took: Duration,
    is_cancelled: bool,
}

/// Embeds the texts of the options.
pub(crate) fn run(
    options: &Options,
    start: Instant,
    bundle: Result<Bundle>,
    interrupt: &Interrupt,
) -> Result<ExitCode> {
    let texts = options.read_texts()?;
    let bundle = bundle?;
    let weights = open_weights(options, &bundle)?;
    let files = CheckpointFiles::new(&bundle, options.checkpoint());
    let has_text = texts.iter().any(|text| matches!(text, Prompt::Text(_)));
    let tokenizer = has_text.then(|| Tokenizer::from_checkpoint(&files)).transpose()?;
    check_weights(&bundle, weights.as_ref())?;
    options.origin.note(&bundle)?;
    let timeline = &options.timeline;
    let span = timeline.span("load");
    let mut encoder = load_encoder(&bundle, weights, &options.load_options())?;
    drop(span);
    note_packing(options, &bundle, encoder.device().packed_at_load);
    let (device, load) = (encoder.device().name.clone(), start.elapsed());
    let facts = Facts { bundle: &options.bundle, device: &device, load, json: options.json };
    let _answering = interrupt.answering();
    let bar = match io::stdout().is_terminal() {
        // Embeddings go there.
        true => ProgressBar::hidden(),
        false => bar(Some(texts.len() as u64), "embedding {bar:30} {pos} of {len} texts, {eta} left"),
    };
    let mut output = Output { out: &mut BufWriter::new(io::stdout().lock()), bar: &bar, timeline };
    let totals = embed(encoder.as_mut(), tokenizer.as_ref(), &texts, &facts, &interrupt.cancel, &mut output);
    bar.finish_and_clear();
    let totals = totals?;
    note(&timing(&facts, &totals));
    Ok(if totals.is_cancelled { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}

/// Where embeddings and notes go.
struct Output<'a> {
    out: &'a mut dyn Write,
    bar: &'a ProgressBar,
    timeline: &'a Trace,
}

/// Writes a line for each text, after every batch. Texts that are not token ids need the tokenizer.
fn embed(
    encoder: &mut dyn Encoder,
    tokenizer: Option<&Tokenizer>,
    texts: &[Prompt],
    facts: &Facts<'_>,
    cancel: &Cancel,
    output: &mut Output<'_>,
) -> Result<Totals> {
    let limits = encoder.limits();
    let context = limits.context;
    let most_tokens = CALLS_OF_A_BATCH * limits.rows.last().copied().unwrap_or(context);
    let start = Instant::now();
    let mut totals = Totals::default();
    while totals.texts < texts.len() {
        if cancel.is_cancelled() {
            totals.is_cancelled = true;
            break;
        }
        let span = output.timeline.span("tokenize");
        let batch = encode_batch(&texts[totals.texts..], tokenizer, context, most_tokens)?;
        drop(span);
        for (index, _) in batch.iter().enumerate().filter(|(_, text)| text.is_truncated) {
            output.bar.suspend(|| note(&truncated(totals.texts + index, context)));
        }
        embed_batch(encoder, &batch, totals.texts, facts, output)?;
        totals.texts += batch.len();
        totals.tokens += batch.iter().map(|text| text.tokens.len()).sum::<usize>();
        output.bar.set_position(totals.texts as u64);
    }
    Ok(Totals { took: start.elapsed(), ..totals })
}

/// Encodes the first texts, at least one, up to [`MAX_TEXTS`] or the first that brings them to `most_tokens`.
fn encode_batch(
    texts: &[Prompt],
    tokenizer: Option<&Tokenizer>,
    context: usize,
    most_tokens: usize,
) -> Result<Vec<Encoded>> {
    let (mut batch, mut count) = (Vec::new(), 0);
    for text in texts.iter().take(MAX_TEXTS) {
        let (tokens, is_truncated) = match (text, tokenizer) {
            (Prompt::Text(text), Some(tokenizer)) => tokenizer.encode_within(text, context)?,
            (Prompt::Tokens(tokens), _) => (tokens.clone(), false),
            (Prompt::Text(_) | Prompt::None, _) => (Vec::new(), false),
        };
        count += tokens.len();
        batch.push(Encoded { tokens, is_truncated });
        if count >= most_tokens {
            break;
        }
    }
    Ok(batch)
}

/// Embeds a batch and writes its lines. `first` texts came before it.
fn embed_batch(
    encoder: &mut dyn Encoder,
    batch: &[Encoded],
    first: usize,
    facts: &Facts<'_>,
    output: &mut Output<'_>,
) -> Result<()> {
    let tokens: Vec<&[u32]> = batch.iter().map(|text| text.tokens.as_slice()).collect();
    let start = Instant::now();
    let span = output.timeline.span("embed");
    let embeddings = encoder.embed(&tokens).map_err(|error| match error {
        Error::Text { index, reason } => Error::Text { index: first + index, reason },
        other => other,
    })?;
    let took = start.elapsed();
    drop(span);
    let _span = output.timeline.span("write the embeddings");
    for (text, embedding) in batch.iter().zip(&embeddings) {
        let answer = Answer { text, embedding, batch: batch.len(), took };
        let line = if facts.json { as_json(&answer, facts)? } else { as_text(embedding) };
        writeln!(output.out, "{line}").context(WRITING)?;
    }
    output.out.flush().context(WRITING)
}

/// The context of an error of stdout.
const WRITING: &str =
    "cannot write the embedding to standard output\nhint: df -h shows whether the disk it goes to is full";

/// Renders each number with the fewest digits that parse to the same number.
fn as_text(embedding: &[f32]) -> String {
    embedding.iter().map(f32::to_string).collect::<Vec<_>>().join(" ")
}

/// Renders the object of `--json`, whose numbers have the fewest digits too.
fn as_json(answer: &Answer<'_>, facts: &Facts<'_>) -> serde_json::Result<String> {
    #[derive(Serialize)]
    struct Object<'a> {
        prompt_tokens: &'a [u32],
        truncated: bool,
        embedding: &'a [f32],
        timings: Value,
        device: &'a str,
        bundle: String,
    }
    serde_json::to_string(&Object {
        prompt_tokens: &answer.text.tokens,
        truncated: answer.text.is_truncated,
        embedding: answer.embedding,
        timings: json!({
            "load_ms": render::ms(facts.load),
            "embed_ms": render::ms(answer.took),
            "batch": answer.batch,
        }),
        device: facts.device,
        bundle: facts.bundle.display().to_string(),
    })
}

/// Warns that a text was truncated.
fn truncated(index: usize, context: usize) -> String {
    format!("warning: text {} is longer than the context of {context} tokens and was truncated", index + 1)
}

/// Renders the line of timings on stderr.
fn timing(facts: &Facts<'_>, &Totals { texts, tokens, took, .. }: &Totals) -> String {
    let rate = |count: usize| match took.is_zero() {
        true => "-".into(),
        false => format!("{:.1}", count as f64 / took.as_secs_f64()),
    };
    format!(
        "{} · load {:.2} s · {texts} text{}, {tokens} tokens in {:.1} ms, {} texts/s, {} tok/s",
        facts.device,
        facts.load.as_secs_f64(),
        if texts == 1 { "" } else { "s" },
        took.as_secs_f64() * 1e3,
        rate(texts),
        rate(tokens),
    )
}

#[cfg(test)]
mod tests;
