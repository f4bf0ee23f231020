//! Constraints, on a tokenizer with a token for each byte.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Constraint, GrammarCache, GrammarCompiler};
use crate::{
    engine::GrammarState,
    text::tokenizer::test_tokenizers::{END, byte_level},
};

/// The logits of the model: a token for each byte, `<s>` and `</s>`.
const VOCAB: usize = 258;

fn compiler() -> GrammarCompiler {
    GrammarCompiler::new(&byte_level(), VOCAB, &[END]).unwrap()
}

fn begin(constraint: &Constraint) -> Box<dyn GrammarState> {
    compiler().compile(constraint).unwrap().begin().unwrap()
}

fn allows(state: &mut dyn GrammarState, token: u32) -> bool {
    let mask = state.allowed().unwrap();
    mask.get(token as usize / 32).is_some_and(|word| word >> (token % 32) & 1 == 1)
}

/// Returns how much of a text is allowed, and `$` if an end of text may follow it.
fn allowed(constraint: &Constraint, text: &str) -> String {
    let mut state = begin(constraint);
    for (at, byte) in text.bytes().enumerate() {
        // Half of the masks are computed on another thread.
        if at % 2 == 0 {
            state.prepare();
        }
        if !allows(&mut *state, byte.into()) {
            return String::from_utf8_lossy(&text.as_bytes()[..at]).into_owned();
        }
        if state.accept(byte.into()).unwrap() {
            return format!("{}$", &text[..=at]);
        }
    }
    let is_complete = allows(&mut *state, END);
    if is_complete {
        assert!(state.accept(END).unwrap());
    }
    format!("{text}{}", if is_complete { "$" } else { "" })
}

fn schema(schema: Value) -> Constraint {
    Constraint::JsonSchema(schema)
}

/// Returns why a constraint is refused, without the hint.
fn refused(constraint: &Constraint) -> String {
    let error = compiler().compile(constraint).unwrap_err().to_string();
    let message = error.strip_prefix("the grammar cannot be used: ").unwrap();
    message.strip_suffix("\nhint: correct or simplify the grammar or schema").unwrap().to_owned()
}

