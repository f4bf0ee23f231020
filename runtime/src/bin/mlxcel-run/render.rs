//! Renders answers and notes, for programs and for people.

use std::{path::Path, time::Duration};

use bytesize::ByteSize;
use mlxcel_artifacts::{Bundle, entry::PAGE, report};
use mlxcel_runtime::{Error, Generation, ModelLimits, Timings};
use serde_json::{Value, json};

/// Facts about a run that are not part of the generation.
pub(crate) struct Facts<'a> {
    pub(crate) prompt: &'a [u32],
    pub(crate) bundle: &'a Path,
    pub(crate) device: &'a str,
    pub(crate) load: Duration,
    /// The seed, if the answer was sampled.
    pub(crate) seed: Option<u64>,
}

/// Renders the object of `--json`.
pub(crate) fn json(facts: &Facts<'_>, generation: &Generation, text: Option<&str>) -> Value {
    let Generation { tokens, logprobs, stop_reason, timings } = generation;
    let mut object = json!({ "prompt_tokens": facts.prompt, "tokens": tokens });
    if let Some(text) = text {
        object["text"] = text.into();
    }
    object["stop_reason"] = stop_reason.name().into();
    let mut times = serde_json::Map::from_iter([("load_ms".to_owned(), ms(facts.load).into())]);
    times.extend(self::timings(timings));
    object["timings"] = times.into();
    object["device"] = facts.device.into();
    object["bundle"] = facts.bundle.display().to_string().into();
    if let Some(seed) = facts.seed {
        object["seed"] = seed.into();
    }
    if !logprobs.is_empty() {
        object["logprobs"] = json!(logprobs);
    }
    object
}

/// Renders the times of a generation.
pub(crate) fn timings(timings: &Timings) -> [(String, Value); 4] {
    let rate = |rate: Option<f64>| rate.map(rounded).into();
    [
        ("prefill_ms", ms(timings.prefill).into()),
        ("decode_ms", ms(timings.decode).into()),
        ("prefill_tok_s", rate(timings.prefill_tok_s())),
        ("decode_tok_s", rate(timings.decode_tok_s())),
    ]
    .map(|(name, value)| (name.to_owned(), value))
}

/// Renders the line of timings on stderr.
pub(crate) fn timing(device: &str, load: Duration, generation: &Generation) -> String {
    let Generation { stop_reason, timings, tokens, .. } = generation;
    let Timings { prompt_tokens, .. } = *timings;
    let rate = |rate: Option<f64>| rate.map_or_else(|| "-".into(), |rate| format!("{rate:.1}"));
    format!(
        "{device} · load {:.2} s · prefill {prompt_tokens} tokens, {} tok/s · decode {} tokens, {} tok/s · {stop_reason}",
        load.as_secs_f64(),
        rate(timings.prefill_tok_s()),
        tokens.len(),
        rate(timings.decode_tok_s()),
    )
}

/// Warns that an answer is written as token ids, because the tokenizer cannot be used.
pub(crate) fn ids_instead_of_text(error: &Error) -> String {
    let report = report(error);
    // Without the hints, which are for answers that need text.
    let reason = report.lines().next().unwrap_or_default().trim_start_matches("error: ");
    format!("warning: {reason}: the answer is written as token ids")
}

/// Refuses a message that does not fit the context. `larger` says how to get a larger one.
pub(crate) fn no_room(tokens: usize, context: usize, has_history: bool, larger: &str) -> String {
    if has_history {
        return format!(
            "error: the chat has {tokens} tokens with this message, expected at most {context}: the context is full\n\
             hint: /clear forgets the messages before and answers this one"
        );
    }
    format!(
        "error: this message has {tokens} tokens, expected at most {context}, the size of the context\n\
         hint: shorten it, {larger}"
    )
}

/// Warns that an answer ended because the context is full.
pub(crate) fn cut_short(context: usize, hint: &str) -> String {
    format!("warning: the context of {context} tokens is full, and the answer ends here\nhint: {hint}")
}

/// The remedy for a full context in a chat.
pub(crate) const CLEAR: &str = "/clear forgets the chat";
/// The remedy for a full context everywhere.
pub(crate) const LARGER_CONTEXT: &str =
    "raise --ctx-size if it was given, or compile the bundle again with a larger one";
/// The remedy for a context that the cache has no room for.
pub(crate) const LARGER_CACHE: &str = "raise --cache-size if it was given, or free memory";

/// Refuses a line that looks like a misspelled command.
pub(crate) fn unknown_command(name: &str) -> String {
    format!(
        "unknown command {name}, expected /clear, /help or /exit\n\
         hint: a line that begins with a space goes to the model as it is"
    )
}

