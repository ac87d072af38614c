//! Priorities of streams (RFC 9218).

/// Priority of a stream's data among the connection's streams.
///
/// The two parameters are those of RFC 9218, used here for the streams of any protocol; they are
/// not sent to the peer.
///
/// - **Urgency**, 0 to 7: while a stream with a lower number has data that may be sent, those with
///   higher numbers wait. 3 is the default, 7 is for background data.
/// - **Incremental**: incremental streams of one urgency share the connection, about 8 KiB each in
///   turn. Others are sent one after another, in the order of their stream ids, because half of
///   each is worth less to the receiver than one complete stream.
///
/// If one urgency has both kinds, the non-incremental streams count as one member of the round,
/// represented by the first of them, so that neither kind starves the other (RFC 9218 §10).
///
/// Lost data is sent before new data of equally or less urgent streams. New data of a more urgent
/// stream comes first (RFC 9000 §13.3 leaves this to the application's priorities).
///
/// The default is incremental, unlike that of RFC 9218, whose streams are HTTP responses and
/// therefore end. A QUIC stream may never end, and would block every later stream of its urgency.
///
/// # Examples
/// ```
/// use hybriq::transport::Priority;
///
/// let bulk = Priority::new(7);
/// let headline = Priority::new(1).non_incremental();
/// assert_eq!(Priority::default(), Priority::new(3));
/// assert!(headline.urgency() < bulk.urgency());
/// assert!(bulk.is_incremental() && !headline.is_incremental());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Priority {
    urgency: u8,
    incremental: bool,
}

impl Priority {
    /// Largest urgency number, sent last.
    const LAST: u8 = 7;

    /// Creates an incremental priority of this urgency, where 0 is first and 7 last. More than 7
    /// counts as 7.
    #[must_use]
    pub const fn new(urgency: u8) -> Self {
        Self {
            urgency: if urgency > Self::LAST {
                Self::LAST
            } else {
                urgency
            },
            incremental: true,
        }
    }

    /// Makes the priority incremental: it takes turns with other incremental streams of its
    /// urgency.
    #[must_use]
    pub const fn incremental(self) -> Self {
        Self {
            incremental: true,
            ..self
        }
    }

    /// Makes the priority non-incremental: such streams of one urgency are sent one after another.
    #[must_use]
    pub const fn non_incremental(self) -> Self {
        Self {
            incremental: false,
            ..self
        }
    }

    /// Returns the urgency, 0 to 7; lower is sent first.
    pub const fn urgency(self) -> u8 {
        self.urgency
    }

    /// Returns true if the stream takes turns with other streams of its urgency.
    pub const fn is_incremental(self) -> bool {
        self.incremental
    }
}

impl Default for Priority {
    /// Returns urgency 3, incremental.
    fn default() -> Self {
        Self::new(3)
    }
}
