//! Answers as they come, taken apart into text, reasoning and calls.

use super::{
    form::CallForm,
    harmony::HarmonyReader,
    parts::{Delta, Expected},
    plain::PlainReader,
};

/// Takes an answer apart. Texts of all deltas together are the answer without its markers.
#[derive(Debug)]
pub(crate) struct AnswerReader {
    reader: Reader,
    has_calls: bool,
}

#[derive(Debug)]
enum Reader {
    Plain(PlainReader),
    Harmony(HarmonyReader),
}

impl AnswerReader {
    pub(crate) fn new(expected: &Expected) -> Self {
        let reader = match expected.form.calls {
            Some(CallForm::Harmony) => Reader::Harmony(HarmonyReader::new(!expected.functions.is_empty())),
            _ => Reader::Plain(PlainReader::new(expected)),
        };
        Self { reader, has_calls: false }
    }

    /// Adds text and returns what is final now.
    pub(crate) fn push(&mut self, text: &str) -> Vec<Delta> {
        let mut out = Vec::new();
        match &mut self.reader {
            Reader::Plain(reader) => reader.push(text, &mut out),
            Reader::Harmony(reader) => reader.push(text, &mut out),
        }
        self.checked(out)
    }

    /// Ends the answer and returns the rest of it.
    pub(crate) fn finish(&mut self) -> Vec<Delta> {
        let mut out = Vec::new();
        match &mut self.reader {
            Reader::Plain(reader) => reader.finish(&mut out),
            Reader::Harmony(reader) => reader.finish(&mut out),
        }
        self.checked(out)
    }

    /// Returns whether a call has come.
    pub(crate) fn has_calls(&self) -> bool {
        self.has_calls
    }

    fn checked(&mut self, mut out: Vec<Delta>) -> Vec<Delta> {
        self.has_calls |= out.iter().any(|delta| matches!(delta, Delta::Call { .. }));
        out.retain(|delta| match delta {
            Delta::Content(text) | Delta::Reasoning(text) | Delta::Arguments(text) => !text.is_empty(),
            Delta::Call { .. } => true,
        });
        out
    }
}
