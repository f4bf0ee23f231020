//! `POST /v1/chat/completions`.

use mlxcel_runtime::Chat;
use serde_json::json;

use super::{
    error::ApiError,
    fields::Fields,
    generation::Generation,
    messages::{self, WireMessage},
    object::Object,
    tools::Tools,
};
use crate::tools::{CallRules, Function};

/// The most alternatives of a token, as OpenAI has it.
pub(crate) const MAX_TOP_LOGPROBS: usize = 20;

/// A request for the next message of a chat.
#[derive(Debug)]
pub(crate) struct ChatRequest {
    pub(crate) model: String,
    pub(crate) chat: Chat,
    /// Functions that may be called.
    pub(crate) functions: Vec<Function>,
    pub(crate) rules: CallRules,
    /// The alternatives of each token with log-probabilities, if these are wanted.
    pub(crate) logprobs: Option<usize>,
    pub(crate) generation: Generation,
}

impl ChatRequest {
    /// Parses a body.
    ///
    /// # Errors
    /// It is no JSON object, a field is wrong, or one is not supported.
    pub(crate) fn parse(body: &[u8]) -> Result<Self, ApiError> {
        let mut fields = Fields::parse(body)?;
        // Clients send back what they got, with all members that their own classes have.
        fields.drop_nulls("messages");
        let messages: Vec<Object<WireMessage>> = fields.require("messages")?;
        if messages.is_empty() {
            return Err(ApiError::invalid_field("messages", "found no message, expected at least one"));
        }
        let messages = messages::parse(messages)?;
        let Tools { functions, rules, definitions } = Tools::take(&mut fields)?;
        let variables = fields.take("chat_template_kwargs")?.unwrap_or_default();
        let top = fields.take::<usize>("top_logprobs")?;
        let is_wanted = fields.take("logprobs")?.unwrap_or(false);
        if top.is_some() && !is_wanted {
            let message = "top_logprobs is given, expected it with \"logprobs\": true";
            return Err(ApiError::invalid_field("top_logprobs", message));
        }
        if let Some(found) = top.filter(|&top| top > MAX_TOP_LOGPROBS) {
            let message = format!("top_logprobs is {found}, expected 0 to {MAX_TOP_LOGPROBS}");
            return Err(ApiError::invalid_field("top_logprobs", message));
        }
        let request = Self {
            model: fields.take("model")?.unwrap_or_default(),
            chat: Chat { messages, tools: definitions, variables },
            functions,
            rules,
            logprobs: is_wanted.then(|| top.unwrap_or(0)),
            generation: Generation::take(&mut fields)?,
        };
        fields.only("modalities", &json!(["text"]))?;
        fields.finish()?;
        if request.generation.constraint.is_some() && !request.functions.is_empty() {
            let message = "tools and a format of the answer are given, expected one of them";
            return Err(ApiError::invalid_field("tools", message));
        }
        if request.generation.ignore_eos && !request.functions.is_empty() {
            let message = "ignore_eos is true, expected false for an answer that can have calls of tools";
            return Err(ApiError::invalid_field("ignore_eos", message));
        }
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use mlxcel_runtime::Message;

    use super::*;

    fn refused(body: serde_json::Value) -> String {
        let error = ChatRequest::parse(body.to_string().as_bytes()).unwrap_err().to_json();
        format!(
            "{}: {}",
            error["error"]["param"].as_str().unwrap(),
            error["error"]["message"].as_str().unwrap()
        )
    }

    #[test]
    fn messages_have_texts_or_parts() {
        let body = json!({ "model": "m", "logprobs": true, "top_logprobs": 3, "messages": [
            { "role": "developer", "content": "be brief" },
            { "role": "user", "content": [{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }] },
            { "role": "assistant", "content": null, "refusal": null, "name": "x" },
        ]});
        let found = ChatRequest::parse(body.to_string().as_bytes()).unwrap();
        let expected = [("system", "be brief"), ("user", "ab"), ("assistant", "")];
        assert_eq!(found.chat.messages, expected.map(|(role, text)| Message::new(role, text)));
        assert_eq!((found.model.as_str(), found.logprobs), ("m", Some(3)));
    }

    #[test]
    fn members_of_messages_that_are_null_are_as_good_as_absent() {
        // What `model_dump()` makes of OpenAI's messages.
        let dumped = |content: serde_json::Value, calls: serde_json::Value| {
            json!({
                "content": content, "refusal": null, "role": "assistant", "annotations": null, "audio": null,
                "function_call": null, "tool_calls": calls,
            })
        };
        let call = json!({ "id": "1", "type": "function", "function": { "name": "f", "arguments": "{}" } });
        let messages = json!([dumped(json!("a"), json!(null)), dumped(json!(null), json!([call]))]);
        let found = ChatRequest::parse(json!({ "messages": messages }).to_string().as_bytes()).unwrap();
        let [said, called] = found.chat.messages.as_slice() else {
            panic!("found {:?}", found.chat.messages)
        };
        assert_eq!(*said, Message::new("assistant", "a"));
        assert_eq!((&called.content, called.fields["tool_calls"].as_array().map(Vec::len)), (&None, Some(1)));

        let audio = json!([{ "role": "assistant", "content": "a", "audio": { "id": "b" } }]);
        let message = refused(json!({ "messages": audio }));
        assert!(message.contains("unknown field `audio`, expected one of `role`, "), "{message}");
        let nothing = json!([{ "role": "user", "content": null }]);
        let message = refused(json!({ "messages": nothing }));
        assert_eq!(message, "messages[0].content: found no content, which role `user` must have");
    }

    #[test]
    fn what_is_not_supported_is_named() {
        let user = json!({ "role": "user", "content": "a" });
        let with = |name: &str, value: serde_json::Value| {
            let mut body = json!({ "messages": [user] });
            body[name] = value;
            refused(body)
        };
        assert_eq!(refused(json!({})), "messages: found no messages, expected it");
        assert_eq!(with("messages", json!([])), "messages: found no message, expected at least one");
        assert_eq!(
            with("messages", json!([{ "role": "root", "content": "a" }])),
            "messages[0].role: the role is `root`, expected one of system, developer, user, assistant, tool"
        );
        assert_eq!(
            with(
                "messages",
                json!([user, { "role": "user", "content": [{ "type": "image_url", "image_url": {} }] }])
            ),
            "messages[1].content[0]: a part is of type `image_url`, but only `text` with its text is supported"
        );
        assert_eq!(
            with("messages", json!([{ "role": "user", "content": 3 }])),
            "messages[0].content: messages[0].content: a string or a list of parts"
        );
        assert_eq!(with("audio", json!({})), "audio: audio is not supported");
        assert_eq!(
            with("top_logprobs", json!(2)),
            "top_logprobs: top_logprobs is given, expected it with \"logprobs\": true"
        );
        let body = json!({ "messages": [user], "logprobs": true, "top_logprobs": 21 });
        assert_eq!(refused(body), "top_logprobs: top_logprobs is 21, expected 0 to 20");
        let tool = json!({ "type": "function", "function": { "name": "f" } });
        let mut body = json!({ "messages": [user], "tools": [tool], "ignore_eos": true });
        assert_eq!(
            refused(body.clone()),
            "ignore_eos: ignore_eos is true, expected false for an answer that can have calls of tools"
        );
        body["tool_choice"] = "none".into();
        assert!(ChatRequest::parse(body.to_string().as_bytes()).is_ok());
    }
}
