//! Congestion control (RFC 9002 §7): how much may be in flight.
//!
//! A controller sees every packet that is sent, acknowledged or lost, and answers with a window.
//! What is in flight is counted by `recovery`.

mod new_reno;

use std::{fmt, time::Instant};

pub use new_reno::NewReno;

/// A packet that counts towards the bytes in flight was sent.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// When.
    pub now: Instant,
    /// Its bytes.
    pub bytes: u64,
    /// Bytes in flight, this packet included.
    pub bytes_in_flight: u64,
}

/// How a sender used its window while a packet was in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    /// The window was full at some time.
    Full,
    /// The application or flow control left room all the time (RFC 9002 §7.8).
    Underused,
}

/// A packet was acknowledged for the first time.
#[derive(Clone, Copy, Debug)]
pub struct Acked {
    /// When.
    pub now: Instant,
    /// When it was sent.
    pub time_sent: Instant,
    /// Its bytes.
    pub bytes: u64,
    /// Whether it says anything about a larger window.
    pub usage: Usage,
}

/// How bad a loss is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Packets went missing.
    Congestion,
    /// Nothing came through for so long that the old window means nothing (RFC 9002 §7.6).
    PersistentCongestion,
}

/// Packets were declared lost together.
#[derive(Clone, Copy, Debug)]
pub struct Lost {
    /// When it was found out.
    pub now: Instant,
    /// When the last of them was sent.
    pub time_sent: Instant,
    /// Their bytes.
    pub bytes: u64,
    /// How bad it is.
    pub severity: Severity,
}

/// Decides how many bytes may be in flight on one path.
pub trait Controller: Send + fmt::Debug {
    /// A packet was sent.
    fn on_sent(&mut self, sent: &Sent);

    /// A packet was acknowledged. Losses found by the same ACK were reported before.
    fn on_acked(&mut self, acked: &Acked);

    /// Packets were lost.
    fn on_lost(&mut self, lost: &Lost);

    /// The datagram size of the path changed.
    fn on_datagram_size(&mut self, bytes: u16);

    /// Bytes that may be in flight.
    fn window(&self) -> u64;
}
