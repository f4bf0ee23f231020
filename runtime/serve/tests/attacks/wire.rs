//! Clients that write bytes.

use std::{
    panic,
    sync::{
        Once,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use mlxcel_serve::{Limits, Settings};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

use crate::scripted::{PATIENCE, Server, Speed};

/// Panics of this process.
static PANICS: AtomicUsize = AtomicUsize::new(0);

/// Starts a server with limits, whose panics are counted.
pub(crate) async fn start(limits: Limits) -> Server {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            // A test that fails panics in its own thread, which has its name.
            let is_test = thread::current().name().is_some_and(|name| name.contains("::"));
            PANICS.fetch_add(usize::from(!is_test), Ordering::SeqCst);
            before(info);
        }));
    });
    Server::with(Speed::Fast, Settings { limits, ..Settings::default() }).await
}

/// Checks that the server answers, that nothing runs, and that nothing has panicked.
pub(crate) async fn check(server: &Server, what: &str) {
    // On a busy machine a client may be slower than a server with short limits waits.
    let mut answer = String::new();
    for _ in 0..5 {
        answer = exchange(server, get("/health/live")).await;
        if !answer.is_empty() {
            break;
        }
    }
    assert_eq!(summary(&answer), ["200 {\"status\":\"ok\"}"], "after {what}");
    server.until_idle().await;
    assert_eq!(PANICS.load(Ordering::SeqCst), 0, "after {what}");
}

/// Connects to a server.
pub(crate) async fn connect(server: &Server) -> TcpStream {
    TcpStream::connect(server.url("").strip_prefix("http://").unwrap()).await.unwrap()
}

/// Returns a request without a body, after which the connection ends.
pub(crate) fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
}

/// Returns a request with a JSON body.
pub(crate) fn post(path: &str, headers: &str, body: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{headers}\r\n{body}"
    )
}

/// Sends bytes, and reads what comes until the server closes the connection.
pub(crate) async fn exchange(server: &Server, bytes: impl AsRef<[u8]>) -> String {
    let mut stream = connect(server).await;
    // A server that has seen enough need not read the rest.
    _ = stream.write_all(bytes.as_ref()).await;
    rest(&mut stream).await
}

/// Reads until the server closes the connection.
pub(crate) async fn rest(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    timeout(PATIENCE, stream.read_to_end(&mut text))
        .await
        .expect("the server closes the connection")
        .unwrap();
    String::from_utf8(text).unwrap()
}

/// Reads one answer, which has a length.
pub(crate) async fn answer(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    let read = async {
        loop {
            text.push(stream.read_u8().await.unwrap());
            if let Some(head) = text.strip_suffix(b"\r\n\r\n") {
                let head = String::from_utf8(head.to_vec()).unwrap();
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
                let mut body = vec![0; length.unwrap_or("0").parse().unwrap()];
                stream.read_exact(&mut body).await.unwrap();
                text.extend(body);
                return;
            }
        }
    };
    timeout(PATIENCE, read).await.expect("the server answers");
    String::from_utf8(text).unwrap()
}

/// Returns the status and the body of each of several answers with lengths.
pub(crate) fn summary(mut answers: &str) -> Vec<String> {
    let mut found = Vec::new();
    while let Some((head, rest)) = answers.split_once("\r\n\r\n") {
        let status = head.split(' ').nth(1).unwrap();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let (body, next) = rest.split_at(length.unwrap_or("0").parse().unwrap());
        found.push(format!("{status} {body}").trim_end().to_owned());
        answers = next;
    }
    assert_eq!(answers, "");
    found
}
