//! A TLS provider that announces extreme transport parameters and reveals the secrets of the
//! connection.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::BytesMut;
use hybriq_proto::wire::params::Params;
use hybriq_tls::{
    CertificateDer, ConfigError, Error, Flight, KeyExchange, Level, Negotiated, PerLevel, Provider,
    Secret, Session, Side, Start, Status,
};

use crate::adversary::Extremes;

/// 1-RTT secrets of a connection and the server's parameters, as reported by TLS.
#[derive(Clone, Debug, Default)]
pub(in crate::adversary) struct Secrets(Arc<Mutex<(Vec<Secret>, Vec<u8>)>>);

impl Secrets {
    fn lock(&self) -> MutexGuard<'_, (Vec<Secret>, Vec<u8>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the 1-RTT secret of one end, once TLS has it.
    pub(in crate::adversary) fn of(&self, writer: Side) -> Option<Secret> {
        let known = self.lock();
        let mut secrets = known.0.iter();
        secrets.find(|it| it.writer() == writer).cloned()
    }

    /// Returns the server's transport parameters, encoded.
    pub(in crate::adversary) fn params(&self) -> Vec<u8> {
        self.lock().1.clone()
    }

    fn take(&self, flight: &Flight, params: Option<&[u8]>) {
        let mut known = self.lock();
        let secrets = flight.secrets.iter();
        let application = secrets.filter(|it| it.level() == Level::OneRtt);
        known.0.extend(application.cloned());
        if let Some(params) = params {
            known.1 = params.to_vec();
        }
    }
}

/// Provider of a client with [`Extremes`].
pub(in crate::adversary) struct Disguise {
    pub(in crate::adversary) inner: Arc<dyn Provider>,
    pub(in crate::adversary) extremes: Extremes,
    pub(in crate::adversary) secrets: Secrets,
}

impl Provider for Disguise {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn supports_early_data(&self) -> bool {
        false
    }

    fn key_exchange(&self) -> &KeyExchange {
        self.inner.key_exchange()
    }

    fn session(&self, start: Start<'_>) -> Result<Box<dyn Session>, ConfigError> {
        let side = start.side();
        let mut params = start.params().to_vec();
        if let Ok(mut own) = Params::decode(&params, side) {
            self.extremes.apply(&mut own);
            params.clear();
            own.encode(side, &mut params);
        }
        Ok(Box::new(Open {
            inner: self.inner.session(start.with_params(&params))?,
            secrets: self.secrets.clone(),
        }))
    }
}

/// Session that reveals its secrets.
struct Open {
    inner: Box<dyn Session>,
    secrets: Secrets,
}

impl Session for Open {
    fn drive(&mut self, rx: &mut PerLevel<BytesMut>, tx: &mut Flight) -> Result<Status, Error> {
        let status = self.inner.drive(rx, tx);
        self.secrets.take(tx, self.inner.peer_params());
        status
    }

    fn peer_params(&self) -> Option<&[u8]> {
        self.inner.peer_params()
    }

    fn negotiated(&self) -> Negotiated {
        self.inner.negotiated()
    }

    fn peer_certificates(&self) -> Vec<CertificateDer<'static>> {
        self.inner.peer_certificates()
    }
}
