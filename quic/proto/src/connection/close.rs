//! The end of a connection (RFC 9000 §10): closing, draining, timing out.

use std::time::{Duration, Instant};

use bytes::Bytes;

use super::{
    Connection,
    transmit::{
        owners::Carried,
        seal::{Payload, Tracking},
    },
};
use crate::{
    owners::{
        acks::Received,
        handshake::{
            Handshake,
            refusal::{self, Refusal},
        },
        recovery::Outcome,
    },
    wire::{
        Reader,
        error::{By, Code, ConnectionError, TransportError, Violation},
        frame::{ConnectionClose, Frame, FrameType, FrameWriter},
        limits,
        packet::{Decoded, Kind, PacketBuilder, PacketNumber, Packets, Space},
        params::ACK_DELAY_EXPONENT,
        udp::Transmit,
    },
};

/// Maximum number of ranges in the ACK frame that accompanies CONNECTION_CLOSE.
const LAST_RANGES: usize = 16;

/// Number of bytes that must be free for that ACK and the CONNECTION_CLOSE after it: 16 for each
/// range, plus the rest of the two frames.
const ROOM_FOR_ACK: usize = 16 * LAST_RANGES + 128 + limits::CLOSE_REASON;

/// Reason for the end of the connection, and the state of the frame that reports it.
#[derive(Debug, Default)]
pub(super) struct Close {
    error: Option<ConnectionError>,
    /// True if the peer must not receive the reason of the error.
    is_private: bool,
    told: bool,
    /// True if the frame must be sent, for the first time or again.
    pending: bool,
    received: u32,
    answer_at: u32,
}

impl Close {
    pub(super) fn take_event(&mut self) -> Option<ConnectionError> {
        if self.told {
            return None;
        }
        self.told = self.error.is_some();
        self.error.clone()
    }

    pub(super) const fn error(&self) -> Option<&ConnectionError> {
        self.error.as_ref()
    }

    fn set(&mut self, error: ConnectionError) {
        if self.error.is_none() {
            self.error = Some(error);
        }
    }

    /// Counts a datagram that arrives while closing, because the peer may have missed our frame.
    /// Answers grow rarer, so that two closing ends do not keep each other awake (RFC 9000
    /// §10.2.1).
    pub(super) fn on_datagram(&mut self) {
        self.received = self.received.saturating_add(1);
        if self.received >= self.answer_at {
            self.pending = true;
            self.answer_at = self.answer_at.saturating_mul(2).max(2);
        }
    }

    fn begin(&mut self) {
        self.pending = true;
        self.answer_at = 1;
    }

    /// Returns true if a client must send its Finished with the application's close, so that the
    /// server completes a connection that is closed at once.
    fn finishes(&self, handshake: &Handshake) -> bool {
        matches!(self.error, Some(ConnectionError::Application { .. }))
            && handshake.has_last_flight()
    }
}

impl Connection {
    /// Closes the connection with the application's code (RFC 9000 §10.2). Data that is not acknowledged
    /// yet may be lost.
    pub fn close(&mut self, now: Instant, code: u64, reason: Bytes) {
        self.close_with(
            now,
            ConnectionError::Application {
                by: By::Local,
                code,
                reason,
            },
        );
        self.observer.at(now);
        self.observe();
    }

    pub(super) fn close_by_transport(&mut self, now: Instant, error: TransportError) {
        let reason = match error.reason {
            std::borrow::Cow::Borrowed(reason) => Bytes::from_static(reason.as_bytes()),
            std::borrow::Cow::Owned(reason) => Bytes::from(reason),
        };
        let (code, frame, violation) = (error.code, error.frame, error.violation);
        if !self.state.is_closed() {
            self.close.is_private = error.is_private;
        }
        self.close_with(
            now,
            ConnectionError::Transport {
                by: By::Local,
                code,
                frame,
                violation,
                reason,
            },
        );
    }

    pub(super) fn close_by_policy(&mut self, now: Instant, refusal: Refusal) {
        self.close_with(
            now,
            ConnectionError::KeyExchangeRefused {
                by: By::Local,
                reason: refusal.reason,
                groups: refusal.groups,
            },
        );
    }

    pub(super) fn close_with(&mut self, now: Instant, error: ConnectionError) {
        if self.state.is_closed() {
            return;
        }
        self.remember_path(now);
        self.close.set(error);
        self.close.begin();
        let until = now + self.closing_time();
        self.state.on_local_close(until);
        self.release();
    }

    /// Releases what only an open connection needs: closing and draining last three PTO.
    fn release(&mut self) {
        self.handshake.on_closed();
        self.handshake.discard_zero_rtt();
        self.streams.on_closed();
        self.datagrams.on_closed();
        for space in Space::ALL {
            self.recovery.discard_space(space);
        }
        self.opening.drop_kept();
        self.acks.settled = Outcome::default();
    }

