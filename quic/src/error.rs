//! What can go wrong, one type per operation.

use std::{io, net::SocketAddr};

use bytes::Bytes;

use crate::proto::error::Code;

/// Why a connection ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectionError {
    /// An application closed it (RFC 9000 §10.2).
    #[error("closed by the {} application: code {code}{}", who(*by), because(reason))]
    Application {
        /// Whether we or the peer did.
        by: By,
        /// The application's code.
        code: u64,
        /// The reason given.
        reason: Bytes,
    },
    /// A transport closed it because of an error (RFC 9000 §20.1) or a TLS alert (§4.8 of RFC 9001).
    #[error("closed by the {} transport: {code}{}", who(*by), because(reason))]
    Transport {
        /// Whether we or the peer did.
        by: By,
        /// The error code.
        code: Code,
        /// The type of the frame at fault, 0 where none was.
        frame: u64,
        /// The reason given.
        reason: Bytes,
    },
    /// The key exchange did not satisfy the policy: a post-quantum group was required and the peer
    /// offered or chose none.
    #[error(
        "{} refused the key exchange: {reason}; choose a KeyExchange policy that shares a group with the peer's",
        match by { By::Local => "this end", By::Peer => "the peer" }
    )]
    KeyExchangeRefused {
        /// Whether we or the peer did.
        by: By,
        /// What was missing.
        reason: String,
    },
    /// The peer lost its state and said so with a stateless reset (RFC 9000 §10.3).
    #[error("reset by the peer")]
    Reset,
    /// Nothing came for the idle timeout, or the handshake took too long.
    #[error("timed out: nothing came from the peer; check its address, and that it runs")]
    TimedOut,
    /// The peer speaks none of our versions.
    #[error("the peer supports no QUIC version of ours")]
    VersionMismatch,
}

/// Who closed a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum By {
    /// This end.
    Local,
    /// The other end.
    Peer,
}

fn who(by: By) -> &'static str {
    match by {
        By::Local => "local",
        By::Peer => "peer's",
    }
}

fn because(reason: &Bytes) -> String {
    if reason.is_empty() {
        String::new()
    } else {
        format!(" ({})", String::from_utf8_lossy(reason))
    }
}

impl ConnectionError {
    /// Whether an application closed it with code 0 or a transport without an error: the normal end.
    pub fn is_clean(&self) -> bool {
        matches!(
            self,
            Self::Application { code: 0, .. }
                | Self::Transport {
                    code: Code::NO_ERROR,
                    ..
                }
        )
    }
}

impl From<ConnectionError> for io::Error {
    fn from(error: ConnectionError) -> Self {
        let kind = match error {
            ConnectionError::TimedOut => io::ErrorKind::TimedOut,
            ConnectionError::Reset => io::ErrorKind::ConnectionReset,
            ConnectionError::Application { .. } | ConnectionError::Transport { .. } => {
                io::ErrorKind::ConnectionAborted
            }
            _ => io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}

/// Why no connection could be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The endpoint was closed.
    #[error("the endpoint is closed; make a new one")]
    EndpointClosed,
    /// The endpoint has no client configuration.
    #[error("this endpoint has no client configuration; use Endpoint::client, or connect_with")]
    NoClientConfig,
    /// The address cannot be reached from this endpoint's socket.
    #[error("cannot connect to {0}: bind the endpoint to an address of the same family")]
    Address(SocketAddr),
    /// The server name is neither a DNS name nor an IP address.
    #[error("'{0}' is neither a DNS name nor an IP address")]
    ServerName(String),
    /// The endpoint has no connection ids, and has a connection to that address.
    #[error(
        "without connection ids there can be only one connection to {0}; \
         make the endpoint without zero_length_cids"
    )]
    AddressInUse(SocketAddr),
    /// The TLS configuration cannot be used.
    #[error(transparent)]
    Tls(#[from] hybriq_tls::ConfigError),
    /// The handshake failed.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
}

impl From<ConnectError> for io::Error {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Connection(error) => error.into(),
            ConnectError::EndpointClosed => Self::new(io::ErrorKind::NotConnected, error),
            error => Self::new(io::ErrorKind::InvalidInput, error),
        }
    }
}

