//! Sums and differences of traffic.

use std::ops::AddAssign;

use crate::drivers::Traffic;

impl Traffic {
    /// What passed since an earlier look.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            sent_datagrams: self.sent_datagrams.saturating_sub(earlier.sent_datagrams),
            sent_bytes: self.sent_bytes.saturating_sub(earlier.sent_bytes),
            received_datagrams: self
                .received_datagrams
                .saturating_sub(earlier.received_datagrams),
            received_bytes: self.received_bytes.saturating_sub(earlier.received_bytes),
        }
    }
}

impl AddAssign for Traffic {
    fn add_assign(&mut self, more: Self) {
        self.sent_datagrams += more.sent_datagrams;
        self.sent_bytes += more.sent_bytes;
        self.received_datagrams += more.received_datagrams;
        self.received_bytes += more.received_bytes;
    }
}
