//! Fields that chat and text completions have in common.

use std::{
    collections::{BTreeMap, hash_map::RandomState},
    hash::BuildHasher as _,
};

use mlxcel_runtime::{
    Request, Sampling,
    engine::{Penalties, SharedGrammar, Speculation},
    grammar::Constraint,
};
use serde::Deserialize;
use serde_json::json;

use super::{constraint, error::ApiError, fields::Fields, object::Object};

/// The most answers to one request.
pub(crate) const MAX_ANSWERS: usize = 128;

/// The most stop texts. OpenAI takes 4.
pub(crate) const MAX_STOPS: usize = 64;

/// How answers are generated, and how they are sent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Generation {
    /// The number of answers.
    pub(crate) count: usize,
    /// The most tokens of an answer; `None` if the context decides.
    pub(crate) max_tokens: Option<usize>,
    pub(crate) stops: Vec<String>,
    pub(crate) stream: bool,
    /// Whether a stream ends with the numbers of tokens.
    pub(crate) include_usage: bool,
    /// What the answer must be.
    pub(crate) constraint: Option<Constraint>,
    /// Whether answers have receipts.
    pub(crate) receipt: bool,
    /// Whether the end of a text does not end an answer.
    pub(crate) ignore_eos: bool,
    sampling: Option<Sampling>,
    penalties: Penalties,
    logit_bias: Vec<(u32, f32)>,
    speculate: Option<Speculation>,
}

/// One stop text, or several.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a string or a list of strings")]
enum Stops {
    One(String),
    Many(Vec<String>),
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, expecting = "an object of options")]
struct StreamOptions {
    #[serde(default)]
    include_usage: bool,
    /// Padding against eavesdroppers on the length of tokens, which is not sent.
    #[serde(default, rename = "include_obfuscation")]
    _include_obfuscation: bool,
}

impl Generation {
    /// Takes the fields of a request.
    ///
    /// # Errors
    /// A field has another type, is out of its range, or contradicts another one.
    pub(crate) fn take(fields: &mut Fields) -> Result<Self, ApiError> {
        let temperature = in_range(fields, "temperature", 0.0..=2.0)?.unwrap_or(1.0);
        let top_p = in_range(fields, "top_p", 0.0..=1.0)?.unwrap_or(1.0);
        let min_p = in_range(fields, "min_p", 0.0..=1.0)?.unwrap_or(0.0);
        let top_k = fields.take::<i64>("top_k")?.unwrap_or(0);
        let seed = fields.take::<i64>("seed")?.map(i64::cast_unsigned);
        let is_greedy = temperature == 0.0 || top_p == 0.0;
        // llama.cpp and vLLM take -1 for all tokens.
        let top_k = usize::try_from(top_k.max(0)).unwrap_or(0);
        let sampling = Sampling { temperature, top_k, top_p, min_p, seed: seed.unwrap_or_else(random_seed) };
        let stop = fields.take::<Stops>("stop")?;
        let stops = match stop {
            None => vec![],
            Some(Stops::One(stop)) => vec![stop],
            Some(Stops::Many(stops)) => stops,
        };
        if stops.len() > MAX_STOPS {
            let message = format!("found {} stop texts, expected at most {MAX_STOPS}", stops.len());
            return Err(ApiError::invalid_field("stop", message));
        }
        if stops.iter().any(String::is_empty) {
            return Err(ApiError::invalid_field("stop", "a stop text is empty, expected a text"));
        }
        let stream = fields.take("stream")?.unwrap_or(false);
        let options = fields.take::<Object<StreamOptions>>("stream_options")?;
        if options.is_some() && !stream {
            let message = "stream_options are for streams, expected them with \"stream\": true";
            return Err(ApiError::invalid_field("stream_options", message));
        }
        // These are about the client's account, and about OpenAI's own machines.
        for name in ["user", "metadata", "safety_identifier", "prompt_cache_key", "service_tier"] {
            fields.ignore(name);
        }
        fields.only("store", &json!(false))?;
        let constraint = constraint::take(fields)?;
        let ignore_eos = fields.take("ignore_eos")?.unwrap_or(false);
        if ignore_eos && constraint.is_some() {
            let message = "ignore_eos is true, expected false for an answer that a format ends";
            return Err(ApiError::invalid_field("ignore_eos", message));
        }
        Ok(Self {
            count: count(fields)?,
            max_tokens: max_tokens(fields)?,
            stops,
            stream,
            include_usage: options.is_some_and(|Object(options)| options.include_usage),
            constraint,
            receipt: fields.take("receipt")?.unwrap_or(false),
            ignore_eos,
            sampling: (!is_greedy).then_some(sampling),
            penalties: Penalties {
                presence: in_range(fields, "presence_penalty", -2.0..=2.0)?.unwrap_or(0.0),
                frequency: in_range(fields, "frequency_penalty", -2.0..=2.0)?.unwrap_or(0.0),
                repetition: in_range(fields, "repetition_penalty", 0.01..=100.0)?.unwrap_or(1.0),
            },
            logit_bias: logit_bias(fields)?,
            speculate: fields.take("speculate")?.unwrap_or(false).then(Speculation::default),
        })
    }

