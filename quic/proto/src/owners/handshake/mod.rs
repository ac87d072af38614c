//! The handshake: passes CRYPTO data to and from the TLS session, and stores the keys of each
//! level.

mod census;
mod crypto;
mod keys;
pub(crate) mod refusal;

#[cfg(test)]
mod tests;

use bytes::Bytes;
use hybriq_tls::{
    Alert, CertificateDer, EarlyDataStatus, Exporter, Flight, KeyExchange, Level, Negotiated,
    Profile, Session, Side, Status,
};

use self::{
    crypto::{
        flights::{Flights, Repetitions},
        stream::{CryptoStream, Spread},
    },
    refusal::Refusal,
};
use crate::wire::{
    error::{Code, TransportError, Violation},
    frame::{Crypto, FrameType, FrameWriter, Owner, Timing},
    packet::{KeyPair, Space, Version},
};
pub(crate) use keys::Keys;
pub(crate) use keys::key_update::OneRtt;
pub(crate) use keys::packets::{Opened, opened_long};

/// Changes made by a call of [`Handshake::drive`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// True if the handshake was completed (RFC 9001 §4.1.1).
    pub(crate) completed: bool,
    /// True if the peer's transport parameters became known.
    pub(crate) params: bool,
}

/// Reason why a handshake failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The peer violated the protocol.
    Transport(TransportError),
    /// The ends have no group in common, or the peer chose a classical group although post-quantum
    /// is required.
    KeyExchange(Refusal),
}

impl From<TransportError> for Failure {
    fn from(error: TransportError) -> Self {
        Self::Transport(error)
    }
}

impl From<hybriq_tls::Error> for Failure {
    fn from(error: hybriq_tls::Error) -> Self {
        if let Some(groups) = error.groups() {
            return Self::KeyExchange(Refusal::new(refusal::NONE_IN_COMMON, groups.clone()));
        }
        Self::Transport(TransportError::from(error).in_frame(FrameType::CRYPTO))
    }
}

/// Returns the level whose CRYPTO frames are sent in a space.
pub(crate) const fn level(space: Space) -> Level {
    match space {
        Space::Initial => Level::Initial,
        Space::Handshake => Level::Handshake,
        Space::Data => Level::OneRtt,
    }
}

/// CRYPTO and `HANDSHAKE_DONE` frames of one packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    space: Space,
    crypto: crypto::stream::Sent,
    done: bool,
}

impl Sent {
    /// Creates an empty record of a packet of this space.
    pub(crate) fn new(space: Space) -> Self {
        Self {
            space,
            crypto: crypto::stream::Sent::default(),
            done: false,
        }
    }

    /// Returns true if the packet carried none.
    pub(crate) fn is_empty(&self) -> bool {
        self.crypto.is_empty() && !self.done
    }
}

/// Rules of this end for the handshake.
#[derive(Clone, Debug, Default)]
pub(crate) struct Terms {
    /// Policy for the key exchange.
    pub(crate) policy: KeyExchange,
    /// Rules of an authority, which the provider enforces.
    pub(crate) profile: Profile,
    /// Name of the provider's TLS library.
    pub(crate) library: &'static str,
}

/// The TLS session with its CRYPTO streams and keys.
pub(crate) struct Handshake {
    side: Side,
    session: Option<Box<dyn Session>>,
    streams: Flights,
    exporter: Option<Exporter>,
    keys: Keys,
    terms: Terms,
    complete: bool,
    params_seen: bool,
    done_owed: bool,
    early_data: EarlyDataStatus,
    peer_certificates: Vec<CertificateDer<'static>>,
    /// Tickets that a server issued after the handshake.
    tickets: Bytes,
    repetitions: Repetitions,
}

impl Owner for Handshake {
    type Sent = Sent;

    #[inline]
    fn wants_to_send(&self, space: Space) -> bool {
        let stream = self.streams.get(level(space));
        stream.is_some_and(CryptoStream::has_pending) || (space == Space::Data && self.done_owed)
    }

