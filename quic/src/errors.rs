//! Errors, one type for each kind of operation.

use std::{io, net::SocketAddr};

use hybriq_proto::wire::error::ConnectionError;

/// Largest application error code that fits on the wire (RFC 9000 §16).
#[cfg(feature = "tokio")]
const MAX_CODE: u64 = (1 << 62) - 1;

/// Returns the code, lowered to the largest that fits on the wire.
#[cfg(feature = "tokio")]
pub(crate) fn wire_code(code: u64) -> u64 {
    code.min(MAX_CODE)
}

/// Error of a connection that could not be established.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The endpoint was closed.
    #[error("the endpoint is closed; make a new one")]
    EndpointClosed,
    /// An earlier call already returned the connection.
    #[error("an earlier call returned this connection; clone that Connection")]
    HandedOut,
    /// The endpoint has no client configuration.
    #[error("this endpoint has no client configuration; use Endpoint::client, or connect_with")]
    NoClientConfig,
    /// The server is not given as `name:port`.
    #[error("'{0}' is not name:port; give the server as example.com:443, or [2001:db8::1]:443")]
    HostPort(String),
    /// The name of the server could not be resolved.
    #[error("cannot resolve '{host}': {cause}; check the name")]
    Lookup {
        /// Name of the server.
        host: String,
        /// Error of the system.
        cause: io::Error,
    },
    /// The server's port is 0, where no server can listen.
    #[error("{0} has port 0, where no server listens; give the server's port")]
    PortZero(SocketAddr),
    /// The endpoint's socket cannot reach the address.
    #[error("cannot connect to {_0}: {remedy}", remedy = remedy(*_0))]
    Address(SocketAddr),
    /// The server name is neither a DNS name nor an IP address.
    #[error(
        "'{0}' is neither a DNS name nor an IP address; give the name in the server's certificate"
    )]
    ServerName(String),
    /// The endpoint uses empty connection ids and is already connected to that address.
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

/// Returns the remedy for an address that no server can have.
fn remedy(address: SocketAddr) -> &'static str {
    if address.port() == 0 {
        "port 0 stands for any free port; give the port that the server listens on"
    } else if address.ip().is_unspecified() {
        "this address stands for every address of a machine; give one of the server's"
    } else {
        "bind the endpoint to an address of the same family"
    }
}

impl From<ConnectError> for io::Error {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Connection(error) => error.into(),
            ConnectError::Lookup { ref cause, .. } => Self::new(cause.kind(), error),
            ConnectError::EndpointClosed => Self::new(io::ErrorKind::NotConnected, error),
            error => Self::new(io::ErrorKind::InvalidInput, error),
        }
    }
}

/// Error of an operation on an [`EarlyConnection`](crate::EarlyConnection).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
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

/// Error of reading from a stream.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The peer reset the stream with this code (RESET_STREAM); the rest of its data is lost.
    #[error("the peer reset the stream: code {0}")]
    Reset(u64),
    /// This end stopped the stream.
    #[error("the stream was stopped; read it before stopping")]
    Stopped,
    /// The stream was opened early, and the server refused 0-RTT data.
    #[error("the server refused 0-RTT data; open another stream and ask again")]
    ZeroRttRejected,
    /// An ordered read followed
    /// [`RecvStream::read_unordered`](crate::RecvStream::read_unordered).
    #[error("the stream was read unordered; continue with read_unordered")]
    Unordered,
    /// The connection is over.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// The stream is longer than the limit of
    /// [`RecvStream::read_to_end`](crate::RecvStream::read_to_end).
    #[error("the stream is longer than {limit} bytes; raise the limit or read it in pieces")]
    TooLong {
        /// The limit, in bytes.
        limit: usize,
    },
}

impl From<ReadError> for io::Error {
    fn from(error: ReadError) -> Self {
        let kind = match error {
            ReadError::Connection(error) => return error.into(),
            ReadError::Reset(_) | ReadError::ZeroRttRejected => io::ErrorKind::ConnectionReset,
            ReadError::Stopped => io::ErrorKind::NotConnected,
            ReadError::Unordered => io::ErrorKind::InvalidInput,
            ReadError::TooLong { .. } => io::ErrorKind::InvalidData,
        };
        Self::new(kind, error)
    }
}

/// Error of [`RecvStream::read_exact`](crate::RecvStream::read_exact).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadExactError {
    /// The stream ended before the buffer was full.
    #[error("the stream ended after {read} of {wanted} bytes; the peer sent a short message")]
    TooShort {
        /// Bytes at the beginning of the buffer that were read.
        read: usize,
        /// Size of the buffer, in bytes.
        wanted: usize,
    },
    /// The stream cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

