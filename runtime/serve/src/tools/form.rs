//! How checkpoints write answers that are not plain text.

/// How a checkpoint writes calls of functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallForm {
    /// `<tool_call>{"name": …, "arguments": {…}}</tool_call>`: Hermes, Qwen 2.5, Qwen 3.
    Hermes,
    /// `<tool_call><function=…><parameter=…>…</parameter></function></tool_call>`: Qwen 3 Coder.
    Coder,
    /// `{"name": …, "parameters": {…}}`, which is the whole answer: Llama 3.
    Llama,
    /// `[TOOL_CALLS] [{"name": …, "arguments": {…}}]`: Mistral's tokenizers up to version 7.
    MistralList,
    /// `[TOOL_CALLS]name[ARGS]{…}`: Mistral's tokenizers from version 11.
    MistralArguments,
    /// `<|channel|>commentary to=functions.name <|constrain|>json<|message|>{…}<|call|>`: gpt-oss.
    Harmony,
}

/// The texts around a model's reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReasoningMarkers {
    pub(crate) begin: &'static str,
    pub(crate) end: &'static str,
}

/// How a checkpoint writes its answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct AnswerForm {
    /// `None` if its chat template has no tools.
    pub(crate) calls: Option<CallForm>,
    /// `None` if it does not reason, or if its form of calls says where.
    pub(crate) reasoning: Option<ReasoningMarkers>,
}

/// Special tokens that the forms use. In some tokenizers they are plain text.
const SPECIAL: [&str; 15] = [
    "<tool_call>",
    "</tool_call>",
    "<think>",
    "</think>",
    "[THINK]",
    "[/THINK]",
    "[TOOL_CALLS]",
    "[CALL_ID]",
    "[ARGS]",
    "<|python_tag|>",
    "<|channel|>",
    "<|message|>",
    "<|constrain|>",
    "<|start|>",
    "<|end|>",
];

impl AnswerForm {
    /// Reads the form off the chat template of a checkpoint, which writes earlier answers in it.
    pub(crate) fn of(template: &str) -> Self {
        let has = |text: &str| template.contains(text);
        let calls = if has("<|channel|>") {
            Some(CallForm::Harmony)
        } else if has("[TOOL_CALLS]") {
            Some(if has("[ARGS]") { CallForm::MistralArguments } else { CallForm::MistralList })
        } else if has("<function=") {
            Some(CallForm::Coder)
        } else if has("<tool_call>") {
            Some(CallForm::Hermes)
        } else if has("<|python_tag|>") || (has("ipython") && has("tools")) {
            Some(CallForm::Llama)
        } else {
            None
        };
        let markers = [("<think>", "</think>"), ("[THINK]", "[/THINK]")];
        let reasoning = markers
            .into_iter()
            .find(|(begin, end)| calls != Some(CallForm::Harmony) && (has(begin) || has(end)))
            .map(|(begin, end)| ReasoningMarkers { begin, end });
        Self { calls, reasoning }
    }

    /// Returns the special tokens whose texts an answer needs.
    pub(crate) fn special(self) -> &'static [&'static str] {
        if self == Self::default() { &[] } else { &SPECIAL }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_read_off_templates() {
        let form = |template: &str| AnswerForm::of(template);
        assert_eq!(form("{{ messages }}"), AnswerForm::default());
        assert_eq!(form("<tool_call>\n{\"name\": <think>").calls, Some(CallForm::Hermes));
        assert_eq!(form("split('</think>')").reasoning.map(|markers| markers.begin), Some("<think>"));
        assert_eq!(form("<tool_call>\n<function=").calls, Some(CallForm::Coder));
        assert_eq!(form("'Environment: ipython'{% if tools %}").calls, Some(CallForm::Llama));
        assert_eq!(form("{{ '[TOOL_CALLS] [' }}").calls, Some(CallForm::MistralList));
        assert_eq!(form("[TOOL_CALLS]{{ name }}[ARGS]").calls, Some(CallForm::MistralArguments));
        let harmony = AnswerForm { calls: Some(CallForm::Harmony), reasoning: None };
        assert_eq!(form("<|start|>assistant<|channel|>analysis<|message|>"), harmony);
    }
}
