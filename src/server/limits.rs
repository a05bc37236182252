//! How many connections a port has, and how long each has for what.

use std::time::Duration;

/// How connections are bounded.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// So many connections at a time. One more takes the place of another, see `connections`.
    pub connections: usize,
    /// So many of them, from one address, may not have sent a complete request yet.
    pub fresh_per_peer: usize,
    /// Within this time of its beginning, TLS handshake included, a connection has to send a complete request.
    pub first: Duration,
    /// Headers of a later request that take longer are given up. hyper counts an idle keep-alive connection as one that owes its
    /// headers, and the API server keeps idle connections for 90 seconds and does not repeat a POST that meets a closed
    /// one. So this must be longer than 90 seconds.
    pub headers: Duration,
    /// After the server was told to stop, requests in progress have so long to end.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1024,
            fresh_per_peer: 256,
            first: Duration::from_secs(10),
            headers: Duration::from_secs(120),
            drain: Duration::from_secs(15),
        }
    }
}

impl Limits {
    /// Those of the plain port: few have business there.
    #[must_use]
    pub fn of_plain_port() -> Self {
        Self { connections: 512, ..Self::default() }
    }
}