impl From<ReadExactError> for io::Error {
    fn from(error: ReadExactError) -> Self {
        match error {
            ReadExactError::Read(error) => error.into(),
            error @ ReadExactError::TooShort { .. } => {
                Self::new(io::ErrorKind::UnexpectedEof, error)
            }
        }
    }
}

/// Error of writing to a stream.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The peer stopped the stream with this code (STOP_SENDING).
    #[error("the peer stopped the stream: code {0}")]
    Stopped(u64),
    /// This end finished or reset the stream.
    #[error("the stream was finished or reset; open another")]
    Closed,
    /// The stream was not delivered by its [deadline](crate::SendStream::expire_at), and was reset.
    #[error("the deadline of the stream has passed; open another")]
    Expired,
    /// The stream was opened early, and the server refused 0-RTT data: none of its data arrived.
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
            WriteError::Expired => io::ErrorKind::TimedOut,
        };
        Self::new(kind, error)
    }
}

/// Error of [`SendStream::reset_at`](crate::SendStream::reset_at).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResetAtError {
    /// The peer does not support RESET_STREAM_AT.
    #[error("the peer does not support RESET_STREAM_AT; reset the whole stream")]
    Unsupported,
    /// The stream is over: all its data arrived, it was reset, or the peer stopped it.
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

/// Error of sending a datagram.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendDatagramError {
    /// The peer accepts no datagrams (RFC 9221 §3).
    #[error("the peer does not accept datagrams; send it on a stream")]
    Unsupported,
    /// The datagram does not fit into a packet on the path in use.
    #[error(
        "a datagram on this path has at most {max} bytes, not {len}; split it, or use a stream"
    )]
    TooLarge {
        /// Size of the datagram, in bytes.
        len: usize,
        /// Largest size that can be sent now, in bytes:
        /// [`max_datagram_size`](crate::Connection::max_datagram_size).
        max: usize,
    },
    /// The datagram was meant for 0-RTT packets, and the server refused 0-RTT data.
    #[error("the server refused 0-RTT data; await established() and send it again")]
    ZeroRttRejected,
    /// The queue is full, and the [configuration](crate::transport::DatagramConfig::when_full) says
    /// to refuse new datagrams.
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

/// Error of exporting keying material.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The label, the context or the length is invalid (RFC 8446 §7.5).
    #[error(transparent)]
    Request(#[from] hybriq_tls::ExportError),
    /// The TLS provider delivered no exporter secret.
    #[error("this TLS provider exports no keying material; use a provider of this crate")]
    Unavailable,
}

/// Error of handing an endpoint over from one process to the next. Its text says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RestartError {
    /// The system does not support it; Linux and Android do.
    #[error("endpoints cannot be handed over on this system; drain, and start again")]
    Unsupported,
    /// No process waits for a successor at the path.
    #[error("no process waits for a successor at this path: {0}; bind the address")]
    NoPredecessor(io::Error),
    /// Another process waits for a successor at the path.
    #[error("another process waits for a successor at this path; take over from it instead")]
    PathInUse,
    /// The path cannot be used.
    #[error("cannot use this path: {0}; choose one in a folder of the service")]
    Path(io::Error),
    /// The other process runs a release of this crate with a different hand-over protocol.
    #[error(
        "the other process uses another handover protocol; drain it, and start the new release"
    )]
    Release,
    /// The other process belongs to another user.
    #[error("the other process belongs to another user; run both as the same one")]
    User,
    /// The processes have different keys.
    #[error("the other process has other keys for tokens or resets; give both the same FleetKeys")]
    Keys,
    /// One process cannot read the connection ids of the other.
    #[error("the other process has other connection ids; give both the same generator and keys")]
    Ids,
    /// The processes have different numbers of workers.
    #[error("the other process has {other} workers and this one {own}; use the same number")]
    Workers {
        /// Number of workers of the other process.
        other: u8,
        /// Number of workers of this process.
        own: u8,
    },
    /// Too many processes still have connections: connection ids cannot distinguish more.
    #[error("too many earlier processes still have connections; wait until one of them ends")]
    Generations,
    /// The endpoint has moved away from the sockets that it was created with.
    #[error("the endpoint was moved by rebind; drain it, and start again")]
    Moved,
    /// The endpoint has empty connection ids.
    #[error("without connection ids processes cannot share a port; drop zero_length_cids")]
    ZeroLengthCids,
    /// The endpoint is closed.
    #[error("the endpoint is closed; make a new one")]
    Closed,
    /// The other process ended, or did not answer in time.
    #[error("the other process is gone: {0}; try again")]
    Lost(io::Error),
}

