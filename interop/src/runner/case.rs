//! Test cases of the QUIC interop runner, as its endpoints see them.

use hybriq::Backend;

use super::Role;

/// What a test case asks of an endpoint. Many names of the runner stand for the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestCase {
    /// Downloads over one connection.
    Transfer,
    /// The same, where both ends must mark packets for ECN.
    Ecn,
    /// Downloads over one connection each.
    MultiConnect,
    /// Only ChaCha20-Poly1305 is offered.
    ChaCha20,
    /// The server sends Retry packets.
    Retry,
    /// The second connection resumes the session of the first.
    Resumption,
    /// The second connection sends its requests in 0-RTT packets.
    ZeroRtt,
    /// HTTP/3 instead of HTTP/0.9.
    Http3,
    /// The same, one download after another, so that both ends can use their dynamic tables.
    Qpack,
    /// Downloads over the bidirectional streams of one WebTransport session, each asked for as by HTTP/0.9.
    WebTransport,
    /// The client updates the keys during the download.
    KeyUpdate,
    /// Version 1 becomes version 2 in the handshake (RFC 9368).
    V2,
    /// The server asks its clients to move to another of its addresses (RFC 9000 §9.6).
    ConnectionMigration,
    /// Key exchange with nothing but post-quantum groups.
    PostQuantum,
    /// The same, and the server sends Retry packets.
    PostQuantumRetry,
}

impl TestCase {
    /// Reads the name that the runner gives in `TESTCASE`. Returns `None` for an unknown one.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "handshake" | "transfer" | "longrtt" | "multiplexing" | "blackhole"
            | "amplificationlimit" | "transferloss" | "transfercorruption" | "ipv6"
            | "rebind-port" | "rebind-addr" | "goodput" | "crosstraffic" => Self::Transfer,
            "ecn" => Self::Ecn,
            "multiconnect" | "handshakeloss" | "handshakecorruption" => Self::MultiConnect,
            "chacha20" => Self::ChaCha20,
            "retry" => Self::Retry,
            "resumption" => Self::Resumption,
            "zerortt" => Self::ZeroRtt,
            "http3" => Self::Http3,
            "qpack" => Self::Qpack,
            "webtransport" => Self::WebTransport,
            "keyupdate" => Self::KeyUpdate,
            "v2" => Self::V2,
            "connectionmigration" => Self::ConnectionMigration,
            "postquantum" | "post-quantum" | "pq" => Self::PostQuantum,
            "postquantum-retry" => Self::PostQuantumRetry,
            _ => return None,
        })
    }

    /// Returns true if the server validates the address of each client.
    pub(super) const fn has_retry(self) -> bool {
        matches!(self, Self::Retry | Self::PostQuantumRetry)
    }

    /// Returns true if classical groups are not allowed.
    pub(super) const fn is_post_quantum(self) -> bool {
        matches!(self, Self::PostQuantum | Self::PostQuantumRetry)
    }

    /// Returns the reason why a TLS library cannot do the case, if it cannot.
    pub fn lack(self, role: Role, backend: Backend) -> Option<&'static str> {
        match (self, role, backend) {
            (Self::ChaCha20, _, Backend::S2nTls) => {
                Some("the policies of s2n-tls do not offer ChaCha20-Poly1305 alone")
            }
            (Self::ZeroRtt, _, Backend::S2nTls) => Some("s2n-tls has no 0-RTT for QUIC"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names of the runner, in the order of its source.
    const NAMES: [&str; 25] = [
        "handshake",
        "transfer",
        "longrtt",
        "chacha20",
        "multiplexing",
        "retry",
        "resumption",
        "zerortt",
        "http3",
        "blackhole",
        "keyupdate",
        "ecn",
        "amplificationlimit",
        "handshakeloss",
        "transferloss",
        "handshakecorruption",
        "transfercorruption",
        "ipv6",
        "v2",
        "rebind-port",
        "rebind-addr",
        "connectionmigration",
        "goodput",
        "crosstraffic",
        "multiconnect",
    ];

    #[test]
    fn every_case_of_the_runner_is_known() {
        for name in NAMES {
            assert!(TestCase::from_name(name).is_some(), "{name}");
        }
        assert_eq!(TestCase::from_name("versionnegotiation"), None);
        assert_eq!(TestCase::from_name(""), None);
    }
}
