//! What a client can take of the server.

use std::time::Duration;

/// Bounds on sizes, numbers and times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The largest body of a request, in bytes.
    pub max_body: usize,
    /// Connections at once. More wait in the kernel's queue.
    pub max_connections: usize,
    /// The time that the head of a request may take, and the handshake before it.
    pub head: Duration,
    /// The time that the body of a request may take.
    pub body: Duration,
    /// The time that a connection may lie idle between requests.
    pub idle: Duration,
    /// The time that a client may read nothing while something is to be written.
    pub write: Duration,
    /// The time that a request may take as a whole; any time if `None`.
    pub request: Option<Duration>,
}

impl Default for Limits {
    /// Returns limits that suit a server that faces clients, or nginx with its defaults.
    fn default() -> Self {
        Self {
            max_body: 16 << 20,
            max_connections: 4096,
            head: Duration::from_secs(10),
            body: Duration::from_secs(60),
            // Longer than nginx keeps connections (60 s), so that it is not the server that closes one in use.
            idle: Duration::from_secs(75),
            write: Duration::from_secs(30),
            request: None,
        }
    }
}
