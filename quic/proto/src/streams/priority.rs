//! Priorities of streams (RFC 9218).

/// Order in which a stream's data goes, compared with the connection's other streams.
///
/// The two terms are those of RFC 9218, for the streams of any protocol; nothing of it is told to
/// the peer.
///
/// - **Urgency**, 0 to 7: as long as a stream of a lower number has something that may be sent,
///   those of higher numbers wait. 3 is the middle and the default, 7 is for what nobody waits for.
/// - **Incremental**: streams of one urgency that are incremental share the connection, some 8 KiB
///   each in turn. Those that are not go one after the other, in the order of their stream ids,
///   because half of each is worth less to their receiver than one of them whole.
///
/// Where one urgency has both kinds, those that are not incremental count as one member of the
/// round: whichever of them is first gets the turn. So neither kind starves the other (RFC 9218
/// §10).
///
/// Data that was lost goes before new data of the same and of less urgent streams. A more urgent
/// stream's new data passes it (RFC 9000 §13.3 lets the application's priorities decide).
///
/// The default is incremental, unlike that of RFC 9218: there, streams are HTTP responses, which
/// end. A QUIC stream may never end, and one that went on sending would keep every later stream of
/// its urgency silent.
///
/// # Examples
/// ```
/// use hybriq::Priority;
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
    /// The largest urgency: what goes last.
    const LAST: u8 = 7;

    /// Makes an incremental priority of this urgency, 0 first and 7 last. More than 7 counts as 7.
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

    /// The same, shared in turn with the other incremental streams of its urgency.
    #[must_use]
    pub const fn incremental(self) -> Self {
        Self {
            incremental: true,
            ..self
        }
    }

    /// The same, one after the other with the other non-incremental streams of its urgency.
    #[must_use]
    pub const fn non_incremental(self) -> Self {
        Self {
            incremental: false,
            ..self
        }
    }

    /// 0 to 7; lower goes first.
    pub const fn urgency(self) -> u8 {
        self.urgency
    }

    /// Returns true if streams of this urgency share the connection in turn.
    pub const fn is_incremental(self) -> bool {
        self.incremental
    }
}

impl Default for Priority {
    /// Urgency 3, incremental.
    fn default() -> Self {
        Self::new(3)
    }
}
