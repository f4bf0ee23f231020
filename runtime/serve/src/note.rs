//! Lines on stderr.

use std::{fmt, io};

use clap::ValueEnum;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::{
    Layer, filter,
    fmt::{
        FmtContext, FormatEvent, FormatFields,
        format::{Format, Full, Writer},
        layer,
    },
    layer::SubscriberExt as _,
    registry::LookupSpan,
    util::SubscriberInitExt as _,
};

/// What tells notes from lines about requests.
const NOTES: &str = "mlxcel_serve::note";

/// The form of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Notes as they are, and a line with names and values for each request.
    Text,
    /// A JSON object for each note and request.
    Json,
    /// Notes alone.
    Off,
}

/// Lines for people. A note stands alone.
struct Text(Format<Full>);

impl<S, N> FormatEvent<S, N> for Text
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        if event.metadata().target() == NOTES {
            context.field_format().format_fields(writer.by_ref(), event)?;
            return writeln!(writer);
        }
        self.0.format_event(context, writer, event)
    }
}

/// Writes notes and the log to stderr from now on.
pub(crate) fn start(format: LogFormat) {
    let is_wanted = filter::filter_fn(move |metadata| {
        *metadata.level() <= Level::INFO && (format != LogFormat::Off || metadata.target() == NOTES)
    });
    let base = layer().with_writer(io::stderr);
    let lines = match format {
        LogFormat::Json => {
            base.json().flatten_event(true).with_current_span(false).with_span_list(false).boxed()
        }
        LogFormat::Text | LogFormat::Off => {
            base.event_format(Text(Format::default().with_target(false))).boxed()
        }
    };
    // It fails if there is one, which nobody else makes.
    _ = tracing_subscriber::registry().with(lines.with_filter(is_wanted)).try_init();
}

/// Writes why the program ends.
pub(crate) fn fail(line: &str) {
    tracing::error!(target: NOTES, "{line}");
}

/// Writes a line.
pub(crate) fn note(line: &str) {
    tracing::info!(target: NOTES, "{line}");
}