#[test]
fn json_of_a_schema() {
    let point = schema(json!({
        "type": "object",
        "properties": { "x": { "type": "integer", "minimum": 0, "maximum": 99 }, "name": { "enum": ["a", "é"] } },
        "required": ["x", "name"],
        "additionalProperties": false,
    }));
    assert_eq!(allowed(&point, r#"{"x":12,"name":"é"}"#), r#"{"x":12,"name":"é"}$"#);
    assert_eq!(allowed(&point, "{\n  \"x\": 1, \"name\": \"a\"\n}"), "{\n  \"x\": 1, \"name\": \"a\"\n}$");
    assert_eq!(allowed(&point, r#"{"x":100"#), r#"{"x":10"#);
    assert_eq!(allowed(&point, r#"{"y""#), r#"{""#);
    assert_eq!(allowed(&point, r#"{"x":1,"name":"a"} and"#), r#"{"x":1,"name":"a"}$"#);
    // White space does not go on for ever.
    let line = format!("{{\n{}", " ".repeat(30));
    assert_eq!(allowed(&point, &line), line[..22]);
    assert_eq!(allowed(&Constraint::json_object(), r#"{"a":[1,{}]}"#), r#"{"a":[1,{}]}$"#);
    assert_eq!(allowed(&Constraint::json_object(), "[1]"), "");
    assert_eq!(allowed(&schema(json!(true)), "[1]"), "[1]$");
}

#[test]
fn texts_of_regular_expressions_and_grammars() {
    let regex = Constraint::Regex(r"[a-c]{2}-\d+".into());
    assert_eq!(allowed(&regex, "ab-12"), "ab-12$");
    assert_eq!(allowed(&regex, "ab-x"), "ab-");
    assert_eq!(allowed(&Constraint::Regex("yes|no".into()), "no way"), "no$");
    let lark = Constraint::Lark("start: \"go \" place\nplace: \"home\" | \"out\"".into());
    assert_eq!(allowed(&lark, "go out"), "go out$");
    assert_eq!(allowed(&lark, "go on"), "go o");
}

#[test]
fn special_tokens_are_named_by_grammars_and_never_text() {
    // The bytes of the name are not the token.
    let text = Constraint::Regex("<s>|a".into());
    let mut state = begin(&text);
    assert!(!allows(&mut *state, 256) && allows(&mut *state, b'<'.into()));
    let mut state = begin(&Constraint::Lark("start: <s> \"a\"".into()));
    assert!(allows(&mut *state, 256) && !allows(&mut *state, b'<'.into()));
    assert!(!state.accept(256).unwrap());
    assert!(allows(&mut *state, b'a'.into()));
}

#[test]
fn a_token_that_is_not_allowed_ends_the_answer() {
    let mut state = begin(&Constraint::Regex("a".into()));
    let error = state.accept(b'b'.into()).unwrap_err().to_string();
    assert!(error.starts_with("the grammar cannot be used: "), "{error}");
    assert!(state.allowed().unwrap_err().to_string().contains("it failed before"));
    assert!(state.accept(b'a'.into()).is_err());
}

#[test]
fn without_an_end_of_text_an_answer_ends_where_nothing_may_follow() {
    let compiler = GrammarCompiler::new(&byte_level(), VOCAB, &[]).unwrap();
    let grammar = compiler.compile(&Constraint::Regex("ab?".into())).unwrap();
    let mut state = grammar.begin().unwrap();
    assert!(!state.accept(b'a'.into()).unwrap());
    assert_eq!(
        (0..VOCAB as u32).filter(|&id| allows(&mut *state, id)).collect::<Vec<_>>(),
        [u32::from(b'b')]
    );
    assert!(state.accept(b'b'.into()).unwrap());
}

#[test]
fn a_token_that_ends_an_answer_is_no_text() {
    let compiler = GrammarCompiler::new(&byte_level(), VOCAB, &[b'z'.into()]).unwrap();
    let mut state = compiler.compile(&Constraint::Regex("[y-z]?".into())).unwrap().begin().unwrap();
    assert!(allows(&mut *state, b'y'.into()) && allows(&mut *state, b'z'.into()));
    assert!(state.accept(b'z'.into()).unwrap());
    let refused = compiler.compile(&Constraint::Regex("z".into())).unwrap_err();
    assert!(refused.to_string().contains("no text matches it"), "{refused}");
}

#[test]
fn what_cannot_be_enforced_is_refused() {
    for (constraint, expected) in [
        (schema(json!(3)), "the schema is a number, expected a JSON object"),
        (
            schema(json!({ "x-guidance": {} })),
            "the schema has x-guidance, expected only keywords of JSON Schema",
        ),
        (schema(json!({ "type": "strin" })), ""),
        (schema(json!({ "type": "object", "uniqueItems": true, "dependentSchemas": {} })), ""),
        (schema(json!({ "type": "string", "format": "color" })), "Unknown format: color"),
        (schema(json!({ "$ref": "https://example.com/a.json" })), ""),
        (schema(json!({ "$ref": "#/$defs/none" })), ""),
        (schema(json!({ "type": "string", "pattern": "(" })), "regex parse error: unclosed group"),
        (schema(json!({ "$ref": "#" })), "no text matches it"),
        (schema(json!({ "type": "integer", "minimum": 3, "maximum": 2 })), ""),
        (
            schema(json!({ "oneOf": [{ "type": "string" }, { "maxLength": 3 }] })),
            "oneOf constraints are not supported",
        ),
        (schema(json!({ "not": { "type": "string" } })), ""),
        (Constraint::Regex("(a".into()), ""),
        (Constraint::Regex("a(?=b)".into()), ""),
        (Constraint::Lark("begin: \"a\"".into()), ""),
        (Constraint::Lark("start: other".into()), ""),
        (Constraint::Lark("start: <none>".into()), ""),
        (Constraint::Lark(String::new()), ""),
    ] {
        let found = refused(&constraint);
        assert!(found.starts_with(expected) && !found.is_empty() && !found.contains('\n'), "{found}");
    }
}

#[test]
fn schemas_that_differ_in_the_order_of_properties_have_grammars_of_their_own() {
    let of = |names: [&str; 2]| {
        let properties: serde_json::Map<_, _> =
            names.iter().map(|name| ((*name).to_owned(), json!({ "type": "null" }))).collect();
        schema(json!({
            "type": "object", "properties": properties, "required": ["a", "b"], "additionalProperties": false,
        }))
    };
    let (one, other) = (of(["a", "b"]), of(["b", "a"]));
    assert_eq!(one, other, "the order is no part of equality");
    let cache = GrammarCache::new(byte_level(), VOCAB, vec![END]);
    for (constraint, is_known, [first, second]) in
        [(&one, false, *b"ab"), (&other, false, *b"ba"), (&one, true, *b"ab")]
    {
        assert_eq!(cache.find(constraint).is_some(), is_known);
        let mut state = cache.get(constraint).unwrap().begin().unwrap();
        for byte in *b"{\"" {
            assert!(!state.accept(byte.into()).unwrap());
        }
        assert!(allows(&mut *state, first.into()) && !allows(&mut *state, second.into()));
    }
    // A text is no other kind's.
    let text = || "a".to_owned();
    cache.get(&Constraint::Regex(text())).unwrap();
    assert!(
        cache.find(&Constraint::Regex(text())).is_some() && cache.find(&Constraint::Lark(text())).is_none()
    );
}

/// Nests a schema in arrays.
fn nested(depth: usize) -> Value {
    (0..depth).fold(json!({ "type": "null" }), |inner, _| json!({ "type": "array", "items": inner }))
}

#[test]
fn hostile_constraints_end() {
    let chain = |count: usize| {
        let next = |index| (format!("d{index}"), json!({ "$ref": format!("#/$defs/d{}", index + 1) }));
        let mut definitions: serde_json::Map<_, _> = (0..count).map(next).collect();
        definitions.insert(format!("d{count}"), json!({ "type": "null" }));
        schema(json!({ "$defs": definitions, "$ref": "#/$defs/d0" }))
    };
    let doubled = |keyword: &str| {
        let both = |index: usize| {
            let next = json!({ "$ref": format!("#/$defs/d{}", index + 1) });
            (format!("d{index}"), json!({ keyword: [next, next] }))
        };
        let mut definitions: serde_json::Map<_, _> = (0..40).map(both).collect();
        definitions.insert("d40".into(), json!({ "type": "string" }));
        schema(json!({ "$defs": definitions, "$ref": "#/$defs/d0" }))
    };
    let properties: serde_json::Map<_, _> =
        (0..20_000).map(|index| (format!("property {index}"), json!({ "type": "string" }))).collect();
    let rules: String = (0..20_000).map(|index| format!("r{index}: r{}\n", index + 1)).collect();
    let cases = [
        ("a schema of itself", schema(json!({ "$ref": "#" }))),
        ("a recursive schema", schema(json!({ "type": "array", "items": { "$ref": "#" } }))),
        ("all of itself", schema(json!({ "allOf": [{ "$ref": "#" }, { "$ref": "#" }] }))),
        ("references", chain(20_000)),
        ("doubled by allOf", doubled("allOf")),
        ("doubled by anyOf", doubled("anyOf")),
        ("doubled by oneOf", doubled("oneOf")),
        ("nested arrays", schema(nested(120))),
        ("many properties", schema(json!({ "type": "object", "properties": properties }))),
        ("a large enum", schema(json!({ "enum": (0..50_000).map(|i| format!("v{i}")).collect::<Vec<_>>() }))),
        (
            "a long string",
            schema(json!({ "type": "string", "minLength": 1_000_000, "maxLength": 2_000_000 })),
        ),
        ("many items", schema(json!({ "type": "array", "items": {}, "minItems": 1_000_000 }))),
        ("repeats", Constraint::Regex("((a{1000}){1000}){1000}".into())),
        ("many states", Constraint::Regex("(a|b)*a(a|b){200}".into())),
        ("brackets", Constraint::Regex("(".repeat(100_000))),
        ("question marks", Constraint::Regex(format!("a{}", "?".repeat(100_000)))),
        ("bars", Constraint::Regex("|".repeat(100_000))),
        ("rules", Constraint::Lark(format!("start: r0\n{rules}r20000: \"a\""))),
        ("left recursion", Constraint::Lark("start: start start | \"a\"".into())),
        ("nothing but itself", Constraint::Lark("start: start".into())),
        ("brackets of a rule", Constraint::Lark(format!("start: {}", "(".repeat(100_000)))),
        ("repeats of a rule", Constraint::Lark("start: (\"a\"{1000}){1000}{1000}".into())),
    ];
    let compiler = compiler();
    for (name, constraint) in cases {
        let start = Instant::now();
        match compiler.compile(&constraint) {
            Ok(grammar) => {
                let mut state = grammar.begin().unwrap();
                go_on(&mut *state);
            }
            Err(error) => assert!(error.to_string().chars().count() < 500, "{name}: {error}"),
        }
        // Seconds here are hours where nothing bounds the work.
        assert!(start.elapsed() < Duration::from_secs(600), "{name}");
    }
}

/// Takes the first token that is allowed, until the answer ends, fails, or is long.
fn go_on(state: &mut dyn GrammarState) {
    for _ in 0..300 {
        let Ok(mask) = state.allowed() else { return };
        let Some(index) = mask.iter().position(|&word| word != 0) else { return };
        let token = index as u32 * 32 + mask[index].trailing_zeros();
        if state.accept(token).unwrap() {
            return;
        }
    }
}
