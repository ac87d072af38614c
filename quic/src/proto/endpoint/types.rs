use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use hybriq_tls::Provider;

use crate::{config::TransportConfig, proto::space::Ecn};

/// Names a connection within its worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(pub u32);

/// How a datagram came.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Where it came from.
    pub remote: SocketAddr,
    /// Which of our addresses it came to, if the socket tells.
    pub local_ip: Option<IpAddr>,
    /// Its ECN codepoint; `None` is Not-ECT.
    pub ecn: Option<Ecn>,
}

/// Datagrams to send: `size` bytes from the start of the buffer that was passed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Where to.
    pub remote: SocketAddr,
    /// From which of our addresses; `None` lets the system choose.
    pub local_ip: Option<IpAddr>,
    /// The ECN codepoint to set.
    pub ecn: Option<Ecn>,
    /// Bytes in all.
    pub size: usize,
    /// When several datagrams follow one another: bytes of each but the last, which may be
    /// shorter (a GSO train).
    pub segment_size: Option<usize>,
}

/// What connections of one kind share: a TLS provider and the transport's configuration.
#[derive(Clone)]
pub struct Setup {
    /// Makes the TLS sessions.
    pub provider: Arc<dyn Provider>,
    /// Everything else.
    pub transport: Arc<TransportConfig>,
}

impl std::fmt::Debug for Setup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Setup")
            .field("provider", &self.provider.name())
            .field("transport", &self.transport)
            .finish()
    }
}

/// Counters of one worker. Bytes are UDP payload bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndpointStats {
    /// Datagrams that belonged to no connection and were useless.
    pub datagrams_dropped: u64,
    /// Partial ClientHellos held now.
    pub partial_hellos: u64,
    /// Complete ClientHellos that wait for a decision now.
    pub waiting_incoming: u64,
    /// Connections now.
    pub connections: u64,
    /// Connections refused before any public-key work because the client offered no
    /// post-quantum group.
    pub key_exchange_refused: u64,
    /// Version Negotiation packets sent.
    pub version_negotiations: u64,
}
