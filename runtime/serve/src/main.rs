//! `mlxcel-serve`: serves bundles over HTTP.

mod descriptors;
mod options;
#[path = "../../src/bin/shared/origin.rs"]
mod origin;

use std::{
    env::{self, VarError},
    fs,
    io::{self, Write as _},
    path::Path,
    process::{self, ExitCode},
    sync::Arc,
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use clap::Parser as _;
use mlxcel_artifacts::report;
use mlxcel_runtime::{
    CheckpointFiles, EngineSettings, LoadOptions, ModelRunner, Request, Weights, engine::EngineThread, load,
};
use mlxcel_serve::{Facts, Limits, ServedModel, Settings, Signature, TextFiles, serve};
use tokio::{
    net::TcpListener,
    runtime,
    signal::unix::{Signal, SignalKind, signal},
};

use crate::options::Options;

/// The variable that has keys of clients, separated by commas.
const API_KEYS: &str = "MLXCEL_API_KEYS";

/// The variable that has the admin key.
const ADMIN_KEY: &str = "MLXCEL_ADMIN_KEY";

/// The time after which vocabularies are read. The first answer comes first.
const WARM_AFTER: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            note(&report(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

/// Writes a line to stderr. A failure to do so is no error.
fn note(line: &str) {
    _ = writeln!(io::stderr().lock(), "{line}");
}

fn run(options: &Options) -> Result<()> {
    let settings = Settings {
        api_keys: keys(options.api_keys.as_deref(), API_KEYS)?,
        admin_key: admin_key(options.admin_key.as_deref())?,
        limits: limits(options),
    };
    let runtime = runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    // Before bundles are loaded, so that a port in use is known at once.
    let listener = runtime.block_on(TcpListener::bind(options.listen));
    let listener = listener.with_context(|| {
        format!("cannot listen on {}\nhint: choose another address with --listen", options.listen)
    })?;
    let mut models: Vec<Arc<ServedModel>> = Vec::new();
    for bundle in &options.bundles {
        let name = ServedModel::name_of(bundle);
        if models.iter().any(|model| model.name() == name) {
            bail!("two bundles are named {name}, expected different names\nhint: rename a folder");
        }
        models.push(open(options, bundle, name)?);
    }
    for model in &models {
        note(&format!("serving {} · {}", model.name(), model.digest()));
    }
    note(&format!("listening on http://{}/v1", listener.local_addr()?));
    for model in &models {
        let model = model.clone();
        thread::spawn(move || {
            thread::sleep(WARM_AFTER);
            model.warm();
        });
    }
    let stop = runtime.block_on(async { stopped() })?;
    runtime.block_on(serve(listener, models, settings, stop, options.drain()));
    Ok(())
}

/// Returns what clients can take, of which the process may have less.
fn limits(options: &Options) -> Limits {
    let limits = options.limits.limits();
    let room = descriptors::connections();
    if room < limits.max_connections {
        note(&format!("the process may have {room} connections, and not {}", limits.max_connections));
        note("hint: raise its limit of open files, as by LimitNOFILE= of systemd");
    }
    Limits { max_connections: limits.max_connections.min(room), ..limits }
}

/// Loads a bundle and runs a step.
fn open(options: &Options, path: &Path, name: String) -> Result<Arc<ServedModel>> {
    let bundle = options.origin.open(path)?;
    let signature = Signature::new(options.origin.check(&bundle)?, bundle.signature_info()?);
    options.origin.note(&bundle)?;
    let weights = match &options.weights {
        Some(path) => Some(Weights::open(path)?),
        None if bundle.is_packed() => None,
        None => Some(Weights::from_bundle(&bundle)?),
    };
    if let Some(weights) = &weights {
        weights.check(&bundle.manifest().parameters)?;
    }
    let folder = options.weights.as_deref().filter(|path| path.is_dir());
    let text = TextFiles::read(&CheckpointFiles::new(&bundle, folder))?;
    let load_options: LoadOptions = options.load_options();
    let settings = EngineSettings { waiting: options.queue, ..EngineSettings::default() };
    let loaded = bundle.clone();
    let load = move || -> Result<Box<dyn ModelRunner>, _> { load(&loaded, weights, &load_options) };
    let engine = EngineThread::start(load, settings)?;
    let step = engine.client().submit(Request { prompt: vec![0], max_tokens: 1, ..Request::default() })?;
    for event in step {
        if let mlxcel_runtime::engine::EventKind::Failed { error } = event {
            return Err(error).with_context(|| format!("{name} cannot run a step"));
        }
    }
    let client = engine.client();
    let facts = Facts::new(&bundle, signature, client.device(), client.limits().context);
    Ok(ServedModel::new(name, facts, text, engine))
}

/// Reads keys from a file, one in each line, and from a variable, separated by commas.
fn keys(file: Option<&Path>, variable: &str) -> Result<Vec<String>> {
    let text = match file {
        Some(path) => fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?,
        None => String::new(),
    };
    let given = match env::var(variable) {
        Ok(given) => given,
        Err(VarError::NotPresent) => String::new(),
        Err(VarError::NotUnicode(_)) => bail!("{variable} is no UTF-8, expected keys"),
    };
    let keys = text.lines().chain(given.split(',')).map(str::trim).filter(|key| !key.is_empty());
    let keys: Vec<_> = keys.map(str::to_owned).collect();
    if let Some(key) = keys.iter().find(|key| !key.bytes().all(|byte| byte.is_ascii_graphic())) {
        let count = key.chars().count();
        bail!("a key of {count} characters has one that no header can have, expected visible ASCII");
    }
    if let (Some(path), true) = (file, keys.is_empty()) {
        bail!("{} has no key, expected one in each line", path.display());
    }
    Ok(keys)
}

/// Reads the admin key.
fn admin_key(file: Option<&Path>) -> Result<Option<String>> {
    let mut keys = keys(file, ADMIN_KEY)?;
    match keys.len() {
        0 | 1 => Ok(keys.pop()),
        found => bail!("found {found} admin keys in the file and {ADMIN_KEY}, expected one"),
    }
}

/// Resolves at the first SIGTERM or SIGINT. The second one ends the process.
fn stopped() -> io::Result<impl Future<Output = ()> + Send + 'static> {
    let mut signals = [signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?];
    Ok(async move {
        either(&mut signals).await;
        note("stopping: answers are finished, a second signal ends the server at once");
        tokio::spawn(async move {
            either(&mut signals).await;
            process::exit(1);
        });
    })
}

/// Waits for one of two signals.
async fn either([one, other]: &mut [Signal; 2]) {
    tokio::select! {
        _ = one.recv() => {}
        _ = other.recv() => {}
    }
}
