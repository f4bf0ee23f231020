//! Compiles jobs in parallel, unless the store has their modules.

use std::{
    collections::BTreeMap,
    fs,
    panic::resume_unwind,
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Sender},
    },
    thread::{self, ScopedJoinHandle},
    time::Instant,
};

use mlxcel_artifacts::{Cancel, Store};

use crate::{
    build::{
        event::{Event, Progress},
        iree_compile,
        key::build_key,
        toolchain::Toolchain,
        unit::{CompiledModule, Job},
    },
    error::Error,
};

/// Returns the compiled module of every job, in the order of the jobs.
///
/// Runs one compiler per core: a single one does not keep two cores busy. If a job fails, stops the others.
pub(crate) fn compile_all(
    jobs: &[Job<'_>],
    toolchain: &Toolchain,
    store: &Store,
    cancel: &Cancel,
    progress: &mut Progress<'_>,
) -> Result<Vec<CompiledModule>, Error> {
    let failed = AtomicBool::new(false);
    let stop = || cancel.is_cancelled() || failed.load(Ordering::Relaxed);
    let queue = Mutex::new(jobs.iter().enumerate());
    let (events, received) = mpsc::channel();
    let work = |events: Sender<Event>| {
        let mut done = Vec::new();
        // Never poisoned: nothing panics while the queue is locked.
        while let Some((index, job)) = queue.lock().ok().and_then(|mut queue| queue.next()) {
            let module = compile_or_load(job, toolchain, store, &stop, &events);
            failed.fetch_or(module.is_err(), Ordering::Relaxed);
            done.push((index, module));
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
        received.into_iter().for_each(progress);
        let join =
            |worker: ScopedJoinHandle<'_, Vec<_>>| worker.join().unwrap_or_else(|panic| resume_unwind(panic));
        workers.into_iter().flat_map(join).collect::<BTreeMap<_, _>>()
    });
    let mut modules = Vec::new();
    let mut cancelled = false;
    for module in done.into_values() {
        match module {
            // A later job's failure may have stopped this one: report that failure.
            Err(Error::Cancelled) => cancelled = true,
            other => modules.push(other?),
        }
    }
    if cancelled { Err(Error::Cancelled) } else { Ok(modules) }
}

/// Loads the module of a job from the store, or compiles it and puts it there.
fn compile_or_load(
    Job { label, target, unit }: &Job<'_>,
    toolchain: &Toolchain,
    store: &Store,
    stop: &dyn Fn() -> bool,
    events: &Sender<Event>,
) -> Result<CompiledModule, Error> {
    if stop() {
        return Err(Error::Cancelled);
    }
    // The receiver outlives the workers.
    let progress = |event| _ = events.send(event);
    let build_key = build_key(unit, target, toolchain);
    if let Some(vmfb) = store.get(&build_key)? {
        progress(Event::Cached { target: label.clone(), bytes: file_size(&vmfb)? });
        return Ok(CompiledModule { build_key, vmfb });
    }
    progress(Event::Compiling { target: label.clone() });
    let start = Instant::now();
    let output = iree_compile::compile(unit, target, toolchain, stop)?;
    let took = start.elapsed();
    let vmfb = store.put(&build_key, &output.vmfb())?;
    progress(Event::Compiled { target: label.clone(), took, bytes: file_size(&vmfb)? });
    Ok(CompiledModule { build_key, vmfb })
}

fn file_size(path: &Path) -> Result<u64, Error> {
    Ok(fs::metadata(path).map_err(Error::io("read", path))?.len())
}
