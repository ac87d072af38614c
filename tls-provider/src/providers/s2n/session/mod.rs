//! One handshake of s2n-tls.

mod checks;
pub(super) mod failure;
pub(super) mod io;

use std::{
    sync::Arc,
    task::{Poll, Waker},
    time::{Duration, SystemTime},
};

use bytes::BytesMut;
use s2n_tls::config::Config;
use s2n_tls::connection::Connection;
use s2n_tls::enums::{Blinding, Mode, SignatureAlgorithm};
use s2n_tls::error::Error as S2nError;
use zeroize::Zeroizing;

use self::io::Io;
use super::{
    keys_elsewhere,
    tickets::{State, Tickets},
};
use crate::{
    Alert, CertificateAlgorithms, CertificateDer, ClientHello, Error, Flight, Group, KeyAlgorithm,
    Level, Lineage, Negotiated, PerLevel, Profile, Secret, Session, Side, SignatureScheme, Status,
    Suite, Verifier,
    messages::{framing, ticket},
    options::KeyLogSink,
};

#[cfg(test)]
mod tests;

/// Levels of handshake messages.
const LEVELS: [Level; 3] = [Level::Initial, Level::Handshake, Level::OneRtt];

/// Range of the random in a ClientHello.
const RANDOM: std::ops::Range<usize> = 6..38;

/// Creates a connection in QUIC mode that reads from and writes to our buffers.
pub(super) fn connection(
    mode: Mode,
    config: Config,
    params: &[u8],
) -> Result<Connection, S2nError> {
    let mut connection = Connection::new(mode);
    connection.set_config(config)?;
    connection.enable_quic()?;
    // s2n-tls would sleep for seconds after a failure, which is no use to a datagram transport.
    connection.set_blinding(Blinding::SelfService)?;
    connection.set_quic_transport_parameters(params)?;
    // Callbacks that answer at once are polled too, and need a waker.
    connection.set_waker(Some(Waker::noop()))?;
    io::install(&mut connection)?;
    Ok(connection)
}

/// Parts that all sessions of a provider share.
#[derive(Clone)]
pub(super) struct Common {
    pub(super) profile: Profile,
    pub(super) alpn: Arc<[Vec<u8>]>,
    pub(super) key_log: Option<Arc<KeyLogSink>>,
    /// The application's certificate check, which runs after that of s2n-tls.
    pub(super) verifier: Option<Arc<dyn Verifier>>,
    /// Client: its own certificate.
    pub(super) leaf: Option<CertificateDer<'static>>,
}

/// What is known about the server's name, and for a client about its tickets.
#[derive(Default)]
pub(super) struct Peer {
    /// Name or address that is verified, and whose tickets are used.
    pub(super) name: String,
    /// True if the name is sent; an address is not (RFC 6066 §3).
    pub(super) is_sent: bool,
    /// Store of the server's tickets.
    pub(super) tickets: Option<Tickets>,
    /// Lineage of the ticket in the ClientHello.
    pub(super) lineage: Option<Lineage>,
    /// Context that new tickets are bound to.
    pub(super) scope: Arc<[u8]>,
}

/// Lineages of the tickets that a handshake issues and accepts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Lineages {
    pub(super) issued: Lineage,
    pub(super) accepted: Lineage,
}

/// What a server knows about its client.
pub(super) struct Client<'a> {
    pub(super) hello: &'a ClientHello,
    pub(super) lineages: Lineages,
    /// Group of the handshake.
    pub(super) group: Group,
}

/// One connection of s2n-tls and the levels it has reached.
pub(super) struct Running {
    connection: Connection,
    io: Io,
    side: Side,
    common: Common,
    client_random: [u8; 32],
    peer: Peer,
    /// Server: lineages of the tickets that its configuration issues and accepts.
    lineages: Option<Lineages>,
    /// Server: group of the client's share that it has not answered yet.
    shared: Option<Group>,
    peer_params: Option<Vec<u8>>,
    suite: Option<Suite>,
    started: bool,
    complete: bool,
    failed: Option<Error>,
}

impl Running {
    pub(super) fn client(connection: Connection, common: Common, peer: Peer) -> Self {
        Self {
            connection,
            io: Io::new(Side::Client),
            side: Side::Client,
            common,
            client_random: [0; 32],
            peer,
            lineages: None,
            shared: None,
            peer_params: None,
            suite: None,
            started: false,
            complete: false,
            failed: None,
        }
    }

    pub(super) fn server(connection: Connection, common: Common, client: &Client<'_>) -> Self {
        let name = client.hello.server_name();
        let mut shares = client.hello.key_shares().iter();
        let has_share = shares.any(|share| share.group == client.group);
        let asked_for = Peer {
            name: name.unwrap_or_default().to_owned(),
            is_sent: name.is_some(),
            ..Peer::default()
        };
        Self {
            io: Io::new(Side::Server),
            side: Side::Server,
            lineages: Some(client.lineages),
            shared: has_share.then_some(client.group),
            client_random: client.hello.random().try_into().unwrap_or_default(),
            started: true,
            ..Self::client(connection, common, asked_for)
        }
    }

