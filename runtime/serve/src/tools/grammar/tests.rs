//! What grammars of calls allow, on a tokenizer with a token for each byte and the special tokens of a test.

use mlxcel_runtime::grammar::GrammarCompiler;
use serde_json::json;

use super::*;
use crate::tools::form::AnswerForm;

/// Makes a tokenizer with special tokens, of which the first ends an answer.
fn tokenizer(special: &[&str]) -> Tokenizer {
    let bytes = (0..=255u8).map(|byte| (format!("<0x{byte:02X}>"), Value::from(byte)));
    let vocab: serde_json::Map<_, _> = bytes.collect();
    let added = special.iter().enumerate().map(|(index, content)| {
        json!({"id": 256 + index, "content": content, "special": true, "single_word": false,
            "lstrip": false, "rstrip": false, "normalized": false})
    });
    let json = json!({
        "version": "1.0",
        "added_tokens": added.collect::<Vec<_>>(),
        "decoder": {"type": "ByteFallback"},
        "model": {"type": "BPE", "byte_fallback": true, "vocab": vocab, "merges": []},
    });
    Tokenizer::from_json(json.to_string().as_bytes()).unwrap()
}

const EOS: u32 = 256;
const AUTO: CallRules = CallRules { is_required: false, is_parallel: true };
const SINGLE: CallRules = CallRules { is_required: false, is_parallel: false };
const REQUIRED: CallRules = CallRules { is_required: true, is_parallel: true };

fn of(calls: CallForm) -> Expected {
    let parameters = json!({
        "type": "object",
        "properties": { "city": { "type": "string" }, "days": { "type": "integer" } },
        "required": ["city"],
        "additionalProperties": false,
    });
    let function = |name: &str| Function {
        name: name.into(),
        parameters: parameters.as_object().unwrap().clone(),
        is_strict: false,
    };
    Expected {
        form: AnswerForm { calls: Some(calls), reasoning: None },
        functions: [function("weather"), function("time")].into(),
        is_reasoning: false,
    }
}

fn thinking(calls: CallForm) -> Expected {
    let mut expected = of(calls);
    expected.form.reasoning = Some(ReasoningMarkers { begin: "<think>", end: "</think>" });
    expected
}

/// Returns how much of a text is allowed, and `$` if an answer may end there.
fn allowed(expected: &Expected, rules: CallRules, special: &[&str], text: &str) -> String {
    let tokenizer = tokenizer(&[&["<eos>"], special].concat());
    let vocab = 257 + special.len();
    let compiler = GrammarCompiler::new(&tokenizer, vocab, &[EOS]).unwrap();
    let constraint = grammar(expected, rules, Enforced::All, &tokenizer).unwrap();
    let mut state = compiler.compile(&constraint).unwrap().begin().unwrap();
    let mut found = Vec::new();
    let mut tokens = tokenizer.encode(text, false).unwrap();
    tokens.push(EOS);
    for token in tokens {
        let mask = state.allowed().unwrap();
        if mask.get(token as usize / 32).is_none_or(|word| word >> (token % 32) & 1 == 0) {
            break;
        }
        match token {
            EOS => found.push(b'$'),
            0..256 => found.push(token as u8),
            _ => found.extend(special[token as usize - 257].bytes()),
        }
        if state.accept(token).unwrap() && token != EOS {
            found.push(b'$');
            break;
        }
    }
    String::from_utf8_lossy(&found).into_owned()
}

/// Checks that all of an answer is allowed, with markers as text and as special tokens.
fn takes(expected: &Expected, rules: CallRules, text: &str) {
    let special = expected.special();
    for special in [&[][..], &special] {
        assert_eq!(allowed(expected, rules, special, text), format!("{text}$"), "with {special:?}");
    }
}

