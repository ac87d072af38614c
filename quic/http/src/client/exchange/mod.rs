//! One request and its response, over as many connections as it needs.

mod forward;

use std::sync::Arc;

use http::{HeaderValue, Method, Response, StatusCode, header::HeaderName, request::Parts};
use tokio::{
    sync::{OwnedSemaphorePermit, watch},
    time::Instant,
};

pub use self::forward::Forward;
use super::{
    connections::{Choice, Http3, Progress, Shared, Wanted},
    error::{ClientError, Failure, Repeat},
    http3,
    origin::{Origin, name_host},
    outgoing::{Hearing, Outgoing},
    tcp::{Connection, Http1, Http2, Offer},
};
use crate::{Body, Peer, usage::Exchange};

/// Largest number of times that a request is sent.
const ATTEMPTS: usize = 4;

/// Largest number of times that a request waits for a connection each time it is sent.
const WAITS: usize = 16;

/// Largest number of times that a request waits for one more connection because the others have no room.
const MORE: usize = 8;

/// Place that a request is sent to, if it is an alternative (RFC 7838 §5).
const ALT_USED: HeaderName = HeaderName::from_static("alt-used");

/// A request that is being sent.
pub(super) struct Sender {
    shared: Arc<Shared>,
    origin: Origin,
    request: Parts,
    body: Outgoing,
    http3: Http3,
    /// True if the request may go in 0-RTT packets, which can be replayed.
    may_be_early: bool,
}

/// A connection for one request.
enum Ready {
    Http3(Arc<http3::Connection>, Exchange),
    Http2(Http2, Exchange),
    Http1(Http1, Exchange, OwnedSemaphorePermit),
}

impl Sender {
    pub(super) fn new(
        shared: Arc<Shared>,
        mut request: Parts,
        body: Outgoing,
    ) -> Result<Self, ClientError> {
        if request.method == Method::CONNECT {
            return Err(ClientError::Method(request.method));
        }
        let origin = Origin::of(&request.uri)?;
        name_host(&mut request)?;
        request.headers.remove(ALT_USED);
        Ok(Self {
            http3: shared.version_for(&origin)?,
            may_be_early: request.method.is_safe() && body.is_empty(),
            shared,
            origin,
            request,
            body,
        })
    }

    /// Sends the request until there is a response, or an error that sending it again would not fix.
    pub(super) async fn send(mut self) -> Result<Response<Body>, ClientError> {
        let mut last = None;
        for attempt in 1..=ATTEMPTS {
            let ready = self.ready().await?;
            let place = match &ready {
                Ready::Http3(http3, _) => Some(http3.place.clone()),
                Ready::Http2(..) | Ready::Http1(..) => None,
            };
            match self.send_on(ready).await {
                Ok(response) => {
                    self.judge(&response, place.as_ref());
                    if attempt < ATTEMPTS && self.is_for_nothing(&response, place) {
                        continue;
                    }
                    self.body.settle();
                    // RFC 7838 §6. Behind a proxy, nothing is known of the server's address, on which it depends where it
                    // may send the client.
                    let is_heard = response.status() != StatusCode::MISDIRECTED_REQUEST
                        && self.shared.tcp.proxy_for(&self.origin).is_none();
                    let peer = response.extensions().get::<Peer>();
                    if let Some(peer) = peer.filter(|_| is_heard) {
                        let (fields, from) = (response.headers(), peer.address.ip());
                        let now = Instant::now();
                        self.shared.pool.learn(&self.origin, fields, from, now);
                    }
                    return Ok(response);
                }
                Err(failure) => {
                    tracing::debug!(origin = %self.origin, error = %failure.error, "a request failed");
                    if let Some(error) = self.body.failed() {
                        return Err(ClientError::Body(error));
                    }
                    if !failure.may_repeat(&self.request.method) || !self.body.can_repeat() {
                        return Err(failure.error);
                    }
                    if failure.repeat == Repeat::OverTcp {
                        self.leave_http3();
                    }
                    last = Some(failure.error);
                }
            }
        }
        let server = self.origin.to_string();
        Err(last.unwrap_or(ClientError::Refused { server }))
    }

    /// Forgets an alternative that says it is not responsible (RFC 7838 §6).
    fn judge(&self, response: &Response<Body>, place: Option<&Origin>) {
        if response.status() == StatusCode::MISDIRECTED_REQUEST {
            if let Some(place) = place.filter(|place| **place != self.origin) {
                let now = Instant::now();
                self.shared.pool.on_misdirected(&self.origin, place, now);
            }
        }
    }

    /// Returns true if a response asks for the request to be sent again in another way.
    fn is_for_nothing(&mut self, response: &Response<Body>, place: Option<Origin>) -> bool {
        let peer = response.extensions().get::<Peer>();
        match response.status() {
            // RFC 8470 §5.2: not in early data again.
            StatusCode::TOO_EARLY if peer.is_some_and(|peer| peer.early) => {
                self.may_be_early = false;
                true
            }
            // RFC 7838 §6: the alternative is not responsible.
            StatusCode::MISDIRECTED_REQUEST
                if self.http3 != Http3::Only
                    && self.body.can_repeat()
                    && place.is_some_and(|place| place != self.origin) =>
            {
                self.leave_http3();
                true
            }
            _ => false,
        }
    }

    /// Sends the request over TCP from now on, if that is allowed.
    fn leave_http3(&mut self) {
        if self.http3 != Http3::Only {
            self.http3 = Http3::Off;
        }
    }

