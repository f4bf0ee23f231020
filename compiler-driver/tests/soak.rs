//! Random load on the demo model, from many threads: no page and no memory leaks, no request starves, and every answer is what
//! it is alone.
//!
//! `MLXCEL_SOAK=1200` takes 20 minutes in place of 5 seconds.
#![allow(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

mod answers;
mod real;

use std::{
    env, fs,
    io::{self, Write as _},
    ops::ControlFlow,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use answers::{engine, on};
use mlxcel_artifacts::Bundle;
use mlxcel_runtime::{
    CacheSize, Cancel, EngineSettings, LoadOptions, Request as Prompt, Sampling, StopReason,
    engine::{EngineClient, EngineThread, EventKind, Speculation},
    load,
};
use real::{Random, built, models, request};

/// Threads that ask. More than sequences of a call that generates, so that some wait.
const CLIENTS: usize = 24;

/// Requests that differ. They share prefixes of their prompts.
const REQUESTS: usize = 48;

/// Answers that there are at least. A slow machine gets up to ten times the time for them. The first half of them touches
/// every page, and fills the allocator's own caches.
const ANSWERS: usize = 200;

/// The longest time from a request to its first token. Alone that takes milliseconds.
const FIRST_TOKEN: Duration = Duration::from_secs(120);

/// Prompts with one of four beginnings, greedy and seeded, with drafts and without.
fn requests(vocab: usize) -> Vec<Prompt> {
    let mut random = Random(88_172_645_463_325_252);
    let requests = (0..REQUESTS).map(|index| {
        let shared = (0..random.below(200)).map(|at| ((at * 7 + index % 4) % vocab) as u32);
        let shared: Vec<u32> = shared.collect();
        let own: Vec<u32> = (0..1 + random.below(40)).map(|_| random.below(vocab) as u32).collect();
        Prompt {
            prompt: [shared, own].concat(),
            max_tokens: 1 + random.below(40),
            sampling: (index % 3 == 0).then(|| Sampling {
                top_k: [0, 40][index % 2],
                seed: index as u64,
                ..Sampling::default()
            }),
            speculate: (index % 5 == 0).then(Speculation::default),
            ..Prompt::default()
        }
    });
    requests.collect()
}

/// What a client saw.
#[derive(Default)]
struct Seen {
    answers: AtomicUsize,
    cancelled: AtomicUsize,
    cached: AtomicUsize,
    slowest: Mutex<Duration>,
}

/// Asks while `goes_on`, cancels some, and compares what comes.
fn ask(
    client: &EngineClient,
    seed: u64,
    requests: &[(Prompt, Vec<u32>)],
    goes_on: &dyn Fn() -> bool,
    seen: &Seen,
) {
    let mut random = Random(seed);
    while goes_on() {
        let (request, expected) = &requests[random.below(requests.len())];
        let cancels_after = (random.below(8) == 0).then(|| random.below(10));
        let start = Instant::now();
        let mut handle = client.submit(request.clone()).unwrap();
        let mut found = Vec::new();
        while let Some(event) = handle.next() {
            match event {
                EventKind::Token { token, .. } => {
                    if found.is_empty() {
                        let mut slowest = seen.slowest.lock().unwrap();
                        *slowest = (*slowest).max(start.elapsed());
                    }
                    found.push(token);
                    if cancels_after.is_some_and(|after| found.len() > after) {
                        handle.cancel();
                    }
                }
                EventKind::Finished { reason: StopReason::Cancelled, .. } => {
                    assert!(cancels_after.is_some());
                    seen.cancelled.fetch_add(1, Ordering::Relaxed);
                    assert!(expected.starts_with(&found));
                }
                EventKind::Finished { timings, .. } => {
                    assert_eq!(&found, expected);
                    seen.cached.fetch_add(timings.cached_tokens, Ordering::Relaxed);
                    seen.answers.fetch_add(1, Ordering::Relaxed);
                }
                EventKind::Failed { error } => panic!("{error}"),
            }
        }
    }
}

/// Bytes of this process that are in memory, where Linux says.
fn resident() -> Option<usize> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    let kib = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?.trim().strip_suffix(" kB")?;
    Some(kib.parse::<usize>().ok()? << 10)
}

#[test]
fn random_load_leaks_nothing_and_starves_nobody() {
    let seconds = env::var("MLXCEL_SOAK").map_or(5, |seconds| seconds.parse().unwrap());
    let built = built(&request(&models().join("demo"), &["cpu"]));
    let mut alone = engine(&built.bundle, None, &on("local-task")).unwrap();
    let answers = requests(alone.limits().vocab).into_iter().map(|request| {
        alone.clear_prefix_cache();
        let plain = Prompt { speculate: None, ..request.clone() };
        let found = alone.generate(plain, &Cancel::new(), &mut |_| ControlFlow::Continue(())).unwrap();
        (request, found.tokens)
    });
    let requests: Vec<(Prompt, Vec<u32>)> = answers.collect();
    drop(alone);

    let path = built.bundle.path().to_path_buf();
    // Fewer pages than all requests want at a time, so that pages of earlier ones go and requests wait.
    let options = LoadOptions { cache: CacheSize::Sequences(4), ..on("local-task") };
    let load = move || load(&Bundle::open(&path)?, None, &options);
    let engine = EngineThread::start(load, EngineSettings::default()).unwrap();
    let client = engine.client();
    let (seen, start) = (Seen::default(), Instant::now());
    let time = Duration::from_secs(seconds);
    let answers = || seen.answers.load(Ordering::Relaxed);
    let goes_on = || start.elapsed() < time || (answers() < ANSWERS && start.elapsed() < 10 * time);
    let mut sizes = Vec::new();
    thread::scope(|scope| {
        for seed in 1..=CLIENTS as u64 {
            let (client, requests, goes_on, seen) = (client.clone(), &requests, &goes_on, &seen);
            scope.spawn(move || ask(&client, seed * 0x9e37_79b9, requests, goes_on, seen));
        }
        while goes_on() {
            thread::sleep(Duration::from_millis(250));
            if start.elapsed() * 2 > time && answers() * 2 > ANSWERS {
                sizes.extend(resident());
            }
        }
    });

    let usage = client.usage();
    assert_eq!((usage.running, usage.waiting), (0, 0));
    for pool in &usage.pools {
        assert_eq!(pool.free + pool.cached, pool.pages, "no request holds a page: {usage:?}");
    }
    let [answers, cancelled, cached] =
        [&seen.answers, &seen.cancelled, &seen.cached].map(|count| count.load(Ordering::Relaxed));
    let slowest = *seen.slowest.lock().unwrap();
    let (least, most) = (sizes.iter().min().copied(), sizes.iter().max().copied());
    let report = format!(
        "{seconds} s: {answers} answers, {cancelled} cancelled, {cached} tokens from pages of others, first token after \
         at most {} ms, {:?} to {:?} MiB",
        slowest.as_millis(),
        least.map(|bytes| bytes >> 20),
        most.map(|bytes| bytes >> 20)
    );
    writeln!(io::stderr(), "{report}").unwrap();
    assert!(answers >= ANSWERS && cancelled > 5 && cached > 1000, "{answers} {cancelled} {cached}");
    assert!(slowest < FIRST_TOKEN, "{slowest:?}");
    if let (Some(least), Some(most)) = (least, most) {
        let (first, last) = (sizes[0] as f64, sizes[sizes.len() - 1] as f64);
        assert!(last < 1.03 * first && (most as f64) < 1.03 * least as f64, "{sizes:?}");
    }
}
