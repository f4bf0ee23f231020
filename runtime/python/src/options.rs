//! The keyword arguments of a generation.

use mlxcel_runtime::{AnswerOptions, EngineError, Error, grammar::Constraint};
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

/// Reads the keyword arguments of a call. Those that are None say nothing.
///
/// # Errors
/// There is no such argument, or it has another type.
pub(crate) fn read(keywords: &Bound<'_, PyDict>) -> PyResult<AnswerOptions> {
    let mut options = AnswerOptions::default();
    for (name, value) in keywords.iter() {
        let name: String = name.extract()?;
        if !value.is_none() {
            let set = set(&mut options, &name, &value);
            set.map_err(|error| described(keywords.py(), &name, &value, error))?;
        }
    }
    Ok(options)
}

fn set(options: &mut AnswerOptions, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
    match name {
        "max_tokens" => options.max_tokens = value.extract()?,
        "temperature" => options.drawing.temperature = value.extract()?,
        "top_k" => options.drawing.top_k = value.extract()?,
        "top_p" => options.drawing.top_p = value.extract()?,
        "min_p" => options.drawing.min_p = value.extract()?,
        "seed" => options.drawing.seed = value.extract()?,
        "stop" if value.is_instance_of::<PyString>() => options.stop = vec![value.extract()?],
        "stop" => options.stop = value.extract()?,
        "ignore_eos" => options.ignore_eos = value.extract()?,
        "logprobs" => options.logprobs = value.extract()?,
        "logit_bias" => {
            let biases = value.cast::<PyDict>()?.iter();
            let pair = |(token, bias): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
                PyResult::Ok((token.extract()?, bias.extract()?))
            };
            options.logit_bias = biases.map(pair).collect::<Result<_, _>>()?;
        }
        "presence_penalty" => options.penalties.presence = value.extract()?,
        "frequency_penalty" => options.penalties.frequency = value.extract()?,
        "repetition_penalty" => options.penalties.repetition = value.extract()?,
        "json_schema" => constrain(options, Constraint::JsonSchema(schema(value)?))?,
        "regex" => constrain(options, Constraint::Regex(value.extract()?))?,
        "grammar" => constrain(options, Constraint::Lark(value.extract()?))?,
        "speculate" => options.speculate = value.extract()?,
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

fn constrain(options: &mut AnswerOptions, constraint: Constraint) -> PyResult<()> {
    if options.constraint.is_some() {
        let message = "found several of json_schema, regex and grammar, expected one\n\
                       hint: a grammar can contain regular expressions and JSON schemas";
        return Err(error::new("RequestError", message));
    }
    options.constraint = Some(constraint);
    Ok(())
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
