//! Command lines, good and bad.

use super::*;

fn options(arguments: &[&str]) -> Options {
    Options::try_parse_from(["mlxcel-run", "bundle"].iter().chain(arguments)).unwrap()
}

fn refused(arguments: &[&str]) -> String {
    let parsed = Options::try_parse_from(["mlxcel-run", "bundle"].iter().chain(arguments));
    let message = parsed.unwrap_err().to_string();
    message.split("\n\n").next().unwrap().to_string()
}

#[test]
fn prompts() {
    assert_eq!(options(&["-p", "-x"]).read_prompt().unwrap(), Prompt::Text("-x".into()));
    let tokens = Prompt::Tokens(vec![1, 2, 3]);
    assert_eq!(options(&["--tokens", "1,2,3"]).read_prompt().unwrap(), tokens);
    for (found, expected) in [("a\n", "a"), ("a\r\n", "a"), ("a\n\n", "a\n"), ("a", "a"), ("", "")] {
        assert_eq!(text(found.into(), "x").unwrap(), expected);
    }
    assert_eq!(
        text(b"ab\xff".to_vec(), "standard input").unwrap_err().to_string(),
        "standard input is not UTF-8 at offset 2, expected text\nhint: convert it with iconv -t UTF-8"
    );
}

#[test]
fn any_sampling_option_selects_sampling() {
    let is_greedy = |arguments: &[&str]| options(arguments).sampling().unwrap().is_none();
    assert!(is_greedy(&[]));
    assert!(is_greedy(&["--temp", "0"]));
    assert!(is_greedy(&["--temp", "0", "--seed", "3"]));
    assert!(!is_greedy(&["--seed", "3"]));
    assert!(!is_greedy(&["--top-k", "3"]));
    assert!(!is_greedy(&["--temp", "0.7"]));
    let refused = |arguments: &[&str]| options(arguments).sampling().unwrap_err().to_string();
    assert_eq!(
        refused(&["--temp", "-1"]),
        "--temp is -1, expected 0 or more\nhint: 0 always takes the most likely token"
    );
    assert_eq!(
        refused(&["--top-p", "2"]),
        "--top-p is 2, expected above 0 and at most 1\nhint: 1 draws from all tokens"
    );
    assert_eq!(
        refused(&["--temp", "0", "--min-p", "-0.5"]),
        "--min-p is -0.5, expected 0 to 1\nhint: 0 draws from all tokens"
    );
}

#[test]
fn conflicting_options_are_refused() {
    let both = |arguments: &[&str]| assert!(refused(arguments).contains("cannot be used with"));
    both(&["-p", "a", "-f", "b"]);
    both(&["-p", "a", "--tokens", "1"]);
    both(&["--tokens", "1", "--chat"]);
    both(&["-p", "a", "--parallel", "2"]);
    both(&["-p", "a", "-o", "x"]);
    both(&["--embed", "--parallel", "2"]);
    // A smaller context ends answers before those that were recorded.
    both(&["--self-test", "-c", "41"]);
    // Prompts to record come from the command line alone.
    both(&["--record-test", "-f", "prompt.txt"]);
    assert!(options(&["--record-test", "-p", "a", "-c", "41"]).record_test);
    assert_eq!(
        refused(&["--logprobs", "3"]),
        "error: the following required arguments were not provided:\n  --json"
    );
}

#[test]
fn bad_values_are_refused() {
    let check = |arguments: &[&str], option: &str, expected: &str| {
        let value = arguments[1];
        assert_eq!(
            refused(arguments),
            format!("error: invalid value '{value}' for '{option}': expected {expected}")
        );
    };
    let physical = "a whole number, 1 or more\nhint: leave it out for one thread for each physical core";
    for value in ["0", "-1", "two"] {
        check(&["-t", value], "--threads <N>", physical);
    }
    check(
        &["--ctx-size", "0"],
        "--ctx-size <N>",
        "a whole number, 1 or more\nhint: leave it out for all of the context that the bundle was compiled for",
    );
    check(
        &["--logprobs", "0"],
        "--logprobs <K>",
        "a whole number, 1 or more\nhint: leave it out to record none",
    );
    check(
        &["-n", "-1"],
        "--n-predict <N>",
        "a whole number, 0 or more\nhint: a large number goes on until the text ends or the context is full",
    );
    check(
        &["--seed", "-1"],
        "--seed <SEED>",
        "a whole number, 0 or more\nhint: leave it out for another seed each time",
    );
    check(&["--top-k", "-1"], "--top-k <K>", "a whole number, 0 or more\nhint: 0 draws from all tokens");
    check(
        &["--temp", "hot"],
        "--temp <T>",
        "a number, 0 or more\nhint: 0 always takes the most likely token",
    );
    check(&["--top-p", ""], "--top-p <P>", "a number, above 0 and at most 1\nhint: 1 draws from all tokens");
    check(
        &["--stop", ""],
        "--stop <TEXT>",
        "a text of at least one character\nhint: leave it out to stop at no text",
    );
    let ids = "a whole number from 0 to 4294967295\nhint: separate token ids by commas: 1,2,3";
    for value in ["x", "-1", "4294967296", "1 2"] {
        check(&["--tokens", value], "--tokens <IDS>", ids);
    }
    assert_eq!(
        refused(&["--tokens", "1,,2"]),
        format!("error: invalid value '' for '--tokens <IDS>': expected {ids}")
    );
    assert_eq!(
        refused(&["--device", "tpu"]),
        "error: invalid value 'tpu' for '--device <DEVICE>': unknown device `tpu`, expected auto, local-task, \
         local-sync, cuda[:index] or vulkan[:index]\nhint: auto takes the best device of this machine"
    );
}