/// Why an [`EarlyConnection`](crate::EarlyConnection) gives no stream or datagram.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EarlyError {
    /// The server refused 0-RTT data.
    #[error("the server refused 0-RTT data; await established() and ask again")]
    ZeroRttRejected,
    /// The connection is over.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
}

impl From<EarlyError> for io::Error {
    fn from(error: EarlyError) -> Self {
        match error {
            EarlyError::Connection(error) => error.into(),
            EarlyError::ZeroRttRejected => Self::new(io::ErrorKind::ConnectionReset, error),
        }
    }
}

/// Why nothing more can be read from a stream.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The peer abandoned the stream (RESET_STREAM): what came is not all there was.
    #[error("the peer reset the stream: code {0}")]
    Reset(u64),
    /// The stream was stopped here.
    #[error("the stream was stopped; read it before stopping")]
    Stopped,
    /// The stream was opened early, and the server refused 0-RTT data.
    #[error("the server refused 0-RTT data; open another stream and ask again")]
    ZeroRttRejected,
    /// The connection is over.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// [`RecvStream::read_to_end`](crate::RecvStream::read_to_end) found more than it was allowed
    /// to hold.
    #[error("the stream is longer than {limit} bytes; raise the limit or read it in pieces")]
    TooLong {
        /// The limit that was given.
        limit: usize,
    },
}

impl From<ReadError> for io::Error {
    fn from(error: ReadError) -> Self {
        let kind = match error {
            ReadError::Connection(error) => return error.into(),
            ReadError::Reset(_) | ReadError::ZeroRttRejected => io::ErrorKind::ConnectionReset,
            ReadError::Stopped => io::ErrorKind::NotConnected,
            ReadError::TooLong { .. } => io::ErrorKind::InvalidData,
        };
        Self::new(kind, error)
    }
}

/// Why nothing more can be written to a stream.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The peer does not want to read any more (STOP_SENDING).
    #[error("the peer stopped the stream: code {0}")]
    Stopped(u64),
    /// The stream was finished or reset here.
    #[error("the stream was finished or reset; open another")]
    Closed,
    /// The stream was opened early, and the server refused 0-RTT data: nothing of it arrived.
    #[error("the server refused 0-RTT data; open another stream and write again")]
    ZeroRttRejected,
    /// The connection is over.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
}

impl From<WriteError> for io::Error {
    fn from(error: WriteError) -> Self {
        let kind = match error {
            WriteError::Connection(error) => return error.into(),
            WriteError::Stopped(_) | WriteError::ZeroRttRejected => io::ErrorKind::ConnectionReset,
            WriteError::Closed => io::ErrorKind::BrokenPipe,
        };
        Self::new(kind, error)
    }
}

/// Why a stream is not reset behind data that still arrives.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResetAtError {
    /// The peer does not know RESET_STREAM_AT.
    #[error("the peer does not support RESET_STREAM_AT; reset the whole stream")]
    Unsupported,
    /// All of it arrived, it was reset, or the peer stopped it.
    #[error("the stream is closed; nothing is left to reset")]
    Closed,
    /// The connection is over.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
}

impl From<ResetAtError> for io::Error {
    fn from(error: ResetAtError) -> Self {
        let kind = match error {
            ResetAtError::Connection(error) => return error.into(),
            ResetAtError::Unsupported => io::ErrorKind::Unsupported,
            ResetAtError::Closed => io::ErrorKind::BrokenPipe,
        };
        Self::new(kind, error)
    }
}

/// Why a datagram cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendDatagramError {
    /// The peer takes none (RFC 9221 §3).
    #[error("the peer takes no datagrams; send it on a stream")]
    Unsupported,
    /// It does not fit into a packet, now.
    #[error("{len} bytes are more than the {max} that a datagram may have on this path")]
    TooLarge {
        /// Its bytes.
        len: usize,
        /// What [`max_datagram_size`](crate::Connection::max_datagram_size) says.
        max: usize,
    },
    /// It was to be sent early, and the server refused 0-RTT data.
    #[error("the server refused 0-RTT data; await established() and send it again")]
    ZeroRttRejected,
    /// The queue is full, and the configuration is to refuse then.
    #[error("too many datagrams wait to be sent; wait, or drop it")]
    Full,
    /// The connection is over.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
}

