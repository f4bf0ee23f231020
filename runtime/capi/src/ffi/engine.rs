//! `mlxcel_engine_*`: loading, facts, tokens, embeddings and scores.

use std::{
    ffi::{CString, c_char},
    path::Path,
    ptr,
    sync::{Arc, mpsc},
};

use mlxcel_runtime::{
    CacheSize, DeviceOptions as ProgramDevice, DeviceSpec, EngineError, EngineSettings, LoadOptions,
    StartedModel, TextModel,
};

use super::{
    bundle::{self, Bundle},
    pointers::{
        Error, array, buffer, guard, guard_or, need_text, number, options, put, sized_text, text, to_handle,
    },
    types::DeviceOptions,
};
use crate::{
    errors::Problem,
    handles::{Object as _, object},
};

/// A model on a device. Its calls share the device: any thread may make any of them at any time.
#[derive(Debug)]
pub struct Engine {
    _private: [u8; 0],
}

/// A model, with its texts for C.
#[derive(Debug)]
pub(crate) struct HeldEngine {
    pub(crate) model: Arc<TextModel>,
    device: CString,
}

object!(HeldEngine, 3, "an engine");

/// Returns the model of a handle.
pub(crate) fn model(engine: *const Engine) -> Result<Arc<TextModel>, Problem> {
    Ok(HeldEngine::table().get(number(engine))?.model.clone())
}

/// Parses the device of options.
fn device(name: *const c_char) -> Result<DeviceSpec, Problem> {
    let Some(name) = text("device", name)? else { return Ok(DeviceSpec::Auto) };
    name.parse().map_err(|error: mlxcel_runtime::ParseDeviceError| Problem::Argument(error.to_string()))
}

/// Returns the device of a program.
pub(crate) fn program_device(given: &DeviceOptions) -> Result<ProgramDevice, Problem> {
    let threads = Some(given.threads).filter(|&threads| threads > 0);
    Ok(ProgramDevice { device: device(given.device)?, threads, ..ProgramDevice::default() })
}

/// Loads a model on a device. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlxcel_engine_load(
    bundle: *const Bundle,
    device_options: *const DeviceOptions,
    engine: *mut *mut Engine,
) -> *mut Error {
    guard(|| {
        let bundle = bundle::opened(bundle)?;
        let given = options("options", device_options)?;
        let more = |value: usize| Some(value).filter(|&value| value > 0);
        let load_options = LoadOptions {
            device: device(given.device)?,
            threads: more(given.threads),
            context: more(given.context),
            cache: if given.cache_bytes > 0 {
                CacheSize::Bytes(given.cache_bytes)
            } else {
                CacheSize::default()
            },
            ..LoadOptions::default()
        };
        let settings = EngineSettings::default();
        let settings = EngineSettings { waiting: more(given.queue).unwrap_or(settings.waiting), ..settings };
        let weights = text("weights", given.weights)?.map(Path::new);
        let model = TextModel::load(bundle, weights, load_options, settings)?;
        let name = match model.model() {
            StartedModel::Generator(engine) => engine.client().device().name.clone(),
            StartedModel::Encoder(encoder) => encoder.client().device().name.clone(),
        };
        let device = CString::new(name).unwrap_or_default();
        let handle = HeldEngine::table().add(HeldEngine { model: Arc::new(model), device });
        put("engine", engine, to_handle(handle)).inspect_err(|_| drop(HeldEngine::table().remove(handle)))
    })
}

/// Ends an engine. Answers that are not complete end: their streams say so. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn mlxcel_engine_close(engine: *mut Engine) {
    guard_or((), || {
        if let Some(held) = HeldEngine::table().remove(number(engine)) {
            // Calls of other threads hold the model, too.
            held.model.model().stop();
        }
        Ok(())
    });
}

/// Returns the device, as in "local-task, 2 threads"; NULL for a bad handle. Valid until the engine is closed. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn mlxcel_engine_device(engine: *const Engine) -> *const c_char {
    guard_or(ptr::null(), || Ok(HeldEngine::table().get(number(engine))?.device.as_ptr()))
}

/// Returns the most tokens of a request; 0 for a bad handle. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn mlxcel_engine_context(engine: *const Engine) -> usize {
    guard_or(0, || {
        Ok(match model(engine)?.model() {
            StartedModel::Generator(engine) => engine.client().context(),
            StartedModel::Encoder(encoder) => encoder.client().limits().context,
        })
    })
}

