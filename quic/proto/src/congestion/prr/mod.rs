//! Proportional rate reduction (RFC 9937).

use super::Acked;

#[cfg(test)]
mod tests;

/// Proportional rate reduction (RFC 9937): how much may be sent during one recovery period, so that
/// what is in flight comes down to the target with the acknowledgements instead of at once, and is
/// neither silent for half a round trip nor a burst.
///
/// QUIC's recovery period ends with the first acknowledgement of a packet sent in it (RFC 9002
/// §7.3.2), a round trip after it began, while TCP's ends with the last loss repaired. Bytes are
/// counted, never segments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prr {
    /// The window when recovery is over: RFC 9937's ssthresh.
    target: u64,
    /// Bytes in flight when it began, those lost and those acknowledged then included: RecoverFS.
    in_flight_at_start: u64,
    /// Bytes acknowledged since: prr_delivered.
    delivered: u64,
    /// Bytes sent since: prr_out.
    sent: u64,
    /// What may be in flight.
    window: u64,
}

impl Prr {
    /// Recovery begins with so many bytes in flight, lost ones included.
    pub(super) const fn new(in_flight: u64, target: u64) -> Self {
        Self {
            target,
            in_flight_at_start: in_flight,
            delivered: 0,
            sent: 0,
            window: target,
        }
    }

    /// Bytes that may be in flight.
    pub(super) const fn window(&self) -> u64 {
        self.window
    }

    /// Packets were sent, whether new data, retransmissions or probes.
    pub(super) const fn on_sent(&mut self, bytes: u64) {
        self.sent = self.sent.saturating_add(bytes);
    }

    /// Packets sent before recovery began were acknowledged.
    pub(super) fn on_acked(&mut self, acked: &Acked, datagram_size: u64) {
        if self.sent == 0 {
            // What the frame acknowledged that made recovery begin was in flight too.
            self.in_flight_at_start = self.in_flight_at_start.max(acked.prior_in_flight);
        }
        self.delivered = self.delivered.saturating_add(acked.bytes);
        // TCP takes an ACK as safe that moves SND.UNA and shows no further loss. QUIC has nothing
        // like SND.UNA; what remains is that nothing more is lost.
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

    /// So many bytes are in flight after packets were lost or marked; no acknowledgement comes with
    /// it, or it is told afterwards.
    pub(super) fn on_congestion(&mut self, in_flight: u64, datagram_size: u64) {
        let bound = self.delivered.saturating_sub(self.sent);
        self.allow(in_flight, bound, datagram_size);
    }

    /// Sets the window to what is in flight and what may be added (RFC 9937 §6.2), which below the
    /// target is `bound`.
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

    /// What should have been sent by now: of what was delivered, as much as the target is of what
    /// was in flight, and never more than was delivered. Whole datagrams, else a packet that is due
    /// would wait for the next ACK.
    fn proportion(&self, datagram_size: u64) -> u64 {
        let whole = u128::from(self.in_flight_at_start.max(self.target).max(1));
        let product = u128::from(self.delivered) * u128::from(self.target);
        let bytes = product.div_ceil(whole);
        u64::try_from(bytes.next_multiple_of(u128::from(datagram_size.max(1)))).unwrap_or(u64::MAX)
    }
}
