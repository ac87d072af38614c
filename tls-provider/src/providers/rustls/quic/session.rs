//! One handshake of rustls.

use std::sync::Arc;

use ::rustls::HandshakeKind;
use ::rustls::crypto::SupportedKxGroup;
use ::rustls::quic::{ClientConnection, Connection, KeyChange, ServerConnection};
use bytes::BytesMut;

use crate::providers::rustls::locals::capture::{self, Purpose, Schemes};
use crate::providers::rustls::locals::ticket_facts::{self, Found, Issue};
use crate::{
    Alert, CertificateDer, CertificateMessage, EarlyDataStatus, Error, Flight, Group, Level,
    Lineage, Negotiated, PerLevel, Secret, ServerStart, Session, Side, SignatureScheme, Status,
    Suite,
    messages::{framing, ticket},
};

/// Type of the message in which the server says whether it accepts 0-RTT data (RFC 8446 §4.3.1).
const ENCRYPTED_EXTENSIONS: u8 = 8;

/// One rustls connection and the levels it has reached.
pub(in crate::providers::rustls) struct Running {
    tls: Connection,
    side: Side,
    write_level: Level,
    handshake_keys: bool,
    scratch: Vec<u8>,
    server_name: Option<String>,
    hello_retry: bool,
    schemes: Schemes,
    certificate_message: Option<CertificateMessage>,
    early_data: EarlyDataStatus,
    /// Client: 0-RTT secret to deliver with the first flight.
    early_secret: Option<Secret>,
    /// Facts found with the ticket, accepted or not.
    ticket: Option<Found>,
    /// Server: limits to store with new tickets.
    early_context: Arc<[u8]>,
    /// Context that new tickets are bound to.
    scope: Arc<[u8]>,
    failed: Option<Error>,
    /// Server: identity that the transport chose.
    identity: Option<usize>,
}

impl Running {
    /// Takes over a connection that was just created on this thread.
    pub(in crate::providers::rustls) fn client(
        tls: ClientConnection,
        server_name: Option<String>,
        scope: &[u8],
    ) -> Self {
        let mut session = Self::new(Connection::Client(tls), Side::Client, server_name);
        session.ticket = ticket_facts::take_found();
        session.scope = scope.into();
        // rustls derives the secret here only if it asks for 0-RTT.
        let seen = capture::take();
        let early = seen.secrets.iter().find_map(|raw| match raw.purpose {
            Purpose::Traffic(Level::ZeroRtt, writer) => Some((writer, raw.as_bytes())),
            Purpose::Traffic(..) | Purpose::Exporter => None,
        });
        session.early_secret = early.and_then(|(writer, bytes)| {
            Secret::new(Level::ZeroRtt, writer, session.suite()?, bytes)
        });
        if session.early_secret.is_some() {
            session.early_data = EarlyDataStatus::Offered;
        }
        session
    }

    pub(in crate::providers::rustls) fn server(
        tls: ServerConnection,
        early_data: EarlyDataStatus,
        start: ServerStart<'_>,
    ) -> Self {
        let mut session = Self::new(Connection::Server(tls), Side::Server, None);
        session.early_context = start.early_context.into();
        session.scope = start.resumption_context.into();
        session.early_data = early_data;
        session.identity = start.identity;
        session
    }