/// Returns the number of token ids; 0 for a bad handle. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn mlxcel_engine_vocab(engine: *const Engine) -> usize {
    guard_or(0, || {
        Ok(match model(engine)?.model() {
            StartedModel::Generator(engine) => engine.client().limits().vocab,
            StartedModel::Encoder(encoder) => encoder.client().limits().vocab,
        })
    })
}

/// Returns the numbers of an embedding; 0 for a bad handle or a model that makes none. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn mlxcel_engine_width(engine: *const Engine) -> usize {
    guard_or(0, || Ok(model(engine)?.encoder()?.limits().width))
}

/// Encodes a text, with the special tokens that the tokenizer adds if `special` is true. Writes at most `capacity` tokens, and
/// sets `count` to the number of all. `length` is 0 for a text that ends with a zero. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlxcel_engine_encode(
    engine: *const Engine,
    text: *const c_char,
    length: usize,
    special: bool,
    tokens: *mut u32,
    capacity: usize,
    count: *mut usize,
) -> *mut Error {
    guard(|| {
        let model = model(engine)?;
        let text = sized_text("text", text, length)?.unwrap_or_default();
        let found = model.tokenizer()?.encode(text, special)?;
        copy("tokens", &found, tokens, capacity)?;
        put("count", count, found.len())
    })
}

/// Decodes tokens, without special ones. Writes at most `capacity` bytes of UTF-8 without a zero at their end, and sets `length`
/// to the number of all. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlxcel_engine_decode(
    engine: *const Engine,
    tokens: *const u32,
    count: usize,
    text: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> *mut Error {
    guard(|| {
        let model = model(engine)?;
        let found = model.tokenizer()?.decode(array("tokens", tokens, count)?)?;
        copy("text", found.as_bytes(), text.cast::<u8>(), capacity)?;
        put("length", length, found.len())
    })
}

/// Writes as much as there is room for.
fn copy<T: Copy>(name: &str, from: &[T], to: *mut T, capacity: usize) -> Result<(), Problem> {
    let to = buffer(name, to, capacity)?;
    let count = from.len().min(to.len());
    to[..count].copy_from_slice(&from[..count]);
    Ok(())
}

/// Computes the embeddings of texts that end with a zero: `count` times mlxcel_engine_width floats, one text's after the
/// other's. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlxcel_engine_embed(
    engine: *const Engine,
    texts: *const *const c_char,
    count: usize,
    embeddings: *mut f32,
    capacity: usize,
) -> *mut Error {
    guard(|| {
        let model = model(engine)?;
        let client = model.encoder()?;
        let texts = array("texts", texts, count)?.iter().map(|&text| need_text("texts", text));
        let texts = texts.collect::<Result<Vec<_>, _>>()?;
        let to = buffer("embeddings", embeddings, capacity)?;
        let (found, expected) = (to.len(), texts.len() * client.limits().width);
        if found < expected {
            let text = format!("embeddings: found room for {found} floats, expected {expected}");
            return Err(Problem::Argument(text));
        }
        if texts.is_empty() {
            return Ok(());
        }
        let tokenizer = model.tokenizer()?;
        let texts =
            texts.into_iter().map(|text| tokenizer.encode(text, true)).collect::<Result<Vec<_>, _>>()?;
        let (sender, answer) = mpsc::channel();
        let _guard = client.try_embed_to(texts, Box::new(move |found| _ = sender.send(found)))?;
        let found = answer.recv().map_err(|_| EngineError::Closed)??;
        for (row, to) in found.vectors.iter().zip(to.chunks_exact_mut(client.limits().width)) {
            to.copy_from_slice(row);
        }
        Ok(())
    })
}

/// Computes the log-probability of each token from index `from` on, given those before it: `count - from` floats. `from` is
/// at least 1. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlxcel_engine_score(
    engine: *const Engine,
    tokens: *const u32,
    count: usize,
    from: usize,
    logprobs: *mut f32,
    capacity: usize,
) -> *mut Error {
    guard(|| {
        let model = model(engine)?;
        let client = model.generator()?;
        let tokens = array("tokens", tokens, count)?.to_vec();
        let to = buffer("logprobs", logprobs, capacity)?;
        let (found, expected) = (to.len(), tokens.len().saturating_sub(from));
        if found < expected {
            return Err(Problem::Argument(format!(
                "logprobs: found room for {found} floats, expected {expected}"
            )));
        }
        let (sender, answer) = mpsc::channel();
        let sink = Box::new(move |found| _ = sender.send(found));
        let _guard = client.try_score_to(tokens, from, 0, sink)?;
        let found = answer.recv().map_err(|_| EngineError::Closed)??;
        for (to, found) in to.iter_mut().zip(found) {
            *to = found.token;
        }
        Ok(())
    })
}
