//! The calls within an answer, behind their marker.

use std::sync::Arc;

use mlxcel_runtime::HeldText;

use super::{
    Function,
    coder::CoderCall,
    form::{ARGS, CALL_ID, CallForm, TOOL_CALL_END},
    json::{self, CallObject, JsonValue},
    parts::Delta,
};

/// What reading more of the calls has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// More text is needed.
    More,
    /// What is held now comes after the calls.
    Done,
    /// These are no calls.
    Failed,
}

/// Reads calls, from their marker to the last one's end.
#[derive(Debug)]
pub(super) struct CallsReader {
    form: CallForm,
    place: Place,
    /// The marker, as long as nothing of a call is known.
    raw: String,
}

#[derive(Debug)]
enum Place {
    /// Before the `[` of a list.
    List,
    Object(CallObject),
    AfterObject,
    /// Within a name that `[ARGS]` ends, or `[CALL_ID]`.
    Name(String),
    /// Within an id that `[ARGS]` ends.
    CallId,
    Arguments(JsonValue),
    Coder(CoderCall),
}

/// What ends the name and the id of a call in Mistral's newer form.
const NAME_ENDS: [&str; 2] = [ARGS, CALL_ID];

impl CallsReader {
    pub(super) fn new(form: CallForm, functions: Arc<[Function]>, marker: &str) -> Self {
        let place = match form {
            CallForm::MistralList => Place::List,
            CallForm::MistralArguments => Place::Name(String::new()),
            CallForm::Coder => Place::Coder(CoderCall::new(functions)),
            CallForm::Hermes | CallForm::Llama | CallForm::Harmony => Place::Object(CallObject::default()),
        };
        Self { form, place, raw: marker.to_owned() }
    }

    /// Returns the text that turned out to be no call.
    pub(super) fn into_raw(self) -> String {
        self.raw
            + &match self.place {
                Place::Object(object) => object.into_raw(),
                Place::Name(name) => name,
                Place::Coder(call) => call.into_raw(),
                _ => String::new(),
            }
    }

    /// Reads what is held.
    pub(super) fn push(&mut self, held: &mut HeldText, out: &mut Vec<Delta>) -> Progress {
        loop {
            let before = out.len();
            let progress = self.read(held, out);
            if out
                .get(before..)
                .is_some_and(|new| new.iter().any(|delta| matches!(delta, Delta::Call { .. })))
            {
                self.raw.clear();
            }
            if let Some(progress) = progress {
                return progress;
            }
        }
    }

    /// Reads one part. `None` if there may be another one.
    fn read(&mut self, held: &mut HeldText, out: &mut Vec<Delta>) -> Option<Progress> {
        match &mut self.place {
            Place::List => match first(held) {
                None => Some(Progress::More),
                Some('[') => {
                    held.take(1);
                    self.place = Place::Object(CallObject::default());
                    None
                }
                Some(_) => Some(Progress::Failed),
            },
            Place::Object(object) => {
                let text = held.take_all();
                match object.push(&text, out) {
                    json::Progress::More => Some(Progress::More),
                    json::Progress::Failed => Some(Progress::Failed),
                    json::Progress::Done(used) => {
                        held.push(&text[used..]);
                        self.place = Place::AfterObject;
                        None
                    }
                }
            }
            Place::AfterObject => self.after_object(held),
            Place::Name(name) => {
                let (text, found) = held.take_until(&NAME_ENDS);
                name.push_str(&text);
                let Some(found) = found else { return Some(Progress::More) };
                out.push(Delta::Call { name: name.trim().to_owned() });
                self.place = if found == 0 { Place::Arguments(JsonValue::default()) } else { Place::CallId };
                None
            }
            Place::CallId => {
                let (_, found) = held.take_until(&NAME_ENDS[..1]);
                if found.is_none() {
                    return Some(Progress::More);
                }
                self.place = Place::Arguments(JsonValue::default());
                None
            }
            Place::Arguments(value) => {
                let text = held.take_all();
                let (used, is_complete) = value.push(&text);
                out.push(Delta::Arguments(text[..used].to_owned()));
                held.push(&text[used..]);
                Some(if is_complete { Progress::Done } else { Progress::More })
            }
            Place::Coder(call) => {
                if !call.push(held, out) {
                    return Some(Progress::More);
                }
                self.place = Place::AfterObject;
                None
            }
        }
    }

    fn after_object(&mut self, held: &mut HeldText) -> Option<Progress> {
        if matches!(self.form, CallForm::Hermes | CallForm::Coder) {
            let (_, found) = held.take_until(&[TOOL_CALL_END]);
            return Some(if found.is_some() { Progress::Done } else { Progress::More });
        }
        let separator = if self.form == CallForm::MistralList { ',' } else { ';' };
        match first(held) {
            None => Some(Progress::More),
            Some(char) if char == separator => {
                held.take(1);
                self.place = Place::Object(CallObject::default());
                None
            }
            Some(char) => {
                if char == ']' && self.form == CallForm::MistralList {
                    held.take(1);
                }
                Some(Progress::Done)
            }
        }
    }
}

/// Returns the first character that is no white space, after dropping that.
fn first(held: &mut HeldText) -> Option<char> {
    let text = held.as_str();
    let space = text.len() - text.trim_start().len();
    held.take(space);
    held.as_str().chars().next()
}
