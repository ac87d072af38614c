use arrayvec::ArrayVec;
use bytes::BytesMut;

use crate::{
    CertificateDer, ClientHello, ConfigError, EarlyDataPolicy, EarlyDataStatus, Error, KeyExchange,
    Negotiated, PerLevel, Secret, Side,
};

/// What a session starts from.
#[derive(Clone, Copy, Debug, Default)]
pub struct Start<'a> {
    /// Our transport parameters, encoded (RFC 9000 §18).
    pub params: &'a [u8],
    /// Client: the name to verify and to send as SNI. A literal IP address is verified and not sent.
    pub server_name: Option<&'a str>,
    /// Server: what the transport already read from the ClientHello, so that a provider can choose
    /// its groups from it. A provider must also work without.
    pub client_hello: Option<&'a ClientHello>,
    /// Client: resume from what the provider remembers of this server, if anything.
    pub resume: bool,
    /// Client: offer 0-RTT data if the ticket allows. Server: accept it if the options and every
    /// rule do; `Off` refuses it for this handshake alone.
    pub early_data: EarlyDataPolicy,
    /// What the transport binds tickets to: those of this handshake are good only where it is the
    /// same, byte for byte. With another a client does not use them, and a server does a full
    /// handshake. A server issues none where it is longer than 255 bytes.
    pub resumption_context: &'a [u8],
    /// Server: what 0-RTT data relies on besides TLS, as the transport writes it down: the limits
    /// that a client remembers with its ticket (RFC 9000 §7.4.1). It goes into the tickets of this
    /// handshake, and 0-RTT data is accepted only with a ticket that has the same, byte for byte.
    pub early_context: &'a [u8],
}

/// Everything one [`Session::drive`] call produced.
#[derive(Debug, Default)]
pub struct Flight {
    /// Handshake bytes to send, appended per level.
    pub crypto: PerLevel<BytesMut>,
    /// Traffic secrets, in the order they became usable.
    pub secrets: ArrayVec<Secret, 5>,
    /// The exporter secret (RFC 8446 §7.5), once.
    pub exporter: Option<Secret>,
}

/// How far a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Waits for bytes of the peer.
    NeedsPeer,
    /// The handshake is complete (RFC 9001 §4.1.1). A client may still be fed session tickets.
    Complete,
}

/// Makes sessions: one configuration, any number of handshakes.
pub trait Provider: Send + Sync {
    /// A short name for reports: `rustls`, `s2n-tls`.
    fn name(&self) -> &'static str;

    /// Whether 0-RTT works with it; a server's, whether it accepts any.
    fn supports_early_data(&self) -> bool;

    /// The policy it was built with, which the transport enforces as well.
    fn key_exchange(&self) -> &KeyExchange;

    /// The policy for a client that asks for this server name, where a server has several.
    fn key_exchange_for(&self, server_name: Option<&str>) -> &KeyExchange {
        let _ = server_name;
        self.key_exchange()
    }

    /// Starts a handshake.
    fn session(&self, side: Side, start: Start<'_>) -> Result<Box<dyn Session>, ConfigError>;
}

/// One handshake.
///
/// The transport drops it as soon as nothing needs it: a server's at completion, a client's after
/// the session ticket came or when the connection ends.
pub trait Session: Send {
    /// Feeds what arrived, in order, and collects what to send.
    ///
    /// `rx` holds contiguous handshake bytes of each level; what was consumed is removed from the
    /// front. Bytes left at a level below the current one are the peer's fault (RFC 9001 §4.1.3).
    fn drive(&mut self, rx: &mut PerLevel<BytesMut>, tx: &mut Flight) -> Result<Status, Error>;

    /// The peer's transport parameters as soon as they were parsed. Authenticated at
    /// [`Status::Complete`].
    fn peer_params(&self) -> Option<&[u8]>;

    /// What became of 0-RTT data so far.
    ///
    /// A client that offers it has the secret of [`Level::ZeroRtt`] in its first [`Flight`]. A
    /// server that accepts it has that secret in the flight with its ServerHello. It is known to a
    /// client from the server's EncryptedExtensions on, and always at [`Status::Complete`].
    ///
    /// [`Level::ZeroRtt`]: crate::Level::ZeroRtt
    fn early_data(&self) -> EarlyDataStatus {
        EarlyDataStatus::None
    }

    /// Client: the server's transport parameters of the session that 0-RTT data relies on
    /// (RFC 9000 §7.4.1), from the beginning. `None` where no 0-RTT data is offered.
    fn remembered_params(&self) -> Option<&[u8]> {
        None
    }

    /// Client: the application protocol of the session that 0-RTT data relies on, from the
    /// beginning. `None` where no 0-RTT data is offered, or where the session had none.
    fn remembered_alpn(&self) -> Option<&[u8]> {
        None
    }

    /// Client: binds the tickets that come from now on to this, in place of the context it started
    /// with.
    fn set_resumption_context(&mut self, context: &[u8]) {
        let _ = context;
    }

    /// What was negotiated so far.
    fn negotiated(&self) -> Negotiated;

    /// The peer's certificates, its own first. Empty where none were asked for.
    ///
    /// s2n-tls gives the chain it verified, root included, and none of an unverified peer or of a
    /// resumed connection. rustls gives the chain the peer sent, on a resumed connection the one of
    /// the first handshake.
    fn peer_certificates(&self) -> Vec<CertificateDer<'static>>;
}