/// Checks that an answer is allowed up to a place and may not end there, with markers as text and as special tokens.
fn stops(expected: &Expected, rules: CallRules, text: &str, rest: &str) {
    let special = expected.special();
    for special in [&[][..], &special] {
        assert_eq!(allowed(expected, rules, special, &format!("{text}{rest}")), text, "with {special:?}");
    }
}

const WEATHER: &str =
    "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\"}}\n</tool_call>";

#[test]
fn hermes() {
    let expected = of(CallForm::Hermes);
    takes(&expected, AUTO, "Hello, <tool>!\n");
    takes(&expected, AUTO, &format!("Let me see.\n{WEATHER}\n{WEATHER}\nDone."));
    takes(&expected, SINGLE, WEATHER);
    takes(&expected, REQUIRED, &format!("{WEATHER}\n{WEATHER}"));
    assert_eq!(allowed(&expected, SINGLE, &[], &format!("{WEATHER}\n{WEATHER}")), format!("{WEATHER}$"));
    let call = "<tool_call>\n{\"name\": \"";
    stops(&expected, AUTO, call, "sunrise\"");
    stops(&expected, AUTO, &format!("{call}time\", \"arguments\": {{\"city\": "), "3");
    stops(&expected, AUTO, &format!("{call}time\", \"arguments\": {{\"city\": \"a\", \"days\": 1"), ".5");
    stops(&expected, REQUIRED, "", "Hello");
}

#[test]
fn reasoning_comes_first() {
    let expected = thinking(CallForm::Hermes);
    takes(&expected, AUTO, "Hello");
    takes(&expected, AUTO, &format!("<think>\nA <b> c.\n</think>\n\nHello.\n{WEATHER}"));
    takes(&expected, REQUIRED, &format!("<think>\nA.\n</think>\n\n{WEATHER}"));
    // What the reasoning says is no call.
    let words = format!("<think>Not {} yet</think>\n{WEATHER}", "<tool_call>x</tool_call>");
    assert_eq!(allowed(&expected, AUTO, &[], &words), format!("{words}$"));
    stops(&expected, REQUIRED, "<think>A</think>\n", "Hello");
    let open = Expected { is_reasoning: true, ..expected };
    takes(&open, AUTO, &format!("So</think>{WEATHER}"));
    stops(&open, AUTO, "So", "");
}

#[test]
fn qwen_coder() {
    let expected = of(CallForm::Coder);
    let call = |rest: &str| format!("<tool_call>\n<function=weather>\n{rest}</function>\n</tool_call>");
    let city = "<parameter=city>\nNew <\n\"York\"\n</parameter>\n";
    let days = "<parameter=days>\n12\n</parameter>\n";
    takes(&expected, AUTO, &call(city));
    takes(&expected, AUTO, &format!("So:\n{}\n", call(&format!("{city}{days}"))));
    stops(&expected, AUTO, "<tool_call>\n<function=weather>\n<parameter=", "days>");
    stops(&expected, AUTO, &format!("<tool_call>\n<function=time>\n{city}<parameter=days>\n"), "x");
}

