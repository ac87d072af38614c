//! Trains of datagrams (GSO), and systems that refuse them.

use std::{
    io,
    net::IpAddr,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
};

use arrayvec::ArrayVec;

/// Number of consecutive peers whose trains are refused but whose single datagrams are not, after
/// which trains count as unsupported. A single peer may just be behind a route that supports none.
const PEERS: usize = 3;

/// Number of calls that send single datagrams before a train is tried again.
const PAUSE: u32 = 4096;

/// Whether a socket sends trains.
///
/// No single failure changes anything: it may be due to one peer, its route or its address. Trains
/// pause once they were refused for several peers in a row.
#[derive(Default)]
pub(super) struct Offload {
    /// Calls left in a pause.
    pause: AtomicU32,
    /// True if `refused` has entries.
    doubted: AtomicBool,
    /// Peers whose trains were refused since a train was last sent.
    refused: Mutex<ArrayVec<IpAddr, PEERS>>,
}

impl Offload {
    /// Returns true if trains may be sent now.
    pub(super) fn is_on(&self) -> bool {
        self.pause.load(Ordering::Relaxed) == 0
    }

    /// Notes that the system took datagrams.
    #[inline]
    pub(super) fn on_sent(&self, is_train: bool) {
        if is_train {
            if self.doubted.load(Ordering::Relaxed) {
                self.doubted.store(false, Ordering::Relaxed);
                self.refused
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .clear();
            }
        } else {
            let pause = self.pause.load(Ordering::Relaxed);
            if pause > 0 {
                self.pause.store(pause - 1, Ordering::Relaxed);
            }
        }
    }

    /// Notes that the system took a datagram of a train on its own, after it had refused the train.
    pub(super) fn on_taken_apart(&self, peer: IpAddr) {
        self.doubted.store(true, Ordering::Relaxed);
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if !refused.is_full() && !refused.contains(&peer) {
            refused.push(peer);
        }
        if refused.is_full() && self.is_on() {
            tracing::info!("the system refuses GSO; sending datagrams one by one");
            self.pause.store(PAUSE, Ordering::Relaxed);
        }
    }
}

/// Returns true if the system may take the datagrams of a train one by one: some drivers, and
/// routes with IPsec or a small MTU, refuse trains.
pub(crate) fn refuses_train(error: &io::Error) -> bool {
    #[cfg(unix)]
    return matches!(
        error.raw_os_error(),
        Some(libc::EIO | libc::EINVAL | libc::EMSGSIZE | libc::EOPNOTSUPP)
    );
    #[cfg(not(unix))]
    {
        let _ = error;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(number: u8) -> IpAddr {
        [192, 0, 2, number].into()
    }

    #[test]
    fn trains_that_one_peer_cannot_have_are_sent_to_others() {
        let offload = Offload::default();
        for _ in 0..10_000 {
            offload.on_taken_apart(peer(1));
            offload.on_sent(false);
        }
        assert!(offload.is_on());
        for number in 1..=200 {
            offload.on_taken_apart(peer(number));
            offload.on_sent(true);
        }
        assert!(offload.is_on(), "somebody has them in between");
    }

    #[test]
    fn trains_that_nobody_can_have_pause_and_are_tried_again() {
        let offload = Offload::default();
        for number in 1..=3 {
            assert!(offload.is_on());
            offload.on_taken_apart(peer(number));
        }
        for _ in 0..PAUSE {
            assert!(!offload.is_on());
            offload.on_sent(false);
        }
        assert!(offload.is_on());
        offload.on_taken_apart(peer(9));
        assert!(!offload.is_on(), "one more is enough now");
        for _ in 0..PAUSE {
            offload.on_sent(false);
        }
        offload.on_sent(true);
        offload.on_taken_apart(peer(9));
        assert!(offload.is_on(), "a train was sent meanwhile");
    }
}
