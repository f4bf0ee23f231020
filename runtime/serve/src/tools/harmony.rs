//! Answers as gpt-oss writes them: messages on channels.

use mlxcel_runtime::HeldText;

use super::{
    form::{CHANNEL, END, MESSAGE, START},
    parts::Delta,
};

/// Reads `<|channel|>analysis<|message|>…<|end|><|start|>assistant<|channel|>final<|message|>…`.
#[derive(Debug)]
pub(super) struct HarmonyReader {
    /// Whether there are functions. Otherwise the text of a call is text.
    may_call: bool,
    held: HeldText,
    place: Place,
    header: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Before `<|message|>`.
    Header,
    Reasoning,
    Content,
    Arguments,
}

/// The recipients of calls.
const FUNCTIONS: &str = "to=functions.";

/// What ends a message. The ends of calls and of the last message have no text.
const ENDS: [&str; 2] = [END, START];

impl HarmonyReader {
    pub(super) fn new(may_call: bool) -> Self {
        Self { may_call, held: HeldText::default(), place: Place::Header, header: String::new() }
    }

    pub(super) fn push(&mut self, text: &str, out: &mut Vec<Delta>) {
        self.held.push(text);
        loop {
            let is_header = self.place == Place::Header;
            let ends: &[&str] = if is_header { &[MESSAGE] } else { &ENDS };
            let (text, found) = self.held.take_until(ends);
            self.text(text, out);
            if found.is_none() {
                break;
            }
            if is_header {
                self.message(out);
            } else {
                self.place = Place::Header;
            }
        }
    }

    pub(super) fn finish(&mut self, out: &mut Vec<Delta>) {
        let rest = self.held.take_all();
        self.text(rest, out);
        // A header without a message has nothing for anyone, unless the model does not keep to the form.
        let header = std::mem::take(&mut self.header);
        if self.place == Place::Header && !header.contains("<|") {
            out.push(Delta::Content(header));
        }
    }

    fn text(&mut self, text: String, out: &mut Vec<Delta>) {
        match self.place {
            Place::Header => self.header.push_str(&text),
            Place::Reasoning => out.push(Delta::Reasoning(text)),
            Place::Content => out.push(Delta::Content(text)),
            Place::Arguments => out.push(Delta::Arguments(text)),
        }
    }

    /// Begins the message of a header.
    fn message(&mut self, out: &mut Vec<Delta>) {
        let header = std::mem::take(&mut self.header);
        let word = |text: &str| {
            let end = text.find(|c: char| c.is_whitespace() || c == '<').unwrap_or(text.len());
            text[..end].to_owned()
        };
        self.place = if let Some((_, rest)) = header.split_once(FUNCTIONS).filter(|_| self.may_call) {
            out.push(Delta::Call { name: word(rest) });
            Place::Arguments
        } else if header.split_once(CHANNEL).is_some_and(|(_, rest)| word(rest) == "analysis") {
            Place::Reasoning
        } else {
            Place::Content
        };
    }
}
