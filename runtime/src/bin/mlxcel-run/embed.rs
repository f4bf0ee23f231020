//! `--embed`: writes embeddings of texts.

use std::{
    io::{self, Write},
    path::Path,
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use mlxcel_artifacts::INTERRUPTED;
use mlxcel_runtime::{Cancel, CheckpointFiles, Encoder, Tokenizer, load_encoder};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    interrupt::Interrupt,
    model::{check_weights, note_packing, open_weights},
    options::{Options, Prompt},
    render,
    stdio::note,
};

/// The embedding of one text.
struct Answer<'a> {
    tokens: &'a [u32],
    /// True if the text was longer than the context.
    is_truncated: bool,
    embedding: &'a [f32],
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
    took: Duration,
    is_cancelled: bool,
}

/// Embeds the texts of the options, one after the other.
pub(crate) fn run(options: &Options, start: Instant, interrupt: &Interrupt) -> Result<ExitCode> {
    let texts = options.read_texts()?;
    let bundle = options.open_bundle()?;
    let weights = open_weights(options, &bundle)?;
    let files = CheckpointFiles::new(&bundle, options.checkpoint());
    let has_text = texts.iter().any(|text| matches!(text, Prompt::Text(_)));
    let tokenizer = has_text.then(|| Tokenizer::from_checkpoint(&files)).transpose()?;
    check_weights(&bundle, weights.as_ref())?;
    options.origin.note(&bundle)?;
    let mut encoder = load_encoder(&bundle, weights, &options.load_options())?;
    note_packing(options, &bundle, encoder.capabilities().packed_at_load);
    let (device, load) = (encoder.capabilities().device.clone(), start.elapsed());
    let facts = Facts { bundle: &options.bundle, device: &device, load, json: options.json };
    let _answering = interrupt.answering();
    let mut out = io::stdout().lock();
    let totals = embed(encoder.as_mut(), tokenizer.as_ref(), &texts, &facts, &interrupt.cancel, &mut out)?;
    note(&timing(&facts, &totals));
    Ok(if totals.is_cancelled { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}

/// Writes a line for each text. Texts that are not token ids need the tokenizer.
fn embed(
    encoder: &mut dyn Encoder,
    tokenizer: Option<&Tokenizer>,
    texts: &[Prompt],
    facts: &Facts<'_>,
    cancel: &Cancel,
    out: &mut dyn Write,
) -> Result<Totals> {
    let context = encoder.capabilities().context;
    let mut totals = Totals::default();
    for text in texts {
        if cancel.is_cancelled() {
            return Ok(Totals { is_cancelled: true, ..totals });
        }
        let (tokens, is_truncated) = match (text, tokenizer) {
            (Prompt::Text(text), Some(tokenizer)) => tokenizer.encode_within(text, context)?,
            (Prompt::Tokens(tokens), _) => (tokens.clone(), false),
            (Prompt::Text(_) | Prompt::None, _) => continue,
        };
        if is_truncated {
            note(&truncated(totals.texts, context));
        }
        let start = Instant::now();
        let embedding = encoder.embed(&tokens)?;
        let answer = Answer { tokens: &tokens, is_truncated, embedding: &embedding, took: start.elapsed() };
        totals.took += answer.took;
        totals.texts += 1;
        totals.tokens += tokens.len();
        let line = if facts.json { as_json(&answer, facts)? } else { as_text(&embedding) };
        writeln!(out, "{line}").and_then(|()| out.flush()).context(WRITING)?;
    }
    Ok(totals)
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
        prompt_tokens: answer.tokens,
        truncated: answer.is_truncated,
        embedding: answer.embedding,
        timings: json!({ "load_ms": render::ms(facts.load), "embed_ms": render::ms(answer.took) }),
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
    let rate = if took.is_zero() { "-".into() } else { format!("{:.1}", tokens as f64 / took.as_secs_f64()) };
    let s = if texts == 1 { "" } else { "s" };
    format!(
        "{} · load {:.2} s · {texts} text{s}, {tokens} tokens in {:.1} ms, {rate} tok/s",
        facts.device,
        facts.load.as_secs_f64(),
        took.as_secs_f64() * 1e3,
    )
}

#[cfg(test)]
mod tests {
    use mlxcel_runtime::{Capabilities, Error};

    use super::*;

    /// An encoder whose embedding is the sum of the tokens, and a third of their count.
    struct Counting(Capabilities);

    impl Encoder for Counting {
        fn capabilities(&self) -> &Capabilities {
            &self.0
        }

        fn width(&self) -> usize {
            2
        }

        fn embed(&mut self, tokens: &[u32]) -> Result<Vec<f32>, Error> {
            mlxcel_runtime::check_append(&self.0, 0, tokens)?;
            Ok(vec![tokens.iter().sum::<u32>() as f32, tokens.len() as f32 / 3.0])
        }
    }

    fn tokenizer() -> Tokenizer {
        let json = r#"{"version": "1.0", "pre_tokenizer": {"type": "Whitespace"},
            "post_processor": {"type": "BertProcessing", "cls": ["a", 0], "sep": ["d", 3]},
            "model": {"type": "WordLevel", "unk_token": "a", "vocab": {"a": 0, "b": 1, "c": 2, "d": 3}}}"#;
        Tokenizer::from_json(json.as_bytes()).unwrap()
    }

    fn embedded(texts: &[Prompt], json: bool, cancel: &Cancel) -> Result<(Totals, String)> {
        let capabilities = Capabilities { context: 4, vocab: 4, prefill: vec![4], ..Capabilities::default() };
        let (mut encoder, mut out) = (Counting(capabilities), Vec::new());
        let facts = Facts { bundle: Path::new("b"), device: "counting", load: Duration::ZERO, json };
        let totals = embed(&mut encoder, Some(&tokenizer()), texts, &facts, cancel, &mut out)?;
        Ok((totals, String::from_utf8(out).unwrap()))
    }

    #[test]
    fn each_text_gets_a_line() {
        let texts = ["b c", "", "c b c"].map(|text| Prompt::Text(text.into()));
        let (totals, lines) = embedded(&texts, false, &Cancel::new()).unwrap();
        // The last text is truncated, but keeps the special token at its end.
        assert_eq!(lines, "6 1.3333334\n3 0.6666667\n6 1.3333334\n");
        assert_eq!((totals.texts, totals.tokens, totals.is_cancelled), (3, 10, false));
    }

    #[test]
    fn json_is_an_object_in_each_line() {
        let texts = [Prompt::Text("c b c".into()), Prompt::Tokens(vec![1])];
        let (_, lines) = embedded(&texts, true, &Cancel::new()).unwrap();
        let objects: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(objects[0]["prompt_tokens"], json!([0, 2, 1, 3]));
        assert_eq!((&objects[0]["truncated"], &objects[1]["truncated"]), (&json!(true), &json!(false)));
        assert!(lines.contains(r#""embedding":[1.0,0.33333334]"#), "{lines}");
        // Parsing a number as f32 gives the same value.
        let numbers: Vec<f32> = serde_json::from_value(objects[1]["embedding"].clone()).unwrap();
        assert_eq!(numbers, [1.0, 1.0 / 3.0]);
        let keys: Vec<&String> = objects[0].as_object().unwrap().keys().collect();
        assert_eq!(keys, ["prompt_tokens", "truncated", "embedding", "timings", "device", "bundle"]);
    }

    #[test]
    fn token_ids_are_refused_instead_of_truncated() {
        let error = embedded(&[Prompt::Tokens(vec![1; 5])], false, &Cancel::new()).unwrap_err().to_string();
        assert!(error.starts_with("5 tokens, expected at most 4, "), "{error}");
    }

    #[test]
    fn a_run_can_be_cancelled_between_texts() {
        let cancel = Cancel::new();
        cancel.cancel();
        let (totals, lines) = embedded(&[Prompt::Tokens(vec![1])], false, &cancel).unwrap();
        assert_eq!((totals.texts, totals.is_cancelled, lines), (0, true, String::new()));
    }

    #[test]
    fn the_line_of_timings() {
        let facts = Facts {
            bundle: Path::new("b"),
            device: "counting",
            load: Duration::from_millis(1500),
            json: false,
        };
        let totals = Totals { texts: 2, tokens: 30, took: Duration::from_millis(15), is_cancelled: false };
        insta::assert_snapshot!(timing(&facts, &totals), @"counting · load 1.50 s · 2 texts, 30 tokens in 15.0 ms, 2000.0 tok/s");
        insta::assert_snapshot!(timing(&facts, &Totals::default()), @"counting · load 1.50 s · 0 texts, 0 tokens in 0.0 ms, - tok/s");
    }
}