    /// Returns a connection, connecting if there is none.
    async fn ready(&self) -> Result<Ready, ClientError> {
        let mut permit = None;
        let mut more = MORE;
        for _ in 0..WAITS {
            let wanted = Wanted {
                http3: self.http3,
                more: more > 0,
                now: Instant::now(),
            };
            more = more.saturating_sub(1);
            let progress = match self.shared.pool.choose(&self.origin, wanted, permit.take()) {
                Choice::Http3(http3, exchange) => return Ok(Ready::Http3(http3, exchange)),
                Choice::Http2(http2, exchange, place) => {
                    self.upgrade(place);
                    return Ok(Ready::Http2(http2, exchange));
                }
                Choice::Http1(http1, place) => {
                    self.upgrade(place);
                    let (http1, exchange, permit) = *http1;
                    return Ok(Ready::Http1(http1, exchange, permit));
                }
                Choice::Full(slots) => {
                    permit = slots.acquire_owned().await.ok();
                    continue;
                }
                Choice::Another(slot) => {
                    if let Some(ready) = self.another(slot).await? {
                        return Ok(ready);
                    }
                    continue;
                }
                Choice::Wait(progress) => progress,
                Choice::Connect(place, sender) => {
                    let progress = sender.subscribe();
                    self.shared
                        .connect(self.origin.clone(), self.http3, place, sender);
                    progress
                }
            };
            match self.connected(progress).await {
                Ok(Some(ready)) => return Ok(ready),
                Ok(None) => {}
                // The request waits for the connections that there are.
                Err(_) if more > 0 && self.shared.pool.is_connected(&self.origin) => more = 0,
                Err(error) => return Err(error),
            }
        }
        let server = self.origin.to_string();
        Err(ClientError::Refused { server })
    }

    fn upgrade(&self, place: Option<Origin>) {
        if let Some(place) = place {
            self.shared.upgrade(self.origin.clone(), place);
        }
    }

    /// Makes one more connection of HTTP/1.1.
    async fn another(&self, slot: OwnedSemaphorePermit) -> Result<Option<Ready>, ClientError> {
        let connection = self.shared.dial(&self.origin, Offer::All).await;
        let connection = connection.map_err(|error| {
            let shared = &self.shared;
            shared.not_connected(&self.origin, None, Some(error))
        })?;
        match connection {
            Connection::Http1(http1) => {
                let begun = http1.begin();
                Ok(begun.map(|exchange| Ready::Http1(http1, exchange, slot)))
            }
            http2 @ Connection::Http2(_) => {
                self.shared.pool.add_tcp(&self.origin, http2);
                Ok(None)
            }
        }
    }

    /// Waits for an attempt to connect. Returns a connection whose handshake is not complete if the request may use
    /// it, and `None` if the pool has a connection.
    async fn connected(
        &self,
        mut progress: watch::Receiver<Progress>,
    ) -> Result<Option<Ready>, ClientError> {
        loop {
            let now = progress.borrow_and_update().clone();
            match now {
                Progress::Done(Ok(())) => return Ok(None),
                Progress::Done(Err(error)) => return Err(error),
                Progress::Early(http3) if self.may_be_early && self.http3 != Http3::Off => {
                    if let Some(exchange) = http3.begin() {
                        return Ok(Some(Ready::Http3(http3, exchange)));
                    }
                }
                Progress::Early(_) | Progress::Connecting => {}
            }
            if progress.changed().await.is_err() {
                return Ok(None);
            }
        }
    }

    /// Sends the request on a connection.
    async fn send_on(&mut self, ready: Ready) -> Result<Response<Body>, Failure> {
        let Some(mut body) = self.body.again() else {
            let server = self.origin.to_string();
            return Err(Failure::new(ClientError::Refused { server }, Repeat::Never));
        };
        let mut hearing = || Hearing::of(&self.request, &mut body, self.shared.times.go_ahead);
        match ready {
            Ready::Http3(http3, exchange) => {
                let hearing = hearing();
                self.set_alt_used(&http3.place);
                let sent = http3.send(exchange, &self.request, body, hearing).await;
                if sent.is_err() {
                    self.on_lost(&http3);
                }
                sent
            }
            Ready::Http2(http2, exchange) => {
                self.request.headers.remove(ALT_USED);
                http2.send(exchange, &self.request, body).await
            }
            Ready::Http1(http1, exchange, permit) => {
                let hearing = hearing();
                self.request.headers.remove(ALT_USED);
                let (shared, origin) = (Arc::downgrade(&self.shared), self.origin.clone());
                let free = move |http1| {
                    if let Some(shared) = shared.upgrade() {
                        shared.pool.put_back(&origin, http1);
                    }
                    drop(permit);
                };
                http1
                    .send(exchange, &self.request, body, hearing, free)
                    .await
            }
        }
    }

    /// Names the alternative that the request goes to.
    fn set_alt_used(&mut self, place: &Origin) {
        let value = (*place != self.origin).then(|| HeaderValue::try_from(place.to_string()));
        match value {
            Some(Ok(value)) => _ = self.request.headers.insert(ALT_USED, value),
            _ => _ = self.request.headers.remove(ALT_USED),
        }
    }

    /// Stops using a connection that is over. If the path to the server is dead, HTTP/3 is not used for a while.
    fn on_lost(&self, http3: &http3::Connection) {
        use hybriq::ConnectionError::{
            AddressGone, HandshakeTimedOut, NoAnswer, TimedOut, Unreachable,
        };

        if let Some(reason) = http3.close_reason() {
            http3.usage().end();
            let is_dead = matches!(
                reason,
                NoAnswer | HandshakeTimedOut | TimedOut | Unreachable { .. } | AddressGone { .. }
            );
            if is_dead && self.http3 != Http3::Only {
                let pool = &self.shared.pool;
                pool.on_broken(&self.origin, &http3.place, Instant::now());
            }
        }
    }
}