    /// Returns the engine's request for the answer with this index.
    pub(crate) fn request(
        &self,
        prompt: Vec<u32>,
        eos: &[u32],
        max_tokens: usize,
        logprobs: Option<usize>,
        grammar: Option<SharedGrammar>,
        index: usize,
    ) -> Request {
        let sampling = self
            .sampling
            .map(|sampling| Sampling { seed: sampling.seed.wrapping_add(index as u64), ..sampling });
        Request {
            prompt,
            max_tokens,
            eos: if self.ignore_eos { vec![] } else { eos.to_vec() },
            sampling,
            logit_bias: self.logit_bias.clone(),
            penalties: self.penalties,
            logprobs,
            grammar,
            speculate: self.speculate,
        }
    }
}

fn in_range(
    fields: &mut Fields,
    name: &str,
    range: std::ops::RangeInclusive<f32>,
) -> Result<Option<f32>, ApiError> {
    match fields.take::<f32>(name)? {
        Some(value) if !range.contains(&value) => {
            let message = format!("{name} is {value}, expected {} to {}", range.start(), range.end());
            Err(ApiError::invalid_field(name, message))
        }
        found => Ok(found),
    }
}

fn count(fields: &mut Fields) -> Result<usize, ApiError> {
    let count = fields.take::<i64>("n")?.unwrap_or(1);
    let found = usize::try_from(count).ok().filter(|count| (1..=MAX_ANSWERS).contains(count));
    found.ok_or_else(|| ApiError::invalid_field("n", format!("n is {count}, expected 1 to {MAX_ANSWERS}")))
}

/// Takes `max_completion_tokens`, or `max_tokens` by its older name.
fn max_tokens(fields: &mut Fields) -> Result<Option<usize>, ApiError> {
    let mut found = None;
    for name in ["max_completion_tokens", "max_tokens"] {
        let Some(tokens) = fields.take::<i64>(name)? else { continue };
        let Some(tokens) = usize::try_from(tokens).ok().filter(|&tokens| tokens > 0) else {
            return Err(ApiError::invalid_field(name, format!("{name} is {tokens}, expected at least 1")));
        };
        if found.is_some_and(|found| found != tokens) {
            let message = "max_tokens and max_completion_tokens differ, expected one of them";
            return Err(ApiError::invalid_field(name, message));
        }
        found = Some(tokens);
    }
    Ok(found)
}

/// Takes `{"token id": bias}`.
fn logit_bias(fields: &mut Fields) -> Result<Vec<(u32, f32)>, ApiError> {
    let biases = fields.take::<BTreeMap<String, f32>>("logit_bias")?.unwrap_or_default();
    let parse = |(token, bias): (String, f32)| {
        let refuse = |message| Err(ApiError::invalid_field(format!("logit_bias.{token}"), message));
        let Ok(id) = token.parse() else {
            return refuse(format!("the token `{token}` is no id, expected a whole number"));
        };
        if !(-100.0..=100.0).contains(&bias) {
            return refuse(format!("the bias of {token} is {bias}, expected -100 to 100"));
        }
        // OpenAI's -100 and 100 ban a token and choose it alone.
        let bias = if bias == -100.0 { f32::NEG_INFINITY } else { bias };
        Ok((id, bias))
    };
    biases.into_iter().map(parse).collect()
}

