//! Counters of a socket.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::library::udp::{RecvMeta, Transmit};
use crate::drivers::Traffic;

/// Datagrams and bytes of a socket so far.
#[derive(Debug, Default)]
pub(super) struct Counters {
    sent_datagrams: AtomicU64,
    sent_bytes: AtomicU64,
    received_datagrams: AtomicU64,
    received_bytes: AtomicU64,
}

impl Counters {
    pub(super) fn sent(&self, transmit: &Transmit<'_>) {
        let bytes = transmit.contents.len();
        let sent = datagrams(bytes, transmit.segment_size.unwrap_or(bytes));
        self.sent_datagrams.fetch_add(sent, Relaxed);
        self.sent_bytes.fetch_add(bytes as u64, Relaxed);
    }

    pub(super) fn received(&self, messages: &[RecvMeta]) {
        for message in messages {
            let came = datagrams(message.len, message.stride);
            self.received_datagrams.fetch_add(came, Relaxed);
            self.received_bytes.fetch_add(message.len as u64, Relaxed);
        }
    }

    pub(super) fn traffic(&self) -> Traffic {
        Traffic {
            sent_datagrams: self.sent_datagrams.load(Relaxed),
            sent_bytes: self.sent_bytes.load(Relaxed),
            received_datagrams: self.received_datagrams.load(Relaxed),
            received_bytes: self.received_bytes.load(Relaxed),
        }
    }
}

/// Returns the number of datagrams of that size in this number of bytes.
fn datagrams(bytes: usize, size: usize) -> u64 {
    bytes.div_ceil(size.max(1)) as u64
}