    fn read_level(&self) -> Level {
        if self.complete {
            Level::OneRtt
        } else {
            self.io.read_level()
        }
    }

    /// Feeds the staged message to s2n-tls and collects its answer.
    fn advance(&mut self) -> Result<(), Error> {
        if self.complete {
            return self.read_ticket();
        }
        let connection = &mut self.connection;
        let polled = io::with(&mut self.io, || connection.poll_negotiate().map_ok(drop));
        match polled {
            Poll::Pending => {}
            Poll::Ready(Err(error)) => {
                return Err(failure::at(self.side, self.common.profile, &error));
            }
            Poll::Ready(Ok(())) => self.complete = true,
        }
        if !self.io.message.is_empty() {
            return Err(Error::new(
                Alert::INTERNAL_ERROR,
                "s2n-tls left a message unread",
            ));
        }
        if self.peer_params.is_none() {
            let params = self
                .connection
                .quic_transport_parameters()
                .unwrap_or_default();
            self.peer_params = (!params.is_empty()).then(|| params.to_vec());
        }
        if self.complete {
            self.check_complete()?;
            self.ask_verifier()?;
            self.withhold_ticket();
        }
        Ok(())
    }

    /// Returns the scheme of the client's signature if it presented a certificate.
    fn client_scheme(&self) -> Option<SignatureScheme> {
        let algorithm = self.connection.selected_client_signature_algorithm();
        // Most handshakes end here. The certificate chain is rebuilt for each call.
        let algorithm = algorithm.ok()??;
        let leaf = match self.side {
            Side::Client => self.common.leaf.clone(),
            Side::Server => self.peer_certificates().into_iter().next(),
        }?;
        if algorithm == SignatureAlgorithm::MLDSA {
            // s2n-tls does not report which parameters were used; they are those of the key.
            return match CertificateAlgorithms::of(&leaf)?.key {
                KeyAlgorithm::MlDsa44 => Some(SignatureScheme::MLDSA44),
                KeyAlgorithm::MlDsa65 => Some(SignatureScheme::MLDSA65),
                KeyAlgorithm::MlDsa87 => Some(SignatureScheme::MLDSA87),
                _ => None,
            };
        }
        let hash = self.connection.selected_client_hash_algorithm();
        keys_elsewhere::scheme_of(algorithm, hash.ok()??)
    }

    fn group(&self) -> Option<Group> {
        self.connection
            .selected_key_exchange_group()
            .and_then(Group::from_name)
    }

    /// Returns true if a FIPS module does this handshake with approved algorithms.
    fn is_fips(&self) -> bool {
        let approved = |(group, suite)| Profile::is_approved(group, suite);
        self.group().zip(self.suite).is_some_and(approved) && super::is_fips()
    }

    fn lineage(&self) -> Option<Lineage> {
        if !self.connection.resumed() {
            return self.group().map(Lineage::of);
        }
        match self.lineages {
            // This configuration opens no other tickets.
            Some(lineages) => Some(lineages.accepted),
            None => self.peer.lineage,
        }
    }

    /// Drops a ticket whose lineage is better than its session's, whatever s2n-tls chose.
    fn withhold_ticket(&mut self) {
        let issued = self.lineages.map(|lineages| lineages.issued);
        if issued.is_some() && issued != self.lineage() {
            self.io.crypto.one_rtt.clear();
        }
    }

    fn read_ticket(&mut self) -> Result<(), Error> {
        if self.side.is_server() {
            return Err(Error::told(
                Alert::UNEXPECTED_MESSAGE,
                "a handshake message of the client after its Finished",
            ));
        }
        ticket::check(&self.io.message)?;
        // NewSessionTicket begins with its lifetime in seconds (RFC 8446 §4.6.1).
        let lifetime = self
            .io
            .message
            .get(4..8)
            .and_then(|bytes| bytes.try_into().ok());
        let lifetime = Duration::from_secs(u32::from_be_bytes(lifetime.unwrap_or_default()).into());
        let connection = &mut self.connection;
        io::with(&mut self.io, || {
            connection.quic_process_post_handshake_message().map(drop)
        })
        .map_err(|error| failure::of(&error))?;
        self.io.message.clear();
        if let (Some(tickets), Some(lineage)) = (&self.peer.tickets, self.lineage()) {
            let mut state = vec![0; self.connection.session_ticket_length().unwrap_or_default()];
            if self
                .connection
                .session_ticket(&mut state)
                .is_ok_and(|len| len == state.len())
            {
                let bytes = Zeroizing::new(state);
                let state = State {
                    bytes,
                    lineage,
                    scope: self.peer.scope.clone(),
                };
                tickets.insert(&self.peer.name, &state, lifetime, SystemTime::now());
            }
        }
        Ok(())
    }

