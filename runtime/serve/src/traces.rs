//! Export of spans to a collector of OpenTelemetry, by OTLP over HTTP.

use std::{io, time::Duration};

use async_trait::async_trait;
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, Response, Uri, body::Bytes, client::conn::http1, header::HOST};
use hyper_util::rt::TokioIo;
use opentelemetry::global;
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{
    ExporterBuildError, Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _,
};
use opentelemetry_sdk::{Resource, trace::SdkTracerProvider};
use thiserror::Error;
use tokio::{net::TcpStream, runtime::Handle, time::timeout};

/// The time that a collector may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Spans on their way to a collector.
#[derive(Debug)]
pub struct Traces(SdkTracerProvider);

/// Why there are no traces.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TracesError {
    /// The address cannot be reached by HTTP.
    #[error(
        "the collector is at {found}, expected an address such as http://127.0.0.1:4318\n\
         hint: run a collector on this machine, which sends on by HTTPS"
    )]
    Endpoint {
        /// The address.
        found: String,
    },
    /// The exporter cannot be made.
    #[error("spans cannot be exported: {0}")]
    Exporter(#[from] ExporterBuildError),
}

impl Traces {
    /// Exports the spans of all servers of this process from now on. `runtime` sends them.
    ///
    /// # Errors
    /// The endpoint is none of HTTP.
    pub fn start(endpoint: &str, runtime: Handle) -> Result<Self, TracesError> {
        let is_http = endpoint.parse::<Uri>().is_ok_and(|uri| uri.scheme_str() == Some("http"));
        if !is_http {
            return Err(TracesError::Endpoint { found: endpoint.to_owned() });
        }
        let exporter = SpanExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(format!("{}/v1/traces", endpoint.trim_end_matches('/')))
            .with_http_client(Client(runtime))
            .build()?;
        let resource = Resource::builder().with_service_name("mlxcel-serve").build();
        let provider =
            SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build();
        global::set_tracer_provider(provider.clone());
        Ok(Self(provider))
    }

    /// Sends what is left. Spans that the collector does not take by now are lost.
    pub fn stop(self) {
        _ = self.0.shutdown();
    }
}

/// Sends spans from the thread that collects them, which has no runtime of its own.
#[derive(Debug)]
struct Client(Handle);

#[async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        // The timer needs the runtime, too.
        self.0.spawn(async move { timeout(TIMEOUT, send(request)).await }).await??
    }
}

/// Sends a request on a connection of its own: there is one every few seconds.
async fn send(mut request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
    let missing = || io::Error::new(io::ErrorKind::InvalidInput, "found no host, expected one");
    let authority = request.uri().authority().ok_or_else(missing)?.clone();
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    let stream = TcpStream::connect((host, authority.port_u16().unwrap_or(80))).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    request.headers_mut().insert(HOST, authority.as_str().parse()?);
    if let Some(path) = request.uri().path_and_query() {
        *request.uri_mut() = path.as_str().parse()?;
    }
    let (head, body) = sender.send_request(request.map(Full::new)).await?.into_parts();
    Ok(Response::from_parts(head, body.collect().await?.to_bytes()))
}
