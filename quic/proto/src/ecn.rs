//! Explicit congestion notification: the ECN field of IP packets (RFC 3168 §5), and its validation
//! on a path.

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

/// State of ECN validation on a path (RFC 9000 §A.4).
///
/// ```text
///            10 packets, 2 PTO          counts are valid
/// Testing ───────────────────► Unknown ──────────────────► Capable
///    │                            │                           │
///    └────────────────────────────┴───────────────────────────┴──► Failed
///         counts are wrong or missing, every marked packet lost, every one CE
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum EcnState {
    /// ECN is switched off.
    #[default]
    Disabled,
    /// Packets are marked until enough were sent to judge the path.
    Testing,
    /// Enough packets were marked; the peer has not reported them yet.
    Unknown,
    /// The path carries marks, and the peer counts them.
    Capable,
    /// The path does not carry marks, or the peer's counts are invalid: packets are no longer
    /// marked.
    Failed,
}
