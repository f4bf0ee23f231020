//! The spans of a request, for OpenTelemetry.

use std::time::{Duration, UNIX_EPOCH};

use opentelemetry::{
    Context, KeyValue, global,
    trace::{Span as _, SpanKind, Status, TraceContextExt as _, Tracer as _},
};

use super::{arrival::Arrival, log::End};

/// The name of what makes spans.
const SCOPE: &str = "mlxcel-serve";

/// Exports a request that came at `at`, since 1970, with its wait, its prompt and its tokens as children.
pub(super) fn export(arrival: &Arrival, at: Duration, end: &End<'_>) {
    let Arrival { endpoint, method, path, id, parent } = arrival;
    let tracer = global::tracer(SCOPE);
    let moment = |after: Duration| UNIX_EPOCH + at + after;
    let number = |value: usize| i64::try_from(value).unwrap_or(i64::MAX);
    let mut attributes = vec![
        KeyValue::new("http.request.method", method.to_string()),
        KeyValue::new("http.route", endpoint.clone()),
        KeyValue::new("url.path", path.clone()),
        KeyValue::new("http.request.id", id.to_str().unwrap_or_default().to_owned()),
    ];
    attributes.extend(end.status.map(|status| KeyValue::new("http.response.status_code", i64::from(status))));
    if let Some(model) = end.model {
        attributes.extend([
            KeyValue::new("gen_ai.request.model", model.to_owned()),
            KeyValue::new("gen_ai.response.id", end.answer.to_owned()),
            KeyValue::new("gen_ai.usage.input_tokens", number(end.prompt_tokens)),
            KeyValue::new("gen_ai.usage.output_tokens", number(end.generated_tokens)),
        ]);
    }
    attributes
        .extend(end.finish_reason.map(|reason| KeyValue::new("gen_ai.response.finish_reasons", reason)));
    let span = tracer.span_builder(format!("{method} {endpoint}")).with_kind(SpanKind::Server);
    let span = span.with_start_time(moment(Duration::ZERO)).with_attributes(attributes);
    let mut span = span.start_with_context(&tracer, parent);
    match end.status {
        None => span.set_status(Status::error("the client was gone")),
        Some(status) if status >= 500 => span.set_status(Status::error("the server failed")),
        Some(_) => {}
    }
    let context = Context::new().with_remote_span_context(span.span_context().clone());
    if let Some(begun) = end.begun {
        let queued = begun + end.queued;
        let first = end.first_token.unwrap_or(end.took).max(queued);
        let parts = [("queue", begun, queued), ("prefill", queued, first), ("decode", first, end.took)];
        for (name, from, to) in parts.into_iter().filter(|(_, from, to)| from < to) {
            let part = tracer.span_builder(name).with_start_time(moment(from));
            part.start_with_context(&tracer, &context).end_with_timestamp(moment(to));
        }
    }
    span.end_with_timestamp(moment(end.took));
}