/// Warns of tensors that the bundle does not use.
pub(crate) fn unused_tensors(names: &[String]) -> String {
    const SHOWN: usize = 8;
    let list: Vec<String> = names.iter().take(SHOWN).map(|name| name.escape_debug().to_string()).collect();
    let more = match names.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("warning: the bundle does not use {} of the weights: {}{more}", names.len(), list.join(", "))
}

/// Notes that this start packed the weights, which mlxcel-pack does once.
pub(crate) fn packed_at_load(bundle: &Bundle, given: Option<&Path>) -> String {
    let path = bundle.path().display();
    let hint = match given {
        None => format!("mlxcel-pack {path} packs them once for all starts"),
        Some(given) if bundle.manifest().weights.is_empty() => {
            format!("mlxcel-pack {path} --weights {} packs them once for all starts", given.display())
        }
        Some(_) => {
            "the bundle carries other weights; compile it with these to pack them once for all starts".into()
        }
    };
    format!("packed the weights for this start\nhint: {hint}")
}

/// Notes the size of the cache that was reserved.
pub(crate) fn cache(limits: &ModelLimits) -> String {
    let pages = |is_whole: bool| {
        limits.pools.iter().filter(|pool| pool.window.is_none() == is_whole).map(|pool| pool.pages).max()
    };
    // A pool without a window decides how many tokens fit.
    let tokens = pages(true).or_else(|| pages(false)).unwrap_or(0) * PAGE;
    format!("cache: {}, {tokens} tokens", ByteSize(limits.cache_bytes()))
}

/// Warns that more requests are in flight than a call takes.
pub(crate) fn more_than_a_call(parallel: usize, sequences: usize) -> String {
    format!(
        "warning: --parallel {parallel} is more than the {sequences} requests that a call of this bundle takes: \
         the others wait\nhint: --parallel {sequences} is as fast, with a smaller cache"
    )
}

/// Returns milliseconds.
pub(crate) fn ms(time: Duration) -> f64 {
    rounded(time.as_secs_f64() * 1e3)
}

/// Rounds to three decimals; these measurements are not more precise than a microsecond.
fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use mlxcel_runtime::StopReason;

    use super::*;

    fn generation() -> Generation {
        Generation {
            tokens: vec![7, 8],
            logprobs: vec![vec![(7, -0.5), (1, f32::NEG_INFINITY)], vec![(8, -0.25)]],
            stop_reason: StopReason::Eos,
            timings: Timings {
                prompt_tokens: 3,
                prefill: Duration::from_millis(30),
                steps: 1,
                decode: Duration::from_micros(62_500),
                ..Timings::default()
            },
        }
    }

    #[test]
    fn the_object_for_programs() {
        let facts = Facts {
            prompt: &[1, 2, 3],
            bundle: Path::new("b"),
            device: "scripted",
            load: Duration::from_millis(1500),
            seed: None,
        };
        insta::assert_snapshot!(json(&facts, &generation(), Some("a \"b\"")), @r#"{"prompt_tokens":[1,2,3],"tokens":[7,8],"text":"a \"b\"","stop_reason":"eos","timings":{"load_ms":1500.0,"prefill_ms":30.0,"decode_ms":62.5,"prefill_tok_s":100.0,"decode_tok_s":16.0},"device":"scripted","bundle":"b","logprobs":[[[7,-0.5],[1,null]],[[8,-0.25]]]}"#);
        let (facts, plain) =
            (Facts { seed: Some(5), ..facts }, Generation { logprobs: vec![], ..generation() });
        let object = json(&facts, &plain, None);
        let keys: Vec<&String> = object.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["prompt_tokens", "tokens", "stop_reason", "timings", "device", "bundle", "seed"]);
    }

    #[test]
    fn the_line_for_people() {
        insta::assert_snapshot!(timing("scripted", Duration::from_millis(1500), &generation()), @"scripted · load 1.50 s · prefill 3 tokens, 100.0 tok/s · decode 2 tokens, 16.0 tok/s · eos");
        let nothing = Generation { timings: Timings::default(), ..generation() };
        insta::assert_snapshot!(timing("scripted", Duration::ZERO, &nothing), @"scripted · load 0.00 s · prefill 0 tokens, - tok/s · decode 2 tokens, - tok/s · eos");
    }

    #[test]
    fn a_warning_lists_few_tensors() {
        let names: Vec<String> = (0..10).map(|i| format!("t{i}\u{1b}")).collect();
        insta::assert_snapshot!(unused_tensors(&names), @r"warning: the bundle does not use 10 of the weights: t0\u{1b}, t1\u{1b}, t2\u{1b}, t3\u{1b}, t4\u{1b}, t5\u{1b}, t6\u{1b}, t7\u{1b} and 2 more");
        insta::assert_snapshot!(unused_tensors(&names[..1]), @r"warning: the bundle does not use 1 of the weights: t0\u{1b}");
    }
}
