//! Extended CONNECT requests over HTTP/3.

use std::sync::PoisonError;

use http::{
    HeaderValue, Request, Response, StatusCode,
    header::{ALT_SVC, CONTENT_LENGTH},
};
use hybriq::StreamId;
use hybriq_h3::{
    Code, Protocol, Violation,
    webtransport::{PROTOCOL, Terms, Unsupported, offer, offered},
};

use super::{
    connection::{Established, Quic},
    response::{date, date_field},
};
use crate::{
    Body, Upgraded,
    server::{
        connections::Kind,
        state::{Connect, Phase},
    },
    upgrade::{Flow, Give, STAND_IN, StandIn, Tunnel, Upgrade},
    versions::http3::Arrived,
    webtransport::{self, Choice, Reservation, Sessions, Start, WebTransport},
};

/// The protocol that handlers written for hyper serve.
const WEBSOCKET: &str = "websocket";

/// A request that waits for the service to agree.
pub(super) struct Offer {
    give: Give,
    /// For services that were written for hyper.
    stand_in: Option<StandIn>,
    session: Session,
    choice: Option<Choice>,
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
#[derive(Clone, Copy, Debug)]
pub(super) enum Refusal {
    /// With this response.
    Status(StatusCode),
    /// By a reset.
    Reset(Code),
}

/// Waits for the settings of the client of a session, without which no session starts
/// (draft-ietf-webtrans-http3 §7.1).
async fn terms(
    quic: &Quic,
    established: &Established,
    sessions: &Sessions,
) -> Result<Terms, Refusal> {
    let settings = quic.link.peer_settings();
    let settings = tokio::time::timeout(quic.shared.limits.header_time, settings).await;
    let settings = settings.map_err(|_| Refusal::Reset(Code::H3_REQUEST_REJECTED))?;
    match webtransport::terms(&established.connection, sessions.windows(), &settings) {
        Ok(terms) => Ok(terms),
        Err(Unsupported::NotAnnounced) => Ok(Terms::OLDEST),
        Err(_) => Err(Refusal::Reset(Violation::SessionRequirements.code())),
    }
}

impl Offer {
    /// Offers the stream of a request to the service, as an extension of the request.
    pub(super) async fn new(
        quic: &Quic,
        established: &Established,
        protocol: &Protocol,
        request: &mut Request<Body>,
        id: StreamId,
    ) -> Result<Self, Refusal> {
        let protocol = protocol.as_str();
        let is_session = webtransport::is_webtransport(protocol);
        let datagrams = quic.datagrams.clone().filter(|_| !is_session);
        let flow = datagrams.map(|datagrams| {
            let connection = established.connection.clone();
            Flow::new(datagrams, quic.link.clone(), connection, id)
        });
        let (upgrade, give) = Upgrade::over_quic(protocol, flow);
        let mut session = Session::None;
        let (mut reservation, mut choice, mut stand_in) = (None, None, None);
        if is_session {
            let sessions = quic.sessions.clone();
            let refusal = Refusal::Status(StatusCode::NOT_IMPLEMENTED);
            let sessions = sessions.ok_or(refusal)?;
            let terms = terms(quic, established, &sessions).await?;
            reservation = sessions.reserve(id, terms);
            if reservation.is_none() {
                return Err(if terms.allows_pooling() {
                    Refusal::Status(StatusCode::TOO_MANY_REQUESTS)
                } else {
                    Refusal::Reset(Code::H3_REQUEST_REJECTED)
                });
            }
            session = if request.headers().contains_key(webtransport::DRAFT02) {
                Session::Draft02
            } else {
                Session::Later
            };
            let shared = quic.shared.clone();
            let start = Start {
                sessions,
                terms,
                connection: established.connection.clone(),
                request: id,
                drain: Box::pin(async move { shared.phase(Phase::Leaving).await }),
            };
            let protocols = offered(request.headers());
            let (request_for_session, chosen) = WebTransport::new(upgrade, protocols, start);
            choice = Some(chosen);
            request.extensions_mut().insert(request_for_session);
        } else if quic.shared.features.connect >= Connect::Extended {
            request.extensions_mut().insert(upgrade);
            request
                .extensions_mut()
                .insert(hyper::ext::Protocol::from(protocol));
            if protocol == WEBSOCKET {
                if let Some((made, pending)) = StandIn::new() {
                    request.extensions_mut().insert(pending);
                    stand_in = Some(made);
                }
            }
        } else {
            return Err(Refusal::Status(StatusCode::NOT_IMPLEMENTED));
        }
        Ok(Self {
            give,
            stand_in,
            session,
            choice,
            reservation,
        })
    }

