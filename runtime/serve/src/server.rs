//! A server, from its first connection to its last.

use std::{future::Future, time::Duration};

use tokio::{net::TcpListener, runtime::Runtime, sync::watch, task::JoinSet, time::timeout};

use crate::{
    connection::Connections,
    models::Models,
    routes::router,
    state::{Settings, State},
};

/// What connections have to send the ends of their answers.
const FLUSH: Duration = Duration::from_secs(1);

/// Serves models until `stop` resolves. Then no connection is accepted, and answers have `drain` to end.
pub async fn serve(
    listener: TcpListener,
    models: Models,
    settings: Settings,
    stop: impl Future<Output = ()> + Send + 'static,
    drain: Duration,
) {
    let (end, ending) = watch::channel(false);
    let (limits, tls) = (settings.limits, settings.tls.clone());
    let state = State::new(models, settings, ending);
    let observer = state.observer().clone();
    let sampled = state.clone();
    let mut tasks = JoinSet::new();
    // Dropping the set ends it.
    tasks.spawn(async move { sampled.observer().sample(|| sampled.models().all()).await });
    let mut connections = Connections::new(router(state), limits, tls);
    connections.accept(listener, stop).await;
    observer.drain();
    if timeout(drain, connections.close()).await.is_err() {
        // Streams would keep their connections open.
        end.send_replace(true);
        _ = timeout(FLUSH, connections.close()).await;
    }
}

/// Ends the runtime of a server that has ended.
///
/// Work on threads of its own, such as a reload, has `patience` to end. What takes longer ends with the
/// process: dropping the runtime would wait for it.
pub fn end_runtime(runtime: Runtime, patience: Duration) {
    runtime.shutdown_timeout(patience);
}
