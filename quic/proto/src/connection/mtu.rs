//! The size of datagrams, as the path shows what it carries (RFC 9000 §14).

use std::time::Instant;

use super::{Connection, delivery::Carried, schedule::Wish, transmit::Padding};
use crate::{limits, packet::Space, path::Mtu, recovery::Settled, udp::Transmit};

/// The part of the window that may be kept free for a probe.
const SHARE: u64 = 4;

impl Connection {
    /// The handshake is confirmed: datagrams may have more than 1200 bytes.
    pub(super) fn start_mtu(&mut self) {
        self.start_mtu_at(self.config.mtu.datagram_size);
    }

    /// The path is another one, which is known to carry 1200 bytes (RFC 9000 §9.4) or what was found
    /// when it was used before.
    pub(super) fn resume_mtu(&mut self) {
        if self.path.mtu().is_started() {
            self.follow_mtu();
        } else {
            self.start_mtu_at(limits::MIN_DATAGRAM as u16);
        }
    }

    fn start_mtu_at(&mut self, size: u16) {
        let peer = self
            .peer_params
            .as_ref()
            .map_or(u64::MAX, |params| params.max_udp_payload_size);
        let peer = u16::try_from(peer).unwrap_or(u16::MAX);
        let fixed = self.config.mtu.datagram_size.min(peer);
        let mtu = self.path.mtu_mut();
        match self.config.mtu.max_datagram_size {
            Some(most) => mtu.start(size.min(peer), most.min(peer)),
            None => *mtu = Mtu::new(fixed),
        }
        self.follow_mtu();
    }

    /// Leaves from that socket. For a client that has sent nothing yet.
    pub const fn start_from(&mut self, socket: crate::udp::SocketId) {
        let mut local = self.path.local();
        local.socket = socket;
        self.path.learn_local(local);
        self.first_local = local;
    }

    /// Tells loss detection and congestion control, if the size is another.
    pub(super) fn follow_mtu(&mut self) {
        let size = self.path.datagram_size();
        if size != self.recovery.datagram_size() {
            self.recovery.on_datagram_size(size);
        }
    }

    /// Bytes of the next datagram at most. The last packet of a probe timeout keeps to what every
    /// path carries: if only that arrives, the path became a black hole for larger ones.
    pub(super) fn datagram_limit(&self) -> usize {
        if self.recovery.probes(Space::Data) == 1 {
            limits::MIN_DATAGRAM
        } else {
            self.path.datagram_size().into()
        }
    }

    /// Bytes of the probe that is due. The rest of the handshake and the answers to challenges go
    /// first.
    fn mtu_probe(&self, now: Instant) -> Option<u16> {
        let size = self.path.mtu().probe(now)?;
        let free = self.recovery.probes(Space::Data) == 0
            && self.path.is_validated()
            && !self.path.has_pending()
            && !self.handshake.has_pending(hybriq_tls::Level::OneRtt)
            && !self.handshake.owes_done();
        free.then_some(size)
    }

    /// Whether data waits until there is room for a probe: otherwise it would take every place that
    /// becomes free, and the probe would never leave.
    pub(super) fn keeps_room_for_probe(&self, now: Instant) -> bool {
        self.mtu_probe(now).is_some_and(|size| {
            let size = u64::from(size);
            !self.recovery.can_send(size) && size <= self.recovery.window() / SHARE
        })
    }

    /// Sends the probe that is due, in a datagram of its own.
    pub(super) fn transmit_mtu_probe(&mut self, now: Instant, out: &mut [u8]) -> Option<Transmit> {
        let size = self.mtu_probe(now)?;
        if !self.recovery.can_send(size.into())
            || !self.recovery.may_send_now(now)
            || !self.path.may_send(size.into())
        {
            return None;
        }
        let room = out.len();
        let Some(buffer) = out.get_mut(..size.into()) else {
            self.path
                .mtu_mut()
                .set_most(u16::try_from(room).unwrap_or(u16::MAX));
            return None;
        };
        let pn = self.recovery.next_number(Space::Data);
        let written = self.write_packet(now, Space::Data, Wish::MtuProbe, (buffer, Padding::Fill));
        if written == 0 {
            return None;
        }
        self.path.mtu_mut().on_probe_sent(pn);
        self.path.on_sent(written as u64);
        self.stats.mtu_probes_sent += 1;
        self.stats.datagrams_sent += 1;
        self.transmit_of(written, Some(written))
    }

    /// A packet arrived, and so did its datagram.
    #[inline]
    pub(super) fn on_size_acked(&mut self, settled: &Settled<Carried>) {
        let packet = &settled.packet;
        if packet.record.space == Space::Data && packet.snapshot.is_some() {
            let mtu = self.path.mtu_mut();
            mtu.on_acked(settled.pn, packet.size, packet.time_sent);
        }
    }

    /// A packet was lost: because of its size?
    pub(super) fn on_size_lost(&mut self, settled: &Settled<Carried>) {
        let packet = &settled.packet;
        // What travelled another path says nothing of this one.
        if packet.record.space != Space::Data || packet.snapshot.is_none() {
            return;
        }
        let rtt = self.recovery.rtt().smoothed();
        let mtu = self.path.mtu_mut();
        self.stats.mtu_probes_lost += u64::from(mtu.is_probe(settled.pn));
        let black_holes = mtu.black_holes();
        mtu.on_lost(settled.pn, packet.size, packet.time_sent, rtt);
        self.stats.mtu_black_holes += u64::from(mtu.black_holes() - black_holes);
    }
}
