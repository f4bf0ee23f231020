//! Answers of every form, whole and piece by piece.

use serde_json::json;

use super::{
    AnswerReader, Delta, Expected, Function,
    form::{AnswerForm, CallForm, ReasoningMarkers},
};

fn functions() -> Vec<Function> {
    let parameters = json!({ "properties": { "days": { "type": "integer" }, "city": { "type": "string" } } });
    let function = |name: &str| Function {
        name: name.into(),
        parameters: parameters.as_object().unwrap().clone(),
        is_strict: false,
    };
    vec![function("weather"), function("time")]
}

/// Writes deltas as text: calls as `[name arguments]`, reasoning as `(…)`.
fn write(deltas: Vec<Delta>) -> String {
    let mut parts: Vec<(char, String)> = Vec::new();
    for delta in deltas {
        let (kind, text) = match delta {
            Delta::Content(text) => ('c', text),
            Delta::Reasoning(text) => ('r', text),
            Delta::Call { name } => {
                parts.push(('a', format!("{name} ")));
                continue;
            }
            Delta::Arguments(text) => ('a', text),
        };
        match parts.last_mut() {
            Some((last, so_far)) if *last == kind => so_far.push_str(&text),
            _ => parts.push((kind, text)),
        }
    }
    let part = |(kind, text): (char, String)| match kind {
        'c' => text,
        'r' => format!("({text})"),
        _ => format!("[{text}]"),
    };
    parts.into_iter().map(part).collect()
}

/// Reads an answer whole and in pieces of 1 to 3 characters, and checks that the results are equal.
fn read(expected: &Expected, answer: &str) -> String {
    let chars: Vec<char> = answer.chars().collect();
    let read = |size: usize| {
        let mut reader = AnswerReader::new(expected);
        let mut deltas = Vec::new();
        for piece in chars.chunks(size.max(1)) {
            deltas.extend(reader.push(&String::from_iter(piece)));
        }
        deltas.extend(reader.finish());
        assert_eq!(reader.has_calls(), deltas.iter().any(|delta| matches!(delta, Delta::Call { .. })));
        write(deltas)
    };
    let whole = read(chars.len());
    for size in 1..4 {
        assert_eq!(read(size), whole, "in pieces of {size}");
    }
    whole
}

fn of(calls: CallForm) -> Expected {
    let form = AnswerForm { calls: Some(calls), reasoning: None };
    Expected { form, functions: functions().into(), is_reasoning: false }
}

fn thinking(calls: CallForm) -> Expected {
    let mut expected = of(calls);
    expected.form.reasoning = Some(ReasoningMarkers { begin: "<think>", end: "</think>" });
    expected
}

#[test]
fn plain_answers_keep_every_character() {
    let text = " a\n\n <tool_call> {\"name\": 1} <think> ";
    assert_eq!(read(&Expected::default(), text), text);
    let mut none = of(CallForm::Hermes);
    none.functions = [].into();
    assert_eq!(read(&none, text), text);
    for form in [
        CallForm::Hermes,
        CallForm::Coder,
        CallForm::MistralList,
        CallForm::MistralArguments,
        CallForm::Llama,
    ] {
        assert_eq!(read(&of(form), "Hello, <tool [TOOL world\n"), "Hello, <tool [TOOL world\n", "{form:?}");
    }
}

#[test]
fn reasoning_ends_where_its_marker_says() {
    let expected = thinking(CallForm::Hermes);
    assert_eq!(read(&expected, "<think>\na < b</think>\n\nyes"), "(\na < b)yes");
    assert_eq!(read(&expected, "yes <think> no"), "yes <think> no");
    assert_eq!(read(&expected, "<think>cut"), "(cut)");
    let open = Expected { is_reasoning: true, ..expected };
    assert_eq!(read(&open, "a</think>\nb"), "(a)b");
    let call = "a</think>\n<tool_call>\n{\"name\": \"time\", \"arguments\": {}}\n</tool_call>";
    assert_eq!(read(&open, call), "(a)[time {}]");
}

