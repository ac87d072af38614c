//! Loss detection state of a packet-number space.

use std::{ops::RangeInclusive, time::Instant};

use super::{
    Outcome, Settled,
    path::ecn,
    sent::{
        InFlight, SentPacket, SentPackets,
        late::{LostPacket, LostPackets},
        skipped::Skipped,
    },
};
use crate::wire::{
    error::Violation,
    packet::{PacketNumber, Vacant},
};

/// Loss detection state of one packet-number space.
#[derive(Debug)]
pub(super) struct SpaceState<R> {
    pub(super) sent: SentPackets<R>,
    pub(super) skipped: Skipped,
    pub(super) ecn: ecn::Counted,
    pub(super) lost: LostPackets,
    pub(super) largest_acked: Option<PacketNumber>,
    /// Time at which the next packet is lost by the time threshold.
    pub(super) loss_time: Option<Instant>,
    /// Time at which the last ack-eliciting packet was sent, or a probe was requested.
    pub(super) last_eliciting_sent: Option<Instant>,
    pub(super) eliciting_in_flight: u32,
    /// Consecutive packets that were not ack-eliciting.
    pub(super) silent: u16,
    pub(super) probes: u8,
    /// Packet number below which packets belong to another path.
    pub(super) first_pn: PacketNumber,
}

impl<R> Vacant for SpaceState<R> {
    fn vacant() -> Self {
        Self::new()
    }
}

impl<R: 'static> SpaceState<R> {
    /// State of a space that is not used.
    pub(super) const VACANT: &'static Self = &Self::new();
}

impl<R> SpaceState<R> {
    pub(super) const fn new() -> Self {
        Self {
            sent: SentPackets::new(),
            skipped: Skipped::new(),
            ecn: ecn::Counted::new(),
            lost: LostPackets::new(),
            largest_acked: None,
            loss_time: None,
            last_eliciting_sent: None,
            eliciting_in_flight: 0,
            silent: 0,
            probes: 0,
            first_pn: PacketNumber::ZERO,
        }
    }

    /// Removes all packets in flight and stops the timers.
    pub(super) fn clear(&mut self, mut taken: impl FnMut(PacketNumber, SentPacket<R>)) -> InFlight {
        let mut bytes = InFlight::default();
        self.sent.take_all(|pn, packet| {
            bytes.add(&packet);
            taken(pn, packet);
        });
        self.lost.clear();
        self.loss_time = None;
        self.last_eliciting_sent = None;
        self.eliciting_in_flight = 0;
        self.silent = 0;
        self.probes = 0;
        bytes
    }

    /// Remembers packets in flight that were just declared lost as a sign of congestion: those no
    /// larger than a full datagram.
    pub(super) fn remember(
        &mut self,
        now: Instant,
        episode: u32,
        datagram_size: u16,
        lost: &[Settled<R>],
    ) {
        let told = |packet: &SentPacket<R>| packet.in_flight && packet.size <= datagram_size;
        for Settled { pn, packet } in lost.iter().filter(|lost| told(&lost.packet)) {
            self.lost.push(LostPacket {
                pn: *pn,
                time_sent: packet.time_sent,
                lost_at: now,
                size: packet.size,
                episode,
            });
        }
    }

    pub(super) fn check_ack<I>(&self, largest: PacketNumber, mut ranges: I) -> Result<(), Violation>
    where
        I: Iterator<Item = RangeInclusive<PacketNumber>>,
    {
        if !self.sent.was_sent(largest) {
            return Err(Violation::AckOfUnsent);
        }
        if !self.skipped.is_empty() && ranges.any(|range| self.skipped.any_in(&range)) {
            return Err(Violation::AckOfSkipped);
        }
        Ok(())
    }

    /// Removes the acknowledged packets. The work is bounded by the packets in flight.
    pub(super) fn take_acked(
        &mut self,
        ranges: impl Iterator<Item = RangeInclusive<PacketNumber>>,
        outcome: &mut Outcome<R>,
    ) -> Newly {
        let mut newly = Newly::default();
        let mut eliciting = 0;
        let first_pn = self.first_pn;
        for range in ranges {
            self.sent
                .take_range(*range.start(), *range.end(), |pn, packet| {
                    if pn >= first_pn {
                        newly.add(pn, &packet);
                    } else {
                        newly.on_left_paths += packet.bytes_on_left_paths();
                    }
                    eliciting += u32::from(packet.ack_eliciting);
                    outcome.largest_acked_ack = outcome.largest_acked_ack.max(packet.largest_acked);
                    outcome.acked.push(Settled { pn, packet });
                });
        }
        self.eliciting_in_flight -= eliciting;
        newly
    }
}

/// Summary of the newly acknowledged packets of one ACK: those of the path in use, except for
/// `on_left_paths`.
#[derive(Debug, Default)]
pub(super) struct Newly {
    pub(super) bytes: u64,
    /// Bytes in flight on paths that were left.
    pub(super) on_left_paths: u64,
    pub(super) eliciting: bool,
    pub(super) newest: Option<(PacketNumber, Instant)>,
    pub(super) oldest: Option<(PacketNumber, Instant)>,
    pub(super) newest_in_flight: Option<(PacketNumber, Instant)>,
    pub(super) marked: ecn::Marks,
}

impl Newly {
    #[inline]
    fn add<R>(&mut self, pn: PacketNumber, packet: &SentPacket<R>) {
        self.bytes += packet.bytes_in_flight();
        let sent = (pn, packet.time_sent);
        self.newest = self.newest.max(Some(sent));
        self.oldest = Some(self.oldest.map_or(sent, |oldest| oldest.min(sent)));
        if packet.in_flight {
            self.newest_in_flight = self.newest_in_flight.max(Some(sent));
        }
        self.eliciting |= packet.ack_eliciting;
        self.marked.add(packet.ecn);
    }
}
