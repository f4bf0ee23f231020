//! Programs to vmfbs: out of the store, or compiled for several targets at a time.

use std::{
    collections::BTreeMap,
    fs,
    panic::resume_unwind,
    path::{Path, PathBuf},
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Sender},
    },
    thread::{self, ScopedJoinHandle},
    time::Instant,
};

use mlxcel_artifacts::entry::Parameter;
use mlxcel_artifacts::{Cancel, Digest, Store};
use mlxcel_emitter::Object;

use crate::{Error, Event, Progress, compile, key::build_key, target::Resolved, toolchain::Toolchain};

/// What goes through the compiler.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unit<'u> {
    /// The module's text.
    pub(crate) mlir: &'u str,
    /// What it is linked with.
    pub(crate) objects: &'u [Object],
    /// What it reads.
    pub(crate) parameters: &'u [Parameter],
}

/// A module to be compiled for a target.
pub(crate) struct Job<'j> {
    /// What people are told of it: the target's name, and which of its modules.
    pub(crate) label: String,
    pub(crate) target: &'j Resolved,
    pub(crate) unit: Unit<'j>,
}

/// The vmfb of every job with its build key, in the order of the jobs: as many at a time as there are cores, because one
/// compiler does not keep two busy.
pub(crate) fn vmfbs(
    jobs: &[Job<'_>],
    toolchain: &Toolchain,
    store: &Store,
    cancel: &Cancel,
    progress: &mut Progress<'_>,
) -> Result<Vec<(Digest, PathBuf)>, Error> {
    let failed = AtomicBool::new(false);
    let stop = || cancel.is_cancelled() || failed.load(Ordering::Relaxed);
    let queue = Mutex::new(jobs.iter().enumerate());
    let (events, seen) = mpsc::channel();
    let work = |events: Sender<Event>| {
        let mut done = Vec::new();
        // A queue that is locked while nobody can panic is never poisoned.
        while let Some((index, job)) = queue.lock().ok().and_then(|mut queue| queue.next()) {
            let vmfb = vmfb(job, toolchain, store, &stop, &events);
            // The others give up what they are at.
            failed.fetch_or(vmfb.is_err(), Ordering::Relaxed);
            done.push((index, vmfb));
        }
        done
    };
    let done = thread::scope(|scope| {
        let workers = thread::available_parallelism().map_or(1, usize::from).min(jobs.len());
        let workers: Vec<_> = (0..workers)
            .map(|_| {
                let events = events.clone();
                scope.spawn(|| work(events))
            })
            .collect();
        drop(events);
        seen.into_iter().for_each(progress);
        let join =
            |worker: ScopedJoinHandle<'_, Vec<_>>| worker.join().unwrap_or_else(|panic| resume_unwind(panic));
        workers.into_iter().flat_map(join).collect::<BTreeMap<_, _>>()
    });
    let mut vmfbs = Vec::new();
    let mut cancelled = false;
    for vmfb in done.into_values() {
        match vmfb {
            // Perhaps on account of a failure that comes later.
            Err(Error::Cancelled) => cancelled = true,
            other => vmfbs.push(other?),
        }
    }
    if cancelled { Err(Error::Cancelled) } else { Ok(vmfbs) }
}

/// The vmfb of a job, out of the store or made and put there, and its key.
fn vmfb(
    Job { label, target, unit }: &Job<'_>,
    toolchain: &Toolchain,
    store: &Store,
    stop: &dyn Fn() -> bool,
    events: &Sender<Event>,
) -> Result<(Digest, PathBuf), Error> {
    if stop() {
        return Err(Error::Cancelled);
    }
    // Whoever listens outlives the workers.
    let progress = |event| _ = events.send(event);
    let key = build_key(unit, target, toolchain);
    if let Some(path) = store.get(&key)? {
        progress(Event::Stored { target: label.clone(), bytes: file_size(&path)? });
        return Ok((key, path));
    }
    progress(Event::Compiling { target: label.clone() });
    let start = Instant::now();
    let compiled = compile::compile(unit, target, toolchain, stop)?;
    let took = start.elapsed();
    let path = store.put(&key, &compiled.path())?;
    progress(Event::Compiled { target: label.clone(), took, bytes: file_size(&path)? });
    Ok((key, path))
}

fn file_size(path: &Path) -> Result<u64, Error> {
    Ok(fs::metadata(path).map_err(Error::io("read", path))?.len())
}

/// A folder that intermediates are left in.
pub(crate) struct Keep<'k>(&'k Path);

impl<'k> Keep<'k> {
    pub(crate) fn new(folder: &'k Path) -> Result<Self, Error> {
        fs::create_dir_all(folder).map_err(Error::io("write", folder))?;
        Ok(Self(folder))
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let path = self.0.join(name);
        fs::write(&path, bytes).map_err(Error::io("write", &path))
    }

    pub(crate) fn job(&self, job: &Job<'_>, vmfb: &Path) -> Result<(), Error> {
        let Job { label, target, unit } = job;
        let name = label.replace(' ', "-");
        self.write(&format!("{name}.mlir"), unit.mlir.as_bytes())?;
        unit.objects.iter().try_for_each(|object| self.write(object.name, object.bytes))?;
        self.write(&format!("{name}.flags"), format!("{}\n", target.flags.join("\n")).as_bytes())?;
        let to = self.0.join(format!("{name}.vmfb"));
        fs::copy(vmfb, &to).map_err(Error::io("write", &to))?;
        Ok(())
    }
}
