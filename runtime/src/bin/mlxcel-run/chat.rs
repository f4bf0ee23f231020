//! A chat on the terminal, line by line.

use std::io::{BufRead, Write};

use anyhow::{Context as _, Result};
use mlxcel_runtime::{ChatTemplate, Engine, Message, ModelRunner, Request, Sampling, StopReason, Tokenizer};

use crate::{
    answer::{Answer, Form, WRITING, answer},
    interrupt::Interrupt,
    render,
};

/// A chat with its messages.
pub(crate) struct Chat<'a> {
    tokenizer: &'a Tokenizer,
    /// The chat template; without one, every line is a text to continue.
    template: Option<ChatTemplate>,
    system: Option<String>,
    /// What every message asks for, without its prompt.
    request: Request,
    /// Answers so far. Each has random numbers of its own.
    answers: u64,
    stops: &'a [String],
    messages: Vec<Message>,
    /// The last message that did not fit the context; `/clear` answers it.
    unanswered: Option<String>,
}

/// The engine of a chat, and its input and output.
pub(crate) struct ChatIo<'a, R> {
    pub(crate) engine: &'a mut Engine<R>,
    pub(crate) interrupt: &'a Interrupt,
    pub(crate) input: &'a mut dyn BufRead,
    /// Receives answers.
    pub(crate) out: &'a mut dyn Write,
    /// Receives everything else.
    pub(crate) notes: &'a mut dyn Write,
}

