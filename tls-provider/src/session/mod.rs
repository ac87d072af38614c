//! The interface itself: providers, sessions, and the data between them and the transport.

pub(crate) mod accepting;

use arrayvec::ArrayVec;
use bytes::BytesMut;

use crate::{
    CertificateDer, ClientHello, ConfigError, EarlyDataPolicy, EarlyDataStatus, Error, Group,
    KeyExchange, Lineage, Negotiated, PerLevel, Profile, Secret, ServerFlight, Side,
};

/// Input of a new session.
///
/// Exhaustive: a connection has two ends.
#[derive(Clone, Copy, Debug)]
pub enum Start<'a> {
    /// A client's session.
    Client(ClientStart<'a>),
    /// A server's session.
    Server(ServerStart<'a>),
}

impl<'a> From<ClientStart<'a>> for Start<'a> {
    fn from(start: ClientStart<'a>) -> Self {
        Self::Client(start)
    }
}

impl<'a> From<ServerStart<'a>> for Start<'a> {
    fn from(start: ServerStart<'a>) -> Self {
        Self::Server(start)
    }
}

impl<'a> Start<'a> {
    /// Returns the side of the session.
    pub const fn side(&self) -> Side {
        match self {
            Self::Client(_) => Side::Client,
            Self::Server(_) => Side::Server,
        }
    }

    /// Returns our transport parameters, encoded.
    pub const fn params(&self) -> &'a [u8] {
        match self {
            Self::Client(start) => start.params,
            Self::Server(start) => start.params,
        }
    }

    /// Replaces our transport parameters: for a provider that wraps another one.
    #[must_use]
    pub const fn with_params<'b>(self, params: &'b [u8]) -> Start<'b>
    where
        'a: 'b,
    {
        match self {
            Self::Client(start) => Start::Client(ClientStart { params, ..start }),
            Self::Server(start) => Start::Server(ServerStart { params, ..start }),
        }
    }
}

/// Input of a client's session.
///
/// Exhaustive: a transport must decide on every field.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClientStart<'a> {
    /// Our transport parameters, encoded (RFC 9000 §18).
    pub params: &'a [u8],
    /// Name to verify and to send as SNI. A literal IP address is verified and not sent.
    pub server_name: &'a str,
    /// Resumes a session of this server that the provider remembers, if there is one.
    pub resume: bool,
    /// Resumes only sessions of this lineage; `None` for every session that the policy lets resume.
    pub lineage: Option<Lineage>,
    /// Group that the server will probably choose, so that it needs no HelloRetryRequest. The list of
    /// groups that the client offers never changes.
    ///
    /// If the policy has the group, its key share is sent instead of that of the first group. A
    /// classical group never replaces a post-quantum one: its share is sent in addition, if the
    /// library can do that. A provider that cannot follow the hint ignores it.
    pub group_hint: Option<Group>,
    /// Whether 0-RTT data is offered if the ticket allows it.
    pub early_data: EarlyDataPolicy,
    /// Context that the transport binds tickets to, such as its version: a ticket is used only in the
    /// context of the handshake that brought it, byte for byte.
    pub resumption_context: &'a [u8],
}

/// Input of a server's session.
///
/// Exhaustive: a transport must decide on every field.
#[derive(Clone, Copy, Debug, Default)]
pub struct ServerStart<'a> {
    /// Our transport parameters, encoded (RFC 9000 §18).
    pub params: &'a [u8],
    /// The ClientHello, if the transport has already read it. A provider can use it to choose its groups.
    /// A provider must also work without it.
    pub client_hello: Option<&'a ClientHello>,
    /// Whether 0-RTT data is accepted if the options and every rule allow it; `Off` refuses it for this
    /// handshake only.
    pub early_data: EarlyDataPolicy,
    /// Context that the transport binds tickets to, such as its version: with a ticket of another
    /// context the handshake is a full one. No tickets are issued if it is longer than 255 bytes.
    pub resumption_context: &'a [u8],
    /// Limits that a client remembers with its ticket, encoded by the transport (RFC 9000 §7.4.1). They
    /// are stored in the tickets of this handshake, and 0-RTT data is accepted only with a ticket that
    /// has the same limits, byte for byte.
    pub early_context: &'a [u8],
    /// Position of the identity to present, which the transport chose from
    /// [`Provider::server_flights`]. `None` leaves the choice to the provider.
    pub identity: Option<usize>,
}

/// Output of [`Session::drive`].
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Flight {
    /// Handshake bytes to send, appended per level.
    pub crypto: PerLevel<BytesMut>,
    /// Traffic secrets, in the order in which they became usable. The transport takes them out after
    /// every call.
    pub secrets: ArrayVec<Secret, 5>,
    /// Exporter secret (RFC 8446 §7.5), delivered once, before [`Status::Complete`]. An
    /// [`Exporter`](crate::Exporter) derives keying material from it.
    pub exporter: Option<Secret>,
}

/// Progress of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    /// The session waits for bytes from the peer.
    NeedsPeer,
    /// The handshake is complete (RFC 9001 §4.1.1). A client may still be fed session tickets.
    Complete,
}

/// Factory of sessions: one configuration for any number of handshakes.
pub trait Provider: Send + Sync {
    /// Returns a short name for reports: `rustls`, `s2n-tls`.
    fn name(&self) -> &'static str;