    /// Writes CRYPTO frames of the level, and HANDSHAKE_DONE if it is owed.
    fn write_frames(&mut self, _: Timing, out: &mut FrameWriter<'_>, sent: &mut Sent) {
        let spread = if self.side.is_client() && sent.space == Space::Initial {
            Spread::Evenly
        } else {
            Spread::FillFirst
        };
        if let Some(stream) = self.streams.get_mut(level(sent.space)) {
            stream.write_frames(out, &mut sent.crypto, spread);
        }
        if sent.space == Space::Data && self.done_owed && out.handshake_done() {
            self.done_owed = false;
            sent.done = true;
        }
    }

    fn on_acked(&mut self, sent: &Sent) {
        if let Some(stream) = self.streams.get_mut(level(sent.space)) {
            stream.on_acked(&sent.crypto);
        }
    }

    /// A client without the whole ServerHello cannot read Handshake packets, and may have dropped
    /// them: they are sent again along with what it is missing.
    fn on_lost(&mut self, sent: &Sent) {
        self.done_owed |= sent.done;
        let Some(stream) = self.streams.get_mut(level(sent.space)) else {
            return;
        };
        stream.on_lost(&sent.crypto);
        let lacks_hello = sent.space == Space::Initial && stream.has_pending();
        if lacks_hello && !self.side.is_client() {
            if let Some(flight) = self.streams.get_mut(Level::Handshake) {
                flight.send_again();
            }
        }
    }
}

impl Handshake {
    /// Starts with the Initial keys.
    pub(crate) fn new(
        side: Side,
        session: Box<dyn Session>,
        terms: Terms,
        version: Version,
        initial: KeyPair,
    ) -> Self {
        Self {
            side,
            session: Some(session),
            streams: Flights::default(),
            exporter: None,
            keys: Keys::new(version, initial),
            terms,
            complete: false,
            params_seen: false,
            done_owed: false,
            early_data: EarlyDataStatus::None,
            peer_certificates: Vec::new(),
            tickets: Bytes::new(),
            repetitions: Repetitions::default(),
        }
    }

    /// Returns the keys.
    pub(crate) fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Returns the keys, to update or discard them.
    pub(crate) fn keys_mut(&mut self) -> &mut Keys {
        &mut self.keys
    }

    /// Returns true if the peer closed because there is no common group: either its reason is one
    /// of ours, or its alert is `handshake_failure` while we require a post-quantum group and the
    /// reason mentions no other parameter.
    pub(crate) fn is_refusal(&self, code: Code, reason: &[u8]) -> bool {
        code == Code::crypto(Alert::HANDSHAKE_FAILURE.0)
            && (refusal::is_told(reason)
                || (self.terms.policy.requires_post_quantum() && !refusal::is_about_others(reason)))
    }

    /// Returns the policy for groups.
    pub(crate) const fn policy(&self) -> &KeyExchange {
        &self.terms.policy
    }

    /// Returns the rules of this end.
    pub(crate) const fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Returns true if TLS is complete (RFC 9001 §4.1.1).
    pub(crate) fn is_complete(&self) -> bool {
        self.complete
    }

    /// Returns the peer's certificates, its own first; known at completion.
    pub(crate) fn peer_certificates(&self) -> &[CertificateDer<'static>] {
        &self.peer_certificates
    }

    /// Returns the peer's transport parameters, while the session exists.
    pub(crate) fn peer_params(&self) -> Option<&[u8]> {
        self.session.as_ref()?.peer_params()
    }

    /// Returns the parameters negotiated so far, while the session exists.
    pub(crate) fn negotiated(&self) -> Negotiated {
        self.session
            .as_ref()
            .map(|session| session.negotiated())
            .unwrap_or_default()
    }

    /// Returns the status of 0-RTT data.
    pub(crate) fn early_data(&self) -> EarlyDataStatus {
        self.early_data
    }

