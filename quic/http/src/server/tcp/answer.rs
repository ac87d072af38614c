//! One request over TCP.

use std::{convert::Infallible, sync::Arc, time::Duration};

use http::{
    HeaderValue, Request, Response, StatusCode, Version,
    header::{ALT_SVC, CONTENT_LENGTH, RETRY_AFTER, UPGRADE},
};
use http_body::Body as _;

use super::{activity::Answering, body::Counted, responses::Response as Delivery, streams::Head};
use crate::{
    Body, Interim, Peer, StallTime, Upgrade,
    limits::Patience,
    server::{
        App, BoxError,
        state::{Connect, Hints},
    },
    upgrade::{Rest, STAND_IN, StandIn, masque},
    versions::{
        content::{Asked, Content},
        interim::Interims,
    },
};

/// What the connection adds to a request and its response.
pub(super) struct Beside {
    pub(super) peer: Peer,
    pub(super) alt_svc: Option<HeaderValue>,
    pub(super) hints: Hints,
    pub(super) connect: Connect,
    /// Sends interim responses, over HTTP/1.1.
    pub(super) head: Option<Arc<Head>>,
    /// Time that the client may take to accept them.
    pub(super) stall_time: Duration,
    /// Of a request with a body, and of each one over HTTP/1.1.
    pub(super) patience: Option<Arc<Patience>>,
}

/// The tunnel that a request of extended CONNECT asks for.
struct Tunnel {
    upgrade: Upgrade,
    rest: Rest,
    /// For services that were written for hyper.
    stand_in: Option<StandIn>,
}

/// Whether a service serves a tunnel that it has agreed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Served {
    Yes,
    /// It has dropped what leads to the stream (RFC 9220 §3, which RFC 8441 leaves open).
    No,
}

impl Tunnel {
    /// Lets the task that hyper starts next have the tunnel.
    async fn agree(self, stall_time: Duration) -> Served {
        if self.upgrade.is_dropped() {
            let line = match self.stand_in {
                Some(stand_in) => stand_in.agree().await,
                None => None,
            };
            let Some(line) = line else {
                return Served::No;
            };
            tokio::spawn(async move {
                if let Ok(stream) = self.upgrade.upgraded().await {
                    line.serve(stream, stall_time).await;
                }
            });
        }
        self.rest.agree();
        Served::Yes
    }
}

/// Answers a request, and announces HTTP/3 to the client.
pub(super) async fn answer<A: App>(
    app: A,
    mut request: Request<Body>,
    beside: Beside,
    mut answering: Answering,
) -> Result<Response<Counted<A::Body>>, BoxError> {
    let Beside {
        peer,
        alt_svc,
        hints,
        connect,
        head,
        stall_time,
        mut patience,
    } = beside;
    request.extensions_mut().insert(peer);
    if let Some(patience) = &patience {
        request.extensions_mut().insert(patience.clone());
    }
    let interims = head.as_ref().map(|_| Interims::new());
    if hints == Hints::Sent {
        let interim = interims.as_ref().map_or(Interim::none(), Interims::sender);
        request.extensions_mut().insert(interim);
    }
    let (asked, version) = (Asked::by(request.method()), request.version());
    let mut tunnel = None;
    if let Some((upgrade, rest)) = upgrade(&request, &answering, connect) {
        let stand_in = rest.as_ref().and_then(|_| StandIn::new());
        let stand_in = stand_in.map(|(stand_in, pending)| {
            // hyper's own would have no bounds.
            request.extensions_mut().insert(pending);
            answering.grow(STAND_IN);
            stand_in
        });
        request.extensions_mut().insert(upgrade.clone());
        tunnel = rest.map(|rest| Tunnel {
            upgrade,
            rest,
            stand_in,
        });
    }
    let answer = app.answer(request);
    let answered = match head.as_deref().zip(interims) {
        Some((head, interims)) => {
            let answered = with_interims(head, interims, answer).await;
            let sent = head.interjected(stall_time).await;
            answered.and_then(|response| Ok(sent.map(|()| response)?))
        }
        None => answer.await,
    };
    let settled = answered.and_then(|response| {
        let (mut parts, body) = response.into_parts();
        let length = if body.is_end_stream() {
            Some(0)
        } else {
            body.size_hint().exact()
        };
        let content = Content::of(&mut parts, length, asked)?;
        Ok((Response::from_parts(parts, body), content))
    });
    if settled.is_err() {
        answering.on_over();
    }
    let (mut response, content) = settled?;
    let status = response.status();
    let is_upgrade = status == StatusCode::SWITCHING_PROTOCOLS && version == Version::HTTP_11;
    if status.is_informational() && !is_upgrade {
        tracing::error!(%status, "the service answered with an interim status (1xx) instead of a final one");
        return Ok(status_alone(StatusCode::INTERNAL_SERVER_ERROR, answering));
    }
    if let Some(alt_svc) = alt_svc {
        response.headers_mut().entry(ALT_SVC).or_insert(alt_svc);
    }
    if let Some(tunnel) = tunnel.filter(|_| response.status().is_success()) {
        if tunnel.agree(stall_time).await == Served::No {
            return Ok(status_alone(StatusCode::NOT_IMPLEMENTED, answering));
        }
    }
    if content.is_sent {
        StallTime::apply(&response, &mut patience, stall_time);
        let delivery = Delivery::new(patience);
        return Ok(response.map(|body| Counted::new(body, delivery, content.promised, answering)));
    }
    if let Some(length) = content.missing_length {
        response.headers_mut().insert(CONTENT_LENGTH, length.into());
    }
    Ok(response.map(|_| Counted::none(answering)))
}

/// Waits for the answer of the service, and sends its interim responses.
async fn with_interims<T>(head: &Head, interims: Interims, answer: impl Future<Output = T>) -> T {
    let answered = tokio::select! {
        biased;
        answered = answer => answered,
        never = pass_on(head, &interims) => match never {},
    };
    for interim in interims.end() {
        head.interject(interim);
    }
    answered
}

/// Sends interim responses as the service makes them.
async fn pass_on(head: &Head, interims: &Interims) -> Infallible {
    loop {
        head.interject(interims.next().await);
    }
}

/// Returns the upgrade that a request asks for, by `upgrade` (RFC 9110 §7.8) or extended CONNECT (RFC 8441). UDP must be
/// allowed over HTTP/1.1, too.
fn upgrade(
    request: &Request<Body>,
    answering: &Answering,
    connect: Connect,
) -> Option<(Upgrade, Option<Rest>)> {
    let pending = request.extensions().get::<hyper::upgrade::OnUpgrade>()?;
    let pending = pending.clone();
    if let Some(protocol) = request.extensions().get::<hyper::ext::Protocol>() {
        let (upgrade, rest) = Upgrade::over_http2(protocol.as_str(), pending, answering.reader());
        return Some((upgrade, Some(rest)));
    }
    let protocol = request.headers().get(UPGRADE)?.to_str().ok()?;
    if protocol.eq_ignore_ascii_case(masque::PROTOCOL) && connect < Connect::Udp {
        return None;
    }
    Some((Upgrade::over_http1(protocol, pending), None))
}

/// Returns a response made by the server itself.
pub(super) fn status_alone<B: http_body::Body>(
    status: StatusCode,
    answering: Answering,
) -> Response<Counted<B>> {
    let mut response = Response::new(Counted::none(answering));
    *response.status_mut() = status;
    if status == StatusCode::SERVICE_UNAVAILABLE {
        let later = HeaderValue::from_static("1");
        response.headers_mut().insert(RETRY_AFTER, later);
    }
    response
}
