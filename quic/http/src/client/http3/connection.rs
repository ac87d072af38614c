//! A connection of HTTP/3.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use http::Version;
use hybriq::memory::{ServerKey, ServerRecord, ServerStore};
use hybriq_h3::{Code, Settings};
use tokio::sync::watch;

use crate::{
    Peer, Tls,
    client::origin::Origin,
    usage::{Ending, Exchange, Usage},
    versions::http3::{Link, Reserved, Setup, StreamError, Transport},
};

/// Capacity of a dynamic table, in bytes.
const TABLE: u64 = 4096;

/// A connection of HTTP/3.
pub(in crate::client) struct Connection {
    pub(super) link: Arc<Link>,
    pub(super) usage: Arc<Usage>,
    pub(super) handshake: watch::Receiver<Handshake>,
    /// The place of the server, which may be an alternative.
    pub(in crate::client) place: Origin,
}

/// Progress of a handshake, for requests in 0-RTT packets. If its sender is dropped before the handshake is complete,
/// the server refused the early data, or there is no connection.
#[derive(Clone)]
pub(in crate::client) enum Handshake {
    /// The server has not answered.
    Pending,
    /// The server has not answered, and another connection is ready: requests use that one.
    Slow,
    Complete(Established),
}

/// A connection whose handshake is complete.
#[derive(Clone)]
pub(in crate::client) struct Established {
    pub(super) connection: hybriq::Connection,
    tls: Arc<Tls>,
    /// Requests that the server takes at once.
    most: usize,
}

impl Established {
    /// Takes a connection on which there are this many requests.
    pub(in crate::client) fn new(connection: hybriq::Connection, requests: usize) -> Self {
        let tls = Arc::new(Tls::of_quic(&connection));
        let more = usize::try_from(connection.openable_bidi()).unwrap_or(usize::MAX);
        Self {
            connection,
            tls,
            most: more.saturating_add(requests),
        }
    }

    pub(super) fn peer(&self, early: Early) -> Peer {
        Peer {
            address: self.connection.peer_address(),
            local_address: self.connection.local_address(),
            version: Version::HTTP_3,
            tls: self.tls.clone(),
            early: early == Early::Yes,
        }
    }
}

/// Whether a request was sent before the handshake was complete.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Early {
    Yes,
    No,
}

/// Facts about a new connection.
pub(in crate::client) struct New {
    pub(in crate::client) usage: Arc<Usage>,
    pub(in crate::client) handshake: watch::Receiver<Handshake>,
    pub(in crate::client) place: Origin,
    pub(in crate::client) header_list: u64,
    pub(in crate::client) reserved: Reserved,
    pub(in crate::client) remembered: Remembered,
}

/// The settings of a server on its last connection, in the memory of servers: 0-RTT data is sent by them (RFC 9114
/// §7.2.4.2).
pub(in crate::client) struct Remembered {
    pub(in crate::client) servers: Arc<dyn ServerStore>,
    /// The server, by the name under which its tickets are kept.
    pub(in crate::client) server: ServerKey,
}

impl Remembered {
    fn get(&self) -> Option<Settings> {
        let mut found = None;
        self.servers.read(&self.server, &mut |record| {
            found = record
                .settings()
                .and_then(|bytes| Settings::read(bytes).ok());
        });
        found
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "what is remembered of servers ends by the wall clock"
    )]
    fn put(&self, settings: &Settings) {
        let (mut bytes, mut is_known) = (Vec::new(), false);
        settings.write(&mut bytes);
        self.servers.read(&self.server, &mut |record| {
            is_known = record.settings().unwrap_or_default() == bytes;
        });
        if is_known {
            return;
        }
        let put = &mut |record: &mut ServerRecord| record.put_settings(&bytes);
        self.servers.change(SystemTime::now(), &self.server, put);
    }
}

/// Starts HTTP/3 on a connection of the transport. Returns the connection, and its task, which ends with it.
pub(in crate::client) async fn start(
    transport: Transport,
    new: New,
    idle: Duration,
) -> Result<(Arc<Connection>, impl Future<Output = ()> + Send), StreamError> {
    let mut setup = Setup::new(new.header_list);
    setup.tables(TABLE);
    setup.reserved(new.reserved);
    if matches!(transport, Transport::Early(_)) {
        setup.config.remembered = new.remembered.get();
    }
    let link = Link::begin(transport, setup).await?;
    let usage = new.usage.clone();
    let connection = Arc::new(Connection {
        link: link.clone(),
        usage: new.usage,
        handshake: new.handshake,
        place: new.place,
    });
    let told = link.clone();
    let learn = async move {
        let settings = told.peer_settings().await;
        new.remembered.put(&settings);
    };
    Ok((connection, drive(link, usage, idle, learn)))
}

/// Runs a connection until it ends or is no longer used. `learn` ends once its settings are known.
async fn drive(
    link: Arc<Link>,
    usage: Arc<Usage>,
    idle: Duration,
    learn: impl Future<Output = ()>,
) {
    let usage = Ending(usage);
    let learn = async {
        learn.await;
        std::future::pending::<()>().await;
    };
    tokio::select! {
        error = link.drive() => {
            if !matches!(error, StreamError::Closed) {
                tracing::debug!(%error, "an HTTP/3 connection failed");
            }
        }
        () = usage.0.over(idle) => {}
        () = learn => {}
    }
    drop(usage);
    link.close(Code::H3_NO_ERROR, "");
}

impl Connection {
    /// Begins a request. Returns `None` if the connection takes no more requests.
    pub(in crate::client) fn begin(&self) -> Option<Exchange> {
        if self.link.is_going_away() {
            self.usage.end();
        }
        self.usage.begin()
    }

    /// Returns true if the server takes another request at once.
    pub(in crate::client) fn has_room(&self) -> bool {
        match &*self.handshake.borrow() {
            Handshake::Complete(established) => self.usage.exchanges() < established.most,
            Handshake::Pending | Handshake::Slow => true,
        }
    }

    pub(in crate::client) fn usage(&self) -> &Usage {
        &self.usage
    }

    /// Returns the reason why the connection of the transport is over.
    pub(in crate::client) fn close_reason(&self) -> Option<hybriq::ConnectionError> {
        match &*self.handshake.borrow() {
            Handshake::Complete(established) => established.connection.close_reason(),
            Handshake::Pending | Handshake::Slow => None,
        }
    }

    /// Returns true if the handshake is complete.
    pub(in crate::client) fn is_established(&self) -> bool {
        matches!(&*self.handshake.borrow(), Handshake::Complete(_))
    }

    /// Waits until the handshake is complete.
    pub(super) async fn established(&self) -> Option<Established> {
        established(&self.handshake).await
    }
}

/// Waits until the handshake is complete.
pub(super) async fn established(handshake: &watch::Receiver<Handshake>) -> Option<Established> {
    let mut handshake = handshake.clone();
    let is_complete = |handshake: &Handshake| matches!(handshake, Handshake::Complete(_));
    match &*handshake.wait_for(is_complete).await.ok()? {
        Handshake::Complete(established) => Some(established.clone()),
        Handshake::Pending | Handshake::Slow => None,
    }
}
