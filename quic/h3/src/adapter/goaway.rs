//! The server's announcement that it takes no more requests.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use h3::quic::StreamId;

/// The GOAWAY of a server (RFC 9114 §5.2), which `h3` tells nobody about.
///
/// # Examples
/// ```no_run
/// # fn run(connection: &hybriq_h3::Connection, stream: h3::quic::StreamId) {
/// let goaway = connection.goaway();
/// // Later, when the connection has ended without a response on the stream:
/// if goaway.refuses(stream) {
///     println!("the server did not process the request; send it again");
/// }
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Goaway(Arc<AtomicU64>);

impl Default for Goaway {
    fn default() -> Self {
        Self(Arc::new(AtomicU64::new(u64::MAX)))
    }
}

impl Goaway {
    /// Returns true if the server has said that it does not process the request on this stream. The request
    /// can be sent again on another connection.
    pub fn refuses(&self, stream: StreamId) -> bool {
        stream.into_inner() >= self.0.load(Ordering::Acquire)
    }

    /// Returns true if the server takes no new requests.
    pub fn is_announced(&self) -> bool {
        self.0.load(Ordering::Acquire) != u64::MAX
    }

    /// Notes the first stream that is not processed.
    pub(crate) fn announce(&self, first: u64) {
        self.0.fetch_min(first, Ordering::AcqRel);
    }
}
