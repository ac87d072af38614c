use std::time::Duration;

use crate::proto::{congestion::Congestion, recovery::Pacing};

/// Streams of one kind that a peer can be allowed (RFC 9000 §4.6).
const MOST_STREAMS: u64 = 1 << 60;

/// What transport parameters can say at most (RFC 9000 §18.2).
const LONGEST_ACK_DELAY: Duration = Duration::from_millis((1 << 14) - 1);

/// The payload that fills an IPv6 packet.
const LARGEST_DATAGRAM: u16 = 65_527;

/// Longer waits are as good as for ever, and added to a point in time they overflow.
const LONGEST_WAIT: Duration = Duration::from_hours(100 * 365 * 24);

const fn at_most(wait: Duration, longest: Duration) -> Duration {
    if wait.as_nanos() > longest.as_nanos() {
        longest
    } else {
        wait
    }
}

const fn streams(count: u64) -> u64 {
    if count > MOST_STREAMS {
        MOST_STREAMS
    } else {
        count
    }
}

/// What a connection allows and how it behaves, TLS aside. Start from [`TransportConfig::new`].
///
/// Values beyond what QUIC can say are lowered to the largest that it can.
#[derive(Clone, Debug)]
pub struct TransportConfig {
    pub(crate) receive_window: u64,
    pub(crate) stream_receive_window: u64,
    pub(crate) send_buffer: u64,
    pub(crate) max_bidi_streams: u64,
    pub(crate) max_uni_streams: u64,
    pub(crate) idle_timeout: Option<Duration>,
    pub(crate) handshake_timeout: Duration,
    pub(crate) max_ack_delay: Duration,
    pub(crate) initial_rtt: Duration,
    pub(crate) datagram_size: u16,
    pub(crate) congestion: Congestion,
    pub(crate) pacing: Pacing,
}

impl Default for TransportConfig {
    fn default() -> Self {
        Self::new()
    }
}

impl TransportConfig {
    /// Defaults for servers and clients on the Internet.
    pub const fn new() -> Self {
        Self {
            receive_window: 15 * 1024 * 1024,
            stream_receive_window: 6 * 1024 * 1024,
            send_buffer: 1024 * 1024,
            max_bidi_streams: 100,
            max_uni_streams: 100,
            idle_timeout: Some(Duration::from_secs(30)),
            handshake_timeout: Duration::from_secs(10),
            max_ack_delay: Duration::from_millis(25),
            initial_rtt: Duration::from_millis(333),
            datagram_size: 1200,
            congestion: Congestion::Cubic,
            pacing: Pacing::On,
        }
    }

    /// Bytes the peer may have under way or unread on all streams together. Default 15 MiB.
    #[must_use]
    pub const fn receive_window(mut self, bytes: u64) -> Self {
        self.receive_window = bytes;
        self
    }

    /// Bytes the peer may have under way or unread on one stream. Default 6 MiB.
    #[must_use]
    pub const fn stream_receive_window(mut self, bytes: u64) -> Self {
        self.stream_receive_window = bytes;
        self
    }

    /// Bytes held for sending per stream until they are acknowledged; a writer waits beyond it.
    /// At least 1, default 1 MiB.
    #[must_use]
    pub const fn send_buffer(mut self, bytes: u64) -> Self {
        self.send_buffer = if bytes == 0 { 1 } else { bytes };
        self
    }

    /// Bidirectional streams the peer may have open at once. Default 100.
    #[must_use]
    pub const fn max_bidi_streams(mut self, count: u64) -> Self {
        self.max_bidi_streams = streams(count);
        self
    }

    /// Unidirectional streams the peer may have open at once. Default 100.
    #[must_use]
    pub const fn max_uni_streams(mut self, count: u64) -> Self {
        self.max_uni_streams = streams(count);
        self
    }

    /// How long nothing may come before the connection is given up; the smaller of both ends'
    /// counts (RFC 9000 §10.1). `None`, and zero as on the wire: never. Default 30 s.
    #[must_use]
    pub const fn idle_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.idle_timeout = match timeout {
            Some(timeout) if !timeout.is_zero() => Some(at_most(timeout, LONGEST_WAIT)),
            _ => None,
        };
        self
    }

    /// How long a handshake may take. Default 10 s.
    #[must_use]
    pub const fn handshake_timeout(mut self, timeout: Duration) -> Self {
        self.handshake_timeout = at_most(timeout, LONGEST_WAIT);
        self
    }

    /// How long an acknowledgement may wait for company: less than 2^14 ms. Default 25 ms.
    #[must_use]
    pub const fn max_ack_delay(mut self, delay: Duration) -> Self {
        self.max_ack_delay = at_most(delay, LONGEST_ACK_DELAY);
        self
    }

    /// The round trip assumed before one was measured (RFC 9002 §6.2.2). Default 333 ms.
    #[must_use]
    pub const fn initial_rtt(mut self, rtt: Duration) -> Self {
        self.initial_rtt = at_most(rtt, LONGEST_WAIT);
        self
    }

    /// Bytes of the UDP payloads sent after the handshake, 1200 to 65527. Default 1200, which every
    /// path carries; the first flight always keeps to it. What the path does not carry is lost.
    #[must_use]
    pub const fn datagram_size(mut self, bytes: u16) -> Self {
        self.datagram_size = match bytes {
            ..1200 => 1200,
            LARGEST_DATAGRAM.. => LARGEST_DATAGRAM,
            _ => bytes,
        };
        self
    }

    /// How much may be in flight, and how fast it leaves. Default [`Congestion::default`].
    #[must_use]
    pub fn congestion(mut self, congestion: Congestion) -> Self {
        self.congestion = congestion;
        self
    }

    /// Lets everything leave at once that the window allows. For measurements: queues on the way
    /// overflow that would have carried the same data spread over the round trip.
    #[must_use]
    pub const fn without_pacing(mut self) -> Self {
        self.pacing = Pacing::Off;
        self
    }
}