    pub(super) fn on_peer_close(&mut self, now: Instant, close: &ConnectionClose<'_>) {
        let error = match *close {
            ConnectionClose::Application { code, reason } => ConnectionError::Application {
                by: By::Peer,
                code,
                reason: bounded(reason),
            },
            ConnectionClose::Transport { code, reason, .. }
                if self.state.is_handshaking() && self.handshake.is_refusal(Code(code), reason) =>
            {
                let reason = String::from_utf8_lossy(&bounded(reason)).into_owned();
                ConnectionError::KeyExchangeRefused {
                    by: By::Peer,
                    groups: Box::new(refusal::heard(self.handshake.policy(), &reason)),
                    reason,
                }
            }
            ConnectionClose::Transport {
                code,
                frame,
                reason,
            } => ConnectionError::Transport {
                by: By::Peer,
                code: Code(code),
                frame,
                violation: Violation::told(Code(code), reason),
                reason: bounded(reason),
            },
        };
        self.end_by_peer(now, error);
    }

    /// Ends the connection because the peer closed or reset it. Nothing is sent from now on.
    pub(super) fn end_by_peer(&mut self, now: Instant, error: ConnectionError) {
        if self.state.is_open() {
            self.remember_path(now);
        }
        self.close.set(error);
        let until = now + self.closing_time();
        self.state.on_peer_close(until);
        self.release();
    }

    /// Ends the connection silently because the server speaks none of our versions.
    pub(super) fn end_for_version(&mut self) {
        self.close.set(ConnectionError::VersionMismatch);
        self.state.on_end();
        self.release();
    }

    /// Ends the connection silently because nothing arrived for too long (RFC 9000 §10.1).
    pub(super) fn time_out(&mut self, now: Instant) {
        let unanswered = self.side.is_client() && self.observer.stats.datagrams_received == 0;
        let error = if unanswered {
            ConnectionError::NoAnswer
        } else if self.state.is_handshaking() {
            ConnectionError::HandshakeTimedOut
        } else {
            ConnectionError::TimedOut
        };
        self.end_quietly(now, error);
    }

    /// Ends the connection at once and silently.
    pub(super) fn end_quietly(&mut self, now: Instant, error: ConnectionError) {
        self.remember_path(now);
        self.close.set(error);
        self.state.on_end();
    }

    /// Returns the duration of the closing and draining periods: three probe timeouts (RFC 9000
    /// §10.2). They are not prolonged if the peer declares a long acknowledgement delay.
    fn closing_time(&self) -> Duration {
        let delay = self.acks.frequency.peer_max_delay().min(limits::ACK_DELAY);
        3 * self.recovery.pto(Space::Data, delay)
    }

    /// Processes a datagram after our close. If the peer has closed too, or has lost its state, it
    /// waits for no answer, and the connection ends at once. Any other datagram may come from a
    /// peer that missed our close.
    pub(super) fn take_while_closing(&mut self, now: Instant, packets: &mut Packets<'_>) {
        let token = packets.reset_token();
        let tells = self.tells_of_close(now, packets);
        if tells || token.is_some_and(|token| self.cids.is_reset(&token)) {
            self.state.on_end();
        } else {
            self.close.on_datagram();
        }
    }

    /// Returns true if a 1-RTT packet of the datagram has a CONNECTION_CLOSE frame.
    fn tells_of_close(&mut self, now: Instant, packets: &mut Packets<'_>) -> bool {
        let keep_until = now + 3 * self.pto(Space::Data);
        let keep_until = || keep_until;
        let largest = self.acks.largest(Space::Data).map(|(pn, _)| pn);
        let mut protected = packets.map_while(Result::ok);
        let packet = protected.find_map(|packet| match packet {
            Decoded::Protected(packet) if packet.kind == Kind::OneRtt => Some(packet),
            _ => None,
        });
        let opened = packet.and_then(|packet| {
            self.handshake
                .open_one_rtt(now, keep_until, packet, largest)
        });
        let Some(Ok(opened)) = opened else {
            return false;
        };
        let mut frames = Reader::new(opened.payload);
        std::iter::from_fn(|| {
            let more = !frames.is_empty();
            more.then(|| Frame::decode(&mut frames).ok())?
        })
        .any(|frame| matches!(frame, Frame::ConnectionClose(_)))
    }