#[test]
fn llama() {
    let expected = of(CallForm::Llama);
    let call = r#"{"name": "weather", "parameters": {"city": "Rome", "days": 3}}"#;
    takes(&expected, AUTO, "Hello");
    takes(&expected, AUTO, call);
    takes(&expected, REQUIRED, &format!("{call}; {call}"));
    takes(&expected, AUTO, r#"{"city": "Rome"} is JSON"#);
    assert_eq!(allowed(&expected, SINGLE, &[], &format!("{call}; {call}")), format!("{call}$"));
    assert_eq!(
        allowed(&expected, AUTO, &[PYTHON_TAG], &format!("{PYTHON_TAG}{call}")),
        format!("{PYTHON_TAG}{call}$")
    );
    stops(&expected, AUTO, r#"{"name": ""#, "sunrise");
}

#[test]
fn mistral() {
    let list = of(CallForm::MistralList);
    let call = r#"{"name": "time", "arguments": {"city": "Rome"}}"#;
    takes(&list, AUTO, "Hello [TOOL");
    takes(&list, AUTO, &format!("[TOOL_CALLS] [{call}, {call}]"));
    takes(&list, REQUIRED, &format!("[TOOL_CALLS][{call}]"));
    stops(&list, AUTO, "[TOOL_CALLS] [{\"name\": \"", "sunrise");
    stops(&list, SINGLE, &format!("[TOOL_CALLS] [{call}"), ", ");
    let arguments = of(CallForm::MistralArguments);
    let call = r#"[TOOL_CALLS]weather[ARGS]{"city": "Rome"}"#;
    takes(&arguments, AUTO, call);
    takes(&arguments, REQUIRED, &format!("{call}{call}"));
    stops(&arguments, AUTO, "[TOOL_CALLS]", "sunrise");
}

#[test]
fn harmony() {
    let expected = of(CallForm::Harmony);
    let thought = "<|channel|>analysis<|message|>Which?<|end|><|start|>assistant";
    let call = "<|channel|>commentary to=functions.weather <|constrain|>json<|message|>{\"city\": \"Rome\"}";
    let answer = "<|channel|>final<|message|>Hello";
    let special = expected.special();
    let allowed = |rules, text: &str| allowed(&expected, rules, &special, text);
    for text in [answer.to_owned(), format!("{thought}{answer}"), format!("{thought}{call}")] {
        assert_eq!(allowed(AUTO, &text), format!("{text}$"));
    }
    assert_eq!(allowed(REQUIRED, &format!("{thought}{call}")), format!("{thought}{call}$"));
    assert_eq!(allowed(REQUIRED, answer), "<|channel|>");
    assert_eq!(
        allowed(AUTO, "<|channel|>commentary to=functions.sun"),
        "<|channel|>commentary to=functions."
    );
}

#[test]
fn schemas_that_cannot_be_enforced() {
    let mut function = of(CallForm::Hermes).functions[0].clone();
    function.parameters = json!({ "type": "object", "not": {} }).as_object().unwrap().clone();
    let tokenizer = tokenizer(&["<eos>"]);
    let compiler = GrammarCompiler::new(&tokenizer, 257, &[EOS]).unwrap();
    for (is_strict, expected) in [(true, false), (false, true)] {
        let function = Function { is_strict, ..function.clone() };
        let expected_answer = Expected { functions: [function].into(), ..of(CallForm::Hermes) };
        let compiles = |enforced| {
            compiler.compile(&grammar(&expected_answer, AUTO, enforced, &tokenizer).unwrap()).is_ok()
        };
        assert!(!compiles(Enforced::All));
        assert_eq!(compiles(Enforced::Strict), expected);
    }
}

#[test]
fn texts_of_strict_functions_between_tags() {
    let found = |form: CallForm, is_strict: bool, schema: Value| {
        let mut expected = of(form);
        let parameters =
            json!({ "properties": { "days": { "type": "integer", "minimum": 1 }, "city": schema } });
        let parameters = parameters.as_object().unwrap().clone();
        expected.functions = [Function { name: "f".into(), parameters, is_strict }].into();
        let word =
            |found: UnenforcedWord<'_>| format!("{} {} {}", found.function, found.argument, found.word);
        unenforced_word(&expected).map(word)
    };
    let text = |word: &str| json!({ "type": "string", "description": "d", word: 1 });
    for word in ["pattern", "minLength", "maxLength", "format", "const", "not"] {
        assert_eq!(found(CallForm::Coder, true, text(word)), Some(format!("f city {word}")));
        assert_eq!(found(CallForm::Coder, false, text(word)), None);
        assert_eq!(found(CallForm::Hermes, true, text(word)), None);
    }
    assert_eq!(found(CallForm::Coder, true, json!({ "enum": ["a"], "title": "t" })), None);
    assert_eq!(found(CallForm::Coder, true, json!({ "type": "integer", "maximum": 3 })), None);
}
