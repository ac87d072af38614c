//! Counters of a socket or a connection.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// Datagrams and bytes of UDP payload; segments and bytes of TCP payload.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct Traffic {
    /// Number of datagrams or segments sent.
    pub sent_datagrams: u64,
    /// Number of bytes sent.
    pub sent_bytes: u64,
    /// Number of datagrams or segments received.
    pub received_datagrams: u64,
    /// Number of bytes received.
    pub received_bytes: u64,
}

impl Traffic {
    /// Adds a datagram of that length, sent or received; 0 for none.
    #[cfg(feature = "quiche")]
    pub(super) fn with(self, sent: usize, received: usize) -> Self {
        Self {
            sent_datagrams: self.sent_datagrams + u64::from(sent > 0),
            sent_bytes: self.sent_bytes + sent as u64,
            received_datagrams: self.received_datagrams + u64::from(received > 0),
            received_bytes: self.received_bytes + received as u64,
        }
    }

    /// Returns the traffic since an earlier value.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
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
