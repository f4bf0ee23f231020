//! Connections of clients, from the socket to the handlers.

mod activity;
mod bodies;
mod socket;

use std::{convert::Infallible, future::Future, io, pin::pin, sync::Arc, time::Duration};

use axum::{Router, body::Body};
use hyper::{Request, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use socket2::{SockRef, TcpKeepalive};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
    task::JoinSet,
    time::{sleep, timeout},
};
use tower::ServiceExt as _;
use tracing::warn;

use self::{
    activity::Activity,
    bodies::{AnswerBody, RequestBody},
    socket::Socket,
};
use crate::{limits::Limits, tls::Tls};

/// What programs filter lines of the log by.
const LOG: &str = "mlxcel_serve::connection";

/// The most headers of a request.
const MAX_HEADERS: usize = 100;

/// The largest head of a request, in bytes.
const MAX_HEAD: usize = 32 << 10;

/// The largest part of a request or of an answer that is in memory besides its body.
const MAX_BUFFER: usize = 64 << 10;

/// The wait after an error of the listener, such as too many open files.
const AFTER_ERROR: Duration = Duration::from_secs(1);

/// The time after which the kernel asks a silent client whether it is there, and the time between its questions.
const PROBE: Duration = Duration::from_secs(30);

/// What the kernel keeps of answers that a client has not read, in bytes. It takes twice as much, for its own needs.
const SEND_BUFFER: usize = 128 << 10;

/// All connections of a server.
#[derive(Debug)]
pub(crate) struct Connections {
    router: Router,
    limits: Limits,
    tls: Option<Tls>,
    permits: Arc<Semaphore>,
    tasks: JoinSet<()>,
    /// True from the moment at which connections close as soon as they are idle.
    closing: watch::Sender<bool>,
}

impl Connections {
    pub(crate) fn new(router: Router, limits: Limits, tls: Option<Tls>) -> Self {
        let permits = Arc::new(Semaphore::new(limits.max_connections.min(Semaphore::MAX_PERMITS)));
        Self { router, limits, tls, permits, tasks: JoinSet::new(), closing: watch::channel(false).0 }
    }

    /// Accepts connections until `stop` resolves. No error of the listener is the end.
    pub(crate) async fn accept(&mut self, listener: TcpListener, stop: impl Future<Output = ()>) {
        let mut stop = pin!(stop);
        loop {
            // A connection that cannot be served yet waits with the kernel, where it takes no descriptor.
            let next = async {
                let permit = self.permits.clone().acquire_owned().await.map_err(io::Error::other)?;
                Ok((listener.accept().await?.0, permit))
            };
            let accepted: io::Result<_> = tokio::select! {
                biased;
                () = &mut stop => return,
                accepted = next => accepted,
            };
            match accepted {
                Ok((stream, permit)) => {
                    let connection = self.connection(stream);
                    self.tasks.spawn(async move {
                        let _permit = permit;
                        connection.await;
                    });
                }
                Err(error) if is_of_one(&error) => {}
                Err(error) => {
                    warn!(target: LOG, %error, "no connection can be accepted");
                    tokio::select! {
                        () = &mut stop => return,
                        () = sleep(AFTER_ERROR) => {}
                    }
                }
            }
            while self.tasks.try_join_next().is_some() {}
        }
    }

    /// Returns what serves a connection to its end.
    fn connection(&self, stream: TcpStream) -> impl Future<Output = ()> + use<> {
        let (router, limits, tls, closing) =
            (self.router.clone(), self.limits, self.tls.clone(), self.closing.subscribe());
        async move {
            configure(&stream, limits.write);
            let activity = Arc::new(Activity::default());
            let socket = Socket::new(stream, limits, activity.clone());
            match tls {
                None => converse(socket, activity, router, closing).await,
                Some(tls) => {
                    if let Ok(Ok(stream)) = timeout(limits.head, tls.acceptor().accept(socket)).await {
                        converse(stream, activity, router, closing).await;
                    }
                }
            }
        }
    }

    /// Closes connections that are idle, and the others after their answers. Returns when all are closed.
    pub(crate) async fn close(&mut self) {
        self.closing.send_replace(true);
        while self.tasks.join_next().await.is_some() {}
    }
}

/// Returns whether an error is about one connection that was to be accepted.
fn is_of_one(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

/// Serves a connection to its end. What goes wrong on it is the client's affair: its requests are canceled.
async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    activity: Arc<Activity>,
    router: Router,
    mut closing: watch::Receiver<bool>,
) {
    let service = service_fn(move |request: Request<Incoming>| {
        let (router, activity) = (router.clone(), activity.clone());
        async move {
            let busy = activity.begin();
            let request = request.map(|body| Body::new(RequestBody::new(body, activity)));
            let response = router.oneshot(request).await?;
            Ok::<_, Infallible>(response.map(|body| AnswerBody::new(body, busy)))
        }
    });
    let mut builder = http1::Builder::new();
    // The socket knows more of what it waits for. Who closes one half has gone: nothing else tells that it has.
    builder.header_read_timeout(None).half_close(false);
    builder.max_headers(MAX_HEADERS).max_header_size(MAX_HEAD).max_buf_size(MAX_BUFFER);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = closing.wait_for(|closing| *closing) => {}
    }
    connection.as_mut().graceful_shutdown();
    _ = connection.await;
}

/// Sets what the kernel does for a connection. It is served without, too.
fn configure(stream: &TcpStream, write: Duration) {
    // Tokens are sent when they are there.
    _ = stream.set_nodelay(true);
    let socket = SockRef::from(stream);
    _ = socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(PROBE).with_interval(PROBE).with_retries(3));
    // The kernel tells of room when a third of it is free: a client has made progress when it has read as much.
    _ = socket.set_send_buffer_size(SEND_BUFFER);
    // A client whose machine is gone acknowledges nothing.
    _ = socket.set_tcp_user_timeout(Some(write));
}
