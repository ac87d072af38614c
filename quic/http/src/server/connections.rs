//! What a server has under way, counted.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError, Weak,
    atomic::{AtomicUsize, Ordering},
};

use hybriq::Census;
use tokio::sync::watch;

/// Counts connections that are served, and what belongs to them. Clones count the same ones.
#[derive(Clone, Default)]
pub(super) struct Connections(Arc<Counts>);

#[derive(Default)]
struct Counts {
    served: watch::Sender<usize>,
    /// Connections, handshakes and so on, by [`Kind`].
    kinds: [AtomicUsize; 5],
    parts: Mutex<Parts>,
}

/// The parts of connections that count for themselves, in numbered places.
#[derive(Default)]
struct Parts {
    places: Vec<Option<Weak<dyn Holds>>>,
    free: Vec<usize>,
}

/// Kind of what is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Tcp,
    Quic,
    /// A handshake of either.
    Handshake,
    /// A stream of another protocol, while the service has it.
    Tunnel,
    /// A connection over TCP whose end the client has not seen.
    Lingering,
}

const KINDS: [(Kind, &str); 5] = [
    (Kind::Tcp, "connections over TCP"),
    (Kind::Quic, "connections over QUIC"),
    (Kind::Handshake, "handshakes"),
    (Kind::Tunnel, "tunnels"),
    (Kind::Lingering, "lingering connections"),
];

/// A part of a connection that counts what it holds.
pub(super) trait Holds: Send + Sync {
    /// Adds what it holds.
    fn count(&self, census: &mut Census);
}

/// A connection that is served, until it is dropped.
pub(super) struct Served {
    counts: Arc<Counts>,
    _kind: Counted,
}

/// Something that is counted, until it is dropped.
pub(super) struct Counted(Arc<Counts>, Kind);

/// Place of a part, until it is dropped.
pub(super) struct Registered(Arc<Counts>, usize);

impl Connections {
    /// Counts a connection.
    pub(super) fn add(&self, kind: Kind) -> Served {
        let counts = self.0.clone();
        counts.served.send_modify(|count| *count += 1);
        Served {
            _kind: self.count_one(kind),
            counts,
        }
    }

    /// Counts something else.
    pub(super) fn count_one(&self, kind: Kind) -> Counted {
        self.0.of(kind).fetch_add(1, Ordering::Relaxed);
        Counted(self.0.clone(), kind)
    }

    /// Asks a part of a connection from now on what it holds.
    pub(super) fn register(&self, part: Weak<dyn Holds>) -> Registered {
        let mut parts = self.0.parts();
        let place = match parts.free.pop() {
            Some(place) => place,
            None => {
                parts.places.push(None);
                parts.places.len() - 1
            }
        };
        if let Some(free) = parts.places.get_mut(place) {
            *free = Some(part);
        }
        Registered(self.0.clone(), place)
    }

    /// Returns the number of connections.
    pub(super) fn count(&self) -> usize {
        *self.0.served.borrow()
    }

    /// Adds everything that is counted.
    pub(super) fn census(&self, census: &mut Census) {
        for (kind, name) in KINDS {
            census.add(name, self.0.of(kind).load(Ordering::Relaxed), 0);
        }
        let parts: Vec<_> = self.0.parts().places.iter().flatten().cloned().collect();
        for part in parts.iter().filter_map(Weak::upgrade) {
            part.count(census);
        }
    }

    /// Waits until there are none.
    pub(super) async fn ended(&self) {
        // The sender is alive, so this cannot fail.
        let _ = self
            .0
            .served
            .subscribe()
            .wait_for(|count| *count == 0)
            .await;
    }
}

impl Counts {
    fn of(&self, kind: Kind) -> &AtomicUsize {
        let [tcp, quic, handshakes, tunnels, lingering] = &self.kinds;
        match kind {
            Kind::Tcp => tcp,
            Kind::Quic => quic,
            Kind::Handshake => handshakes,
            Kind::Tunnel => tunnels,
            Kind::Lingering => lingering,
        }
    }

    fn parts(&self) -> MutexGuard<'_, Parts> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.counts.served.send_modify(|count| *count -= 1);
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.of(self.1).fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        let mut parts = self.0.parts();
        let part = parts.places.get_mut(self.1).and_then(Option::take);
        parts.free.push(self.1);
        if parts.free.len() == parts.places.len() {
            *parts = Parts::default();
        }
        drop(parts);
        drop(part);
    }
}
