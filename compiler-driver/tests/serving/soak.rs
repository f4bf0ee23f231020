//! 1,000 streams at a time, of clients a third of which vanish: answers are what they are alone, no memory leaks, and no
//! page stays in use.
//!
//! `MLXCEL_SOAK=600` takes 10 minutes in place of 15 seconds.

use std::{
    env,
    fmt::Display,
    fs,
    net::SocketAddr,
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::{
    alone::{Asked, alone},
    server::{Server, demo},
};
use crate::real::Random;

/// Streams that are open at a time, at least.
const STREAMS: usize = 1000;

/// Requests that may wait. Some have no stream yet, and some of streams that were left are noticed later.
const QUEUE: usize = STREAMS + 100;

/// Clients, so many that some are refused.
const CLIENTS: usize = QUEUE + 150;

/// Requests that end at least. A slow machine gets up to ten times the time for them. The first half of them reaches every
/// size that there will be.
const ENDED: usize = 2 * CLIENTS;

/// Requests that differ.
const REQUESTS: u64 = 100;

/// Threads of clients do little.
const STACK: usize = 128 << 10;

/// How much of its memory the server may gain in the second half.
const GROWTH: f64 = 1.05;

/// What clients saw.
#[derive(Default)]
struct Seen {
    open: AtomicUsize,
    most_open: AtomicUsize,
    streams: AtomicUsize,
    whole: AtomicUsize,
    vanished: AtomicUsize,
    refused: AtomicUsize,
    /// Requests that were answered to the end.
    answered: Mutex<Vec<bool>>,
    failed: Mutex<Vec<String>>,
}

impl Seen {
    /// Returns the requests that ended, but for those that were refused.
    fn ended(&self) -> usize {
        [&self.streams, &self.whole, &self.vanished].map(|count| count.load(Relaxed)).iter().sum()
    }
}

/// What a client does with an answer.
#[derive(Clone, Copy, PartialEq)]
enum Manner {
    Whole,
    Stream,
    /// Reads so many events and closes the connection, with others unread.
    Vanishes(usize),
    /// Reads nothing for a while, and then the stream.
    Late,
}

impl Manner {
    fn any(random: &mut Random) -> Self {
        match random.below(12) {
            0..4 => Self::Vanishes(random.below(12)),
            4 => Self::Whole,
            5 => Self::Late,
            _ => Self::Stream,
        }
    }
}

#[test]
fn a_thousand_streams_and_clients_that_vanish() {
    let seconds = env::var("MLXCEL_SOAK").map_or(15, |seconds| seconds.parse().unwrap());
    let demo = demo();
    soak(demo.built.bundle.path(), Duration::from_secs(seconds));
}

fn soak(bundle: &Path, time: Duration) {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
    let requests = alone(bundle, REQUESTS);
    let mut server = Server::of(bundle, "127.0.0.1:0", &["--queue", &QUEUE.to_string()]);
    let seen = Seen { answered: Mutex::new(vec![false; requests.len()]), ..Seen::default() };
    let (start, mut sizes) = (Instant::now(), vec![]);
    let goes_on = || start.elapsed() < time || (seen.ended() < ENDED && start.elapsed() < 10 * time);
    let has_failed = || !seen.failed.lock().unwrap().is_empty();
    thread::scope(|scope| {
        for seed in 1..=CLIENTS as u64 {
            let (address, requests, seen) = (server.address, &requests, &seen);
            let (goes_on, has_failed) = (&goes_on, &has_failed);
            let client = move || {
                let mut random = Random(seed * 0x9e37_79b9);
                while goes_on() && !has_failed() {
                    if let Err(failure) = one(address, &mut random, requests, seen) {
                        seen.failed.lock().unwrap().push(failure);
                    }
                }
            };
            thread::Builder::new().stack_size(STACK).spawn_scoped(scope, client).unwrap();
        }
        while goes_on() && !has_failed() {
            thread::sleep(Duration::from_millis(250));
            if start.elapsed() * 2 > time && seen.ended() * 2 > ENDED {
                sizes.push(resident(server.id()));
            }
        }
    });
    server.wait_until_idle();
    let status = server.terminate();
    report(time, &seen, &sizes);

    assert_eq!(*seen.failed.lock().unwrap(), [""; 0], "{}", server.notes());
    assert!(status.success() && !server.notes().contains("panic"), "{status}: {}", server.notes());
    let count = |counter: &AtomicUsize| counter.load(Relaxed);
    assert!(count(&seen.most_open) >= STREAMS);
    assert!(count(&seen.refused) > 0 && count(&seen.whole) > 0);
    assert!(count(&seen.vanished) * 4 > seen.ended(), "a third vanishes");
    let missing = seen.answered.lock().unwrap().iter().filter(|answered| !**answered).count();
    assert_eq!(missing, 0, "every request was answered to the end");
    assert!(sizes.len() > 1, "{} requests ended", seen.ended());
    let (first, last) = sizes.split_at(sizes.len() / 2);
    let largest = |sizes: &[usize]| sizes.iter().copied().max().unwrap() as f64;
    assert!(largest(last) < GROWTH * largest(first), "{sizes:?}");
}

/// Asks once.
fn one(address: SocketAddr, random: &mut Random, requests: &[Asked], seen: &Seen) -> Result<(), String> {
    let (index, manner) = (random.below(requests.len()), Manner::any(random));
    let asked = &requests[index];
    let fail = |error: &dyn Display| format!("{}: {error}", asked.body);
    let reply = asked.ask(address, manner != Manner::Whole).map_err(|error| fail(&error))?;
    match reply.status {
        200 => {}
        429 => {
            assert!(reply.headers.iter().any(|header| header.starts_with("retry-after: ")));
            assert_eq!(reply.json().unwrap()["error"]["code"], "queue_full");
            seen.refused.fetch_add(1, Relaxed);
            thread::sleep(Duration::from_millis(100 + random.below(400) as u64));
            return Ok(());
        }
        status => return Err(fail(&format_args!("{status}: {:?}", reply.json()))),
    }
    seen.most_open.fetch_max(1 + seen.open.fetch_add(1, Relaxed), Relaxed);
    if manner == Manner::Late {
        thread::sleep(Duration::from_millis(500));
    }
    let (found, counter) = match manner {
        Manner::Whole => (reply.whole().map(Some), &seen.whole),
        Manner::Vanishes(after) => (reply.stream(Some(after)), &seen.vanished),
        Manner::Stream | Manner::Late => (reply.stream(None), &seen.streams),
    };
    seen.open.fetch_sub(1, Relaxed);
    counter.fetch_add(1, Relaxed);
    if let Some(found) = found.map_err(|error| fail(&error))? {
        if found != asked.answer {
            return Err(fail(&format_args!("found {found:?}, alone {:?}", asked.answer)));
        }
        seen.answered.lock().unwrap()[index] = true;
    }
    Ok(())
}

/// Returns the bytes of a process that are in memory.
fn resident(id: u32) -> usize {
    let text = fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let kib = text.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")).unwrap();
    kib.parse::<usize>().unwrap() << 10
}

fn report(time: Duration, seen: &Seen, sizes: &[usize]) {
    let [most, streams, whole, vanished, refused] =
        [&seen.most_open, &seen.streams, &seen.whole, &seen.vanished, &seen.refused]
            .map(|count| count.load(Relaxed));
    let mib = |size: Option<&usize>| size.map_or(0.0, |&size| size as f64 / f64::from(1 << 20));
    let report = format!(
        "{} s, up to {most} streams at a time: {streams} read, {vanished} left, {whole} whole answers, {refused} refused, \
         {:.1} to {:.1} MiB",
        time.as_secs(),
        mib(sizes.iter().min()),
        mib(sizes.iter().max()),
    );
    eprintln!("{report}");
}
