//! A server's session before its ClientHello is complete.

use std::sync::Arc;

use bytes::BytesMut;

use crate::{
    CertificateDer, ClientHello, EarlyDataPolicy, EarlyDataStatus, Error, Flight, Negotiated,
    PerLevel, ServerStart, Session, Status,
};

/// A server that starts the TLS library for one ClientHello, or refuses it.
pub(crate) trait Answer: Send + Sync {
    fn answer(
        &self,
        hello: &ClientHello,
        start: ServerStart<'_>,
    ) -> Result<Box<dyn Session>, Error>;
}

/// A server's session that holds no TLS object until the ClientHello is complete and acceptable.
pub(crate) struct Accepting(State);

enum State {
    Waiting {
        answer: Arc<dyn Answer>,
        params: Vec<u8>,
        early_data: EarlyDataPolicy,
        early_context: Vec<u8>,
        resumption_context: Vec<u8>,
    },
    Running(Box<dyn Session>),
    Refused(Error),
}

impl Accepting {
    pub(crate) fn new(answer: Arc<dyn Answer>, start: ServerStart<'_>) -> Self {
        Self(match start.client_hello {
            Some(hello) => State::of(answer.answer(hello, start)),
            None => State::Waiting {
                answer,
                params: start.params.to_vec(),
                early_data: start.early_data,
                early_context: start.early_context.to_vec(),
                resumption_context: start.resumption_context.to_vec(),
            },
        })
    }

    fn running(&self) -> Option<&dyn Session> {
        match &self.0 {
            State::Running(session) => Some(&**session),
            State::Waiting { .. } | State::Refused(_) => None,
        }
    }
}

impl State {
    fn of(answer: Result<Box<dyn Session>, Error>) -> Self {
        answer.map_or_else(Self::Refused, Self::Running)
    }
}

impl Session for Accepting {
    fn drive(&mut self, rx: &mut PerLevel<BytesMut>, tx: &mut Flight) -> Result<Status, Error> {
        if let State::Waiting {
            answer,
            params,
            early_data,
            early_context,
            resumption_context,
        } = &self.0
        {
            let next = match ClientHello::parse(&rx.initial) {
                Ok(None) => return Ok(Status::NeedsPeer),
                Ok(Some((hello, _))) => {
                    let start = ServerStart {
                        params,
                        early_data: *early_data,
                        early_context,
                        resumption_context,
                        ..ServerStart::default()
                    };
                    State::of(answer.answer(&hello, start))
                }
                Err(error) => State::Refused(error.into()),
            };
            self.0 = next;
        }
        match &mut self.0 {
            State::Running(session) => session.drive(rx, tx),
            State::Refused(error) => Err(error.clone()),
            State::Waiting { .. } => Ok(Status::NeedsPeer),
        }
    }

    fn peer_params(&self) -> Option<&[u8]> {
        self.running()?.peer_params()
    }

    fn early_data(&self) -> EarlyDataStatus {
        self.running().map(Session::early_data).unwrap_or_default()
    }

    fn negotiated(&self) -> Negotiated {
        self.running().map(Session::negotiated).unwrap_or_default()
    }

    fn peer_certificates(&self) -> Vec<CertificateDer<'static>> {
        self.running()
            .map(Session::peer_certificates)
            .unwrap_or_default()
    }
}