#[test]
fn calls_of_hermes() {
    let expected = of(CallForm::Hermes);
    let call = |name: &str| {
        format!("<tool_call>\n{{\"name\": \"{name}\", \"arguments\": {{\"days\": 2}}}}\n</tool_call>")
    };
    assert_eq!(read(&expected, &call("weather")), "[weather {\"days\": 2}]");
    let two = format!("Let me see.\n\n{}\n{}\n", call("weather"), call("time"));
    assert_eq!(read(&expected, &two), "Let me see.[weather {\"days\": 2}][time {\"days\": 2}]");
    assert_eq!(read(&expected, "<tool_call>\n{\"na"), "<tool_call>\n{\"na");
    assert_eq!(read(&expected, "<tool_call>\nhello"), "<tool_call>\nhello");
    let cut = "<tool_call>\n{\"name\": \"time\", \"arguments\": {\"days";
    assert_eq!(read(&expected, cut), "[time {\"days]");
}

#[test]
fn calls_of_qwen_coder() {
    let expected = of(CallForm::Coder);
    let call = "<tool_call>\n<function=weather>\n<parameter=city>\nNew \"York\"\n</parameter>\n\
        <parameter=days>\n2\n</parameter>\n</function>\n</tool_call>";
    assert_eq!(read(&expected, call), r#"[weather {"city": "New \"York\"", "days": 2}]"#);
    let empty = "ok <tool_call>\n<function=time>\n</function>\n</tool_call>";
    assert_eq!(read(&expected, empty), "ok[time {}]");
}

#[test]
fn calls_of_llama() {
    let expected = of(CallForm::Llama);
    let call = r#"{"name": "weather", "parameters": {"city": "Paris"}}"#;
    assert_eq!(read(&expected, call), r#"[weather {"city": "Paris"}]"#);
    let two =
        format!("<|python_tag|>{call}; {{\"type\": \"function\", \"name\": \"time\", \"parameters\": {{}}}}");
    assert_eq!(read(&expected, &two), r#"[weather {"city": "Paris"}][time {}]"#);
    assert_eq!(read(&expected, r#"{"city": "Paris"} is JSON"#), r#"{"city": "Paris"} is JSON"#);
    assert_eq!(read(&expected, &format!("As in {call}")), format!("As in {call}"));
}

#[test]
fn calls_of_mistral() {
    let list = of(CallForm::MistralList);
    let two =
        r#"[TOOL_CALLS] [{"name": "weather", "arguments": {"days": 1}}, {"name": "time", "arguments": {}}]"#;
    assert_eq!(read(&list, two), r#"[weather {"days": 1}][time {}]"#);
    assert_eq!(read(&list, "[TOOL_CALLS] no"), "[TOOL_CALLS]no");
    let arguments = of(CallForm::MistralArguments);
    let two = r#"[TOOL_CALLS]weather[ARGS]{"days": 1}[TOOL_CALLS]time[CALL_ID]abc123def[ARGS]{}"#;
    assert_eq!(read(&arguments, two), r#"[weather {"days": 1}][time {}]"#);
}

#[test]
fn messages_of_harmony() {
    let expected = of(CallForm::Harmony);
    let last = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Hello";
    assert_eq!(read(&expected, last), "(Hm.)Hello");
    let call = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary to=functions.time \
        <|constrain|>json<|message|>{\"days\": 1}";
    assert_eq!(read(&expected, call), "(Hm.)[time {\"days\": 1}]");
    let header = " to=functions.time<|channel|>commentary json<|message|>{}";
    assert_eq!(read(&expected, header), "[time {}]");
    assert_eq!(read(&expected, "no form"), "no form");
    let none = Expected { functions: [].into(), ..expected };
    assert_eq!(read(&none, header), "{}");
    assert_eq!(read(&none, last), "(Hm.)Hello");
}

#[test]
fn only_the_tokens_that_an_answer_needs_have_texts() {
    let llama = of(CallForm::Llama);
    assert_eq!(llama.special(), ["<|python_tag|>"]);
    assert!(Expected { functions: [].into(), ..llama }.special().is_empty());
    assert_eq!(thinking(CallForm::Hermes).special()[..2], ["<think>", "</think>"]);
    let harmony = Expected { functions: [].into(), ..of(CallForm::Harmony) };
    assert!(harmony.special().contains(&"<|constrain|>"));
}
