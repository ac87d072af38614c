//! Limits of the two datagram queues.

use crate::wire::limits;

/// Policy for a datagram that is sent while the queue is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum WhenFull {
    /// Drops the oldest waiting datagrams: the newest matter most.
    #[default]
    DropOldest,
    /// Refuses the datagram.
    Refuse,
}

/// Limits of the datagram queues (RFC 9221); a part of
/// [`TransportConfig`](crate::config::TransportConfig).
///
/// Each datagram counts as 64 bytes in addition to its data, and as 48 more if it has a deadline.
/// One always fits, even if the limit is smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramConfig {
    pub(crate) receive_buffer: usize,
    pub(crate) send_queue: usize,
    pub(crate) when_full: WhenFull,
}

impl Default for DatagramConfig {
    fn default() -> Self {
        Self::new()
    }
}

impl DatagramConfig {
    /// Creates the defaults: the peer may send datagrams.
    pub const fn new() -> Self {
        Self {
            receive_buffer: 256 * 1024,
            send_queue: 64 * 1024,
            when_full: WhenFull::DropOldest,
        }
    }

    /// Sets how many bytes may wait to be read; the oldest datagrams are dropped first. Default 256
    /// KiB. With 0 the peer may send no datagrams (RFC 9221 §3).
    #[must_use]
    pub const fn receive_buffer(mut self, bytes: usize) -> Self {
        self.receive_buffer = bytes;
        self
    }

    /// Sets how many bytes may wait to be sent. Default 64 KiB.
    #[must_use]
    pub const fn send_queue(mut self, bytes: usize) -> Self {
        self.send_queue = bytes;
        self
    }

    /// Sets the policy for a datagram that is sent while the queue is full. Default
    /// [`WhenFull::DropOldest`].
    #[must_use]
    pub const fn when_full(mut self, policy: WhenFull) -> Self {
        self.when_full = policy;
        self
    }

    /// Returns the `max_datagram_frame_size` to announce.
    pub(crate) const fn max_frame_size(&self) -> u64 {
        if self.receive_buffer == 0 {
            0
        } else {
            limits::DATAGRAM_FRAME
        }
    }
}
