//! Options that bound what clients take.

use std::time::Duration;

use bytesize::ByteSize;
use clap::Args;
use mlxcel_serve::Limits;

/// Bounds on clients.
#[derive(Debug, Args)]
pub(crate) struct LimitOptions {
    /// The largest body of a request, such as 16MiB
    #[arg(long, default_value = "16MiB", value_name = "SIZE")]
    max_body: ByteSize,
    /// Connections at once; more wait to be accepted
    #[arg(long, default_value_t = 4096, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_connections: u32,
    /// Seconds that a request may take as a whole [default: any time]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    request_timeout: Option<Duration>,
    /// Seconds that the head of a request may take, and TLS before it
    #[arg(long, default_value = "10", value_name = "SECONDS", value_parser = seconds)]
    head_timeout: Duration,
    /// Seconds that the body of a request may take
    #[arg(long, default_value = "60", value_name = "SECONDS", value_parser = seconds)]
    body_timeout: Duration,
    /// Seconds that a connection may lie idle between requests
    #[arg(long, default_value = "75", value_name = "SECONDS", value_parser = seconds)]
    idle_timeout: Duration,
    /// Seconds that a client may read nothing of what is sent to it
    #[arg(long, default_value = "30", value_name = "SECONDS", value_parser = seconds)]
    write_timeout: Duration,
}

/// Parses a number of seconds.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let found = seconds.filter(|seconds| (Duration::from_millis(1)..=MAX).contains(seconds));
    found.ok_or_else(|| format!("found {text}, expected 0.001 to {} seconds", MAX.as_secs()))
}

/// The longest time, a year.
const MAX: Duration = Duration::from_secs(365 * 24 * 3600);

impl LimitOptions {
    /// Returns the limits.
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            max_body: usize::try_from(self.max_body.as_u64()).unwrap_or(usize::MAX),
            max_connections: usize::try_from(self.max_connections).unwrap_or(usize::MAX),
            head: self.head_timeout,
            body: self.body_timeout,
            idle: self.idle_timeout,
            write: self.write_timeout,
            request: self.request_timeout,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Only {
        #[command(flatten)]
        limits: LimitOptions,
    }

    #[test]
    fn defaults_are_those_of_the_library() {
        assert_eq!(Only::parse_from(["mlxcel-serve"]).limits.limits(), Limits::default());
    }

    #[test]
    fn times_are_positive() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        for text in ["0", "-1", "NaN", "inf", "1e30", "a", ""] {
            let expected = format!("found {text}, expected 0.001 to 31536000 seconds");
            assert_eq!(seconds(text), Err(expected));
        }
    }
}
