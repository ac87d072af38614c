//! The decision what a space sends now, and the acknowledgements in front of the owners' frames.

use std::time::Instant;

use super::{Connection, owners::Carried};
use crate::{
    error::By,
    frame::{FrameWriter, Timing},
    packet::{Kind, Space},
    params::ACK_DELAY_EXPONENT,
};

/// What a space has to send now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    Nothing,
    /// An acknowledgement that is due. It is not ack-eliciting and needs no window.
    Ack,
    /// Frames that the peer must acknowledge.
    Frames,
    /// A PING, in a datagram that tests whether the path carries its size.
    MtuProbe,
}

impl Connection {
    /// Returns what a space has to send, as far as keys and congestion window allow.
    pub(super) fn due(&mut self, space: Space, now: Instant) -> Due {
        if !self.has_keys(space) {
            return Due::Nothing;
        }
        let probing = self.recovery.probes(space) > 0;
        if probing {
            return Due::Frames;
        }
        let room = self
            .recovery
            .can_send(self.paths.active().datagram_size().into())
            && !(space == Space::Data && self.keeps_room_for_probe(now));
        let paced = space == Space::Data && !self.recovery.may_send_now(now);
        if self.has_frames(space) && (room || self.has_no_timer(space)) && !paced {
            return Due::Frames;
        }
        if self.acks.received[space].is_ack_due(now) && self.kind_of(space) != Kind::ZeroRtt {
            Due::Ack
        } else {
            Due::Nothing
        }
    }

    /// Notes why nothing more is sent now: pacing (RFC 9002 §7.7), or a lack of data.
    pub(super) fn note_limit(&mut self, now: Instant) {
        self.paths.pace(None);
        let room = self
            .recovery
            .can_send(self.paths.active().datagram_size().into());
        if !room || !self.has_keys(Space::Data) {
            return;
        }
        if !self.has_frames(Space::Data) {
            self.recovery.on_app_limited();
        } else if !self.recovery.may_send_now(now) {
            self.paths.pace(Some(self.recovery.on_paced(now)));
        }
    }

    /// Returns true if no packet of a handshake space is in flight, so that its data must not wait
    /// for the window: 1-RTT packets may fill the window, and nobody acknowledges or times those
    /// before the handshake is over (RFC 9002 §6.2.1).
    fn has_no_timer(&self, space: Space) -> bool {
        space != Space::Data && !self.recovery.has_eliciting_in_flight(space)
    }

    pub(super) fn has_keys(&self, space: Space) -> bool {
        let keys = self.handshake.keys();
        match space {
            Space::Initial => keys.initial().is_some(),
            Space::Handshake => keys.handshake().is_some(),
            Space::Data => {
                (keys.one_rtt().is_some() && self.may_use_one_rtt()) || self.sends_zero_rtt()
            }
        }
    }

    /// Returns true if 1-RTT packets may be sent: by a server right after its Finished, by a client
    /// once TLS is complete.
    fn may_use_one_rtt(&self) -> bool {
        self.side.is_server() || self.handshake.is_complete()
    }

    fn has_frames(&mut self, space: Space) -> bool {
        let kind = self.kind_of(space);
        self.owners().want_to_send(kind)
    }

    /// Fills one packet: acknowledgements first, then what the owners want to send.
    pub(super) fn write_frames(
        &mut self,
        space: Space,
        due: Due,
        now: Instant,
        out: &mut FrameWriter<'_>,
    ) -> Carried {
        let kind = self.kind_of(space);
        let mut carried = Carried::new(space);
        if kind == Kind::ZeroRtt {
            // It acknowledges nothing and answers nothing (RFC 9000 §12.5).
            self.write_owned(kind, now, out, &mut carried);
            return carried;
        }
        if due == Due::MtuProbe {
            out.ping();
            return carried;
        }
        if space != Space::Data || due != Due::Frames || !self.datagrams.takes_whole_packet() {
            self.write_ack(space, now, out);
        }
        let probing = due == Due::Frames && self.recovery.probes(space) > 0;
        if probing && space == Space::Data && self.acks.frequency.can_ask() {
            out.immediate_ack();
        }
        if due == Due::Frames {
            self.write_owned(kind, now, out, &mut carried);
        }
        // Not during the handshake: an ack-eliciting Initial would have to fill its datagram (RFC
        // 9000 §14.1), and the ranges of those spaces are dropped with their keys.
        let silent = space == Space::Data && self.recovery.needs_ping(space);
        if !out.is_ack_eliciting() && (probing || silent) {
            out.ping();
        }
        carried
    }

    /// Writes the frames of the owners.
    #[inline]
    fn write_owned(
        &mut self,
        kind: Kind,
        now: Instant,
        out: &mut FrameWriter<'_>,
        carried: &mut Carried,
    ) {
        if kind.space() == Space::Data && self.datagrams.has_pending() {
            self.datagrams.drop_larger(self.max_datagram_payload());
        }
        let timing = Timing {
            now,
            rtt: self.recovery.rtt().smoothed(),
        };
        self.owners().write_frames(kind, timing, out, carried);
        if let Some(control) = &carried.control {
            if let Some(request) = self.acks.frequency.made(control.ack_frequency) {
                self.observe_request(By::Local, request);
            }
        }
    }

    pub(super) fn write_ack(&mut self, space: Space, now: Instant, out: &mut FrameWriter<'_>) {
        let received = &mut self.acks.received[space];
        if !received.is_ack_pending() {
            return;
        }
        let delay = match space {
            Space::Data => received.ack_delay(now).as_micros() >> ACK_DELAY_EXPONENT,
            Space::Initial | Space::Handshake => 0,
        };
        let (ranges, room) = (received.ranges(), received.ack_room());
        if let Some(told) = out.ack_within(room, delay as u64, ranges, received.ecn_counts()) {
            received.on_ack_sent(told);
        }
    }
}