    /// Returns true if a client can offer 0-RTT data, or a server accepts it.
    fn supports_early_data(&self) -> bool;

    /// Returns the policy that the provider was built with, which the transport enforces as well.
    fn key_exchange(&self) -> &KeyExchange;

    /// Returns the policy for clients that ask for this server name, if a server has several.
    fn key_exchange_for(&self, server_name: Option<&str>) -> &KeyExchange {
        let _ = server_name;
        self.key_exchange()
    }

    /// Returns true if a client can begin with the key share of this group: see
    /// [`ClientStart::group_hint`]. Unless the provider says otherwise, that is the first group of the
    /// policy.
    fn can_predict(&self, group: Group) -> bool {
        self.key_exchange().groups().first() == Some(&group)
    }

    /// Returns the rules that the provider was built with.
    fn profile(&self) -> Profile {
        Profile::Default
    }

    /// Returns true if everything that a handshake of this provider can negotiate is done with
    /// approved groups and cipher suites, in a FIPS module whose self tests have passed. This is
    /// the library's own statement about the cryptography that it runs on.
    ///
    /// [`Profile::Fips140`] ensures this; [`Negotiated::fips`] has the answer for one handshake.
    fn is_fips(&self) -> bool {
        false
    }

    /// Server: returns the sizes of the answers to a ClientHello in a full handshake, for each
    /// certificate that suits the client, first choice first. `params` is the length of the
    /// transport parameters in bytes. Empty if the provider does not know.
    fn server_flights(&self, hello: &ClientHello, params: usize) -> Vec<ServerFlight> {
        let _ = (hello, params);
        Vec::new()
    }

    /// Server: returns true if the transport must choose the certificate that costs the fewest
    /// round trips, and pass it in [`ServerStart::identity`].
    fn chooses_by_round_trips(&self) -> bool {
        false
    }

    /// Returns the [resumption context](ClientStart::resumption_context) of the session that a client
    /// has for this server, if it has one and knows its context.
    ///
    /// A transport that binds sessions to a version begins with the version of the session, even
    /// in a new process.
    fn session_context(&self, server_name: &str) -> Option<Vec<u8>> {
        let _ = server_name;
        None
    }

    /// Returns true if [`prepare`](Self::prepare) has something to do.
    fn may_prepare(&self) -> bool {
        false
    }

    /// Prepares one thing that a later handshake can use, such as a key pair. A transport calls it
    /// while it is idle, as long as [`may_prepare`](Self::may_prepare) is true.
    fn prepare(&self) {}

    /// Starts a handshake.
    ///
    /// # Errors
    /// The side is not that of the provider, or a client's server name is invalid.
    fn session(&self, start: Start<'_>) -> Result<Box<dyn Session>, ConfigError>;
}

/// One handshake.
///
/// The transport drops it as soon as it is no longer needed: a server's at completion, a client's
/// after the session ticket has arrived or when the connection ends.
pub trait Session: Send {
    /// Takes received bytes, in order, and appends bytes to send.
    ///
    /// `rx` contains contiguous handshake bytes of each level; the session removes the bytes that
    /// it consumed from the front. Bytes left at an earlier level are the peer's fault (RFC 9001
    /// §4.1.3). Verifiers and signers of the application run inside this call.
    ///
    /// # Errors
    /// The handshake failed. Every later call fails as well, and the connection ends with
    /// [`Error::code`].
    fn drive(&mut self, rx: &mut PerLevel<BytesMut>, tx: &mut Flight) -> Result<Status, Error>;

    /// Returns the peer's transport parameters once they were parsed. They are authenticated at
    /// [`Status::Complete`].
    fn peer_params(&self) -> Option<&[u8]>;

    /// Returns what has become of 0-RTT data so far.
    ///
    /// A client that offers it has the secret of [`Level::ZeroRtt`] in its first [`Flight`]. A
    /// server that accepts it has that secret in the flight with its ServerHello. A client knows
    /// the outcome from the server's EncryptedExtensions on, and always at [`Status::Complete`].
    ///
    /// [`Level::ZeroRtt`]: crate::Level::ZeroRtt
    fn early_data(&self) -> EarlyDataStatus {
        EarlyDataStatus::None
    }

    /// Returns the server's transport parameters of the earlier session, for a client that offers
    /// 0-RTT data (RFC 9000 §7.4.1); otherwise `None`.
    fn remembered_params(&self) -> Option<&[u8]> {
        None
    }

    /// Returns the application protocol of the earlier session, if the client offers 0-RTT data; `None` if it does
    /// not, or if that session had no protocol.
    fn remembered_alpn(&self) -> Option<&[u8]> {
        None
    }

    /// Sets another context for tickets that a client receives from now on.
    fn set_resumption_context(&mut self, context: &[u8]) {
        let _ = context;
    }

    /// Returns the outcome so far.
    fn negotiated(&self) -> Negotiated;

    /// Returns the peer's certificates, its own first. Empty if none were requested.
    ///
    /// s2n-tls returns the chain it verified, root included, and nothing for an unverified peer or
    /// a resumed connection. rustls returns the chain the peer sent; on a resumed connection, the
    /// one of the first handshake.
    fn peer_certificates(&self) -> Vec<CertificateDer<'static>>;
}