    /// Returns the server's transport parameters that a client's 0-RTT data relies on.
    pub(crate) fn remembered_params(&self) -> Option<&[u8]> {
        self.session.as_ref()?.remembered_params()
    }

    /// Binds a client's session tickets to this context from now on.
    pub(crate) fn set_resumption_context(&mut self, context: &[u8]) {
        if let Some(session) = &mut self.session {
            session.set_resumption_context(context);
        }
    }

    /// Returns the application protocol of early data: for a client, that of the previous session.
    pub(crate) fn early_alpn(&self) -> Option<Vec<u8>> {
        let session = self.session.as_ref()?;
        match self.side {
            Side::Client => session.remembered_alpn().map(<[u8]>::to_vec),
            Side::Server => session.negotiated().alpn,
        }
    }

    /// Drops the 0-RTT keys.
    pub(crate) fn discard_zero_rtt(&mut self) {
        self.keys.discard(Level::ZeroRtt);
    }

    /// Handles CRYPTO data of one level (RFC 9001 §4.1.3).
    pub(crate) fn on_frame(
        &mut self,
        level: Level,
        frame: &Crypto<'_>,
    ) -> Result<(), TransportError> {
        if self.session.is_none() {
            return self.on_late_frame(level, frame);
        }
        let stream = self.streams.begin(level);
        if level == Level::Initial && !self.side.is_client() {
            self.repetitions.note(stream.has_read(frame));
        }
        stream
            .receive(frame)
            .map_err(|violation| violation.in_frame(FrameType::CRYPTO))
    }

    /// Returns the client's repetitions of its ClientHello.
    pub(crate) fn repetitions(&mut self) -> &mut Repetitions {
        &mut self.repetitions
    }

    /// Handles CRYPTO data after the TLS session was released, for which the rules still apply (RFC
    /// 9001 §4.1.3, §4.4, §6).
    fn on_late_frame(&mut self, level: Level, frame: &Crypto<'_>) -> Result<(), TransportError> {
        let stream = self.streams.begin(level);
        if level != Level::OneRtt {
            stream.receive(frame)?;
            return if stream.has_input() {
                Err(Violation::CryptoAtPastLevel.into())
            } else {
                Ok(())
            };
        }
        match self.side {
            Side::Client => {
                stream.receive(frame)?;
                let mut input = stream.take_input();
                let outcome = hybriq_tls::skip_tickets(&mut input);
                stream.put_back(input);
                outcome.map_err(TransportError::from)
            }
            // A frame without data carries no message.
            Side::Server if frame.data.is_empty() => Ok(()),
            Side::Server => Err(Violation::CryptoFromClient.into()),
        }
    }

    /// Returns true if TLS has bytes to read.
    pub(crate) fn has_input(&self) -> bool {
        self.session.is_some() && self.streams.has_input()
    }

    /// Passes received data to TLS, queues its output, and installs new keys.
    pub(crate) fn drive(&mut self) -> Result<Progress, Failure> {
        let Some(session) = self.session.as_mut() else {
            return Ok(Progress::default());
        };
        let mut input = self.streams.take_input();
        let had_ticket_bytes = !input.one_rtt.is_empty();
        let mut flight = Flight::default();
        let driven = session.drive(&mut input, &mut flight);
        let status = driven.map_err(Failure::from)?;
        if self.terms.policy.requires_post_quantum() {
            let complete = status == Status::Complete;
            refusal::require_post_quantum(&self.terms.policy, &session.negotiated(), complete)
                .map_err(Failure::KeyExchange)?;
        }
        self.early_data = early_data(&**session);
        let mut progress = Progress::default();
        if !self.params_seen && session.peer_params().is_some() {
            self.params_seen = true;
            progress.params = true;
        }
        if status == Status::Complete && !self.complete {
            self.complete = true;
            self.peer_certificates = session.peer_certificates();
            progress.completed = true;
        }
        let ticket_came = had_ticket_bytes && input.one_rtt.is_empty();
        self.streams.put_back(input);
        self.collect(flight);
        if ticket_came && self.complete {
            self.session = None;
        }
        Ok(progress)
    }

