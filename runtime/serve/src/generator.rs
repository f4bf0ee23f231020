//! A model that continues texts and chats.

use mlxcel_runtime::{
    Chat, TextFiles, Tokenizer,
    engine::{EngineClient, EngineThread},
    grammar::GrammarCache,
};

use crate::{
    api::error::ApiError,
    grammars::{self, Grammars},
    thread_end::ThreadEnd,
    tools::{self, AnswerForm, CallRules, Enforced, Expected, Function, UnenforcedWord},
};

/// The tokens at the end of a prompt that may begin the model's reasoning.
const PROMPT_END: usize = 16;

/// A model that continues texts and chats.
#[derive(Debug)]
pub(crate) struct Generator {
    /// The name that it is served under.
    name: String,
    text: TextFiles,
    client: EngineClient,
    /// Ends with the model.
    _engine: ThreadEnd<EngineThread>,
    grammars: Grammars,
    /// The forms of answers to chats without tools, and to those with.
    forms: [AnswerForm; 2],
}

impl Generator {
    pub(crate) fn new(name: String, text: TextFiles, engine: EngineThread) -> Self {
        let client = engine.client();
        let vocab = client.limits().vocab;
        let grammars = Grammars::new(GrammarCache::new(text.tokenizer.clone(), vocab, text.eos.clone()));
        let form =
            |has_tools| text.template.as_ref().map(|template| AnswerForm::of(template.source(has_tools)));
        let forms = [false, true].map(|has_tools| form(has_tools).unwrap_or_default());
        Self { name, text, client, _engine: ThreadEnd::new(engine), grammars, forms }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether chats can be rendered.
    pub(crate) fn has_template(&self) -> bool {
        self.text.template.is_some()
    }

    pub(crate) fn tokenizer(&self) -> &Tokenizer {
        &self.text.tokenizer
    }

    pub(crate) fn eos(&self) -> &[u32] {
        &self.text.eos
    }

    pub(crate) fn grammars(&self) -> &Grammars {
        &self.grammars
    }

    pub(crate) fn client(&self) -> &EngineClient {
        &self.client
    }

    /// Returns the tokens of the context.
    pub(crate) fn context(&self) -> usize {
        self.client.context()
    }

    /// Encodes a chat.
    pub(crate) fn encode_chat(&self, chat: &Chat) -> Result<Vec<u32>, ApiError> {
        let Some(template) = &self.text.template else {
            let message = format!("the model `{}` has no chat template, expected /v1/completions", self.name);
            return Err(ApiError::invalid_field("messages", message));
        };
        Ok(self.text.tokenizer.encode_chat(template, chat)?)
    }

    /// Returns what the answer to a chat can have. The model may call `functions`.
    pub(crate) fn expected(&self, functions: Vec<Function>, prompt: &[u32]) -> Result<Expected, ApiError> {
        let form = self.forms[usize::from(!functions.is_empty())];
        if form.calls.is_none() && !functions.is_empty() {
            let message = format!("the chat template of `{}` has no tools, expected none", self.name);
            return Err(ApiError::invalid_field("tools", message));
        }
        let end = prompt.len().saturating_sub(PROMPT_END);
        let end: String = prompt[end..].iter().map(|&token| self.text.tokenizer.token_text(token)).collect();
        let is_reasoning = form.reasoning.is_some_and(|markers| end.trim_end().ends_with(markers.begin));
        Ok(Expected { form, functions: functions.into(), is_reasoning })
    }

    /// Returns the grammar of answers that can have calls. `None` if they cannot.
    ///
    /// # Errors
    /// The schema of a strict function cannot be enforced. Arguments of other functions are then any JSON.
    pub(crate) async fn grammar_of_calls(
        &self,
        expected: &Expected,
        rules: CallRules,
    ) -> Result<Option<grammars::Enforced>, ApiError> {
        if let Some(UnenforcedWord { function, argument, word }) = tools::unenforced_word(expected) {
            let message = format!(
                "{word} of the text `{argument:.80}` of `{function}` cannot be enforced by this model's chat template, \
                 expected none in a strict function"
            );
            return Err(ApiError::invalid_field("tools", message));
        }
        let grammar = |enforced| tools::grammar(expected, rules, enforced, &self.text.tokenizer);
        let Some(all) = grammar(Enforced::All) else { return Ok(None) };
        let mut found = self.grammars.get(&all).await;
        if let (Err(_), Some(strict)) = (&found, grammar(Enforced::Strict).filter(|strict| *strict != all)) {
            found = self.grammars.get(&strict).await;
        }
        found.map(Some).map_err(|error| error.about("tools"))
    }

    /// Renders a chat. Returns the text and its tokens.
    pub(crate) fn render_chat(&self, chat: &Chat) -> Result<(String, Vec<u32>), ApiError> {
        let tokens = self.encode_chat(chat)?;
        let template = self.text.template.as_ref();
        let text = template.map(|template| template.render(chat)).transpose()?;
        Ok((text.unwrap_or_default(), tokens))
    }
}