impl From<SendDatagramError> for io::Error {
    fn from(error: SendDatagramError) -> Self {
        let kind = match error {
            SendDatagramError::Connection(error) => return error.into(),
            SendDatagramError::Unsupported => io::ErrorKind::Unsupported,
            SendDatagramError::TooLarge { .. } => io::ErrorKind::InvalidInput,
            SendDatagramError::Full => io::ErrorKind::WouldBlock,
            SendDatagramError::ZeroRttRejected => io::ErrorKind::ConnectionReset,
        };
        Self::new(kind, error)
    }
}

/// Why a connection did not move to another of our addresses (RFC 9000 §9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MigrateError {
    /// Only a client moves; a server has a preferred address, if that.
    #[error("a server cannot move")]
    Server,
    /// Before the handshake is confirmed nobody moves.
    #[error("the handshake is not confirmed yet")]
    NotConfirmed,
    /// The server asked its clients to stay where they are.
    #[error("the server does not allow migration")]
    Disabled,
    /// Every path needs a connection id of its own, and the server gave no spare one. It may give
    /// one soon.
    #[error("the server gave no spare connection id")]
    NoConnectionId,
    /// Nothing came back from there: the connection stays where it was.
    #[error("the server does not answer on the new path")]
    Unreachable,
    /// No socket could be opened there.
    #[error("cannot open a UDP socket on {0}: {1}")]
    Bind(SocketAddr, io::ErrorKind),
    /// Connections of the endpoint are spread over as many sockets as there may be, 16.
    #[error("the endpoint has too many sockets; wait until others were left")]
    TooManySockets,
    /// It was told to move elsewhere before.
    #[error("the connection was told to move elsewhere")]
    Replaced,
    /// The connection is over.
    #[error("the connection is closed")]
    Closed,
}

/// Why an endpoint could not be made. Each says how to mend it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EndpointError {
    /// Somebody else has the port.
    #[error(
        "{0} is already in use; stop the other program or choose another port (0 picks a free one)"
    )]
    InUse(SocketAddr),
    /// The system does not let us have the port.
    #[error("no permission to use {0}; choose a port above 1023 or run with more privileges")]
    Permission(SocketAddr),
    /// This machine does not have the address.
    #[error("{0} is no address of this machine; use one it has, or [::] for all")]
    NotOurs(SocketAddr),
    /// What was given cannot be resolved to an address.
    #[error("cannot resolve the address to bind to: {0}; expected for example [::]:4433")]
    Address(io::Error),
    /// The TLS configuration cannot be used.
    #[error(transparent)]
    Tls(#[from] hybriq_tls::ConfigError),
    /// There is no tokio runtime to run on.
    #[error("no tokio runtime here; make endpoints inside #[tokio::main] or Runtime::block_on")]
    NoRuntime,
    /// So many workers cannot be had.
    #[error("{0} workers cannot be had yet; use 1")]
    Workers(usize),
    /// So many sockets cannot be had.
    #[error("{0} addresses are too many; bind to 8 at most")]
    Addresses(usize),
    /// The endpoint was closed before.
    #[error("the endpoint is closed")]
    Closed,
    /// Only connections that are started here can do without connection ids.
    #[error("an endpoint that accepts connections needs connection ids; drop zero_length_cids")]
    ZeroLengthCids,
    /// Connection ids of that length are not possible, or not long enough to be told apart.
    #[error(
        "connection ids of {0} bytes are not possible; make the generator's 8 to 20 bytes long"
    )]
    CidLength(usize),
    /// The system gave us no socket.
    #[error("cannot open a UDP socket on {address}: {source}")]
    Socket {
        /// Where.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
}

impl From<EndpointError> for io::Error {
    fn from(error: EndpointError) -> Self {
        let kind = match &error {
            EndpointError::InUse(_) => io::ErrorKind::AddrInUse,
            EndpointError::Permission(_) => io::ErrorKind::PermissionDenied,
            EndpointError::NotOurs(_) => io::ErrorKind::AddrNotAvailable,
            EndpointError::Address(source) | EndpointError::Socket { source, .. } => source.kind(),
            EndpointError::Tls(_)
            | EndpointError::Workers(_)
            | EndpointError::Addresses(_)
            | EndpointError::ZeroLengthCids
            | EndpointError::CidLength(_) => io::ErrorKind::InvalidInput,
            EndpointError::NoRuntime | EndpointError::Closed => io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}