/// Returns a seed for a request without one.
fn random_seed() -> u64 {
    // The standard library's keys are random.
    RandomState::new().hash_one(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(body: &str) -> Result<Generation, String> {
        let mut fields = Fields::parse(body.as_bytes()).unwrap();
        let found = Generation::take(&mut fields).and_then(|found| fields.finish().map(|()| found));
        found.map_err(|error| {
            let error = error.to_json();
            format!(
                "{}: {}",
                error["error"]["param"].as_str().unwrap(),
                error["error"]["message"].as_str().unwrap()
            )
        })
    }

    #[test]
    fn defaults_are_openais() {
        let found = take("{}").unwrap();
        assert_eq!((found.count, found.max_tokens, found.stream), (1, None, false));
        let request = found.request(vec![1], &[2], 9, None, None, 0);
        let sampling = request.sampling.unwrap();
        assert_eq!(sampling, Sampling { seed: sampling.seed, ..Sampling::default() });
        assert_ne!(take("{}").unwrap().sampling, found.sampling, "seeds are random");
        let expected = Request { prompt: vec![1], max_tokens: 9, eos: vec![2], ..Request::default() };
        assert_eq!(Request { sampling: None, ..request }, expected);
    }

    #[test]
    fn answers_have_seeds_of_their_own() {
        let found =
            take(r#"{"seed": 7, "n": 2, "temperature": 0.5, "top_k": -1, "ignore_eos": true}"#).unwrap();
        let of = |index| found.request(vec![1], &[2], 9, Some(0), None, index);
        let sampling = Sampling { temperature: 0.5, seed: 8, ..Sampling::default() };
        assert_eq!((of(1).sampling, of(1).eos, of(1).logprobs), (Some(sampling), vec![], Some(0)));
        assert_eq!(take(r#"{"temperature": 0}"#).unwrap().sampling, None);
        assert_eq!(take(r#"{"top_p": 0}"#).unwrap().sampling, None);
    }

    #[test]
    fn fields_out_of_range_are_refused() {
        for (body, expected) in [
            (r#"{"temperature": 2.5}"#, "temperature: temperature is 2.5, expected 0 to 2"),
            (r#"{"temperature": "a"}"#, "temperature: temperature: invalid type: string \"a\", expected f32"),
            (r#"{"top_p": -1}"#, "top_p: top_p is -1, expected 0 to 1"),
            (r#"{"n": 0}"#, "n: n is 0, expected 1 to 128"),
            (r#"{"n": 1000000}"#, "n: n is 1000000, expected 1 to 128"),
            (r#"{"max_tokens": 0}"#, "max_tokens: max_tokens is 0, expected at least 1"),
            (
                r#"{"max_tokens": 1, "max_completion_tokens": 2}"#,
                "max_tokens: max_tokens and max_completion_tokens differ, expected one of them",
            ),
            (r#"{"stop": [""]}"#, "stop: a stop text is empty, expected a text"),
            (r#"{"stop": 3}"#, "stop: stop: a string or a list of strings"),
            (r#"{"logit_bias": {"x": 1}}"#, "logit_bias.x: the token `x` is no id, expected a whole number"),
            (r#"{"logit_bias": {"1": 101}}"#, "logit_bias.1: the bias of 1 is 101, expected -100 to 100"),
            (r#"{"presence_penalty": 3}"#, "presence_penalty: presence_penalty is 3, expected -2 to 2"),
            (
                r#"{"stream_options": {}}"#,
                "stream_options: stream_options are for streams, expected them with \"stream\": true",
            ),
            (r#"{"store": true}"#, "store: store is true, but only false is supported"),
            (r#"{"best_of": 2}"#, "best_of: best_of is not supported"),
        ] {
            assert_eq!(take(body).unwrap_err(), expected, "{body}");
        }
        let stops = format!(r#"{{"stop": {:?}}}"#, vec!["a"; 65]);
        assert_eq!(take(&stops).unwrap_err(), "stop: found 65 stop texts, expected at most 64");
    }
}