    /// Writes one datagram with CONNECTION_CLOSE at every level for which the peer may have keys
    /// (RFC 9000 §10.2.3).
    pub(super) fn transmit_close(&mut self, now: Instant, out: &mut [u8]) -> Option<Transmit> {
        if !self.close.pending || !self.state.is_closing() {
            return None;
        }
        self.close.pending = false;
        let room = usize::try_from(self.paths.active().credit()).unwrap_or(usize::MAX);
        let out = out.get_mut(..limits::MIN_DATAGRAM.min(room))?;
        let spaces: &[Space] = if self.handshake.keys().handshake_discarded() {
            &[Space::Data]
        } else if self.close.finishes(&self.handshake) {
            &[Space::Handshake, Space::Data]
        } else {
            &Space::ALL
        };
        let last = spaces
            .iter()
            .rposition(|space| self.handshake.sealing_keys(*space).is_some())?;
        let mut size = 0;
        let mut must_fill = false;
        for (index, &space) in spaces.iter().enumerate() {
            must_fill |= space == Space::Initial
                && self.side.is_client()
                && self.handshake.sealing_keys(space).is_some();
            let out = out.get_mut(size..)?;
            let pad_to = if must_fill && index == last {
                out.len()
            } else {
                0
            };
            size += self.write_close(now, space, out, pad_to);
        }
        if size == 0 {
            return None;
        }
        self.paths.active_mut().on_sent(size as u64);
        Some(self.transmit_of(size, size))
    }

    /// Writes the packet of one space, padded to `pad_to` bytes. Returns its size, or 0 if there is
    /// none.
    fn write_close(
        &mut self,
        now: Instant,
        space: Space,
        buffer: &mut [u8],
        pad_to: usize,
    ) -> usize {
        let pn = self.recovery.next_number(space);
        let largest_acked = self.recovery.largest_acked(space);
        let header = self.header(space);
        let Some(mut packet) = PacketBuilder::begin(buffer, &header, pn, largest_acked) else {
            return 0;
        };
        let mut frames = packet.frames();
        let mut finished = false;
        if space == Space::Handshake && self.close.finishes(&self.handshake) {
            finished = self.handshake.repeat_last_flight(&mut frames);
        }
        // Acknowledge the data that arrived before the close, so that the peer knows it.
        let mut acks = None;
        if space == Space::Data && frames.remaining() >= ROOM_FOR_ACK {
            acks = write_last_ack(self.acks.received.data(), now, &mut frames);
        }
        if let (Some(error), false) = (&self.close.error, finished) {
            let hidden = self.close.is_private.then_some(hybriq_tls::Error::PRIVATE);
            write_close_frame(error, hidden, space, &mut frames);
        }
        let len = frames.len();
        if len == 0 {
            return 0;
        }
        let payload = Payload {
            frames: len,
            pad_to,
            ack_eliciting: false,
            acks,
            ecn: self.recovery.ecn_mark(),
        };
        self.seal(now, packet, payload, Carried::new(space), Tracking::None)
    }
}

/// Acknowledges the last packets (RFC 9000 §10.2 lets frames accompany CONNECTION_CLOSE). Returns
/// the largest number in the ACK frame, if it was written.
fn write_last_ack(
    received: &Received,
    now: Instant,
    out: &mut FrameWriter<'_>,
) -> Option<PacketNumber> {
    let delay = received.ack_delay(now).as_micros() >> ACK_DELAY_EXPONENT;
    let ranges = received.ranges().take(LAST_RANGES);
    out.ack(delay as u64, ranges, received.ecn_counts())?;
    received.largest().map(|(pn, _)| pn)
}

/// Writes the frame. `hidden` takes the place of a reason that the peer must not read. Before the
/// handshake is over, an application's close is sent without its code and reason (RFC 9000
/// §10.2.3).
fn write_close_frame(
    error: &ConnectionError,
    hidden: Option<&str>,
    space: Space,
    out: &mut FrameWriter<'_>,
) {
    let told;
    let frame = match error {
        ConnectionError::Application { code, reason, .. } if space == Space::Data => {
            ConnectionClose::Application {
                code: *code,
                reason,
            }
        }
        ConnectionError::Application { .. } => ConnectionClose::Transport {
            code: Code::APPLICATION_ERROR.0,
            frame: None,
            reason: &[],
        },
        ConnectionError::Transport {
            code,
            frame,
            reason,
            ..
        } => ConnectionClose::Transport {
            code: code.0,
            frame: *frame,
            reason: hidden.map_or(reason, str::as_bytes),
        },
        ConnectionError::KeyExchangeRefused { groups, .. } => {
            told = refusal::told(&groups.ours);
            ConnectionClose::Transport {
                code: Code::crypto(hybriq_tls::Alert::HANDSHAKE_FAILURE.0).0,
                frame: Some(FrameType::CRYPTO),
                reason: told.as_bytes(),
            }
        }
        ConnectionError::Downgraded(downgrade) => ConnectionClose::Transport {
            code: Code::crypto(downgrade.alert().0).0,
            frame: Some(FrameType::CRYPTO),
            reason: downgrade.told().as_bytes(),
        },
        _ => ConnectionClose::Transport {
            code: Code::NO_ERROR.0,
            frame: None,
            reason: &[],
        },
    };
    out.close(&frame);
}

fn bounded(reason: &[u8]) -> Bytes {
    Bytes::copy_from_slice(reason.split_at(reason.len().min(limits::CLOSE_REASON)).0)
}
