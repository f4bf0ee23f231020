//! `mlxcel-serve`: serves bundles over HTTP.

mod bundles;
mod descriptors;
#[path = "../../src/bin/shared/integer.rs"]
mod integer;
mod named;
mod note;
mod options;
#[path = "../../src/bin/shared/origin.rs"]
mod origin;
mod receipt_key;

use std::{
    env::{self, VarError},
    fs, io,
    path::Path,
    process::{self, ExitCode},
    sync::Arc,
    thread,
    time::Duration,
};

use anyhow::{Context as _, Error, Result, bail};
use mlxcel_artifacts::{parse_arguments, report};
#[cfg(feature = "otel")]
use mlxcel_serve::Traces;
use mlxcel_serve::{Limits, Models, Reload, Reloaded, Settings, Tls, end_runtime, serve};
use tokio::{
    net::TcpListener,
    runtime,
    signal::unix::{Signal, SignalKind, signal},
    task,
};

use crate::{
    bundles::BundleLoader,
    named::{NamedBundle, check_names},
    note::{fail, note},
    options::Options,
    receipt_key::receipt_key,
};

/// The variable that has keys of clients, separated by commas.
const API_KEYS: &str = "MLXCEL_API_KEYS";

/// The variable that has the admin key.
const ADMIN_KEY: &str = "MLXCEL_ADMIN_KEY";

/// The time after which vocabularies are read. The first answer comes first.
const WARM_AFTER: Duration = Duration::from_secs(1);

/// What steps of engines, reloads and grammars have to end after the last answer.
const PATIENCE: Duration = Duration::from_secs(2);

fn main() -> ExitCode {
    let options = parse_arguments::<Options>(env::args_os());
    note::start(options.log);
    match run(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            fail(&report(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

fn run(options: Options) -> Result<()> {
    check_names(&options.bundles)?;
    let api_keys = keys(options.api_keys.as_deref(), API_KEYS)?;
    let key = options.receipt_key.as_deref();
    let key = key.map(|key| receipt_key(key, options.receipt_key_password.as_deref()));
    let settings = Settings {
        hosts: options.hosts(!api_keys.is_empty()),
        cors_origins: options.cors_origin.clone(),
        tls: options.tls()?,
        api_keys,
        admin_key: admin_key(options.admin_key.as_deref())?,
        receipt_key: key.transpose()?.map(Arc::new),
        limits: limits(&options),
        log_prompts: options.log_prompts,
    };
    let runtime = runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    #[cfg(feature = "otel")]
    let traces = match &options.otlp_endpoint {
        Some(endpoint) => Some(Traces::start(endpoint, runtime.handle().clone())?),
        None => None,
    };
    // Before bundles are loaded, so that a port in use is known at once.
    let listener = runtime.block_on(TcpListener::bind(options.listen));
    let listener = listener.with_context(|| {
        format!("cannot listen on {}\nhint: choose another address with --listen", options.listen)
    })?;
    let options = Arc::new(options);
    let models = Models::new(Box::new(BundleLoader::new(options.clone())?));
    for NamedBundle { name, bundle } in &options.bundles {
        let added = models.add(name, bundle).map_err(Error::from_boxed);
        added.with_context(|| format!("cannot serve {name}"))?;
    }
    for model in models.all() {
        note(&format!("serving {} · {}", model.name(), model.digest()));
    }
    let scheme = if settings.tls.is_some() { "https" } else { "http" };
    note(&format!("listening on {scheme}://{}/v1", listener.local_addr()?));
    for model in models.all() {
        thread::spawn(move || {
            thread::sleep(WARM_AFTER);
            model.warm();
        });
    }
    let stop = runtime.block_on(async {
        reload_at_hangup(models.clone(), settings.tls.clone())?;
        stopped()
    })?;
    runtime.block_on(serve(listener, models, settings, stop, options.drain()));
    #[cfg(feature = "otel")]
    if let Some(traces) = traces {
        traces.stop();
    }
    end_runtime(runtime, PATIENCE);
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

/// Reads keys from a file, one in each line that is no `#` comment, and from a variable, separated by commas.
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
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    let keys = lines.chain(given.split(',')).map(str::trim).filter(|key| !key.is_empty());
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

/// Reloads all models and the certificate at each SIGHUP.
fn reload_at_hangup(models: Models, tls: Option<Tls>) -> io::Result<()> {
    let mut hangups = signal(SignalKind::hangup())?;
    let reload = move |models: &Models, tls: Option<&Tls>| {
        match tls.map(Tls::reload) {
            Some(Ok(())) => note("the certificate was read again"),
            Some(Err(error)) => fail(&report(&error)),
            None => {}
        }
        for model in models.all() {
            match models.reload(model.name(), Reload::default()) {
                Ok(Reloaded { is_loaded: false, .. }) => {}
                Ok(Reloaded { digest, .. }) => note(&format!("serving {} · {digest}", model.name())),
                Err(error) => fail(&report(&error)),
            }
        }
    };
    tokio::spawn(async move {
        while hangups.recv().await.is_some() {
            let (models, tls) = (models.clone(), tls.clone());
            _ = task::spawn_blocking(move || reload(&models, tls.as_ref())).await;
        }
    });
    Ok(())
}

/// Resolves at the first SIGTERM or SIGINT. The second one ends the process.
fn stopped() -> io::Result<impl Future<Output = ()> + Send + 'static> {
    let mut signals = [signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?];
    Ok(async move {
        either(&mut signals).await;
        note("stopping: answers are finished, a second signal ends the server at once");
        tokio::spawn(async move {
            either(&mut signals).await;
            note("stopped by a second signal, with answers that were not finished");
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