    /// Queues what TLS sends, and installs the keys that it derived.
    fn collect(&mut self, mut flight: Flight) {
        for level in [Level::Initial, Level::Handshake, Level::OneRtt] {
            let bytes = std::mem::take(&mut flight.crypto[level]).freeze();
            if !bytes.is_empty() {
                if level == Level::OneRtt {
                    self.tickets = bytes.clone();
                }
                self.streams.begin(level).send(bytes);
            }
        }
        if let Some(secret) = flight.exporter.take() {
            self.exporter = Some(Exporter::new(secret));
        }
        for secret in flight.secrets.drain(..) {
            self.keys.install(self.side, &secret);
        }
    }

    /// Returns the exporter of keying material for the application, once TLS has its secret.
    pub(crate) fn exporter(&self) -> Option<&Exporter> {
        self.exporter.as_ref()
    }

    /// Takes the session tickets that a server issued when its handshake was completed.
    pub(crate) fn take_tickets(&mut self) -> Bytes {
        std::mem::take(&mut self.tickets)
    }

    /// Drops the TLS session once it is no longer needed: a server's at completion, a client's when
    /// no more session tickets are expected.
    pub(crate) fn release(&mut self) {
        if self.complete {
            self.session = None;
        }
    }

    /// Returns true if the TLS session still exists.
    pub(crate) fn has_session(&self) -> bool {
        self.session.is_some()
    }

    /// Drops everything but the keys, which are still needed to send the close.
    pub(crate) fn on_closed(&mut self) {
        self.session = None;
        if self.has_last_flight() {
            self.streams.keep_handshake();
        } else {
            self.streams = Flights::default();
        }
    }

    /// Returns true for a client whose Finished the server may still be missing. Until it arrives,
    /// the server can read no application data.
    pub(crate) fn has_last_flight(&self) -> bool {
        self.side.is_client() && self.is_complete() && !self.keys.handshake_discarded()
    }

    /// Writes the last flight of a client again. Returns true if all of it fits.
    pub(crate) fn repeat_last_flight(&mut self, out: &mut FrameWriter<'_>) -> bool {
        let Some(stream) = self.streams.get_mut(Level::Handshake) else {
            return true;
        };
        stream.send_again();
        let sent = &mut crypto::stream::Sent::default();
        stream.write_frames(out, sent, Spread::FillFirst);
        !stream.has_pending()
    }

    /// Drops the state of a level whose keys were discarded.
    pub(crate) fn discard(&mut self, level: Level) {
        self.keys.discard(level);
        self.streams.discard(level);
    }

    /// Releases memory that is not used now.
    pub(crate) fn release_memory(&mut self) {
        self.streams.release_memory();
    }

    /// Returns true if the rest of a client's first flight needs more than one datagram.
    pub(crate) fn fills_datagrams(&self) -> bool {
        let stream = self.streams.get(Level::Initial);
        stream.is_some_and(CryptoStream::fills_datagrams)
    }

    /// Queues HANDSHAKE_DONE on a server, for the first time or again (RFC 9000 §19.20).
    pub(crate) fn owe_done(&mut self) {
        self.done_owed = true;
    }

    /// Queues the unacknowledged flights of the handshake again.
    pub(crate) fn repeat_flights(&mut self) {
        self.streams.send_again();
    }
}

/// Returns the status of 0-RTT data. A server that requests another ClientHello has thereby
/// rejected 0-RTT data, even if the session reports it later (RFC 8446 §4.1.2).
fn early_data(session: &dyn Session) -> EarlyDataStatus {
    match session.early_data() {
        EarlyDataStatus::Offered if session.negotiated().hello_retry => EarlyDataStatus::Rejected,
        status => status,
    }
}
