//! A client's tickets, and facts about its rustls handshakes that stacks do not report.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{
    ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue, WebPkiServerVerifier,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, Error, NamedGroup, SignatureScheme};

use super::Negotiated;
use crate::scenario::axes::{Cell, Resumption};

/// Maximum number of tickets kept for a server. Each is used once.
const TICKETS: usize = 1024;

/// Verifier and ticket store of one client, which thereby observes its handshakes: they agree on a
/// group, and verify a certificate unless they are resumed.
pub(crate) struct Watch {
    verifier: Arc<WebPkiServerVerifier>,
    cell: Cell,
    tickets: Mutex<HashMap<ServerName<'static>, VecDeque<Tls13ClientSessionValue>>>,
    /// True if a ticket was used since the last question.
    ticket_used: AtomicBool,
    /// Group of the last handshake that negotiated one.
    group: AtomicU16,
    signature: AtomicU16,
    /// Numbers of full handshakes that were verified, and of those reported or in progress.
    verified: AtomicU64,
    full: AtomicU64,
}

/// Facts about a handshake that are known when it begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begun {
    offered_ticket: bool,
}

impl Watch {
    pub(super) fn new(verifier: Arc<WebPkiServerVerifier>, cell: &Cell) -> Self {
        Self {
            verifier,
            cell: cell.clone(),
            tickets: Mutex::default(),
            ticket_used: AtomicBool::new(false),
            group: AtomicU16::new(0),
            signature: AtomicU16::new(0),
            verified: AtomicU64::new(0),
            full: AtomicU64::new(0),
        }
    }

    /// Returns true if there is a ticket for the next connection.
    pub(crate) fn has_ticket(&self) -> bool {
        self.tickets().values().any(|tickets| !tickets.is_empty())
    }

    /// Must be called right after a connection was started.
    pub(crate) fn begun(&self) -> Begun {
        let offered_ticket = self.ticket_used.swap(false, Relaxed);
        if !offered_ticket {
            self.full.fetch_add(1, Relaxed);
        }
        Begun { offered_ticket }
    }

    /// Must be called when its handshake is complete. A full handshake after an offered ticket
    /// shows as an extra verification; with several connections in progress it may be attributed to
    /// another one.
    pub(crate) fn complete(&self, begun: Begun) -> Negotiated {
        let refused = begun.offered_ticket && self.verified.load(Relaxed) > self.full.load(Relaxed);
        if refused {
            self.full.fetch_add(1, Relaxed);
        }
        let resumed = begun.offered_ticket && !refused;
        let group = hybriq::Group(self.group.load(Relaxed));
        let signature = hybriq::tls::SignatureScheme(self.signature.load(Relaxed));
        Negotiated {
            hello_retry: Some(self.cell.hello_retry && group == self.cell.group),
            group: group.to_string(),
            suite: self.cell.suite.to_string(),
            signature: if resumed {
                String::new()
            } else {
                signature.to_string()
            },
            resumed: Some(resumed),
            early_data: None,
        }
    }

    fn tickets(
        &self,
    ) -> MutexGuard<'_, HashMap<ServerName<'static>, VecDeque<Tls13ClientSessionValue>>> {
        self.tickets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

impl ServerCertVerifier for Watch {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.verifier
            .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier
            .verify_tls12_signature(message, cert, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signature.store(signature.scheme.into(), Relaxed);
        self.verified.fetch_add(1, Relaxed);
        self.verifier
            .verify_tls13_signature(message, cert, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}

impl ClientSessionStore for Watch {
    /// Called when a handshake is complete.
    fn set_kx_hint(&self, _: ServerName<'static>, group: NamedGroup) {
        self.group.store(group.into(), Relaxed);
    }

    /// Returns no hint: it would avoid the HelloRetryRequest that is to be measured.
    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        None
    }

    fn set_tls12_session(&self, _: ServerName<'static>, _: Tls12ClientSessionValue) {}

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        None
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {}

    fn insert_tls13_ticket(&self, server: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        if self.cell.resumption == Resumption::Full {
            return;
        }
        let mut tickets = self.tickets();
        let tickets = tickets.entry(server).or_default();
        if tickets.len() >= TICKETS {
            tickets.pop_front();
        }
        tickets.push_back(ticket);
    }

    fn take_tls13_ticket(&self, server: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        let ticket = self.tickets().get_mut(server)?.pop_back()?;
        self.ticket_used.store(true, Relaxed);
        Some(ticket)
    }
}
