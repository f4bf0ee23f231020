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

use mlxcel_artifacts::{Cancel, Digest, Store};
use mlxcel_emitter::Program;

use crate::{Error, Event, Progress, compile, key::build_key, target::Resolved, toolchain::Toolchain};

/// The vmfb of every job with its build key, in the order of the jobs: as many at a time as there are cores, because one
/// compiler does not keep two busy.
pub(crate) fn vmfbs(
    jobs: &[(&Resolved, &Program)],
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
        while let Some((index, (target, program))) = queue.lock().ok().and_then(|mut queue| queue.next()) {
            let vmfb = vmfb(program, target, toolchain, store, &stop, &events);
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

/// The vmfb of `program` for `target`, out of the store or made and put there, and its key.
fn vmfb(
    program: &Program,
    target: &Resolved,
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
    let key = build_key(&program.mlir, &program.parameters, target, toolchain);
    if let Some(path) = store.get(&key)? {
        progress(Event::Stored { target: target.name.clone(), bytes: file_size(&path)? });
        return Ok((key, path));
    }
    progress(Event::Compiling { target: target.name.clone() });
    let start = Instant::now();
    let compiled = compile::compile(&program.mlir, target, toolchain, stop)?;
    let took = start.elapsed();
    let path = store.put(&key, &compiled.path())?;
    progress(Event::Compiled { target: target.name.clone(), took, bytes: file_size(&path)? });
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

    pub(crate) fn target(&self, target: &Resolved, program: &Program, vmfb: &Path) -> Result<(), Error> {
        self.write(&format!("{}.mlir", target.name), program.mlir.as_bytes())?;
        self.write(&format!("{}.flags", target.name), format!("{}\n", target.flags.join("\n")).as_bytes())?;
        let to = self.0.join(format!("{}.vmfb", target.name));
        fs::copy(vmfb, &to).map_err(Error::io("write", &to))?;
        Ok(())
    }
}