    fn new(tls: Connection, side: Side, server_name: Option<String>) -> Self {
        Self {
            tls,
            side,
            write_level: Level::Initial,
            handshake_keys: false,
            scratch: Vec::new(),
            server_name,
            hello_retry: false,
            schemes: Schemes::default(),
            certificate_message: None,
            early_data: EarlyDataStatus::None,
            early_secret: None,
            ticket: None,
            early_context: Arc::default(),
            scope: Arc::default(),
            failed: None,
            identity: None,
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

    fn group(&self) -> Option<Group> {
        let group = self.tls.negotiated_key_exchange_group()?;
        Some(Group(group.name().into()))
    }

    /// Returns true if a FIPS module does this handshake with approved algorithms, as rustls knows them.
    fn is_fips(&self) -> bool {
        let suite = self.tls.negotiated_cipher_suite();
        let group = self.tls.negotiated_key_exchange_group();
        suite.is_some_and(|it| it.fips())
            && group.is_some_and(SupportedKxGroup::fips)
            && crate::is_fips()
    }

    fn lineage(&self) -> Option<Lineage> {
        match self.tls.handshake_kind()? {
            HandshakeKind::Resumed => self.ticket.as_ref().map(|ticket| ticket.lineage),
            HandshakeKind::Full | HandshakeKind::FullWithHelloRetryRequest => {
                self.group().map(Lineage::of)
            }
        }
    }

    /// Returns the facts to store with tickets that rustls issues or receives now.
    fn issue(&self) -> Issue {
        let context = match self.side {
            // No ticket arrives before the handshake is complete.
            Side::Client if self.tls.is_handshaking() => Arc::default(),
            Side::Client => self.tls.alpn_protocol().unwrap_or_default().into(),
            Side::Server => self.early_context.clone(),
        };
        Issue {
            lineage: self.lineage(),
            context,
            scope: self.scope.clone(),
            ..Issue::default()
        }
    }

    /// Decides from the message just read whether 0-RTT data was accepted.
    fn decide_early(&mut self, message: &[u8]) -> Result<(), Error> {
        if self.early_data != EarlyDataStatus::Offered {
            return Ok(());
        }
        let accepted = match &self.tls {
            _ if self.hello_retry => false,
            Connection::Client(client) if message.first() == Some(&ENCRYPTED_EXTENSIONS) => {
                client.is_early_data_accepted()
            }
            // rustls forgets the early secret when it refuses.
            Connection::Server(server) if self.handshake_keys => server.zero_rtt_keys().is_some(),
            Connection::Client(_) | Connection::Server(_) => return Ok(()),
        };
        // rustls does not check this, and a server must have chosen the same (RFC 8446 §4.2.10).
        let chosen = self.tls.alpn_protocol();
        if accepted && self.side.is_client() && chosen != self.remembered_alpn() {
            return Err(Error::told(
                Alert::ILLEGAL_PARAMETER,
                "the server accepted early data of another application protocol",
            ));
        }
        self.early_data = if accepted {
            EarlyDataStatus::Accepted
        } else {
            EarlyDataStatus::Rejected
        };
        Ok(())
    }

    /// Moves all bytes that rustls wants to send to their level.
    fn collect_writes(&mut self, tx: &mut Flight) {
        loop {
            self.scratch.clear();
            let change = self.tls.write_hs(&mut self.scratch);
            if self.side.is_server() && self.write_level == Level::Initial {
                self.hello_retry |= framing::is_hello_retry(&self.scratch);
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
        self.schemes.client = seen.schemes.client.or(self.schemes.client);
        self.schemes.server = seen.schemes.server.or(self.schemes.server);
        if seen.secrets.is_empty() {
            return Ok(());
        }
        let internal = |what| Error::new(Alert::INTERNAL_ERROR, what);
        let suite = self
            .suite()
            .ok_or_else(|| internal("secrets before a cipher suite"))?;
        for raw in &seen.secrets {
            let (level, writer) = match raw.purpose {
                // rustls derives this secret whenever a ticket is used.
                Purpose::Traffic(Level::ZeroRtt, _)
                    if self.side.is_client() || self.early_data != EarlyDataStatus::Accepted =>
                {
                    continue;
                }
                Purpose::Traffic(level, writer) => (level, writer),
                Purpose::Exporter => (Level::OneRtt, self.side),
            };
            let secret = Secret::new(level, writer, suite, raw.as_bytes())
                .ok_or_else(|| internal("a secret of impossible length"))?;
            match raw.purpose {
                Purpose::Exporter => tx.exporter = Some(secret),
                Purpose::Traffic(..) => push(tx, secret)?,
            }
        }
        Ok(())
    }

    fn read(&mut self, message: &[u8], tx: &mut Flight) -> Result<(), Error> {
        if self.side.is_client() && !self.hello_retry {
            self.hello_retry = framing::is_hello_retry(message);
        }
        if self.side.is_client() && !self.tls.is_handshaking() {
            ticket::check(message)?;
        }
        capture::take();
        ticket_facts::begin(self.issue());
        // Other handshakes on this thread choose their own.
        ticket_facts::choose_identity(self.identity);
        let read = self.tls.read_hs(message);
        ticket_facts::choose_identity(None);
        read.map_err(|error| self.failure(&error))?;
        if let Some(found) = ticket_facts::take_found() {
            self.ticket = Some(found);
        }
        if let Some(shown) = CertificateMessage::of(message) {
            self.certificate_message = Some(shown);
        }
        // rustls marks queued messages only relative to the next key change: if they were drained
        // late, the client's Finished would leave in Initial packets.
        self.collect_writes(tx);
        self.decide_early(message)?;
        self.collect_secrets(tx)
    }

    fn run(&mut self, rx: &mut PerLevel<BytesMut>, tx: &mut Flight) -> Result<(), Error> {
        if self.side.is_client() && self.write_level == Level::Initial {
            self.collect_writes(tx);
        }
        if let Some(early) = self.early_secret.take() {
            push(tx, early)?;
        }
        loop {
            let level = self.read_level();
            framing::refuse_left_over(rx, level)?;
            match framing::take(&mut rx[level])? {
                Some(message) => self.read(&message, tx)?,
                None => return Ok(()),
            }
        }
    }

    fn failure(&self, error: &::rustls::Error) -> Error {
        use ::rustls::Error as Tls;
        if let Some(error) = of_application(error) {
            return error.clone();
        }
        let alert = match (self.tls.alert(), error) {
            (Some(alert), _) => Alert(alert.into()),
            (
                None,
                Tls::InappropriateMessage { .. } | Tls::InappropriateHandshakeMessage { .. },
            ) => Alert::UNEXPECTED_MESSAGE,
            // rustls gives no alert for some malformed input.
            (None, _) => Alert::DECODE_ERROR,
        };
        if is_ca_as_peer(error) {
            Error::told(alert, ca_as_peer(self.side))
        } else if is_unknown_issuer(error) {
            Error::told(alert, format!("{error}; {UNKNOWN_ISSUER}"))
        } else if is_of_peer(error) {
            Error::told(alert, error.to_string())
        } else {
            Error::new(alert, error.to_string())
        }
    }
}

fn push(tx: &mut Flight, secret: Secret) -> Result<(), Error> {
    tx.secrets.try_push(secret).map_err(|_| {
        Error::new(
            Alert::INTERNAL_ERROR,
            "secrets of an earlier call were not taken",
        )
    })
}

/// Returns the error of the application's verifier or signer, if it came from there.
fn of_application(error: &::rustls::Error) -> Option<&Error> {
    use ::rustls::{CertificateError, Error as Tls};
    match error {
        Tls::InvalidCertificate(CertificateError::Other(why)) | Tls::Other(why) => {
            why.0.downcast_ref()
        }
        _ => None,
    }
}

/// Returns true if the peer's messages or certificates are at fault, and not this machine.
fn is_of_peer(error: &::rustls::Error) -> bool {
    use ::rustls::{CertificateError, Error as Tls};
    match error {
        Tls::InvalidCertificate(why) => !matches!(why, CertificateError::Other(_)),
        Tls::InappropriateMessage { .. }
        | Tls::InappropriateHandshakeMessage { .. }
        | Tls::InvalidEncryptedClientHello(_)
        | Tls::InvalidMessage(_)
        | Tls::NoCertificatesPresented
        | Tls::UnsupportedNameType
        | Tls::DecryptError
        | Tls::PeerIncompatible(_)
        | Tls::PeerMisbehaved(_)
        | Tls::AlertReceived(_)
        | Tls::PeerSentOversizedRecord
        | Tls::NoApplicationProtocol => true,
        _ => false,
    }
}

/// Returns true if the peer presented a CA certificate as its own. rustls has no variant for this,
/// and the error of its verifier is not public, so only its text reveals it.
fn is_ca_as_peer(error: &::rustls::Error) -> bool {
    use ::rustls::{CertificateError, Error as Tls};
    matches!(
        error,
        Tls::InvalidCertificate(CertificateError::Other(why))
            if why.to_string() == "CaUsedAsEndEntity"
    )
}

/// Returns true if none of the peer's certificates is signed by a known one.
fn is_unknown_issuer(error: &::rustls::Error) -> bool {
    use ::rustls::{CertificateError, Error as Tls};
    matches!(
        error,
        Tls::InvalidCertificate(CertificateError::UnknownIssuer)
    )
}

/// What to do about an unknown issuer.
const UNKNOWN_ISSUER: &str = "give the root of the certificate with `trust`, and if the peer leaves \
    out its intermediates, give them with `Trust::intermediates`, or let the peer send them";

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
    fn drive(&mut self, rx: &mut PerLevel<BytesMut>, tx: &mut Flight) -> Result<Status, Error> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        if let Err(error) = self.run(rx, tx) {
            self.failed = Some(error.clone());
            return Err(error);
        }
        Ok(if self.tls.is_handshaking() {
            Status::NeedsPeer
        } else {
            Status::Complete
        })
    }

    fn peer_params(&self) -> Option<&[u8]> {
        match &self.tls {
            // Before the server's certificates arrive, a resuming client has those of the earlier
            // session.
            Connection::Client(client) if client.is_handshaking() => None,
            tls => tls.quic_transport_parameters(),
        }
    }

    fn early_data(&self) -> EarlyDataStatus {
        self.early_data
    }

    fn remembered_params(&self) -> Option<&[u8]> {
        let offered = self.side.is_client() && self.early_data != EarlyDataStatus::None;
        self.ticket
            .as_ref()
            .filter(|_| offered)
            .map(|it| &*it.params)
    }

    fn remembered_alpn(&self) -> Option<&[u8]> {
        let offered = self.side.is_client() && self.early_data != EarlyDataStatus::None;
        self.ticket
            .as_ref()
            .filter(|it| offered && !it.alpn.is_empty())
            .map(|it| &*it.alpn)
    }

    fn set_resumption_context(&mut self, context: &[u8]) {
        self.scope = context.into();
    }

    fn negotiated(&self) -> Negotiated {
        let server_name = match &self.tls {
            Connection::Client(_) => self.server_name.clone(),
            Connection::Server(server) => server.server_name().map(str::to_owned),
        };
        Negotiated {
            group: self.group(),
            hello_retry: self.hello_retry,
            suite: self.suite(),
            signature_scheme: self.schemes.server.map(SignatureScheme),
            client_signature_scheme: self.schemes.client.map(SignatureScheme),
            alpn: self.tls.alpn_protocol().map(<[u8]>::to_vec),
            server_name,
            resumed: self.tls.handshake_kind() == Some(HandshakeKind::Resumed),
            early_data: self.early_data == EarlyDataStatus::Accepted,
            lineage: self.lineage(),
            fips: self.is_fips(),
            certificate_message: self.certificate_message,
        }
    }

    fn peer_certificates(&self) -> Vec<CertificateDer<'static>> {
        self.tls
            .peer_certificates()
            .map(<[_]>::to_vec)
            .unwrap_or_default()
    }
}
