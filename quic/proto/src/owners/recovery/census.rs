//! What the records of sent packets hold.

use super::{Recovery, SentPacket, sent::late::LostPacket, state::SpaceState};
use crate::{stats::census::Census, wire::packet::PacketNumber};

impl<R> Recovery<R> {
    /// Counts every table. A new field does not compile until somebody decides what it holds.
    pub(crate) fn census(&self, census: &mut Census) {
        let Self {
            side: _,
            spaces,
            skipper: _,
            ecn: _,
            reordering: _,
            episode: _,
            rtt: _,
            controller: _,
            datagram_size: _,
            bytes_in_flight,
            left_paths: _,
            delivery: _,
            pacer: _,
            pacing: _,
            window_full_at: _,
            lost,
            pto_count: _,
            timer_base: _,
            handshake_acked: _,
            totals: _,
        } = self;
        census.add("bytes in flight", 0, *bytes_in_flight as usize);
        census.add_of::<LostPacket>("packets just lost", lost.len());
        for space in spaces.iter() {
            space.census(census);
        }
    }
}

impl<R> SpaceState<R> {
    fn census(&self, census: &mut Census) {
        let Self {
            sent,
            skipped,
            ecn: _,
            lost,
            largest_acked: _,
            loss_time,
            last_eliciting_sent: _,
            eliciting_in_flight,
            silent: _,
            probes: _,
            first_pn: _,
        } = self;
        census.add("packet number spaces", 1, size_of::<Self>());
        let in_flight = sent.iter().filter(|(_, packet)| packet.in_flight).count();
        census.add_of::<SentPacket<R>>("packets in flight", in_flight);
        census.add(
            "packets that must be acknowledged",
            *eliciting_in_flight as usize,
            0,
        );
        census.add_of::<SentPacket<R>>("records of sent packets", sent.entries());
        census.add_of::<LostPacket>("records of lost packets", lost.len());
        census.add_of::<PacketNumber>("skipped packet numbers", skipped.len());
        census.add("loss timers", usize::from(loss_time.is_some()), 0);
    }
}
