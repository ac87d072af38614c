//! A model of one direction of a network link: the fate of a datagram, and its times.
//!
//! The model consists of pure functions: no sockets, no clock, no lock, and no randomness except an
//! [`Rng`](crate::Rng) that is passed in. The nodes of the simulated [`Network`](crate::Network)
//! and the relay of `netbench link` are both built from these parts. [`Direction`] combines them:
//!
//! ```text
//!            ┌─ too large? ─┐   ┌─ queue full? ─┐           ┌─ blackout, burst, random ─┐
//!  offer ────┤    lost      ├───┤     lost      ├── line ───┤           lost            ├── delay,
//!            └──────────────┘   └───────────────┘  (rate,   └───────────────────────────┘   jitter,
//!                                                   mark)                                   reorder ─► due
//! ```
//! A datagram that is lost after the line has used its share of the rate.

mod direction;
mod line;
mod loss;

#[cfg(test)]
mod tests;

use std::time::Duration;

pub use direction::{Decision, Direction, Fate, Loss, Passage, Reorder, Settings};
pub(crate) use line::Rates;
pub use line::{Departure, Line, Marking};
pub use loss::{Blackouts, GilbertElliott};

/// A datagram before it enters a direction or a line.
#[derive(Clone, Copy, Debug)]
pub struct Offer {
    /// Time at which it arrives.
    pub now: Duration,
    /// Bytes of UDP payload.
    pub bytes: u64,
    /// True if it may be marked CE.
    pub ecn_capable: bool,
}

/// Keeps datagrams with different delays in order.
#[derive(Clone, Copy, Debug, Default)]
pub struct InOrder {
    last: Duration,
}

impl InOrder {
    /// Returns the arrival time of a datagram that is due at `due`: not before its predecessor.
    pub fn arrival(&mut self, due: Duration) -> Duration {
        self.last = self.last.max(due);
        self.last
    }
}

/// Flips one bit, counted from the lowest bit of the first byte.
pub fn flip(bytes: &mut [u8], bit: u64) {
    if let Some(byte) = bytes.get_mut((bit / 8) as usize) {
        *byte ^= 1 << (bit % 8);
    }
}