    fn log_secrets(&self) {
        let Some(key_log) = &self.common.key_log else {
            return;
        };
        for secret in &self.io.secrets {
            key_log.log(label(secret), &self.client_random, secret.as_bytes());
        }
        if let Some(exporter) = &self.io.exporter {
            key_log.log("EXPORTER_SECRET", &self.client_random, exporter.as_bytes());
        }
    }

    fn collect_secrets(&mut self, tx: &mut Flight) -> Result<(), Error> {
        self.log_secrets();
        for secret in self.io.secrets.drain(..) {
            self.suite = Some(secret.suite());
            tx.secrets.try_push(secret).map_err(|_| {
                Error::new(
                    Alert::INTERNAL_ERROR,
                    "secrets of an earlier call were not taken",
                )
            })?;
        }
        if let Some(exporter) = self.io.exporter.take() {
            tx.exporter = Some(exporter);
        }
        Ok(())
    }

    fn run(&mut self, rx: &mut PerLevel<BytesMut>, tx: &mut Flight) -> Result<(), Error> {
        if !self.started {
            self.started = true;
            let before = self.io.crypto.initial.len();
            self.advance()?;
            let hello = self.io.crypto.initial.get(before..).unwrap_or_default();
            if let Some(random) = hello.get(RANDOM) {
                self.client_random = random.try_into().unwrap_or_default();
            }
        }
        loop {
            let level = self.read_level();
            framing::refuse_left_over(rx, level)?;
            let Some(next) = framing::take(&mut rx[level])? else {
                break;
            };
            self.check_share(&next)?;
            self.io.message = next;
            let before = self.io.crypto.initial.len();
            self.advance()?;
            self.refuse_retry(before)?;
            self.collect_secrets(tx)?;
        }
        Ok(())
    }
}

fn label(secret: &Secret) -> &'static str {
    match (secret.level(), secret.writer()) {
        (Level::Handshake, Side::Client) => "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
        (Level::Handshake, Side::Server) => "SERVER_HANDSHAKE_TRAFFIC_SECRET",
        (_, Side::Client) => "CLIENT_TRAFFIC_SECRET_0",
        (_, Side::Server) => "SERVER_TRAFFIC_SECRET_0",
    }
}

impl Session for Running {
    fn drive(&mut self, rx: &mut PerLevel<BytesMut>, tx: &mut Flight) -> Result<Status, Error> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let before = LEVELS.map(|level| tx.crypto[level].len());
        std::mem::swap(&mut self.io.crypto, &mut tx.crypto);
        let ran = self.run(rx, tx);
        std::mem::swap(&mut self.io.crypto, &mut tx.crypto);
        if let Err(error) = ran {
            // s2n-tls writes its ServerHello before it notices that it cannot derive a secret from
            // the shares.
            for (level, len) in LEVELS.into_iter().zip(before) {
                tx.crypto[level].truncate(len);
            }
            self.failed = Some(error.clone());
            return Err(error);
        }
        Ok(if self.complete {
            Status::Complete
        } else {
            Status::NeedsPeer
        })
    }

    fn peer_params(&self) -> Option<&[u8]> {
        self.peer_params.as_deref()
    }

    fn set_resumption_context(&mut self, context: &[u8]) {
        self.peer.scope = context.into();
    }

    fn negotiated(&self) -> Negotiated {
        let connection = &self.connection;
        let resumed = connection.resumed();
        let scheme = connection
            .signature_scheme()
            .filter(|_| self.complete && !resumed);
        // Not the name that s2n-tls knows, because it also counts an address as a name.
        let server_name = self.peer.is_sent.then(|| self.peer.name.clone());
        Negotiated {
            group: self.group(),
            hello_retry: connection
                .handshake_type()
                .is_ok_and(|kind| kind.contains("HELLO_RETRY_REQUEST")),
            suite: self.suite,
            signature_scheme: scheme.and_then(SignatureScheme::from_name),
            client_signature_scheme: (self.complete && !resumed)
                .then(|| self.client_scheme())
                .flatten(),
            alpn: connection.application_protocol().map(<[u8]>::to_vec),
            server_name,
            resumed,
            early_data: false,
            lineage: self.lineage().filter(|_| self.complete),
            fips: self.is_fips(),
            certificate_message: None,
        }
    }

    fn peer_certificates(&self) -> Vec<CertificateDer<'static>> {
        let Ok(chain) = self.connection.peer_cert_chain() else {
            return Vec::new();
        };
        chain
            .iter()
            .filter_map(|certificate| {
                Some(CertificateDer::from(certificate.ok()?.der().ok()?.to_vec()))
            })
            .collect()
    }
}
