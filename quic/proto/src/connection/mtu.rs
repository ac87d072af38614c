//! Datagram sizes, found by path MTU discovery (RFC 9000 §14).

use std::time::Instant;

use super::{Connection, owners::Carried, schedule::Due, transmit::Padding};
use crate::{frame::Owner as _, packet::Space, path::Learned, recovery::Settled, udp::Transmit};

/// Divisor for the part of the window that may be kept free for a probe.
const SHARE: u64 = 4;

impl Connection {
    /// Returns the size of an MTU probe that is due. The rest of the handshake and answers to
    /// challenges go first.
    fn mtu_probe(&self, now: Instant) -> Option<u16> {
        let size = self.paths.active().mtu().probe(now)?;
        let free = self.recovery.probes(Space::Data) == 0
            && self.paths.active().is_validated()
            && !self.paths.active().has_pending()
            && !self.handshake.wants_to_send(Space::Data);
        free.then_some(size)
    }

    /// Returns true if data must wait until the window has room for an MTU probe; otherwise data
    /// would always take that room.
    pub(super) fn keeps_room_for_probe(&self, now: Instant) -> bool {
        self.mtu_probe(now).is_some_and(|size| {
            let size = u64::from(size);
            !self.recovery.can_send(size) && size <= self.recovery.window() / SHARE
        })
    }

    /// Sends an MTU probe that is due, in a datagram of its own.
    pub(super) fn transmit_mtu_probe(&mut self, now: Instant, out: &mut [u8]) -> Option<Transmit> {
        let size = self.mtu_probe(now)?;
        if !self.recovery.can_send(size.into())
            || !self.recovery.may_send_now(now)
            || !self.paths.active().may_send(size.into())
        {
            return None;
        }
        let room = out.len();
        let Some(buffer) = out.get_mut(..size.into()) else {
            self.paths
                .active_mut()
                .mtu_mut()
                .set_most(u16::try_from(room).unwrap_or(u16::MAX));
            return None;
        };
        let pn = self.recovery.next_number(Space::Data);
        let written = self.write_packet(now, Space::Data, Due::MtuProbe, (buffer, Padding::Fill));
        if written == 0 {
            return None;
        }
        self.paths.active_mut().mtu_mut().on_probe_sent(pn);
        self.paths.active_mut().on_sent(written as u64);
        self.observer.stats.mtu_probes_sent += 1;
        Some(self.transmit_of(written, written))
    }

    /// Reports the size of an acknowledged packet to MTU discovery.
    #[inline]
    pub(super) fn on_size_acked(&mut self, settled: &Settled<Carried>) {
        let packet = &settled.packet;
        if packet.record.space == Space::Data && packet.snapshot.is_some() {
            let mtu = self.paths.active_mut().mtu_mut();
            mtu.on_acked(settled.pn, packet.size, packet.time_sent);
        }
    }

    /// Reports the size of a lost packet to MTU discovery.
    pub(super) fn on_size_lost(&mut self, settled: &Settled<Carried>) {
        let packet = &settled.packet;
        // Packets on another path say nothing about this one.
        if packet.record.space != Space::Data || packet.snapshot.is_none() {
            return;
        }
        let rtt = self.recovery.rtt().smoothed();
        let mtu = self.paths.active_mut().mtu_mut();
        match mtu.on_lost(settled.pn, packet.size, packet.time_sent, rtt) {
            Learned::Nothing => {}
            Learned::ProbeLost => self.observer.stats.mtu_probes_lost += 1,
            Learned::BlackHole => self.observer.stats.mtu_black_holes += 1,
        }
    }
}
