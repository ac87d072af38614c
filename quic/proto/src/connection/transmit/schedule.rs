//! Decides what a space sends now, and writes acknowledgements before the owners' frames.

use std::time::Instant;

use super::owners::Carried;
use crate::{
    connection::Connection,
    wire::{
        error::By,
        frame::{FrameWriter, Timing},
        packet::{Kind, Space},
    },
};

/// Kind of packet that a space has to send now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::connection) enum Due {
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
    pub(in crate::connection) fn due(&mut self, space: Space, now: Instant) -> Due {
        if !self.handshake.may_send(space) {
            return Due::Nothing;
        }
        let probing = self.recovery.probes(space) > 0;
        if probing {
            return Due::Frames;
        }
        let room = self
            .recovery
            .can_send(self.paths.active().datagram_size().into())
            && !(space == Space::Data && self.saves_room(now));
        let paced = space == Space::Data && !self.recovery.may_send_now(now);
        if self.has_frames(space) && (room || self.recovery.has_no_timer(space)) && !paced {
            return Due::Frames;
        }
        let received = self.acks.received.get(space);
        if received.is_some_and(|received| received.is_ack_due(now))
            && self.handshake.kind_of(space) != Kind::ZeroRtt
        {
            Due::Ack
        } else {
            Due::Nothing
        }
    }

    /// Notes why nothing more is sent now: pacing (RFC 9002 §7.7), or a lack of data.
    pub(in crate::connection) fn note_limit(&mut self, now: Instant) {
        self.paths.pace(None);
        let room = self
            .recovery
            .can_send(self.paths.active().datagram_size().into());
        if !room || !self.handshake.may_send(Space::Data) {
            return;
        }
        if !self.has_frames(Space::Data) {
            self.recovery.on_app_limited();
        } else if !self.recovery.may_send_now(now) {
            self.paths.pace(Some(self.recovery.on_paced(now)));
        }
    }

    fn has_frames(&mut self, space: Space) -> bool {
        let kind = self.handshake.kind_of(space);
        self.owners().want_to_send(kind)
    }

    /// Fills one packet: acknowledgements first, then the owners' frames.
    pub(in crate::connection) fn write_frames(
        &mut self,
        space: Space,
        due: Due,
        now: Instant,
        out: &mut FrameWriter<'_>,
    ) -> Carried {
        let kind = self.handshake.kind_of(space);
        let mut carried = Carried::new(space);
        if kind == Kind::ZeroRtt {
            // A 0-RTT packet acknowledges nothing and answers nothing (RFC 9000 §12.5).
            self.write_owned(kind, now, out, &mut carried);
            return carried;
        }
        if due == Due::MtuProbe {
            out.ping();
            return carried;
        }
        if space != Space::Data || due != Due::Frames || !self.datagrams.takes_whole_packet() {
            self.acks.received.at(space).write_ack(space, now, out);
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
            let most = self.max_datagram_size().unwrap_or_default();
            self.datagrams.drop_larger(most);
            self.datagrams.drop_expired(now);
        }
        let timing = Timing {
            now,
            rtt: self.recovery.rtt().smoothed(),
        };
        self.owners().write_frames(kind, timing, out, carried);
        if let Some(control) = &carried.control {
            if let Some(request) = self.acks.frequency.made(control.ack_frequency) {
                self.observer.on_request(By::Local, request);
            }
        }
    }
}
