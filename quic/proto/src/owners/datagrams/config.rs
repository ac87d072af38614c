//! Limits of the two datagram queues.

use std::time::Instant;

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
/// Each datagram counts as 64 bytes in addition to its data, and as 96 more if it has
/// [`DatagramOptions`].
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

/// Options of one datagram.
///
/// # Examples
/// ```
/// use std::time::{Duration, Instant};
/// use hybriq_proto::owners::datagrams::DatagramOptions;
///
/// // Sound, before everything else, unless it would come too late.
/// let sound = DatagramOptions::new()
///     .expires(Instant::now() + Duration::from_millis(60))
///     .urgency(1);
/// # let _ = sound;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct DatagramOptions {
    pub(crate) expires: Option<Instant>,
    pub(crate) urgency: u8,
    pub(crate) tag: Option<u64>,
}

impl Default for DatagramOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl DatagramOptions {
    /// Urgency of a datagram without options.
    pub(super) const URGENCY: u8 = 3;

    /// Creates the defaults: no deadline, and urgency 3.
    pub const fn new() -> Self {
        Self {
            expires: None,
            urgency: Self::URGENCY,
            tag: None,
        }
    }

    /// Sets the time at which the datagram is dropped if it was not sent. Default: none.
    pub const fn expires(mut self, at: Instant) -> Self {
        self.expires = Some(at);
        self
    }

    /// Sets the urgency among the waiting datagrams: 0 is sent first, 7 last; more than 7 counts as 7. Default: 3.
    ///
    /// If the queue is full, the oldest of the least urgent makes room. A datagram that would not fit beside those that
    /// are more urgent is refused then, and nothing is dropped for it.
    pub const fn urgency(mut self, urgency: u8) -> Self {
        self.urgency = if urgency > 7 { 7 } else { urgency };
        self
    }

    /// Asks for [`DatagramEvent::Fate`](super::DatagramEvent::Fate) with this tag. Default: none.
    pub const fn tag(mut self, tag: u64) -> Self {
        self.tag = Some(tag);
        self
    }

    pub(super) const fn is_plain(&self) -> bool {
        self.expires.is_none() && self.tag.is_none() && self.urgency == Self::URGENCY
    }
}