/// Error of creating or moving an endpoint. Its text says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EndpointError {
    /// Another socket is bound to the port.
    #[error(
        "{0} is already in use; stop the other program or choose another port (0 picks a free one)"
    )]
    InUse(SocketAddr),
    /// The system does not allow this program to use the port.
    #[error("no permission to use {0}; choose a port above 1023 or run with more privileges")]
    Permission(SocketAddr),
    /// This machine does not have the address.
    #[error("{0} is not an address of this machine; use one it has, or [::] for all")]
    NotOurs(SocketAddr),
    /// The given name cannot be resolved to an address.
    #[error("cannot resolve the address to bind to: {0}; expected for example [::]:4433")]
    Address(io::Error),
    /// The TLS configuration cannot be used.
    #[error(transparent)]
    Tls(#[from] hybriq_tls::ConfigError),
    /// The function was called outside of a tokio runtime.
    #[error("no tokio runtime here; make endpoints inside #[tokio::main] or Runtime::block_on")]
    NoRuntime,
    /// The number of workers is not supported.
    #[error("{0} workers are not possible; use 1 to 128")]
    Workers(usize),
    /// Workers with empty connection ids cannot share a port.
    #[error(
        "without connection ids each worker needs its own port; bind to port 0, or drop zero_length_cids"
    )]
    SharedPort,
    /// The number of sockets does not match the number of workers.
    #[error(
        "{workers} workers need {workers} sockets on each address, all bound with SO_REUSEPORT; \
         {address} has {sockets}"
    )]
    Sockets {
        /// Address of the sockets.
        address: SocketAddr,
        /// Number of sockets on the address.
        sockets: usize,
        /// Number of workers.
        workers: usize,
    },
    /// No socket was given.
    #[error("no socket was given; give one for each worker")]
    NoSocket,
    /// A given socket cannot be used.
    #[error("socket {number} in the list, counted from 0, {reason}")]
    Unsuitable {
        /// Position among the sockets, from 0.
        number: usize,
        /// Reason, and what to do.
        reason: &'static str,
    },
    /// A worker's thread could not be started.
    #[error("cannot start the thread of a worker: {0}; check the limits of this process")]
    Thread(io::Error),
    /// The number of addresses is too large.
    #[error("{0} addresses are too many; bind to at most 8")]
    Addresses(usize),
    /// The endpoint of another process could not be taken over.
    #[error(transparent)]
    Restart(#[from] RestartError),
    /// The endpoint is closed.
    #[error("the endpoint is closed; make a new one")]
    Closed,
    /// The endpoint was created without a server configuration.
    #[error("this endpoint accepts no connections; make it with EndpointBuilder::server")]
    NoServerConfig,
    /// An endpoint that accepts connections cannot use empty connection ids.
    #[error("an endpoint that accepts connections needs connection ids; drop zero_length_cids")]
    ZeroLengthCids,
    /// The generator's connection ids have an unsuitable length.
    #[error(
        "connection ids of {0} bytes are not possible; make the generator's 8 to 20 bytes long"
    )]
    CidLength(usize),
    /// The system refused to open a socket.
    #[error(
        "cannot open a UDP socket on {address}: {cause}; check the limits and permissions of this process"
    )]
    Socket {
        /// Address to bind to.
        address: SocketAddr,
        /// Error of the operating system.
        cause: io::Error,
    },
}

impl From<EndpointError> for io::Error {
    fn from(error: EndpointError) -> Self {
        let kind = match &error {
            EndpointError::InUse(_) => io::ErrorKind::AddrInUse,
            EndpointError::Permission(_) => io::ErrorKind::PermissionDenied,
            EndpointError::NotOurs(_) => io::ErrorKind::AddrNotAvailable,
            EndpointError::Address(source)
            | EndpointError::Thread(source)
            | EndpointError::Socket { cause: source, .. }
            | EndpointError::Restart(
                RestartError::NoPredecessor(source)
                | RestartError::Path(source)
                | RestartError::Lost(source),
            ) => source.kind(),
            EndpointError::Tls(_)
            | EndpointError::Workers(_)
            | EndpointError::SharedPort
            | EndpointError::Sockets { .. }
            | EndpointError::NoSocket
            | EndpointError::Unsuitable { .. }
            | EndpointError::Addresses(_)
            | EndpointError::ZeroLengthCids
            | EndpointError::CidLength(_) => io::ErrorKind::InvalidInput,
            EndpointError::NoRuntime
            | EndpointError::Closed
            | EndpointError::NoServerConfig
            | EndpointError::Restart(_) => io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}

#[cfg(test)]
mod tests {
    use super::ConnectError;

    #[test]
    fn an_address_that_nobody_can_be_at_comes_with_what_to_do() {
        for (address, remedy) in [
            ("192.0.2.1:0", "the port that the server listens on"),
            ("0.0.0.0:4433", "one of the server's"),
            ("[2001:db8::1]:4433", "of the same family"),
        ] {
            let error = ConnectError::Address(address.parse().expect("an address"));
            let shown = error.to_string();
            assert!(
                shown.contains(address) && shown.ends_with(remedy),
                "{shown}"
            );
        }
    }
}
