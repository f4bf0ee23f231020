//! `--replay`: answers of receipts, made again.

use std::{
    io::{self, Write as _},
    path::Path,
    process::ExitCode,
};

use anyhow::{Context as _, Result, bail};
use mlxcel_artifacts::{Bundle, INTERRUPTED, SignatureInfo};
use mlxcel_runtime::{
    CheckpointFiles, Engine, Error, LoadOptions, ModelRunner, Tokenizer,
    engine::SharedGrammar,
    eos_ids,
    receipt::{self, Receipt, ReceiptError, Replayed},
};

use crate::{
    interrupt::Interrupt,
    model::{open_engine_with, open_weights},
    options::Options,
    stdio::note,
};

/// The context of an error of stdout.
const WRITING: &str =
    "cannot write the result to standard output\nhint: df -h shows whether the disk it goes to is full";

/// Makes the answers of a file's receipts again, and writes a line for each.
pub(crate) fn run(
    options: &Options,
    file: &Path,
    bundle: Result<Bundle>,
    interrupt: &Interrupt,
) -> Result<ExitCode> {
    let receipts = receipt::read(file)?;
    for receipt in &receipts {
        check_signature(options, receipt)?;
    }
    let bundle = bundle?;
    let context = check_bundle(&receipts, &bundle)?;
    let weights = open_weights(options, &bundle)?;
    // Those of the bundle were verified as it was opened. The receipts name it, and so its tensors.
    if let Some(given) = weights.as_ref().filter(|_| options.weights.is_some()) {
        given.check_digests(&bundle.manifest().parameters)?;
    }
    let files = CheckpointFiles::new(&bundle, options.checkpoint());
    let tokenizer = tokenizer(&files, &receipts)?;
    // Servers compile grammars for these, also if a request ignores them and records none.
    let eos = eos_ids(&files)?;
    let load_options = LoadOptions { context: Some(context), ..options.load_options() };
    let mut engine = open_engine_with(options, &bundle, weights, &load_options)?;
    note_target(&receipts, &engine);
    let mut out = io::stdout().lock();
    let mut failed = 0;
    for (index, receipt) in receipts.iter().enumerate() {
        let grammar = grammar(receipt, tokenizer.as_ref(), engine.limits().vocab, &eos)?;
        let replayed = {
            let _answering = interrupt.answering();
            receipt::replay(&mut engine, receipt, tokenizer.as_ref(), grammar, &interrupt.cancel)?
        };
        if replayed == Replayed::Cancelled {
            return Ok(ExitCode::from(INTERRUPTED));
        }
        failed += usize::from(replayed != Replayed::Equal);
        writeln!(out, "{}", line(index, receipts.len(), receipt, &replayed, tokenizer.as_ref()))
            .context(WRITING)?;
    }
    let verdict =
        if failed == 0 { "passed".to_owned() } else { format!("failed, {failed} of {}", receipts.len()) };
    let device = engine.device();
    writeln!(out, "replay {verdict} on {}, target {}", device.name, device.target).context(WRITING)?;
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Checks the signature that is asked for. Says if one was not checked.
fn check_signature(options: &Options, receipt: &Receipt) -> Result<()> {
    match &options.receipt_public_key {
        Some(key) => {
            let SignatureInfo { key, .. } = receipt.verify(key)?;
            note(&format!("the receipt is signed by the key {key}"));
        }
        None if receipt.is_signed() => note(
            "note: the signature of the receipt was not checked\n\
             hint: --receipt-public-key KEY checks it",
        ),
        None => {}
    }
    Ok(())
}

/// Checks that the receipts are of this bundle. Returns their context.
fn check_bundle(receipts: &[Receipt], bundle: &Bundle) -> Result<usize> {
    let expected = bundle.digest();
    let mut context = None;
    for receipt in receipts {
        if receipt.bundle != expected {
            bail!(ReceiptError::OtherBundle { found: receipt.bundle, expected });
        }
        let found = receipt.request.context;
        if *context.get_or_insert(found) != found {
            bail!("found receipts with contexts of different sizes, expected those of one answer");
        }
    }
    context.ok_or_else(|| ReceiptError::Missing.into())
}

/// Opens the tokenizer, which stop texts and constraints need. Without them, an answer is compared without text.
fn tokenizer(files: &CheckpointFiles<'_>, receipts: &[Receipt]) -> Result<Option<Tokenizer>> {
    let needs_text =
        |receipt: &Receipt| !receipt.request.text.stop.is_empty() || receipt.request.constraint.is_some();
    match Tokenizer::from_checkpoint(files) {
        Ok(tokenizer) => Ok(Some(tokenizer)),
        Err(Error::NoTokenizer(_)) if !receipts.iter().any(needs_text) => Ok(None),
        Err(error) => bail!(error),
    }
}

/// Compiles the grammar of a receipt's constraint, for a model whose texts end with `eos`.
#[cfg(feature = "grammar")]
fn grammar(
    receipt: &Receipt,
    tokenizer: Option<&Tokenizer>,
    vocab: usize,
    eos: &[u32],
) -> Result<Option<SharedGrammar>> {
    let (Some(constraint), Some(tokenizer)) = (&receipt.request.constraint, tokenizer) else {
        return Ok(None);
    };
    let compiler = mlxcel_runtime::grammar::GrammarCompiler::new(tokenizer, vocab, eos)?;
    Ok(Some(compiler.compile(&constraint.to_constraint()?)?))
}

/// Refuses a receipt with a constraint, because this program was built without grammars.
#[cfg(not(feature = "grammar"))]
fn grammar(receipt: &Receipt, _: Option<&Tokenizer>, _: usize, _: &[u32]) -> Result<Option<SharedGrammar>> {
    match &receipt.request.constraint {
        None => Ok(None),
        Some(constraint) => bail!(
            "the answer had to match {}, which this program cannot enforce\n\
             hint: build it with cargo build --release -p mlxcel-runtime --features grammar",
            constraint.kind()
        ),
    }
}

/// Notes what makes a difference likely.
fn note_target<R: ModelRunner>(receipts: &[Receipt], engine: &Engine<R>) {
    let here = &engine.device().target;
    if let Some(other) = receipts.iter().map(|receipt| &receipt.target).find(|target| *target != here) {
        note(&format!(
            "note: the receipt is of the target {other}, and {here} runs here: tokens can differ between targets"
        ));
    }
    if !engine.limits().exact {
        note(&format!("note: the target {here} is not exact: tokens can depend on what else was served"));
    }
}

/// Renders the result of one receipt.
fn line(
    index: usize,
    count: usize,
    receipt: &Receipt,
    replayed: &Replayed,
    tokenizer: Option<&Tokenizer>,
) -> String {
    let Receipt { request, answer, .. } = receipt;
    let (tokens, reason) = (answer.tokens.len(), answer.finish_reason);
    let which = format!("{} of {count}, after {} tokens", index + 1, request.prompt.len());
    let name = |token: Option<u32>| {
        let text = |id| tokenizer.map(|tokenizer| format!(" {:?}", tokenizer.token_text(id)));
        token.map_or("the end".to_owned(), |id| format!("{id}{}", text(id).unwrap_or_default()))
    };
    match replayed {
        Replayed::Equal => format!("ok    {which}: all {tokens} tokens are equal, then {reason}"),
        Replayed::Token { index, found, expected } => format!(
            "FAIL  {which}: token {} of {tokens} is {}, expected {}",
            index + 1,
            name(*found),
            name(*expected)
        ),
        Replayed::Reason { found, expected } => {
            format!("FAIL  {which}: all {tokens} tokens are equal, then {found}, expected {expected}")
        }
        Replayed::Cancelled => format!("FAIL  {which}: interrupted"),
    }
}

#[cfg(test)]
mod tests {
    use mlxcel_artifacts::Digest;
    use mlxcel_runtime::{
        Request, StopReason,
        receipt::{Maker, RecordedAnswer, RecordedConstraint, RecordedRequest, TextRules},
    };

    use super::*;

    fn receipt(constraint: Option<RecordedConstraint>) -> Receipt {
        let request = Request { prompt: vec![1, 2], max_tokens: 3, ..Request::default() };
        let request = RecordedRequest::new(&request, 64, TextRules::default(), constraint);
        let maker = Maker { bundle: Digest::of(b"bundle"), target: "cpu".into(), model: "demo".into() };
        let answer = RecordedAnswer { tokens: vec![3, 1, 2], finish_reason: StopReason::Length };
        Receipt::new(maker, 7, request, answer)
    }

    #[test]
    fn results_are_rendered() {
        let json = r#"{"version": "1.0", "model": {"type": "WordLevel", "unk_token": "a",
            "vocab": {"a": 0, "b": 1, "c": 2, "d\n": 3}}, "decoder": {"type": "Fuse"}}"#;
        let tokenizer = Tokenizer::from_json(json.as_bytes()).unwrap();
        let line = |replayed, tokenizer| line(0, 2, &receipt(None), &replayed, tokenizer);
        insta::assert_snapshot!(line(Replayed::Equal, None), @"ok    1 of 2, after 2 tokens: all 3 tokens are equal, then length");
        let other = Replayed::Token { index: 1, found: Some(3), expected: Some(1) };
        insta::assert_snapshot!(line(other.clone(), Some(&tokenizer)), @r#"FAIL  1 of 2, after 2 tokens: token 2 of 3 is 3 "d\n", expected 1 "b""#);
        insta::assert_snapshot!(line(other, None), @"FAIL  1 of 2, after 2 tokens: token 2 of 3 is 3, expected 1");
        let longer = Replayed::Token { index: 3, found: Some(0), expected: None };
        insta::assert_snapshot!(line(longer, Some(&tokenizer)), @r#"FAIL  1 of 2, after 2 tokens: token 4 of 3 is 0 "a", expected the end"#);
        let reason = Replayed::Reason { found: StopReason::Eos, expected: StopReason::Length };
        insta::assert_snapshot!(line(reason, None), @"FAIL  1 of 2, after 2 tokens: all 3 tokens are equal, then eos, expected length");
    }

    #[cfg(feature = "grammar")]
    #[test]
    fn a_grammar_ends_as_the_model_does() {
        let json = r#"{"version": "1.0", "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "<e>": 2}, "merges": []},
            "decoder": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true}}"#;
        let tokenizer = Tokenizer::from_json(json.as_bytes()).unwrap();
        // The request ignored the end of text, so that it has none.
        let receipt = receipt(Some(RecordedConstraint::Regex("a*".into())));
        assert!(receipt.request.eos.is_empty());
        let grammar = grammar(&receipt, Some(&tokenizer), 3, &[2]).unwrap().unwrap();
        let mut state = grammar.begin().unwrap();
        assert_eq!(state.allowed().unwrap()[0] & 0b111, 0b101);
    }

    #[cfg(not(feature = "grammar"))]
    #[test]
    fn a_constraint_needs_a_program_with_grammars() {
        let receipt = receipt(Some(RecordedConstraint::Regex("a+".into())));
        assert_eq!(
            grammar(&receipt, None, 4, &[]).unwrap_err().to_string(),
            "the answer had to match a regular expression, which this program cannot enforce\n\
             hint: build it with cargo build --release -p mlxcel-runtime --features grammar"
        );
    }
}
