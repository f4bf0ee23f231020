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

pub(super) const TOOL_CALL: &str = "<tool_call>";
pub(super) const TOOL_CALL_END: &str = "</tool_call>";
/// Stands before Llama's calls of built-in tools; some models write it before others, too.
pub(super) const PYTHON_TAG: &str = "<|python_tag|>";
pub(super) const TOOL_CALLS: &str = "[TOOL_CALLS]";
pub(super) const CALL_ID: &str = "[CALL_ID]";
pub(super) const ARGS: &str = "[ARGS]";
pub(super) const CHANNEL: &str = "<|channel|>";
pub(super) const CONSTRAIN: &str = "<|constrain|>";
pub(super) const MESSAGE: &str = "<|message|>";
pub(super) const START: &str = "<|start|>";
pub(super) const END: &str = "<|end|>";

impl CallForm {
    /// Returns the marker before calls that stand within a text.
    pub(super) fn marker(self) -> Option<&'static str> {
        match self {
            Self::Hermes | Self::Coder => Some(TOOL_CALL),
            Self::MistralList | Self::MistralArguments => Some(TOOL_CALLS),
            Self::Llama | Self::Harmony => None,
        }
    }

    /// Returns the texts of the form that are special tokens in some tokenizers.
    pub(super) fn special(self) -> &'static [&'static str] {
        match self {
            Self::Hermes | Self::Coder => &[TOOL_CALL, TOOL_CALL_END],
            Self::Llama => &[PYTHON_TAG],
            Self::MistralList => &[TOOL_CALLS],
            Self::MistralArguments => &[TOOL_CALLS, CALL_ID, ARGS],
            Self::Harmony => &[CHANNEL, CONSTRAIN, MESSAGE, START, END],
        }
    }
}

impl AnswerForm {
    /// Reads the form off the chat template of a checkpoint, which writes earlier answers in it.
    pub(crate) fn of(template: &str) -> Self {
        let has = |text: &str| template.contains(text);
        let calls = if has(CHANNEL) {
            Some(CallForm::Harmony)
        } else if has(TOOL_CALLS) {
            Some(if has(ARGS) { CallForm::MistralArguments } else { CallForm::MistralList })
        } else if has("<function=") {
            Some(CallForm::Coder)
        } else if has(TOOL_CALL) {
            Some(CallForm::Hermes)
        } else if has(PYTHON_TAG) || (has("ipython") && has("tools")) {
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
