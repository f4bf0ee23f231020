//! A chat, line by line.

use std::io::{BufRead, Write};

use anyhow::Result;
use mlxcel_artifacts::report;
use mlxcel_runtime::{ChatTemplate, Error, Message, Options as Limits, Sampler, Session, Tokenizer};

use crate::{
    answer::{Answer, Request, answer},
    interrupt::Interrupt,
};

/// A chat and what was said in it.
pub(crate) struct Chat<'a> {
    tokenizer: &'a Tokenizer,
    /// Without one, every line is a text to continue.
    template: Option<ChatTemplate>,
    system: Option<String>,
    limits: Limits,
    stops: &'a [String],
    messages: Vec<Message>,
    /// The tokens in the session.
    cached: Vec<u32>,
}

impl<'a> Chat<'a> {
    pub(crate) fn new(
        tokenizer: &'a Tokenizer,
        template: Option<ChatTemplate>,
        system: Option<String>,
        limits: Limits,
        stops: &'a [String],
    ) -> Self {
        let mut chat = Self { tokenizer, template, system, limits, stops, messages: vec![], cached: vec![] };
        chat.start_anew();
        chat
    }

    /// Reads lines and writes answers until `input` ends. What is no answer goes to `notes`.
    pub(crate) fn run(
        &mut self,
        session: &mut dyn Session,
        mut sampler: Option<Sampler>,
        interrupt: &Interrupt,
        input: &mut dyn BufRead,
        out: &mut dyn Write,
        notes: &mut dyn Write,
    ) -> Result<()> {
        let mut line = String::new();
        loop {
            write!(notes, "> ")?;
            notes.flush()?;
            line.clear();
            if input.read_line(&mut line)? == 0 {
                writeln!(notes)?;
                return Ok(());
            }
            let text = line.trim_end_matches(['\n', '\r']);
            if text.trim().is_empty() {
                continue;
            }
            let _answering = interrupt.answering();
            match self.say(session, text, sampler.as_mut(), interrupt, out) {
                Ok(()) => writeln!(out)?,
                Err(error) if error.downcast_ref().is_some_and(|e| matches!(e, Error::TooLong { .. })) => {
                    writeln!(notes, "{}\nthe chat starts anew", report(error.as_ref()))?;
                    self.start_anew();
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn start_anew(&mut self) {
        self.messages = self.system.iter().map(|text| Message::new("system", text.as_str())).collect();
    }

    fn say(
        &mut self,
        session: &mut dyn Session,
        text: &str,
        sampler: Option<&mut Sampler>,
        interrupt: &Interrupt,
        out: &mut dyn Write,
    ) -> Result<()> {
        let tokens = match &self.template {
            None => self.tokenizer.encode(text, true)?,
            Some(template) => {
                self.messages.push(Message::new("user", text));
                self.tokenizer.encode(&template.render(&self.messages)?, false)?
            }
        };
        // What the session has seen already need not be run again; one token must be, to get an answer.
        let same = tokens.iter().zip(&self.cached).take_while(|(a, b)| a == b).count();
        let kept = same.min(tokens.len().saturating_sub(1));
        session.rewind(kept)?;
        self.cached.truncate(kept);

        let request = Request {
            tokenizer: Some(self.tokenizer),
            prompt: &tokens[kept..],
            limits: &self.limits,
            stops: self.stops,
            is_message: self.template.is_some(),
        };
        let Answer { generation, text } = answer(session, &request, sampler, &interrupt.cancel, out)?;
        self.cached.extend(&tokens[kept..]);
        self.cached.extend(&generation.tokens);
        // The last token was not run, nor a part of the prompt when it was cancelled.
        self.cached.truncate(session.position());
        if self.template.is_some() {
            self.messages.push(Message::new("assistant", text.unwrap_or_default()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use mlxcel_runtime::{Call, ScriptedSession};

    use super::*;

    const WORDS: [&str; 9] = ["<end>", "user", "assistant", "system", "bot", "a", "b", "c", "d"];
    const END: u32 = 0;

    fn tokenizer() -> Tokenizer {
        let vocab: Vec<String> =
            WORDS.iter().enumerate().map(|(id, word)| format!("\"{word}\": {id}")).collect();
        let json = format!(
            r#"{{"version": "1.0", "pre_tokenizer": {{"type": "WhitespaceSplit"}},
                "added_tokens": [{{"id": 0, "content": "<end>", "special": true, "single_word": false,
                    "lstrip": false, "rstrip": false, "normalized": false}}],
                "model": {{"type": "WordLevel", "vocab": {{{}}}, "unk_token": "<end>"}}}}"#,
            vocab.join(", ")
        );
        Tokenizer::from_json(json.as_bytes()).unwrap()
    }

    fn template() -> Option<ChatTemplate> {
        let source = "{% for m in messages %}{{ m.role }} {{ m.content }} {% if m.role == 'assistant' %}<end> {% endif %}\
                      {% endfor %}bot";
        ChatTemplate::new(Some(source.replace("bot", "assistant")), "{}").unwrap()
    }

    /// Says the last word of the prompt, then the next one, then `<end>`.
    fn session(context: usize) -> ScriptedSession {
        ScriptedSession::new(context, WORDS.len(), |tokens| {
            let next = match *tokens {
                [.., before, 2] => before,
                [.., 2, word] => word + 1,
                _ => END,
            };
            (0..9).map(|id| if id == next { 1.0 } else { 0.0 }).collect()
        })
    }

    /// What goes to stdout and stderr.
    fn talk(session: &mut ScriptedSession, template: Option<ChatTemplate>, input: &str) -> (String, String) {
        let tokenizer = tokenizer();
        let limits = Limits { max_tokens: usize::MAX, eos: vec![END], logprobs: 0 };
        let mut chat = Chat::new(&tokenizer, template, Some("d".into()), limits, &[]);
        let (mut out, mut notes) = (vec![], vec![]);
        chat.run(session, None, &Interrupt::new(), &mut input.as_bytes(), &mut out, &mut notes).unwrap();
        (String::from_utf8(out).unwrap(), String::from_utf8(notes).unwrap())
    }

    #[test]
    fn a_chat_runs_only_what_is_new() {
        let mut session = session(100);
        let (out, notes) = talk(&mut session, template(), "a\n\n  \nb\r\n");
        assert_eq!((out.as_str(), notes.as_str()), ("a b\nb c\n", "> > > > > \n"));
        // system d user a assistant | a b <end> user b assistant. The `<end>` was not run the first time.
        let prefills =
            session.calls().iter().filter(|call| matches!(call, Call::Prefill(_) | Call::Rewind(_)));
        let expected =
            [Call::Rewind(0), Call::Prefill(4), Call::Prefill(1), Call::Rewind(7), Call::Prefill(4)];
        assert_eq!(prefills.cloned().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_chat_longer_than_the_context_starts_anew() {
        let mut session = session(10);
        let (out, notes) = talk(&mut session, template(), "a\nb\nc\n");
        assert_eq!(out, "a b\nc d\n");
        assert!(
            notes.starts_with(
                "> > error: 4 tokens at position 7, expected at most 3: the context is 10\nhint: "
            )
        );
        assert!(notes.ends_with("\nthe chat starts anew\n> > \n"), "{notes}");
        assert_eq!(WORDS[session.tokens()[3] as usize], "c");
    }

    #[test]
    fn without_a_template_lines_are_texts() {
        let mut session = session(100);
        let (out, _) = talk(&mut session, None, "a assistant\na assistant\n");
        assert_eq!(out, " a b\n a b\n");
        // The same line again: its last token alone.
        assert!(session.calls().contains(&Call::Rewind(1)));
    }
}
