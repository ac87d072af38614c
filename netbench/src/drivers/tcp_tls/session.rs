//! Parts common to connections with and without framing: the handshake and the counters.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use rustls::{Connection, HandshakeKind};

use super::shared::Shared;
use super::socket::{Counters, Socket};
use super::tls::{self, Tls};
use crate::drivers::rustls_watch::{Begun, Watch};
use crate::drivers::{Negotiated, Stats, rustls_config};
use crate::system::outcome::{Failed, Kind};

/// Watch that observes a client's tickets and signatures.
type Watched = (Arc<Watch>, Begun);

/// One connection below its streams.
pub(super) struct Session {
    pub(super) tls: Shared,
    counters: Rc<Counters>,
    /// Watch of the handshake, on clients only.
    watched: Option<Watched>,
    /// True if this server received early data.
    early_data: Cell<bool>,
}

impl Session {
    /// Starts a handshake. Ready once streams can be used.
    pub(super) async fn begin(
        socket: Socket,
        connection: Connection,
        watched: Option<Watched>,
    ) -> Result<Self, Failed> {
        let session = Self {
            counters: socket.counters(),
            tls: Shared(Rc::new(RefCell::new(Tls::new(socket, connection)))),
            watched,
            early_data: Cell::new(false),
        };
        let open = poll_fn(|cx| session.tls.0.borrow_mut().poll_open(cx)).await;
        open.map_err(failed_in_handshake)?;
        let early = session.tls.0.borrow_mut().has_early_data();
        session.early_data.set(early);
        Ok(session)
    }

    pub(super) async fn established(&self) -> Result<Negotiated, Failed> {
        let established = poll_fn(|cx| self.tls.0.borrow_mut().poll_established(cx)).await;
        established.map_err(failed_in_handshake)?;
        let tls = self.tls.0.borrow();
        if tls.lost_early_data() {
            let detail = "the server refused 0-RTT data";
            return Err(Failed::new(Kind::EarlyDataRejected, detail));
        }
        let early = match tls.session() {
            Connection::Client(client) => client.is_early_data_accepted(),
            Connection::Server(_) => self.early_data.get(),
        };
        let signature = self
            .watched
            .as_ref()
            .map(|(watch, begun)| watch.complete(*begun));
        Ok(Negotiated {
            signature: signature.unwrap_or_default().signature,
            early_data: Some(early),
            ..negotiated(tls.session())
        })
    }

    pub(super) fn stats(&self) -> Stats {
        self.counters.stats()
    }

    pub(super) fn server_name(&self) -> Option<String> {
        match self.tls.0.borrow().session() {
            Connection::Client(_) => None,
            Connection::Server(server) => server.server_name().map(str::to_owned),
        }
    }

    pub(super) fn has_ticket(&self) -> bool {
        let watch = self.watched.as_ref();
        watch.is_none_or(|(watch, _)| watch.has_ticket())
    }
}

fn negotiated(session: &Connection) -> Negotiated {
    let kind = session.handshake_kind();
    let group = session.negotiated_key_exchange_group();
    let group = group.map(|group| hybriq::Group(group.name().into()).to_string());
    let suite = session.negotiated_cipher_suite();
    let suite = suite.and_then(|suite| suite.suite().as_str());
    Negotiated {
        group: group.unwrap_or_default(),
        hello_retry: match kind {
            Some(HandshakeKind::Full) => Some(false),
            Some(HandshakeKind::FullWithHelloRetryRequest) => Some(true),
            // rustls only reports that these were resumed.
            _ => None,
        },
        suite: suite.unwrap_or_default().replace("TLS13_", "TLS_"),
        signature: String::new(),
        resumed: kind.map(|kind| kind == HandshakeKind::Resumed),
        early_data: None,
    }
}

/// Converts an error of TCP or TLS before the handshake is complete into the failure of a
/// connection.
pub(super) fn failed_in_handshake(failed: tls::Failed) -> Failed {
    match failed {
        tls::Failed::Tcp(io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe, text) => {
            Failed::new(Kind::Refused, text)
        }
        failed => failure(failed),
    }
}

/// Converts a later error.
pub(super) fn failure(failed: tls::Failed) -> Failed {
    match failed {
        tls::Failed::Tls(error) => rustls_config::failed(&error),
        tls::Failed::Tcp(kind, text) => {
            let kind = match kind {
                io::ErrorKind::ConnectionRefused => Kind::Refused,
                io::ErrorKind::TimedOut => Kind::Timeout,
                io::ErrorKind::ConnectionReset
                | io::ErrorKind::ConnectionAborted
                | io::ErrorKind::BrokenPipe
                | io::ErrorKind::UnexpectedEof => Kind::Reset,
                _ => Kind::Other,
            };
            Failed::new(kind, text)
        }
    }
}
