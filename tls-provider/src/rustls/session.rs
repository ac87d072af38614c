use std::task::Waker;

use ::rustls::HandshakeKind;
use ::rustls::quic::{Connection, KeyChange};
use bytes::BytesMut;

use super::capture::{self, Purpose};
use super::hello_retry::is_hello_retry;
use crate::{
    Alert, CertificateDer, Error, Flight, Level, Negotiated, PerLevel, Secret, Session, Side,
    SignatureScheme, Status, Suite, message,
};

/// One rustls connection and the levels it has reached.
pub(super) struct Running {
    tls: Connection,
    side: Side,
    write_level: Level,
    handshake_keys: bool,
    scratch: Vec<u8>,
    server_name: Option<String>,
    hello_retry: bool,
    scheme: Option<SignatureScheme>,
}

impl Running {
    pub(super) fn new(tls: Connection, side: Side, server_name: Option<String>) -> Self {
        Self {
            tls,
            side,
            write_level: Level::Initial,
            handshake_keys: false,
            scratch: Vec::new(),
            server_name,
            hello_retry: false,
            scheme: None,
        }
    }

    fn read_level(&self) -> Level {
        if !self.tls.is_handshaking() {
            Level::OneRtt
        } else if self.handshake_keys {
            Level::Handshake
        } else {
            Level::Initial
        }
    }

    fn suite(&self) -> Option<Suite> {
        let suite = self.tls.negotiated_cipher_suite()?;
        Suite::from_iana(suite.suite().into())
    }

    /// Moves everything rustls wants to send to its level.
    fn collect_writes(&mut self, tx: &mut Flight) {
        loop {
            self.scratch.clear();
            let change = self.tls.write_hs(&mut self.scratch);
            if self.side.is_server() && self.write_level == Level::Initial {
                self.hello_retry |= is_hello_retry(&self.scratch);
            }
            tx.crypto[self.write_level].extend_from_slice(&self.scratch);
            match change {
                Some(KeyChange::Handshake { .. }) => {
                    self.handshake_keys = true;
                    self.write_level = Level::Handshake;
                }
                Some(KeyChange::OneRtt { .. }) => self.write_level = Level::OneRtt,
                None if self.scratch.is_empty() => return,
                None => {}
            }
        }
    }

    fn collect_secrets(&mut self, tx: &mut Flight) -> Result<(), Error> {
        let seen = capture::take();
        if let Some(scheme) = seen.scheme {
            self.scheme = Some(SignatureScheme(scheme));
        }
        if seen.secrets.is_empty() {
            return Ok(());
        }
        let internal = |what| Error::new(Alert::INTERNAL_ERROR, what);
        let suite = self
            .suite()
            .ok_or_else(|| internal("secrets before a cipher suite"))?;
        for raw in &seen.secrets {
            let (level, writer) = match raw.purpose {
                Purpose::Traffic(level, writer) => (level, writer),
                Purpose::Exporter => (Level::OneRtt, self.side),
            };
            let secret = Secret::new(level, writer, suite, raw.as_bytes())
                .ok_or_else(|| internal("a secret of impossible length"))?;
            match raw.purpose {
                Purpose::Exporter => tx.exporter = Some(secret),
                Purpose::Traffic(..) => tx
                    .secrets
                    .try_push(secret)
                    .map_err(|_| internal("secrets of an earlier call were not taken"))?,
            }
        }
        Ok(())
    }

    fn read(&mut self, message: &[u8], tx: &mut Flight) -> Result<(), Error> {
        if self.side.is_client() && !self.hello_retry {
            self.hello_retry = is_hello_retry(message);
        }
        capture::take();
        self.tls
            .read_hs(message)
            .map_err(|error| self.failure(&error))?;
        // rustls marks queued messages only relative to the next key change: drained late, the
        // client's Finished would leave in Initial packets.
        self.collect_writes(tx);
        self.collect_secrets(tx)
    }

    fn failure(&self, error: &::rustls::Error) -> Error {
        use ::rustls::Error as Tls;
        let alert = match (self.tls.alert(), error) {
            (Some(alert), _) => Alert(alert.into()),
            (
                None,
                Tls::InappropriateMessage { .. } | Tls::InappropriateHandshakeMessage { .. },
            ) => Alert::UNEXPECTED_MESSAGE,
            // rustls names no alert for some malformed input.
            (None, _) => Alert::DECODE_ERROR,
        };
        let detail = if is_ca_as_peer(error) {
            ca_as_peer(self.side)
        } else {
            error.to_string()
        };
        Error::new(alert, detail)
    }
}

/// Whether the peer showed a CA certificate as its own. rustls has no variant for it, and its
/// verifier's error is no public type, so that only its text tells.
fn is_ca_as_peer(error: &::rustls::Error) -> bool {
    use ::rustls::{CertificateError, Error as Tls};
    matches!(
        error,
        Tls::InvalidCertificate(CertificateError::Other(why))
            if why.to_string() == "CaUsedAsEndEntity"
    )
}

fn ca_as_peer(side: Side) -> String {
    let peer = match side {
        Side::Client => "server",
        Side::Server => "client",
    };
    format!(
        "the {peer}'s certificate is a CA certificate; make it with `openssl req -x509 -addext \
         basicConstraints=critical,CA:FALSE`, or sign a leaf with it"
    )
}

impl Session for Running {
    fn drive(
        &mut self,
        rx: &mut PerLevel<BytesMut>,
        tx: &mut Flight,
        _: &Waker,
    ) -> Result<Status, Error> {
        if self.side.is_client() && self.write_level == Level::Initial {
            self.collect_writes(tx);
        }
        loop {
            let level = self.read_level();
            message::refuse_left_over(rx, level)?;
            match message::take(&mut rx[level])? {
                Some(message) => self.read(&message, tx)?,
                None => break,
            }
        }
        Ok(if self.tls.is_handshaking() {
            Status::NeedsPeer
        } else {
            Status::Complete
        })
    }

    fn peer_params(&self) -> Option<&[u8]> {
        match &self.tls {
            // Until the server's come, a client that resumes has those of the session before.
            Connection::Client(client) if client.is_handshaking() => None,
            tls => tls.quic_transport_parameters(),
        }
    }

    fn negotiated(&self) -> Negotiated {
        let server_name = match &self.tls {
            Connection::Client(_) => self.server_name.clone(),
            Connection::Server(server) => server.server_name().map(str::to_owned),
        };
        Negotiated {
            group: self
                .tls
                .negotiated_key_exchange_group()
                .map(|group| crate::Group(group.name().into())),
            hello_retry: self.hello_retry,
            suite: self.suite(),
            signature_scheme: self.scheme,
            alpn: self.tls.alpn_protocol().map(<[u8]>::to_vec),
            server_name,
            resumed: self.tls.handshake_kind() == Some(HandshakeKind::Resumed),
            early_data: false,
            lineage: None,
        }
    }

    fn peer_certificates(&self) -> Vec<CertificateDer<'static>> {
        self.tls
            .peer_certificates()
            .map(<[_]>::to_vec)
            .unwrap_or_default()
    }
}
