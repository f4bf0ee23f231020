//! `POST /v1/embeddings`.

use std::num::NonZeroUsize;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde::{Deserialize, Serialize};

use super::{
    error::ApiError,
    fields::Fields,
    prompts::{self, Prompt},
};

/// The most texts of a request, as OpenAI has it.
pub(crate) const MAX_INPUTS: usize = 2048;

/// A request for embeddings of texts.
#[derive(Debug)]
pub(crate) struct EmbeddingRequest {
    pub(crate) model: String,
    pub(crate) inputs: Vec<Prompt>,
    pub(crate) format: EncodingFormat,
    /// The width that is wanted; `None` for the model's.
    pub(crate) dimensions: Option<usize>,
}

/// How numbers are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EncodingFormat {
    /// As JSON.
    Float,
    /// As the bytes of 32-bit floats, the least significant first, which OpenAI's clients ask for.
    Base64,
}

impl EmbeddingRequest {
    /// Parses a body.
    ///
    /// # Errors
    /// It is no JSON object, a field is wrong, or one is not supported.
    pub(crate) fn parse(body: &[u8]) -> Result<Self, ApiError> {
        let mut fields = Fields::parse(body)?;
        let inputs = prompts::require(&mut fields, "input", "texts", MAX_INPUTS)?;
        let is_empty = |input: &Prompt| *input == Prompt::Text(String::new());
        if let Some(index) = inputs.iter().position(is_empty) {
            let message = format!("text {} is empty, expected at least one character", index + 1);
            return Err(ApiError::invalid_field("input", message));
        }
        let request = Self {
            model: fields.take("model")?.unwrap_or_default(),
            inputs,
            format: fields.take("encoding_format")?.unwrap_or(EncodingFormat::Float),
            dimensions: fields.take::<NonZeroUsize>("dimensions")?.map(NonZeroUsize::get),
        };
        // It is about the client's account.
        fields.ignore("user");
        fields.finish()?;
        Ok(request)
    }
}

/// The embeddings of texts, as OpenAI has them.
#[derive(Debug, Serialize)]
pub(crate) struct EmbeddingAnswer {
    object: &'static str,
    data: Vec<Entry>,
    model: String,
    usage: EmbeddingUsage,
}

#[derive(Debug, Serialize)]
struct Entry {
    object: &'static str,
    index: usize,
    embedding: Vector,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Vector {
    Numbers(Vec<f32>),
    Base64(String),
}

#[derive(Debug, Serialize)]
struct EmbeddingUsage {
    prompt_tokens: usize,
    total_tokens: usize,
}

impl EmbeddingAnswer {
    pub(crate) fn new(model: &str, vectors: Vec<Vec<f32>>, format: EncodingFormat, tokens: usize) -> Self {
        let encode = |vector: Vec<f32>| match format {
            EncodingFormat::Float => Vector::Numbers(vector),
            EncodingFormat::Base64 => {
                let bytes: Vec<u8> = vector.iter().flat_map(|number| number.to_le_bytes()).collect();
                Vector::Base64(BASE64_STANDARD.encode(bytes))
            }
        };
        let entry = |(index, vector)| Entry { object: "embedding", index, embedding: encode(vector) };
        Self {
            object: "list",
            data: vectors.into_iter().enumerate().map(entry).collect(),
            model: model.to_owned(),
            usage: EmbeddingUsage { prompt_tokens: tokens, total_tokens: tokens },
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn inputs_are_texts_or_tokens() {
        let parse = |body: &Value| EmbeddingRequest::parse(body.to_string().as_bytes());
        let found = parse(&json!({ "input": [[1, 2], [3]], "model": "m", "user": "u" })).unwrap();
        assert_eq!(found.inputs, [Prompt::Tokens(vec![1, 2]), Prompt::Tokens(vec![3])]);
        assert_eq!((found.format, found.dimensions), (EncodingFormat::Float, None));
        let refused = |body: Value| {
            let error = parse(&body).unwrap_err().to_json();
            format!("{}: {}", error["error"]["param"], error["error"]["message"].as_str().unwrap())
        };
        insta::assert_snapshot!([
            refused(json!({})),
            refused(json!({ "input": [] })),
            refused(json!({ "input": ["a", ""] })),
            refused(json!({ "input": vec!["a"; 2049] })),
            refused(json!({ "input": [1, "a"] })),
            refused(json!({ "input": "a", "encoding_format": "int8" })),
            refused(json!({ "input": "a", "dimensions": -1 })),
            refused(json!({ "input": "a", "truncate": true })),
        ].join("\n"), @r#"
        "input": found no input, expected it
        "input": found 0 texts, expected 1 to 2048
        "input": text 2 is empty, expected at least one character
        "input": found 2049 texts, expected 1 to 2048
        "input": input: a string, a list of strings, or a list of token ids
        "encoding_format": encoding_format: unknown variant `int8`, expected `float` or `base64`
        "dimensions": dimensions: invalid value: integer `-1`, expected a nonzero usize
        "truncate": truncate is not supported
        "#);
    }

    #[test]
    fn numbers_are_shortest_or_base64() {
        let answer = |format| {
            let answer = EmbeddingAnswer::new("m", vec![vec![0.1, -2.0]], format, 3);
            serde_json::to_string(&answer).unwrap()
        };
        let expected = r#"{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.1,-2.0]}],"model":"m","usage":{"prompt_tokens":3,"total_tokens":3}}"#;
        assert_eq!(answer(EncodingFormat::Float), expected);
        let base64 = expected.replace("[0.1,-2.0]", "\"zczMPQAAAMA=\"");
        assert_eq!(answer(EncodingFormat::Base64), base64);
    }
}