/// A line of input.
#[derive(Debug, PartialEq)]
enum Line<'a> {
    Nothing,
    Text(&'a str),
    Clear,
    Help,
    Exit,
    Unknown(&'a str),
}

/// The answer to `/help`.
const HELP: &str = "/clear  forget the chat, and answer the last message if it did not fit
/exit   exit; also /quit or Ctrl-D
/help   show this list
Ctrl-C stops an answer. Begin a line with a space to send it to the model even if a / follows.";

impl<'a> Chat<'a> {
    /// Starts a chat, with the system message if there is one.
    pub(crate) fn new(
        tokenizer: &'a Tokenizer,
        template: Option<ChatTemplate>,
        system: Option<String>,
        request: Request,
        stops: &'a [String],
    ) -> Self {
        let (messages, unanswered, answers) = (vec![], None, 0);
        let mut chat = Self { tokenizer, template, system, request, answers, stops, messages, unanswered };
        chat.clear();
        chat
    }

    /// Reads lines and writes answers until `/exit` or the end of the input.
    pub(crate) fn run<R: ModelRunner>(&mut self, io: &mut ChatIo<'_, R>) -> Result<()> {
        let mut line = String::new();
        loop {
            write!(io.notes, "> ")?;
            io.notes.flush()?;
            line.clear();
            if io.input.read_line(&mut line)? == 0 {
                writeln!(io.notes)?;
                return Ok(());
            }
            match Line::new(&line) {
                Line::Nothing => {}
                Line::Text(text) => self.send(io, text)?,
                Line::Clear => {
                    self.clear();
                    match self.unanswered.take() {
                        Some(text) => self.send(io, &text)?,
                        None => writeln!(io.notes, "the chat is cleared")?,
                    }
                }
                Line::Help => writeln!(io.notes, "{HELP}")?,
                Line::Exit => return Ok(()),
                Line::Unknown(name) => writeln!(io.notes, "{}", render::unknown_command(name))?,
            }
        }
    }

    /// Forgets all messages but the system message.
    fn clear(&mut self) {
        self.messages = self.system.iter().map(|text| Message::new("system", text.as_str())).collect();
    }

    /// Answers a message, or refuses it if it does not fit the context.
    fn send<R: ModelRunner>(&mut self, io: &mut ChatIo<'_, R>, text: &str) -> Result<()> {
        let tokens = self.encode(text)?;
        let context = io.engine.context();
        let larger =
            if context < io.engine.limits().context { render::LARGER_CACHE } else { render::LARGER_CONTEXT };
        // Refused before anything runs or is stored, so that the chat can continue.
        if tokens.len() > context {
            let has_history = self.messages.len() > usize::from(self.system.is_some());
            writeln!(io.notes, "{}", render::no_room(tokens.len(), context, has_history, larger))?;
            self.unanswered = has_history.then(|| text.to_string());
            return Ok(());
        }
        self.unanswered = None;
        let Answer { generation, text: reply } = self.answer(io, tokens)?;
        writeln!(io.out).context(WRITING)?;
        let is_full = match generation.stop_reason {
            StopReason::Context => true,
            // The cache had no room for as many as were asked for.
            StopReason::Length => generation.tokens.len() < self.request.max_tokens,
            StopReason::Eos | StopReason::Stop | StopReason::Cancelled => false,
        };
        if is_full {
            let hint = if self.template.is_some() { render::CLEAR } else { larger };
            writeln!(io.notes, "{}", render::cut_short(context, hint))?;
        }
        if self.template.is_some() {
            self.messages.push(Message::new("user", text));
            self.messages.push(Message::new("assistant", reply.unwrap_or_default()));
        }
        Ok(())
    }

    /// Encodes the chat with `text` as its next message, or the text alone if there is no template.
    fn encode(&self, text: &str) -> Result<Vec<u32>> {
        let Some(template) = &self.template else { return Ok(self.tokenizer.encode(text, true)?) };
        let next = Message::new("user", text);
        let messages: Vec<Message> = self.messages.iter().cloned().chain([next]).collect();
        Ok(self.tokenizer.encode_chat(template, &messages.into())?)
    }

    /// Answers the chat of these tokens. Whole pages of them that are in the cache already are not run again.
    fn answer<R: ModelRunner>(&mut self, io: &mut ChatIo<'_, R>, prompt: Vec<u32>) -> Result<Answer> {
        let ChatIo { engine, interrupt, out, .. } = io;
        let sampling = self.request.sampling;
        let sampling =
            sampling.map(|sampling| Sampling { seed: sampling.seed.wrapping_add(self.answers), ..sampling });
        self.answers += 1;
        // A request that does not fit the cache would be refused.
        let max_tokens = self.request.max_tokens.min(engine.room(prompt.len()));
        let request = Request { prompt, max_tokens, sampling, ..self.request.clone() };
        let tokenizer = Some(self.tokenizer);
        let form = Form { tokenizer, stops: self.stops, is_message: self.template.is_some() };
        let _answering = interrupt.answering();
        answer(engine, request, &form, &interrupt.cancel, out)
    }
}

impl<'a> Line<'a> {
    /// Parses a line. A command is a `/` and one word of letters, so that paths go to the model.
    fn new(line: &'a str) -> Self {
        let text = line.trim_end_matches(['\n', '\r']);
        match text.trim_end() {
            "" => Self::Nothing,
            "/clear" => Self::Clear,
            "/help" | "/?" => Self::Help,
            "/exit" | "/quit" | "/bye" => Self::Exit,
            word => match word.strip_prefix('/') {
                Some(name) if !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphabetic()) => {
                    Self::Unknown(word)
                }
                _ => Self::Text(text),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use mlxcel_runtime::{EngineSettings, scripted::ScriptedModel};

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

    /// Answers with the last word of the prompt, then the next word, then `<end>`.
    fn engine(context: usize) -> Engine<ScriptedModel> {
        let model = ScriptedModel::of_tokens(context, WORDS.len(), |tokens| {
            let next = match *tokens {
                [.., before, 2] => before,
                [.., 2, word] => word + 1,
                _ => END,
            };
            (0..9).map(|id| if id == next { 1.0 } else { 0.0 }).collect()
        });
        Engine::new(model, EngineSettings::default()).unwrap()
    }

    /// Runs a chat; returns what goes to stdout and to stderr.
    fn talk(
        engine: &mut Engine<ScriptedModel>,
        template: Option<ChatTemplate>,
        input: &str,
    ) -> (String, String) {
        talk_after("d", engine, template, input)
    }

    /// Runs a chat with this system message.
    fn talk_after(
        system: &str,
        engine: &mut Engine<ScriptedModel>,
        template: Option<ChatTemplate>,
        input: &str,
    ) -> (String, String) {
        let tokenizer = tokenizer();
        let request = Request { max_tokens: usize::MAX, eos: vec![END], ..Request::default() };
        let mut chat = Chat::new(&tokenizer, template, Some(system.into()), request, &[]);
        let (mut out, mut notes) = (vec![], vec![]);
        let io = &mut ChatIo {
            engine,
            interrupt: &Interrupt::new(),
            input: &mut input.as_bytes(),
            out: &mut out,
            notes: &mut notes,
        };
        chat.run(io).unwrap();
        (String::from_utf8(out).unwrap(), String::from_utf8(notes).unwrap())
    }

    /// Returns the rows that ran.
    fn rows(engine: &mut Engine<ScriptedModel>) -> usize {
        engine.runner().calls().iter().map(|&(_, rows)| rows).sum()
    }

    #[test]
    fn a_chat_runs_new_pages_alone() {
        let mut engine = engine(200);
        let (out, notes) = talk(&mut engine, template(), "a\n\n  \nb\r\n");
        assert_eq!((out.as_str(), notes.as_str()), ("a b\nb c\n", "> > > > > \n"));
        // system d user a assistant | a b, where `<end>` is not run; then these, <end> user b assistant | b c.
        assert_eq!(rows(&mut engine), 7 + 13);
        // A page is 64 tokens: with a long system message the second message runs 15 of 79 tokens, and its answer.
        let before = rows(&mut engine);
        let system = "d ".repeat(70);
        talk_after(&system, &mut engine, template(), "a\n");
        assert_eq!(rows(&mut engine) - before, 74 + 2);
        talk_after(&system, &mut engine, template(), "b\n");
        assert_eq!(rows(&mut engine) - before, 74 + 2 + 10 + 2);
    }

    const FULL: &str = "error: the chat has 11 tokens with this message, expected at most 10: the context is full\n\
                        hint: /clear forgets the messages before and answers this one\n";

    #[test]
    fn a_message_that_did_not_fit_is_answered_after_clear() {
        let mut engine = engine(10);
        let (out, notes) = talk(&mut engine, template(), "a\nb\n/clear\n");
        // system d user a assistant | a b <end> user b assistant: 11.
        assert_eq!(out, "a b\nb c\n");
        assert_eq!(notes, format!("> > {FULL}> > \n"));
    }

    #[test]
    fn a_message_that_did_not_fit_is_not_part_of_the_chat() {
        // Trying again does not make the chat longer.
        let (out, notes) = talk(&mut engine(10), template(), "a\nb\nc\nc\n/clear\n/clear\n");
        assert_eq!(out, "a b\nc d\n");
        assert_eq!(notes, format!("> > {FULL}> {FULL}> {FULL}> > the chat is cleared\n> \n"));
    }

    #[test]
    fn a_message_longer_than_the_context_is_refused() {
        let (out, notes) = talk(&mut engine(6), template(), "a a a\n/clear\na\n");
        assert_eq!(
            notes,
            "> error: this message has 7 tokens, expected at most 6, the size of the context\n\
             hint: shorten it, raise --ctx-size if it was given, or compile the bundle again with a larger one\n\
             > the chat is cleared\n\
             > warning: the context of 6 tokens is full, and the answer ends here\n\
             hint: /clear forgets the chat\n\
             > \n"
        );
        // The cache: system d user a assistant | a. The token `b` is known without being run.
        assert_eq!(out, "a b\n");
    }

    #[test]
    fn an_answer_ends_where_the_cache_does() {
        let mut limits = engine(200).limits().clone();
        limits.pools[0].pages = 1;
        let model =
            ScriptedModel::new(limits, |_, _| (0..9).map(|id| if id == 5 { 1.0 } else { 0.0 }).collect());
        let mut engine = Engine::new(model, EngineSettings::default()).unwrap();
        // system d user a assistant: 5 of the 64 tokens of a page.
        let (out, notes) = talk(&mut engine, template(), "a\nb\n");
        assert_eq!(out.split_whitespace().count(), 59);
        assert_eq!(
            notes,
            "> warning: the context of 64 tokens is full, and the answer ends here\n\
             hint: /clear forgets the chat\n\
             > error: the chat has 68 tokens with this message, expected at most 64: the context is full\n\
             hint: /clear forgets the messages before and answers this one\n\
             > \n"
        );
        let (_, notes) = talk(&mut engine, None, &"a ".repeat(65));
        assert_eq!(
            notes,
            "> error: this message has 65 tokens, expected at most 64, the size of the context\n\
             hint: shorten it, raise --cache-size if it was given, or free memory\n\
             > \n"
        );
    }

    #[test]
    fn commands_do_not_go_to_the_model() {
        let mut engine = engine(100);
        let (out, notes) = talk(&mut engine, template(), "/help\n/foo\n/clear \n/exit\na\n");
        assert_eq!((out.as_str(), rows(&mut engine)), ("", 0));
        let unknown = "unknown command /foo, expected /clear, /help or /exit\n\
                       hint: a line that begins with a space goes to the model as it is\n";
        assert_eq!(notes, format!("> {HELP}\n> {unknown}> the chat is cleared\n> "));
    }

    #[test]
    fn lines_are_parsed() {
        for (line, expected) in [
            ("\n", Line::Nothing),
            (" \t\r\n", Line::Nothing),
            ("hi \n", Line::Text("hi ")),
            ("hi", Line::Text("hi")),
            ("/clear\r\n", Line::Clear),
            ("/?\n", Line::Help),
            ("/help \n", Line::Help),
            ("/quit\n", Line::Exit),
            ("/bye", Line::Exit),
            ("/Exit\n", Line::Unknown("/Exit")),
            (" /exit\n", Line::Text(" /exit")),
            ("/exit now\n", Line::Text("/exit now")),
            ("/usr/bin is a folder\n", Line::Text("/usr/bin is a folder")),
            ("/usr/bin\n", Line::Text("/usr/bin")),
            ("/\n", Line::Text("/")),
        ] {
            assert_eq!(Line::new(line), expected, "{line:?}");
        }
    }

    #[test]
    fn clear_forgets_the_messages() {
        let mut engine = engine(100);
        let (out, _) = talk(&mut engine, template(), "a\n/clear\nb\n");
        assert_eq!(out, "a b\nb c\n");
        // Each time system d user … assistant and two tokens of the answer.
        assert_eq!(rows(&mut engine), 7 + 7);
    }

    #[test]
    fn without_a_template_lines_are_continued_as_text() {
        let mut engine = engine(100);
        let (out, _) = talk(&mut engine, None, "a assistant\na assistant\n");
        assert_eq!(out, " a b\n a b\n");
    }
}
