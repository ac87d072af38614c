//! Stacks behind one trait. A new one is a file here, a feature if it is heavy, and a line in the
//! list of drivers.
//!
//! Everything runs on one thread, in a `LocalSet`: nothing here is `Send`.

mod failures;
mod framing;
mod http;
mod hybriq;
mod list;
#[cfg(feature = "noq")]
mod noq;
mod program;
#[cfg(feature = "quiche")]
mod quiche;
#[cfg(feature = "quinn")]
mod quinn;
pub(crate) mod rustls_config;
mod rustls_watch;
#[cfg(feature = "s2n-quic")]
mod s2n_quic;
mod settings;
mod table;
mod tcp_tls;
mod udp;

use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use serde::{Deserialize, Serialize};

use crate::scenario::Fetch;
use crate::scenario::axes::{Cell, Resumption};
pub(crate) use crate::stacks::Traffic;
use crate::system::failure::Failure;
use crate::system::outcome::Failed;
use ::hybriq::{Backend, Group};

#[cfg(test)]
mod contract;
#[cfg(test)]
mod tests;

pub(crate) use list::driver;
pub(crate) use table::table;

/// The application protocol of both ends.
pub(crate) const ALPN: &str = "netbench";

/// The same for connections that carry HTTP.
pub(crate) const ALPN_H2: &str = "h2";
pub(crate) const ALPN_H3: &str = hybriq_h3::ALPN;

/// Future that an object-safe async method returns.
pub(crate) type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, Failed>> + 'a>>;

/// Time at which a connection is handed to its script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handover {
    /// As soon as 0-RTT data can be sent, if that is possible.
    Early,
    /// Once the handshake is complete.
    Complete,
}

impl Handover {
    /// Returns the time that a cell requires.
    pub(crate) fn of(cell: &Cell) -> Self {
        if cell.resumption == Resumption::ZeroRtt {
            Self::Early
        } else {
            Self::Complete
        }
    }
}

/// A stack. Options that [`Setup`] leaves open keep the stack's defaults.
pub(crate) trait Driver {
    /// Returns its name on the command line.
    fn name(&self) -> &'static str;

    /// Returns its default congestion controller.
    fn congestion(&self) -> String;

    /// Returns the congestion controllers that [`Transport::congestion`] can select.
    fn controllers(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns true if it supports datagrams (RFC 9221).
    fn has_datagrams(&self) -> bool {
        true
    }

    /// Returns true if connections may carry HTTP ([`Streams::Http`]).
    fn has_http(&self) -> bool {
        false
    }

    /// Returns true if a server may have several workers that share its address.
    fn has_workers(&self) -> bool {
        false
    }

    /// Returns true if it runs over UDP, like `netbench link`.
    fn is_over_udp(&self) -> bool {
        true
    }

    /// Refuses a role and cell that it cannot do, in one line that says what it can.
    fn check(&self, role: Role, cell: &Cell) -> Result<(), Failure>;

    /// Starts a server, within a tokio runtime.
    fn listen(&self, setup: &Setup, address: SocketAddr) -> Result<Box<dyn Listener>, Failure>;

    /// Makes a connector to a server, within a tokio runtime.
    fn client(&self, setup: &Setup, server: SocketAddr) -> Result<Box<dyn Connector>, Failure>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Client,
    Server,
}

/// A handshake in progress; it advances only while it is polled.
pub(crate) type Accepting = Pin<Box<dyn Future<Output = Result<Rc<dyn Connection>, Failed>>>>;

pub(crate) trait Listener {
    /// Returns the address on which it listens.
    fn address(&self) -> SocketAddr;

    /// Returns the next connection attempt. After an error there will be no more.
    fn accept(&mut self) -> Answer<'_, Accepting>;

    /// Returns the next connection attempt with the thread where it belongs.
    fn attempt(&mut self) -> Answer<'_, Attempt> {
        Box::pin(async { Ok(Attempt::Here(self.accept().await?)) })
    }

