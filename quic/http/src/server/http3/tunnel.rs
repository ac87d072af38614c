//! Extended CONNECT requests over HTTP/3.

use http::{
    HeaderValue, Method, Request, Response, StatusCode,
    header::{CONTENT_LENGTH, DATE},
};
use hybriq_h3::{Payload, RecvStream, webtransport::Reservation};

use super::{
    connection::{Established, Quic},
    response::{Send, date, strip},
};
use crate::{
    Body, Upgraded,
    server::{
        connections::Kind,
        state::{Connect, Phase},
    },
    upgrade::{Give, Tunnel, Upgrade},
    webtransport::{self, Start, WebTransport},
};

type Recv = h3::server::RequestStream<RecvStream, Payload>;

/// A request that waits for the service to agree.
pub(super) struct Offer {
    give: Give,
    recv: Recv,
    session: Session,
    /// The place of the session, until it is over. If this is dropped earlier, the session is refused.
    reservation: Option<Reservation>,
}

/// The WebTransport session that a request asks for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Session {
    None,
    Draft02,
    Later,
}

/// A request that is not offered to the service.
pub(super) enum Refusal {
    /// The request breaks a rule of RFC 9220.
    Malformed,
    /// Status of the response.
    Status(StatusCode),
}

impl Offer {
    /// Offers the stream of a request to the service, as an extension of the request.
    pub(super) fn new(
        quic: &Quic,
        established: &Established,
        protocol: &HeaderValue,
        request: &mut Request<Body>,
        recv: Recv,
    ) -> Result<Self, Refusal> {
        // The pseudo-header field has a meaning in CONNECT requests only (RFC 8441 §4).
        let protocol = protocol.to_str().map_err(|_| Refusal::Malformed)?;
        if request.method() != Method::CONNECT {
            return Err(Refusal::Malformed);
        }
        let id = recv.id();
        let (upgrade, give) = Upgrade::over_quic(protocol);
        let mut session = Session::None;
        let mut reservation = None;
        if webtransport::is_webtransport(protocol) {
            let sessions = quic.sessions.clone();
            let sessions = sessions.ok_or(Refusal::Status(StatusCode::NOT_IMPLEMENTED))?;
            reservation = sessions.reserve(id);
            if reservation.is_none() {
                return Err(Refusal::Status(StatusCode::TOO_MANY_REQUESTS));
            }
            session = if request.headers().contains_key(webtransport::DRAFT02) {
                Session::Draft02
            } else {
                Session::Later
            };
            let shared = quic.shared.clone();
            let start = Start {
                sessions,
                connection: established.connection.clone(),
                request: id,
                drain: Box::pin(async move { shared.phase(Phase::Draining).await }),
            };
            let request_for_session = WebTransport::new(upgrade, start);
            request.extensions_mut().insert(request_for_session);
        } else if quic.shared.features.connect == Connect::Extended {
            request.extensions_mut().insert(upgrade);
        } else {
            return Err(Refusal::Status(StatusCode::NOT_IMPLEMENTED));
        }
        Ok(Self {
            give,
            recv,
            session,
            reservation,
        })
    }

    /// Passes the stream to the service if it has agreed, and waits until the service has finished with it or the
    /// connection is over. Otherwise, returns the response and the sending half of its stream.
    pub(super) async fn answered<B>(
        self,
        quic: &Quic,
        established: &Established,
        mut send: Send,
        mut response: Response<B>,
    ) -> Result<(), (Send, Response<B>)> {
        if !response.status().is_success() {
            return Err((send, response));
        }
        let headers = response.headers_mut();
        // RFC 9110 §9.3.6.
        headers.remove(CONTENT_LENGTH);
        if self.session == Session::Draft02 {
            let value = HeaderValue::from_static("draft02");
            headers.insert(webtransport::DRAFT, value);
        }
        strip(headers);
        let date = date(headers);
        headers.extend(date.map(|date| (DATE, date)));
        let head = response.map(drop);
        let sent = tokio::time::timeout(quic.shared.limits.stall_time, send.send_response(head));
        if !matches!(sent.await, Ok(Ok(()))) {
            return Ok(());
        }
        let id = hybriq::StreamId(self.recv.id().into_inner());
        let (tunnel, ends) = Tunnel::new(
            established.connection.clone(),
            self.recv.id(),
            send,
            self.recv,
        );
        if self.give.send(Upgraded::over_quic(tunnel)).is_ok() {
            let _tunnel = quic.shared.connections.count_one(Kind::Tunnel);
            let used = async {
                // Nothing is sent on these channels: they end when their senders are dropped.
                let _ = ends.shut.await;
                // The client must accept the rest, as it must a response.
                let _answer = quic.on_answer(id);
                let _ = ends.dropped.await;
            };
            tokio::select! {
                () = used => {}
                // A service that keeps the stream finds out when it uses it.
                _ = established.connection.closed() => {}
            }
        }
        drop(self.reservation);
        Ok(())
    }
}
