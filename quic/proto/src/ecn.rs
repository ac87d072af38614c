//! The ECN field of IP packets (RFC 3168 §5).

/// The ECN mark of a datagram; "not ECT" is its absence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ecn {
    /// ECN capable, 0b01: the sender reacts to marks in proportion (RFC 9331).
    Ect1,
    /// ECN capable, 0b10.
    Ect0,
    /// Congestion experienced, 0b11.
    Ce,
}
