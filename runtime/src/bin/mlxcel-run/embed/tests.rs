//! Tests over an encoder that counts.

use mlxcel_runtime::{DeviceInfo, EncoderLimits, check_texts};

use super::*;

/// An encoder whose embedding is the sum of the tokens, and a third of their count.
struct Counting {
    limits: EncoderLimits,
    device: DeviceInfo,
    /// The texts of each call.
    batches: Vec<usize>,
    /// Is cancelled during this batch, from 1.
    cancels_in: Option<(usize, Cancel)>,
}

impl Encoder for Counting {
    fn limits(&self) -> &EncoderLimits {
        &self.limits
    }

    fn device(&self) -> &DeviceInfo {
        &self.device
    }

    fn embed(&mut self, texts: &[&[u32]]) -> Result<Vec<Vec<f32>>, Error> {
        check_texts(&self.limits, texts)?;
        self.batches.push(texts.len());
        if let Some((batch, cancel)) = &self.cancels_in
            && *batch == self.batches.len()
        {
            cancel.cancel();
        }
        let embedding = |tokens: &&[u32]| vec![tokens.iter().sum::<u32>() as f32, tokens.len() as f32 / 3.0];
        Ok(texts.iter().map(embedding).collect())
    }
}

fn tokenizer() -> Tokenizer {
    let json = r#"{"version": "1.0", "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": {"type": "BertProcessing", "cls": ["a", 0], "sep": ["d", 3]},
        "model": {"type": "WordLevel", "unk_token": "a", "vocab": {"a": 0, "b": 1, "c": 2, "d": 3}}}"#;
    Tokenizer::from_json(json.as_bytes()).unwrap()
}

/// The result of a run.
struct Embedded {
    totals: Totals,
    lines: String,
    batches: Vec<usize>,
}

fn embedded_by(mut encoder: Counting, texts: &[Prompt], json: bool, cancel: &Cancel) -> Result<Embedded> {
    let mut out = Vec::new();
    let facts = Facts { bundle: Path::new("b"), device: "counting", load: Duration::ZERO, json };
    let mut output = Output { out: &mut out, bar: &ProgressBar::hidden(), timeline: &Trace::off() };
    let totals = embed(&mut encoder, Some(&tokenizer()), texts, &facts, cancel, &mut output)?;
    Ok(Embedded { totals, lines: String::from_utf8(out).unwrap(), batches: encoder.batches })
}

/// Makes an encoder whose batches have up to 32 tokens.
fn counting() -> Counting {
    let limits = EncoderLimits { context: 4, vocab: 4, width: 2, rows: vec![4] };
    Counting { limits, device: DeviceInfo::default(), batches: Vec::new(), cancels_in: None }
}

fn embedded(texts: &[Prompt], json: bool) -> Result<Embedded> {
    embedded_by(counting(), texts, json, &Cancel::new())
}

#[test]
fn each_text_gets_a_line() {
    let texts = ["b c", "", "c b c"].map(|text| Prompt::Text(text.into()));
    let Embedded { totals, lines, batches } = embedded(&texts, false).unwrap();
    // The last text is truncated, but keeps the special token at its end.
    assert_eq!(lines, "6 1.3333334\n3 0.6666667\n6 1.3333334\n");
    assert_eq!((totals.texts, totals.tokens, totals.is_cancelled), (3, 10, false));
    assert_eq!(batches, [3]);
}

#[test]
fn batches_are_bounded() {
    // Ten texts of three tokens and one more bring a batch to 32.
    let texts = vec![Prompt::Text("b".into()); 30];
    let Embedded { totals, lines, batches } = embedded(&texts, false).unwrap();
    assert_eq!((totals.texts, lines.lines().count(), batches), (30, 30, vec![11, 11, 8]));
    let encoder =
        Counting { limits: EncoderLimits { rows: vec![1 << 20], ..counting().limits }, ..counting() };
    let texts = vec![Prompt::Tokens(vec![1]); MAX_TEXTS + 1];
    let Embedded { batches, .. } = embedded_by(encoder, &texts, false, &Cancel::new()).unwrap();
    assert_eq!(batches, [MAX_TEXTS, 1]);
}

#[test]
fn a_refused_text_of_a_later_batch_is_named() {
    let mut texts = vec![Prompt::Text("b".into()); 30];
    texts[20] = Prompt::Tokens(vec![9]);
    let error = embedded(&texts, false).err().unwrap().to_string();
    assert!(error.starts_with("text 21: token 1 of the prompt has the id 9, expected 0 to 3"), "{error}");
}

#[test]
fn json_is_an_object_in_each_line() {
    let texts = [Prompt::Text("c b c".into()), Prompt::Tokens(vec![1])];
    let Embedded { lines, .. } = embedded(&texts, true).unwrap();
    let objects: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(objects[0]["prompt_tokens"], json!([0, 2, 1, 3]));
    assert_eq!((&objects[0]["truncated"], &objects[1]["truncated"]), (&json!(true), &json!(false)));
    assert!(lines.contains(r#""embedding":[1.0,0.33333334]"#), "{lines}");
    // Parsing a number as f32 gives the same value.
    let numbers: Vec<f32> = serde_json::from_value(objects[1]["embedding"].clone()).unwrap();
    assert_eq!(numbers, [1.0, 1.0 / 3.0]);
    assert_eq!(objects[1]["timings"]["batch"], json!(2));
    let keys: Vec<&String> = objects[0].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["prompt_tokens", "truncated", "embedding", "timings", "device", "bundle"]);
}

#[test]
fn token_ids_are_refused_instead_of_truncated() {
    let error = embedded(&[Prompt::Tokens(vec![1; 5])], false).err().unwrap().to_string();
    assert!(error.starts_with("text 1: 5 tokens, expected at most 4"), "{error}");
}

#[test]
fn a_run_ends_after_the_batch_in_which_it_is_cancelled() {
    let texts = vec![Prompt::Text("b".into()); 30];
    let ended = |batch| {
        let cancel = Cancel::new();
        let encoder = Counting { cancels_in: Some((batch, cancel.clone())), ..counting() };
        let Embedded { totals, lines, .. } = embedded_by(encoder, &texts, false, &cancel).unwrap();
        assert_eq!(lines.lines().count(), totals.texts);
        (totals.texts, totals.is_cancelled)
    };
    assert_eq!(ended(1), (11, true));
    assert_eq!(ended(2), (22, true));
    // Nothing was left to cancel.
    assert_eq!(ended(3), (30, false));
}

#[test]
fn the_line_of_timings() {
    let facts =
        Facts { bundle: Path::new("b"), device: "counting", load: Duration::from_millis(1500), json: false };
    let totals = Totals { texts: 2, tokens: 30, took: Duration::from_millis(15), is_cancelled: false };
    insta::assert_snapshot!(timing(&facts, &totals), @"counting · load 1.50 s · 2 texts, 30 tokens in 15.0 ms, 133.3 texts/s, 2000.0 tok/s");
    insta::assert_snapshot!(timing(&facts, &Totals::default()), @"counting · load 1.50 s · 0 texts, 0 tokens in 0.0 ms, - texts/s, - tok/s");
}
