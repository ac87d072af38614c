//! Setters of windows, buffers, streams and datagrams.

use super::{DatagramConfig, TransportConfig};
use crate::owners::streams::Direction;

/// Largest number of streams of one kind that a peer can be allowed (RFC 9000 §4.6).
const MOST_STREAMS: u64 = 1 << 60;

const fn streams(count: u64) -> u64 {
    if count > MOST_STREAMS {
        MOST_STREAMS
    } else {
        count
    }
}

impl TransportConfig {
    /// Sets the largest number of bytes the peer may have in flight or unread on all streams
    /// together. Default 24 MiB.
    ///
    /// The window starts at [`initial_receive_window`](Self::initial_receive_window) and doubles
    /// while the application reads so fast that a window lasts less than three round trips; it is
    /// half as large again as the largest window of a stream. It does not grow for an application
    /// that reads slowly, so only peers that were fast before can use all of it.
    ///
    /// A window of 4/3 of the path's bandwidth-delay product uses the path fully: the default is
    /// enough for 1 Gbit/s over 150 ms.
    #[must_use]
    pub const fn receive_window(mut self, bytes: u64) -> Self {
        self.streams.receive_window = bytes;
        self
    }

    /// Sets how many bytes the peer may send on all streams together before anything was read. At
    /// most [`receive_window`](Self::receive_window); default 1.5 MiB.
    ///
    /// A peer that starts with ten packets takes six round trips to fill the default, enough time
    /// for the window to grow. This is the most that a peer can make a connection hold if nobody
    /// reads.
    #[must_use]
    pub const fn initial_receive_window(mut self, bytes: u64) -> Self {
        self.streams.initial_receive_window = bytes;
        self
    }

    /// Sets the largest number of bytes the peer may have in flight or unread on one stream.
    /// Default 16 MiB.
    ///
    /// The window starts at [`initial_stream_receive_window`](Self::initial_stream_receive_window)
    /// and grows as [`receive_window`](Self::receive_window) does. The default lets one stream fill
    /// 1 Gbit/s over 100 ms, or 200 Mbit/s over 500 ms.
    #[must_use]
    pub const fn stream_receive_window(mut self, bytes: u64) -> Self {
        self.streams.stream_receive_window = bytes;
        self
    }

    /// Sets how many bytes the peer may send on one stream before any of it was read. At most
    /// [`stream_receive_window`](Self::stream_receive_window); default 1 MiB.
    #[must_use]
    pub const fn initial_stream_receive_window(mut self, bytes: u64) -> Self {
        self.streams.initial_stream_receive_window = bytes;
        self
    }

    /// Sets how many bytes per stream may wait to be sent; beyond that, a writer waits. At least 1,
    /// default 1 MiB.
    ///
    /// Bytes in flight do not count: congestion control determines their number, and
    /// [`max_send_buffer`](Self::max_send_buffer) limits both together.
    #[must_use]
    pub const fn send_buffer(mut self, bytes: u64) -> Self {
        self.streams.send_buffer = if bytes == 0 { 1 } else { bytes };
        self
    }

    /// Sets how many bytes are held per stream until they are acknowledged, whether sent or not;
    /// beyond that, a writer waits. At least [`send_buffer`](Self::send_buffer); default 16 MiB.
    ///
    /// This limits the data that one stream sends in a round trip.
    #[must_use]
    pub const fn max_send_buffer(mut self, bytes: u64) -> Self {
        self.streams.max_send_buffer = bytes;
        self
    }

    /// Sets the number of bidirectional streams the peer may have open at once. Default 100.
    #[must_use]
    pub const fn max_bidi_streams(mut self, count: u64) -> Self {
        self.streams.max_bidi = streams(count);
        self
    }

    /// Sets the number of unidirectional streams the peer may have open at once. Default 100.
    #[must_use]
    pub const fn max_uni_streams(mut self, count: u64) -> Self {
        self.streams.max_uni = streams(count);
        self
    }

    /// Returns the number of streams of a direction that the peer may have open at once.
    pub const fn most_peer_streams(&self, direction: Direction) -> u64 {
        match direction {
            Direction::Bidi => self.streams.max_bidi,
            Direction::Uni => self.streams.max_uni,
        }
    }

    /// Sets the limits of the datagram queues (RFC 9221), in both directions. Default
    /// [`DatagramConfig::new`]: the peer may send them.
    #[must_use]
    pub const fn datagrams(mut self, datagrams: DatagramConfig) -> Self {
        self.datagrams = datagrams;
        self
    }
}
