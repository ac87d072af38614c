//! A connection of HTTP/3.

use std::{future::poll_fn, sync::Arc, time::Duration};

use http::Version;
use hybriq_h3::{Goaway, OpenStreams, Payload};
use tokio::sync::watch;

use crate::{
    Peer, Tls,
    client::{error::QuicError, origin::Origin},
    usage::{Ending, Exchange, Usage},
};

type Requests = h3::client::SendRequest<OpenStreams<Payload>, Payload>;
type Driver = h3::client::Connection<hybriq_h3::Connection, Payload>;

/// A connection of HTTP/3.
pub(in crate::client) struct Connection {
    pub(super) requests: Requests,
    pub(super) usage: Arc<Usage>,
    pub(super) handshake: watch::Receiver<Handshake>,
    /// Place of the server, which may be an alternative one.
    pub(in crate::client) place: Origin,
    pub(super) goaway: Goaway,
}

/// Progress of a handshake, for requests in 0-RTT packets. If its sender is gone before it is complete, the
/// server refused the early data, or there is no connection.
#[derive(Clone)]
pub(in crate::client) enum Handshake {
    /// The server has not answered.
    Pending,
    /// The same, and another connection is there: requests go over that.
    Slow,
    Complete(Established),
}

/// A connection whose handshake is complete.
#[derive(Clone)]
pub(in crate::client) struct Established {
    pub(super) connection: hybriq::Connection,
    tls: Arc<Tls>,
}

impl Established {
    pub(in crate::client) fn new(connection: hybriq::Connection) -> Self {
        let tls = Arc::new(Tls::of_quic(&connection));
        Self { connection, tls }
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

/// Tells if a request was sent before the handshake was complete.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Early {
    Yes,
    No,
}

/// Facts about a connection that is new.
pub(in crate::client) struct New {
    pub(in crate::client) usage: Arc<Usage>,
    pub(in crate::client) handshake: watch::Receiver<Handshake>,
    pub(in crate::client) place: Origin,
    pub(in crate::client) header_list: u64,
}

/// Begins HTTP/3 on a connection of the transport. Returns the connection, and its task, which ends with it.
pub(in crate::client) async fn start(
    transport: hybriq_h3::Connection,
    new: New,
    idle: Duration,
) -> Result<(Arc<Connection>, impl Future<Output = ()> + Send), QuicError> {
    let transport = transport.max_frame(new.header_list);
    let goaway = transport.goaway();
    let mut builder = h3::client::builder();
    // nginx 1.26 takes a frame of a reserved type behind a body for its early end.
    builder.send_grease(false);
    let builder = builder.max_field_section_size(new.header_list);
    let built = builder.build(transport).await;
    let (driver, requests): (Driver, Requests) =
        built.map_err(|cause| QuicError::Http3(cause.into()))?;
    let usage = new.usage.clone();
    let connection = Arc::new(Connection {
        // `h3` closes the connection with the last of these.
        requests: requests.clone(),
        usage: new.usage,
        handshake: new.handshake,
        place: new.place,
        goaway,
    });
    Ok((connection, drive(driver, requests, usage, idle)))
}

/// Runs a connection until it ends, or is not used any more.
async fn drive(mut driver: Driver, requests: Requests, usage: Arc<Usage>, idle: Duration) {
    let usage = Ending(usage);
    tokio::select! {
        error = poll_fn(|cx| driver.poll_close(cx)) => {
            if !error.is_h3_no_error() {
                tracing::debug!(%error, "an HTTP/3 connection failed");
            }
        }
        () = usage.0.over(idle) => {}
    }
    drop(usage);
    // Closes the connection with H3_NO_ERROR.
    drop(driver);
    drop(requests);
}

impl Connection {
    /// Begins a request. Returns `None` if the connection takes no more.
    pub(in crate::client) fn begin(&self) -> Option<Exchange> {
        if self.goaway.is_announced() {
            self.usage.end();
        }
        self.usage.begin()
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