    /// Returns the traffic of its socket so far; `None` if the stack does not tell.
    fn traffic(&self) -> Option<Traffic>;

    /// Returns the id of the process that serves, if that is another one: it reports no connections.
    fn process(&self) -> Option<u32> {
        None
    }
}

/// Attempt of a client to connect.
pub(crate) enum Attempt {
    /// Belongs to the thread that accepts it.
    Here(Accepting),
    /// Belongs to a thread of the stack.
    There(Seat),
}

pub(crate) trait Connector {
    /// Starts a connection. With [`crate::scenario::axes::Resumption::ZeroRtt`] and a ticket it is ready at
    /// once, and data sent until [`Connection::established`] is early data; otherwise it is ready
    /// when the handshake is complete.
    fn connect<'a>(&'a self, server: SocketAddr, name: &'a str) -> Answer<'a, Rc<dyn Connection>>;

    /// Returns the traffic of its socket so far; `None` if the stack does not tell.
    fn traffic(&self) -> Option<Traffic>;
}

/// Both halves of a bidirectional stream.
pub(crate) type Halves = (Box<dyn Writer>, Box<dyn Reader>);

/// A connection of either side. All of its methods may run concurrently.
pub(crate) trait Connection {
    /// Waits until the handshake is complete and returns the negotiated parameters. Rejected early
    /// data is an error.
    fn established(&self) -> Answer<'_, Negotiated>;

    fn open_bidi(&self) -> Answer<'_, Halves>;

    fn open_uni(&self) -> Answer<'_, Box<dyn Writer>>;

    /// Returns the peer's next bidirectional stream; `None` if the peer closed without an error.
    fn accept_bidi(&self) -> Answer<'_, Option<Halves>>;

    /// Returns the peer's next unidirectional stream; `None` if the peer closed without an error.
    fn accept_uni(&self) -> Answer<'_, Option<Box<dyn Reader>>>;

    /// Sends a datagram (RFC 9221), once there is room for it.
    fn send_datagram(&self, data: Bytes) -> Answer<'_, ()>;

    /// Returns the peer's next datagram; `None` if the peer closed without an error.
    fn receive_datagram(&self) -> Answer<'_, Option<Bytes>>;

    /// Makes an HTTP request, and reads the response to its end. Both bodies are those of
    /// [`crate::scenario::pattern`].
    fn fetch(&self, fetch: Fetch) -> Answer<'_, ()> {
        let _ = fetch;
        Box::pin(async { Err(Failed::other("this connection carries no HTTP")) })
    }

    /// Returns what this end sent and received on the connection so far, also after its end.
    fn stats(&self) -> Stats;

    /// Returns the name the client asked for, on a server; `None` if the stack does not tell.
    fn server_name(&self) -> Option<String> {
        None
    }

    /// Returns true if the client has a ticket for the next connection, or if the stack does not
    /// tell.
    fn has_ticket(&self) -> bool;

    /// Closes with an application error code.
    fn close(&self, code: u64);

    /// Waits until either side has closed the connection and this end has told the peer. Returns an
    /// error unless the code is 0.
    fn closed(&self) -> Answer<'_, ()>;
}

/// Work on a connection attempt, to be begun on the thread where it runs.
pub(crate) type Work = Box<dyn FnOnce(Accepting) -> LocalBoxFuture<'static, ()> + Send>;

/// Starts work on a connection attempt on the thread of its worker.
pub(crate) type Seat = Box<dyn FnOnce(Work)>;