    /// Returns the bytes that the offer takes, besides those of its request.
    pub(super) fn memory(&self) -> u64 {
        self.stand_in.as_ref().map_or(0, |_| STAND_IN)
    }

    /// Passes the stream to the service if it has agreed, and waits until the service has finished with it or the
    /// connection is over. Otherwise, returns the stream and the response.
    pub(super) async fn answered<B>(
        mut self,
        quic: &Quic,
        established: &Established,
        stream: Arrived,
        mut response: Response<B>,
    ) -> Result<(), (Arrived, Response<B>)> {
        if !response.status().is_success() {
            return Err((stream, response));
        }
        let mut line = None;
        if self.give.is_closed() {
            if let Some(stand_in) = self.stand_in.take() {
                line = stand_in.agree().await;
            }
            if line.is_none() {
                // Whatever answered does not know the protocol (RFC 9220 §3).
                *response.status_mut() = StatusCode::NOT_IMPLEMENTED;
                return Err((stream, response));
            }
        }
        let Arrived { mut send, recv } = stream;
        let headers = response.headers_mut();
        // RFC 9110 §9.3.6.
        headers.remove(CONTENT_LENGTH);
        if self.session == Session::Draft02 {
            let value = HeaderValue::from_static("draft02");
            headers.insert(webtransport::DRAFT, value);
        }
        if let Some(choice) = &self.choice {
            let choice = choice.lock().unwrap_or_else(PoisonError::into_inner);
            let chosen = choice.as_deref().and_then(|choice| offer([choice]));
            headers.extend(chosen.map(|chosen| (PROTOCOL, chosen)));
        }
        headers.remove(ALT_SVC);
        let date = date(headers);
        let date = date.as_ref().map(date_field);
        if send
            .response(response.status(), response.headers(), date)
            .is_err()
        {
            return Ok(());
        }
        let sent = tokio::time::timeout(quic.shared.limits.stall_time, send.flush());
        if !matches!(sent.await, Ok(Ok(()))) {
            return Ok(());
        }
        drop(response);
        let id = recv.id();
        let (tunnel, ends) = Tunnel::new(established.connection.clone(), send, recv);
        let stream = Upgraded::over_quic(tunnel);
        let line = match line {
            Some(line) => Some((line, stream)),
            None if self.give.send(stream).is_err() => return Ok(()),
            None => None,
        };
        let _tunnel = quic.shared.connections.count_one(Kind::Tunnel);
        let stall_time = quic.shared.limits.stall_time;
        let passed_on = async {
            if let Some((line, stream)) = line {
                line.serve(stream, stall_time).await;
            }
        };
        let used = async {
            // Nothing is sent on these channels: they end when their senders are dropped.
            let _ = ends.shut.await;
            // The client must accept the rest, as it must a response.
            let _answer = quic.on_answer(id, None);
            let _ = ends.dropped.await;
        };
        tokio::select! {
            ((), ()) = async { tokio::join!(passed_on, used) } => {}
            // A service that keeps the stream finds out when it uses it.
            _ = established.connection.closed() => {}
        }
        drop(self.reservation);
        Ok(())
    }
}
