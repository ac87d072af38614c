//! Clients whose TLS says something else than it meant.

use std::sync::Arc;

use bytes::BytesMut;
use hybriq::{
    KeyExchange,
    error::{ConfigError, TlsError as Error},
    tls::CertificateDer,
};
use hybriq_proto::endpoint::Setup;
use hybriq_tls::{Flight, Negotiated, PerLevel, Provider, Session, Start, Status};

type Change = fn(&mut Flight);

struct Changing {
    honest: Arc<dyn Provider>,
    change: Change,
}

impl Provider for Changing {
    fn name(&self) -> &'static str {
        self.honest.name()
    }

    fn supports_early_data(&self) -> bool {
        false
    }

    fn key_exchange(&self) -> &KeyExchange {
        self.honest.key_exchange()
    }

    fn session(&self, start: Start<'_>) -> Result<Box<dyn Session>, ConfigError> {
        Ok(Box::new(Liar {
            honest: self.honest.session(start)?,
            change: self.change,
        }))
    }
}

struct Liar {
    honest: Box<dyn Session>,
    change: Change,
}

impl Session for Liar {
    fn drive(&mut self, rx: &mut PerLevel<BytesMut>, tx: &mut Flight) -> Result<Status, Error> {
        let mut said = Flight::default();
        let status = self.honest.drive(rx, &mut said)?;
        (self.change)(&mut said);
        tx.crypto.initial.unsplit(said.crypto.initial);
        tx.crypto.handshake.unsplit(said.crypto.handshake);
        tx.crypto.one_rtt.unsplit(said.crypto.one_rtt);
        tx.secrets.extend(said.secrets);
        tx.exporter = said.exporter.or(tx.exporter.take());
        Ok(status)
    }

    fn peer_params(&self) -> Option<&[u8]> {
        self.honest.peer_params()
    }

    fn negotiated(&self) -> Negotiated {
        self.honest.negotiated()
    }

    fn peer_certificates(&self) -> Vec<CertificateDer<'static>> {
        self.honest.peer_certificates()
    }
}

/// A setup whose handshake bytes are changed on their way from TLS to CRYPTO frames.
pub(crate) fn changing(setup: Setup, change: Change) -> Setup {
    Setup {
        provider: Arc::new(Changing {
            honest: setup.provider,
            change,
        }),
        ..setup
    }
}
