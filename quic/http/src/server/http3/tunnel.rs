//! Extended CONNECT requests over HTTP/3.

use http::{
    HeaderValue, Request, Response, StatusCode,
    header::{ALT_SVC, CONTENT_LENGTH, DATE},
};
use hybriq_h3::{Protocol, webtransport::Reservation};

use super::{
    connection::{Established, Quic},
    response::date,
};
use crate::{
    Body, Upgraded,
    server::{
        connections::Kind,
        state::{Connect, Phase},
    },
    upgrade::{Give, Tunnel, Upgrade},
    versions::http3::{Recv, Send},
    webtransport::{self, Start, WebTransport},
};

/// A request that waits for the service to agree.
pub(super) struct Offer {
    give: Give,
    recv: Recv<Request<()>>,
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

/// A request that is not offered to the service: the status of the response.
pub(super) struct Refusal(pub(super) StatusCode);

impl Offer {
    /// Offers the stream of a request to the service, as an extension of the request.
    pub(super) fn new(
        quic: &Quic,
        established: &Established,
        protocol: &Protocol,
        request: &mut Request<Body>,
        recv: Recv<Request<()>>,
    ) -> Result<Self, Refusal> {
        let protocol = protocol.as_str();
        let id = recv.id();
        let (upgrade, give) = Upgrade::over_quic(protocol);
        let mut session = Session::None;
        let mut reservation = None;
        if webtransport::is_webtransport(protocol) {
            let sessions = quic.sessions.clone();
            let sessions = sessions.ok_or(Refusal(StatusCode::NOT_IMPLEMENTED))?;
            reservation = sessions.reserve(id);
            if reservation.is_none() {
                return Err(Refusal(StatusCode::TOO_MANY_REQUESTS));
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
            return Err(Refusal(StatusCode::NOT_IMPLEMENTED));
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
        headers.remove(ALT_SVC);
        let date = date(headers).map(|date| (DATE, date));
        if send
            .response(response.status(), response.headers(), &[date])
            .is_err()
        {
            return Ok(());
        }
        let sent = tokio::time::timeout(quic.shared.limits.stall_time, send.flush());
        if !matches!(sent.await, Ok(Ok(()))) {
            return Ok(());
        }
        let id = self.recv.id();
        let (tunnel, ends) = Tunnel::new(established.connection.clone(), send, self.recv);
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
