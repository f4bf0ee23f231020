//! The keyword arguments of a generation.

use std::hash::{BuildHasher as _, RandomState};

use mlxcel_runtime::{
    Drawing, EngineError, Error, Request,
    engine::{Penalties, SharedGrammar, Speculation},
    grammar::Constraint,
};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::{PyDict, PyString},
};

use crate::error;

/// The names of all options, for the message about one that is none.
const NAMES: [&str; 19] = [
    "max_tokens",
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "seed",
    "stop",
    "ignore_eos",
    "logprobs",
    "logit_bias",
    "presence_penalty",
    "frequency_penalty",
    "repetition_penalty",
    "json_schema",
    "regex",
    "grammar",
    "speculate",
    "template_variables",
    "tools",
];

/// What is asked of an answer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Options {
    max_tokens: Option<usize>,
    drawing: Drawing,
    pub(crate) stop: Vec<String>,
    ignore_eos: bool,
    logprobs: Option<usize>,
    logit_bias: Vec<(u32, f32)>,
    penalties: Penalties,
    pub(crate) constraint: Option<Constraint>,
    speculate: bool,
}

impl Options {
    /// Reads the keyword arguments of a call. Those that are None say nothing.
    ///
    /// # Errors
    /// There is no such argument, or it has another type.
    pub(crate) fn read(keywords: &Bound<'_, PyDict>) -> PyResult<Self> {
        let mut options = Self::default();
        for (name, value) in keywords.iter() {
            let name: String = name.extract()?;
            if value.is_none() {
                continue;
            }
            let set = options.set(&name, &value);
            set.map_err(|error| described(keywords.py(), &name, &value, error))?;
        }
        Ok(options)
    }

    fn set(&mut self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        match name {
            "max_tokens" => self.max_tokens = value.extract()?,
            "temperature" => self.drawing.temperature = value.extract()?,
            "top_k" => self.drawing.top_k = value.extract()?,
            "top_p" => self.drawing.top_p = value.extract()?,
            "min_p" => self.drawing.min_p = value.extract()?,
            "seed" => self.drawing.seed = value.extract()?,
            "stop" if value.is_instance_of::<PyString>() => self.stop = vec![value.extract()?],
            "stop" => self.stop = value.extract()?,
            "ignore_eos" => self.ignore_eos = value.extract()?,
            "logprobs" => self.logprobs = value.extract()?,
            "logit_bias" => {
                let biases = value.cast::<PyDict>()?.iter();
                let pair = |(token, bias): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
                    PyResult::Ok((token.extract()?, bias.extract()?))
                };
                self.logit_bias = biases.map(pair).collect::<Result<_, _>>()?;
            }
            "presence_penalty" => self.penalties.presence = value.extract()?,
            "frequency_penalty" => self.penalties.frequency = value.extract()?,
            "repetition_penalty" => self.penalties.repetition = value.extract()?,
            "json_schema" => self.constrain(Constraint::JsonSchema(schema(value)?))?,
            "regex" => self.constrain(Constraint::Regex(value.extract()?))?,
            "grammar" => self.constrain(Constraint::Lark(value.extract()?))?,
            "speculate" => self.speculate = value.extract()?,
            _ => {
                let nearest = NAMES.iter().max_by(|a, b| {
                    let [a, b] = [a, b].map(|known| strsim::jaro_winkler(known, name));
                    a.total_cmp(&b)
                });
                let nearest = nearest.copied().unwrap_or_default();
                let message = format!("found the argument {name}, expected another one, such as {nearest}");
                return Err(PyTypeError::new_err(message));
            }
        }
        Ok(())
    }

    fn constrain(&mut self, constraint: Constraint) -> PyResult<()> {
        if self.constraint.is_some() {
            let message = "found several of json_schema, regex and grammar, expected one\n\
                           hint: a grammar can contain regular expressions and JSON schemas";
            return Err(error::new("RequestError", message));
        }
        self.constraint = Some(constraint);
        Ok(())
    }

    /// Makes the request that continues `prompt`. Without a number of tokens it has at most `default`.
    ///
    /// # Errors
    /// A setting is out of its range.
    pub(crate) fn request(
        &self,
        prompt: Vec<u32>,
        default: usize,
        eos: &[u32],
        grammar: Option<SharedGrammar>,
    ) -> PyResult<Request> {
        let seed = self.drawing.seed.unwrap_or_else(|| RandomState::new().hash_one(0));
        let refuse = |out: mlxcel_runtime::OutOfRange| error::new("RequestError", &out.message(out.name));
        let sampling = self.drawing.sampling(seed).map_err(refuse)?;
        Ok(Request {
            prompt,
            max_tokens: self.max_tokens.unwrap_or(default),
            eos: if self.ignore_eos { Vec::new() } else { eos.to_vec() },
            sampling,
            logit_bias: self.logit_bias.clone(),
            penalties: self.penalties,
            grammar,
            logprobs: self.logprobs,
            speculate: self.speculate.then(Speculation::default),
        })
    }
}

/// Returns a JSON schema, given as a dict or as JSON.
fn schema(value: &Bound<'_, PyAny>) -> PyResult<serde_json::Value> {
    let text: String = if value.is_instance_of::<PyString>() {
        value.extract()?
    } else {
        value.py().import("json")?.call_method1("dumps", (value,))?.extract()?
    };
    serde_json::from_str(&text).map_err(|problem| {
        error::of(Error::from(EngineError::Grammar { problem: format!("the schema is not JSON: {problem}") }))
    })
}

/// Says which argument has the wrong type.
fn described(py: Python<'_>, name: &str, value: &Bound<'_, PyAny>, error: PyErr) -> PyErr {
    let is_plain =
        error.is_instance_of::<PyTypeError>(py) && !error.value(py).to_string().starts_with("found");
    if is_plain || error.is_instance_of::<pyo3::exceptions::PyOverflowError>(py) {
        let value = value.repr().map_or_else(|_| "a value".into(), |text| text.to_string());
        let kind = if is_plain { PyTypeError::new_err::<String> } else { PyValueError::new_err::<String> };
        return kind(format!("{name}: found {value:.80}, expected {}", expected(name)));
    }
    error
}

/// Describes the type of an argument.
fn expected(name: &str) -> &'static str {
    match name {
        "max_tokens" | "top_k" | "seed" | "logprobs" => "an int of 0 or more",
        "stop" => "a str or a list of them",
        "ignore_eos" | "speculate" => "a bool",
        "logit_bias" => "a dict of token ids and floats",
        "json_schema" => "a dict or JSON",
        "regex" | "grammar" => "a str",
        _ => "a float",
    }
}
