//! Datagrams of one connection that were sent and may come back.

use std::cell::RefCell;
use std::collections::VecDeque;

use tokio::sync::Notify;
use tokio::time::Instant;

/// Number of bytes of a datagram's number.
pub(crate) const NUMBER: usize = 8;

/// Datagrams in flight, and a signal for returns.
#[derive(Default)]
pub(crate) struct InFlight {
    pub(crate) flight: RefCell<Flight>,
    pub(crate) came_back: Notify,
}

/// Datagrams that were sent and may come back, in order.
#[derive(Default)]
pub(crate) struct Flight {
    /// Number of the first entry.
    pub(crate) first: u64,
    /// `None` if it came back, or is not expected to.
    pub(crate) sent: VecDeque<Option<Sent>>,
}

#[derive(Clone, Copy)]
pub(crate) struct Sent {
    pub(crate) intended: Instant,
    pub(crate) at: Instant,
}

impl Flight {
    pub(crate) fn next(&self) -> u64 {
        self.first + self.sent.len() as u64
    }

    /// Takes the datagram with that number, of which `width` bytes are known.
    pub(crate) fn take(&mut self, number: u64, width: usize) -> Option<Sent> {
        let mask = mask(width) >> 1;
        let index = number.wrapping_sub(self.first) & mask;
        let sent = self.sent.get_mut(usize::try_from(index).ok()?)?.take();
        self.forget();
        sent
    }

    fn forget(&mut self) {
        while let Some(None) = self.sent.front() {
            self.sent.pop_front();
            self.first += 1;
        }
    }

    /// Gives up those sent before, and returns their number.
    pub(crate) fn give_up(&mut self, before: Instant) -> u64 {
        let mut lost = 0;
        while let Some(Some(sent)) = self.sent.front() {
            if before < sent.at {
                break;
            }
            lost += 1;
            self.sent.pop_front();
            self.first += 1;
            self.forget();
        }
        lost
    }
}

/// Returns a mask of this number of bytes.
fn mask(width: usize) -> u64 {
    match width {
        0..NUMBER => (1 << (8 * width)) - 1,
        _ => u64::MAX,
    }
}
