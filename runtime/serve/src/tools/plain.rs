//! Answers that are text, with reasoning before it and calls within.

use mlxcel_runtime::HeldText;

use super::{
    calls::{CallsReader, Progress},
    form::{CallForm, PYTHON_TAG, ReasoningMarkers},
    parts::{Delta, Expected},
};

/// Reads text with marked parts.
#[derive(Debug)]
pub(super) struct PlainReader {
    expected: Expected,
    held: HeldText,
    place: Place,
    /// White space that is left out if a call follows, or nothing.
    space: String,
}

/// Where in an answer the text ends.
#[derive(Debug)]
enum Place {
    /// Before anything but white space. `true` until the reasoning is over.
    Start(bool),
    Reasoning,
    Content,
    Calls(CallsReader),
}

impl PlainReader {
    pub(super) fn new(expected: &Expected) -> Self {
        let place = if expected.is_reasoning { Place::Reasoning } else { Place::Start(true) };
        Self { expected: expected.clone(), held: HeldText::default(), place, space: String::new() }
    }

    pub(super) fn push(&mut self, text: &str, out: &mut Vec<Delta>) {
        self.held.push(text);
        while self.read(out) {}
    }

    pub(super) fn finish(&mut self, out: &mut Vec<Delta>) {
        let rest = self.held.take_all();
        match std::mem::replace(&mut self.place, Place::Content) {
            Place::Reasoning => out.push(Delta::Reasoning(rest)),
            // Nothing but white space came after the last part.
            Place::Start(false) if rest.trim_start().is_empty() => {}
            Place::Start(_) | Place::Content => {
                let space = std::mem::take(&mut self.space);
                out.push(Delta::Content(space + &rest));
            }
            Place::Calls(calls) => out.push(Delta::Content(calls.into_raw() + &rest)),
        }
    }

    /// Returns the marker of calls, if there may be any.
    fn marker(&self) -> Option<&'static str> {
        self.expected.calls().and_then(CallForm::marker)
    }

    /// Reads one part. False if more text is needed.
    fn read(&mut self, out: &mut Vec<Delta>) -> bool {
        match &mut self.place {
            Place::Start(may_reason) => {
                let may_reason = *may_reason;
                self.start(may_reason)
            }
            Place::Reasoning => {
                let end = self.expected.form.reasoning.map_or("", |markers| markers.end);
                let (text, found) = self.held.take_until(&[end]);
                out.push(Delta::Reasoning(text));
                if found.is_some() {
                    self.place = Place::Start(false);
                }
                found.is_some()
            }
            Place::Content => {
                let (text, found) = self.held.take_until(self.marker().as_slice());
                self.content(&text, out);
                if found.is_some() {
                    self.space.clear();
                    self.place = self.calls(self.marker().unwrap_or_default());
                }
                found.is_some()
            }
            Place::Calls(calls) => match calls.push(&mut self.held, out) {
                Progress::More => false,
                Progress::Done => {
                    self.place = Place::Start(false);
                    true
                }
                Progress::Failed => {
                    let Place::Calls(calls) = std::mem::replace(&mut self.place, Place::Content) else {
                        return false;
                    };
                    out.push(Delta::Content(calls.into_raw()));
                    true
                }
            },
        }
    }

    fn calls(&self, marker: &'static str) -> Place {
        let form = self.expected.form.calls.unwrap_or(CallForm::Hermes);
        Place::Calls(CallsReader::new(form, self.expected.functions.clone(), marker))
    }

    /// Decides what an answer begins with, or what follows reasoning and calls. White space before it is left out.
    fn start(&mut self, may_reason: bool) -> bool {
        let text = self.held.as_str();
        let rest = text.trim_start();
        let skipped = text.len() - rest.len();
        let begin =
            self.expected.form.reasoning.filter(|_| may_reason).map(|ReasoningMarkers { begin, .. }| begin);
        let is_llama = self.expected.calls() == Some(CallForm::Llama);
        let markers = [begin, self.marker(), is_llama.then_some(PYTHON_TAG)];
        let place = if begin.is_some_and(|begin| rest.starts_with(begin)) {
            self.held.take(skipped + begin.map_or(0, str::len));
            Place::Reasoning
        } else if is_llama && rest.starts_with(PYTHON_TAG) {
            self.held.take(skipped + PYTHON_TAG.len());
            self.calls(PYTHON_TAG)
        } else if is_llama && rest.starts_with('{') {
            self.held.take(skipped);
            self.calls("")
        } else if (rest.is_empty() && !may_reason)
            || markers.into_iter().flatten().any(|marker| marker.starts_with(rest))
        {
            // White space, or a part of a marker.
            return false;
        } else {
            // A text keeps its first space, unless something came before.
            if !may_reason {
                self.held.take(skipped);
            }
            Place::Content
        };
        self.space.clear();
        self.place = place;
        true
    }

    /// Gives text out. White space at its end waits for what follows.
    fn content(&mut self, text: &str, out: &mut Vec<Delta>) {
        if self.marker().is_none() {
            out.push(Delta::Content(text.to_owned()));
            return;
        }
        let kept = text.trim_end();
        if kept.is_empty() {
            self.space.push_str(text);
        } else {
            let space = std::mem::replace(&mut self.space, text[kept.len()..].to_owned());
            out.push(Delta::Content(space + kept));
        }
    }
}