#[test]
fn options_without_effect() {
    let warnings = |arguments: &[&str]| options(arguments).without_effect();
    assert_eq!(
        warnings(&["-t", "2", "--device", "cuda:1", "--temp", "0", "--min-p", "0.1"]),
        [
            "warning: --threads has no effect on cuda:1: it is for local-task",
            "warning: --min-p has no effect: --temp 0 always takes the most likely token"
        ]
    );
    assert!(warnings(&["-t", "2"]).is_empty());
    assert!(warnings(&["-t", "2", "--device", "local-task", "--temp", "0"]).is_empty());
    assert!(warnings(&["--temp", "0.1", "--seed", "1", "--top-k", "3"]).is_empty());
}

#[test]
fn files_of_requests() {
    let is_offline = |arguments: &[&str]| options(arguments).is_offline();
    assert!(is_offline(&["-f", "x.jsonl"]) && is_offline(&["-f", "X.JSONL"]));
    assert!(is_offline(&["-f", "x.txt", "--parallel", "2"]) && is_offline(&["--parallel", "2"]));
    assert!(!is_offline(&["-f", "x.txt"]) && !is_offline(&["-f", ".jsonl"]) && !is_offline(&[]));
    let cache = |arguments: &[&str]| options(arguments).load_options().cache;
    assert_eq!(cache(&["-f", "x.jsonl"]), CacheSize::Sequences(8));
    assert_eq!(cache(&["-f", "x.jsonl", "--parallel", "3"]), CacheSize::Sequences(3));
    assert_eq!(cache(&["-f", "x.jsonl", "--cache-size", "1GiB"]), CacheSize::Bytes(1 << 30));
    for arguments in [&["-f", "x.txt"][..], &["--embed", "-f", "x.jsonl"]] {
        assert_eq!(cache(arguments), CacheSize::default());
    }
    assert!(refused(&["--parallel", "0"]).ends_with("hint: 1 answers one request after the other"));
}

#[test]
fn limits() {
    let found = options(&["-n", "3", "--logprobs", "2", "--json"]).request(vec![7], Some(128), None);
    let request = Request::default();
    assert_eq!(found, Request { max_tokens: 3, eos: vec![7], logprobs: Some(2), ..request.clone() });
    let found = options(&["--ignore-eos", "--speculate"]).request(vec![7], None, None);
    let speculate = Some(Speculation::default());
    assert_eq!(found, Request { max_tokens: usize::MAX, speculate, ..request });
    let load = options(&["--device", "cuda:1", "-t", "3", "-c", "64"]).load_options();
    assert_eq!((load.device, load.threads, load.context), (DeviceSpec::Cuda(Some(1)), Some(3), Some(64)));
}

#[test]
fn a_replay_takes_no_request_of_its_own() {
    let replay = options(&["--replay", "answer.json", "--threads", "1"]);
    assert_eq!(replay.replay, Some("answer.json".into()));
    for arguments in [["-p", "a"], ["--temp", "1"], ["-n", "3"], ["--ctx-size", "64"], ["--stop", "a"]] {
        let found = refused(&["--replay", "answer.json", arguments[0], arguments[1]]);
        assert!(found.contains("cannot be used with"), "{found}");
    }
    let found = refused(&["--receipt-public-key", "nowhere.pub", "-p", "a"]);
    assert!(found.contains("nowhere.pub"), "{found}");
}
