//! Loads a bundle, continues a prompt and prints the text:
//! `cargo run --release -p mlxcel-runtime --example generate -- BUNDLE "Once upon a time"`

use std::{env, error::Error, io, io::Write as _, ops::ControlFlow, path::Path};

use mlxcel_artifacts::Bundle;
use mlxcel_runtime::{Cancel, CheckpointFiles, Engine, EngineSettings, LoadOptions, Request, Tokenizer};
use mlxcel_runtime::{eos_ids, load};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [bundle, prompt] = &arguments[..] else { return Err("usage: generate BUNDLE PROMPT".into()) };
    writeln!(io::stdout(), "{prompt}{}", generate(Path::new(bundle), prompt, 64)?)?;
    Ok(())
}

/// Returns the text of at most `max_tokens` tokens that continues `prompt`.
pub(crate) fn generate(bundle: &Path, prompt: &str, max_tokens: usize) -> Result<String, Box<dyn Error>> {
    let bundle = Bundle::open(bundle)?;
    let tokenizer = Tokenizer::from_bundle(&bundle)?;
    let model = load(&bundle, None, &LoadOptions::default())?;
    let mut engine = Engine::new(model, EngineSettings::default())?;

    let prompt = tokenizer.encode(prompt, true)?;
    let eos = eos_ids(&CheckpointFiles::new(&bundle, None))?;
    let mut stream = tokenizer.stream(&prompt, &[])?;
    let request = Request { prompt, max_tokens, eos, ..Request::default() };
    let generation = engine.generate(request, &Cancel::new(), &mut |_| ControlFlow::Continue(()))?;

    let mut text = String::new();
    for token in generation.tokens {
        text += &stream.push(token)?.text;
    }
    Ok(text + &stream.finish()?.text)
}
