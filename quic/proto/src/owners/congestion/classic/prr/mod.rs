//! Proportional rate reduction (RFC 9937).

use crate::owners::congestion::Acked;

#[cfg(test)]
mod tests;

/// Proportional rate reduction (RFC 9937): limits what is sent in one recovery period, so that the
/// bytes in flight fall to the target along with the acknowledgements instead of at once, with
/// neither half a round trip of silence nor a burst.
///
/// QUIC's recovery period ends with the first acknowledgement of a packet sent in it (RFC 9002
/// §7.3.2), a round trip after it began, while TCP's ends when the last loss is repaired. Bytes are
/// counted, never segments.
#[derive(Clone, Copy, Debug)]
pub(in crate::owners::congestion) struct Prr {
    /// Window after recovery: RFC 9937's ssthresh.
    target: u64,
    /// Bytes in flight when recovery began, including those just lost or acknowledged: RecoverFS.
    in_flight_at_start: u64,
    /// Bytes acknowledged since: prr_delivered.
    delivered: u64,
    /// Bytes sent since: prr_out.
    sent: u64,
    /// Bytes that may be in flight.
    window: u64,
}

impl Prr {
    /// Starts recovery with `in_flight` bytes in flight, lost ones included.
    pub(in crate::owners::congestion) const fn new(in_flight: u64, target: u64) -> Self {
        Self {
            target,
            in_flight_at_start: in_flight,
            delivered: 0,
            sent: 0,
            window: target,
        }
    }

    /// Returns the bytes that may be in flight.
    pub(in crate::owners::congestion) const fn window(&self) -> u64 {
        self.window
    }

    /// Counts bytes sent, whether new data, retransmissions or probes.
    pub(in crate::owners::congestion) const fn on_sent(&mut self, bytes: u64) {
        self.sent = self.sent.saturating_add(bytes);
    }

    /// Handles the acknowledgement of packets sent before recovery began.
    pub(in crate::owners::congestion) fn on_acked(&mut self, acked: &Acked, datagram_size: u64) {
        if self.sent == 0 {
            // The bytes acknowledged by the frame that started recovery were in flight too.
            self.in_flight_at_start = self.in_flight_at_start.max(acked.prior_in_flight);
        }
        self.delivered = self.delivered.saturating_add(acked.bytes);
        // TCP considers an ACK safe if it advances SND.UNA and shows no further loss. QUIC has no
        // SND.UNA, so only the absence of further loss counts.
        let extra = if acked.bytes_lost == 0 {
            datagram_size
        } else {
            0
        };
        let bound = self
            .delivered
            .saturating_sub(self.sent)
            .max(acked.bytes)
            .saturating_add(extra);
        self.allow(acked.bytes_in_flight, bound, datagram_size);
    }

    /// Sets the window after losses or marks that arrive without an acknowledgement, or before it
    /// is reported.
    pub(in crate::owners::congestion) fn on_congestion(
        &mut self,
        in_flight: u64,
        datagram_size: u64,
    ) {
        let bound = self.delivered.saturating_sub(self.sent);
        self.allow(in_flight, bound, datagram_size);
    }

    /// Sets the window to the bytes in flight plus what may be added (RFC 9937 §6.2): at most
    /// `bound` while below the target.
    fn allow(&mut self, in_flight: u64, bound: u64, datagram_size: u64) {
        let mut more = if in_flight > self.target {
            self.proportion(datagram_size).saturating_sub(self.sent)
        } else {
            bound.min(self.target - in_flight)
        };
        if self.sent == 0 {
            // The first retransmission leaves at once.
            more = more.max(datagram_size);
        }
        self.window = in_flight.saturating_add(more);
    }

    /// Returns the bytes that should have been sent by now: the delivered bytes times the ratio of
    /// the target to the bytes in flight at the start, and never more than was delivered. Rounds to
    /// whole datagrams; otherwise a packet that is due would wait for the next ACK.
    fn proportion(&self, datagram_size: u64) -> u64 {
        let whole = u128::from(self.in_flight_at_start.max(self.target).max(1));
        let product = u128::from(self.delivered) * u128::from(self.target);
        let bytes = product.div_ceil(whole);
        u64::try_from(bytes.next_multiple_of(u128::from(datagram_size.max(1)))).unwrap_or(u64::MAX)
    }
}