/// Sending half of a stream. Dropped unfinished, it resets the stream.
pub(crate) trait Writer {
    /// Takes some of the bytes.
    fn poll_send(&mut self, cx: &mut Context<'_>, data: &mut Bytes) -> Poll<Result<(), Failed>>;

    /// Ends the stream, without waiting for the peer.
    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failed>>;

    /// Waits until the peer has acknowledged everything, the end included; returns at once if the
    /// stack does not tell. Closing the connection before may lose data.
    fn poll_acknowledged(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failed>> {
        let _ = cx;
        Poll::Ready(Ok(()))
    }

    /// Resets the stream.
    fn reset(&mut self, code: u64);
}

/// Receiving half of a stream.
pub(crate) trait Reader {
    /// Returns the next bytes, at most `max`; `None` at the end.
    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<Result<Option<Bytes>, Failed>>;
}

/// Settings of both ends.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Setup {
    pub(crate) cell: Cell,
    pub(crate) certificates: Certificates,
    pub(crate) transport: Transport,
}

/// Certificates and keys as PEM text, the leaf first.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Certificates {
    /// Root certificate that clients trust.
    pub(crate) root: String,
    pub(crate) server_chain: String,
    /// Server's key; empty in messages to clients.
    pub(crate) server_key: String,
    /// Client's certificates, signed by the same root; empty if clients show none.
    pub(crate) client_chain: String,
    /// Client's key; empty in messages to servers.
    pub(crate) client_key: String,
}

/// Settings that every stack has; `None` means its default.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Transport {
    /// Size of UDP payloads after the handshake in bytes, without path MTU discovery.
    pub(crate) datagram_size: Option<u16>,
    /// Congestion controller, if a stack has a choice.
    pub(crate) congestion: Option<String>,
    /// Bytes that may be unread or unacknowledged: on a stream, on a connection, in a send buffer.
    pub(crate) window: Option<u32>,
    /// Bytes requested from the system for each socket buffer.
    pub(crate) socket_buffer: Option<u32>,
    /// Idle timeout in milliseconds.
    pub(crate) idle_timeout_ms: Option<u64>,
    /// Number of streams of each kind that the peer may have open at once.
    pub(crate) max_streams: Option<u64>,
    /// Number of streams that the scenario opens on each connection. A stack over TCP needs no
    /// framing for one.
    #[serde(default)]
    pub(crate) streams: Streams,
}

/// Number of streams that a connection carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Streams {
    /// One, bidirectional, opened by the client.
    One,
    /// Any.
    #[default]
    Many,
    /// Requests of HTTP: of HTTP/3 over QUIC, of HTTP/2 over TCP. See [`http`].
    Http,
}

/// Outcome of a handshake. `None` and the empty text mean that the stack does not tell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub(crate) struct Negotiated {
    /// IANA name of the key-exchange group.
    pub(crate) group: String,
    pub(crate) hello_retry: Option<bool>,
    /// IANA name of the cipher suite.
    pub(crate) suite: String,
    /// Algorithm of the server's signature, as in [`hybriq::tls`].
    pub(crate) signature: String,
    pub(crate) resumed: Option<bool>,
    pub(crate) early_data: Option<bool>,
}

/// Counters of one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stats {
    /// `None` if the stack does not tell.
    pub(crate) traffic: Option<Traffic>,
    pub(crate) packets_sent: u64,
    pub(crate) packets_lost: u64,
    /// Number of probe timeouts, or of TCP's retransmission timeouts.
    pub(crate) timeouts: u64,
}

/// Returns the group whose share a client sends first, so that the server answers with a
/// HelloRetryRequest; `None` if it sends only the wanted one.
fn first_share(cell: &Cell) -> Option<Group> {
    const CLASSICAL: [Group; 3] = [Group::X25519, Group::SECP256R1, Group::SECP384R1];
    if !cell.hello_retry {
        return None;
    }
    // s2n-tls accepts any share of its policy before it asks for another; it lacks MLKEM768.
    Some(match (cell.group, cell.provider) {
        (group, Backend::S2nTls) if CLASSICAL.contains(&group) => Group::MLKEM768,
        (Group::X25519, _) => Group::SECP256R1,
        _ => Group::X25519,
    })
}

/// Lets other tasks run until the condition holds, with a limit.
async fn yield_until(is_so: impl Fn() -> bool) {
    for _ in 0..YIELDS {
        if is_so() {
            return;
        }
        tokio::task::yield_now().await;
    }
}

/// Number of yields; a stack sends when its task runs next.
const YIELDS: u32 = 64;
