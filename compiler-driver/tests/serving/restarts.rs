//! Servers behind nginx, killed under load and started again: only what was in flight fails.

use std::{
    env, fs,
    net::{SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    thread,
    time::Instant,
};

use super::{
    alone::{Asked, alone},
    http::get,
    server::{Server, demo, until},
};
use crate::real::{Random, toolchain};

const CLIENTS: u64 = 12;

/// Kills, in turn of one server and of the other.
const KILLS: usize = 4;

/// Answers between one event and the next, however long they take.
const ANSWERS: usize = 3 * CLIENTS as usize;

/// nginx, which is killed when it is dropped.
struct Nginx {
    child: Child,
    address: SocketAddr,
    _folder: tempfile::TempDir,
}

/// Finds nginx on the PATH, or where `cargo xtask setup` unpacks it.
fn nginx() -> PathBuf {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain([toolchain().join("nginx/usr/sbin"), "/usr/sbin".into()]);
    let mut programs = folders.map(|folder| folder.join("nginx"));
    programs.find(|program| program.is_file()).expect("nginx is missing: run `cargo xtask setup`")
}

/// Returns addresses that nothing listens on, all different.
fn free<const COUNT: usize>() -> [SocketAddr; COUNT] {
    let listeners = [(); COUNT].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.each_ref().map(|listener| listener.local_addr().unwrap())
}

impl Nginx {
    /// Starts it in front of servers.
    fn start(servers: [SocketAddr; 2]) -> Self {
        let (folder, [address]) = (tempfile::tempdir().unwrap(), free());
        let [one, other] = servers;
        // A request goes to the other server if the first refuses the connection. nginx repeats no POST that was sent.
        // The server refuses names that are not its own, and nginx would send that of `upstream`.
        let config = format!(
            "daemon off; master_process off; pid nginx.pid; error_log stderr error;
             events {{ worker_connections 512; }}
             http {{
               access_log off;
               client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
               upstream servers {{ server {one} max_fails=0; server {other} max_fails=0; }}
               server {{
                 listen {address};
                 location / {{
                   proxy_pass http://servers;
                   proxy_http_version 1.1;
                   proxy_set_header Host $host;
                   proxy_buffering off;
                   proxy_connect_timeout 2s;
                   proxy_next_upstream error timeout;
                 }}
               }}
             }}"
        );
        fs::write(folder.path().join("nginx.conf"), config).unwrap();
        let mut command = Command::new(nginx());
        command.arg("-p").arg(folder.path()).args(["-c", "nginx.conf", "-e", "stderr"]);
        let child = command.stderr(Stdio::null()).spawn().unwrap();
        let nginx = Self { child, address, _folder: folder };
        until("nginx listens", || TcpStream::connect(address).ok());
        nginx
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// A request that failed.
struct Failure {
    what: String,
    time: [Instant; 2],
}

#[test]
fn a_kill_fails_what_is_in_flight_alone() {
    let demo = demo();
    restarts(demo.built.bundle.path());
}

fn restarts(bundle: &Path) {
    let requests = alone(bundle, 20);
    let start = |address: SocketAddr| Server::of(bundle, &address.to_string(), &[]);
    let addresses: [SocketAddr; 2] = free();
    let mut servers = addresses.map(start);
    let nginx = Nginx::start(addresses);
    let (answered, ended) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (failures, mut kills) = (Mutex::new(vec![]), vec![]);
    thread::scope(|scope| {
        for seed in 1..=CLIENTS {
            let (requests, answered, ended, failures) = (&requests, &answered, &ended, &failures);
            scope.spawn(move || {
                let mut random = Random(seed * 0x9e37_79b9);
                while !ended.load(Relaxed) {
                    let begin = Instant::now();
                    match one(nginx.address, &mut random, requests) {
                        Ok(()) => _ = answered.fetch_add(1, Relaxed),
                        Err(what) => {
                            failures.lock().unwrap().push(Failure { what, time: [begin, Instant::now()] })
                        }
                    }
                }
            });
        }
        // A panic ends the clients too.
        let end = End(&ended);
        for kill in 0..KILLS {
            goes_on("both answer", &answered);
            let begin = Instant::now();
            servers[kill % 2].kill();
            kills.push([begin, Instant::now()]);
            goes_on("the other one answers", &answered);
            servers[kill % 2] = start(addresses[kill % 2]);
            until("it is ready", || {
                get(addresses[kill % 2], "/health/ready").is_ok_and(|(status, _)| status == 200).then_some(())
            });
        }
        goes_on("both answer", &answered);
        drop(end);
    });

    let failures = failures.into_inner().unwrap();
    let in_flight = |failure: &&Failure| {
        let [begin, end] = failure.time;
        kills.iter().any(|[killing, killed]| begin < *killed && end > *killing)
    };
    let (in_flight, others): (Vec<_>, Vec<_>) = failures.iter().partition(in_flight);
    let answered = answered.load(Relaxed);
    eprintln!("{KILLS} kills: {answered} answers, {} failures in flight", in_flight.len());
    let others: Vec<&str> = others.iter().map(|failure| failure.what.as_str()).collect();
    assert_eq!(others, [""; 0]);
    assert!(!in_flight.is_empty(), "a kill ended something");
    assert!(in_flight.len() <= KILLS * CLIENTS as usize);
}

/// Waits until clients have had answers enough.
fn goes_on(what: &str, answered: &AtomicUsize) {
    let before = answered.load(Relaxed);
    until(what, || (answered.load(Relaxed) >= before + ANSWERS).then_some(()));
}

/// Ends clients.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Asks once, for a stream or for a whole answer. An answer that is no error is what it is alone.
fn one(address: SocketAddr, random: &mut Random, requests: &[Asked]) -> Result<(), String> {
    let (asked, streams) = (&requests[random.below(requests.len())], random.below(2) == 0);
    let reply = asked.ask(address, streams).map_err(|error| error.to_string())?;
    if reply.status != 200 {
        return Err(reply.status.to_string());
    }
    let found = if streams { reply.stream(None) } else { reply.whole().map(Some) };
    let found = found.map_err(|error| error.to_string())?;
    assert_eq!(found.as_ref(), Some(&asked.answer), "{}", asked.body);
    Ok(())
}
