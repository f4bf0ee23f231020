//! A server, from its first connection to its last.

use std::{future::Future, io, sync::Arc, time::Duration};

use tokio::{net::TcpListener, sync::watch, task::JoinSet};

use crate::{
    model::ServedModel,
    routes::router,
    state::{Settings, State},
};

/// What connections have to send the ends of their answers.
const FLUSH: Duration = Duration::from_secs(1);

/// Serves models until `stop` resolves. Then no connection is accepted, and answers have `drain` to end.
///
/// # Errors
/// The listener fails.
pub async fn serve(
    listener: TcpListener,
    models: Vec<Arc<ServedModel>>,
    settings: Settings,
    stop: impl Future<Output = ()> + Send + 'static,
    drain: Duration,
) -> io::Result<()> {
    let (end, ending) = watch::channel(false);
    let state = State::new(models, settings, ending);
    let observer = state.observer().clone();
    let sampled = state.clone();
    let mut tasks = JoinSet::new();
    // Dropping the set ends it.
    tasks.spawn(async move { sampled.observer().sample(|| sampled.models().to_vec()).await });
    let (stopped, mut is_stopped) = watch::channel(false);
    let server = axum::serve(listener, router(state));
    let server = server.with_graceful_shutdown(async move {
        stop.await;
        observer.drain();
        _ = stopped.send(true);
    });
    let deadline = async {
        if is_stopped.wait_for(|stopped| *stopped).await.is_err() {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(drain).await;
        // Streams would keep their connections open.
        _ = end.send(true);
        tokio::time::sleep(FLUSH).await;
    };
    tokio::select! {
        served = server.into_future() => served,
        () = deadline => Ok(()),
    }
}
