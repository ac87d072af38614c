//! Counts the connections of a server, and what belongs to them.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use hybriq::stats::Census;
use tokio::sync::watch;

/// Counts connections that are served, and what belongs to them. Clones share the counts.
#[derive(Clone, Default)]
pub(crate) struct Connections(Arc<Counts>);

#[derive(Default)]
struct Counts {
    served: watch::Sender<usize>,
    /// Connections, handshakes and so on, by [`Kind`].
    kinds: [AtomicUsize; 5],
}

/// Kind of counted object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Tcp,
    Quic,
    /// A handshake, over TCP or QUIC.
    Handshake,
    /// A stream of another protocol, while the service holds it.
    Tunnel,
    /// A TCP connection whose end the client has not seen.
    Lingering,
}

const KINDS: [(Kind, &str); 5] = [
    (Kind::Tcp, "connections over TCP"),
    (Kind::Quic, "connections over QUIC"),
    (Kind::Handshake, "handshakes"),
    (Kind::Tunnel, "tunnels"),
    (Kind::Lingering, "lingering connections"),
];

/// A connection that is served, until it is dropped.
pub(crate) struct Served {
    counts: Arc<Counts>,
    _kind: Counted,
}

/// Something that is counted, until it is dropped.
pub(crate) struct Counted(Arc<Counts>, Kind);

impl Connections {
    /// Counts a connection.
    pub(crate) fn add(&self, kind: Kind) -> Served {
        let counts = self.0.clone();
        counts.served.send_modify(|count| *count += 1);
        Served {
            _kind: self.count_one(kind),
            counts,
        }
    }

    /// Counts something else.
    pub(crate) fn count_one(&self, kind: Kind) -> Counted {
        self.0.of(kind).fetch_add(1, Ordering::Relaxed);
        Counted(self.0.clone(), kind)
    }

    /// Returns the number of connections.
    pub(crate) fn count(&self) -> usize {
        *self.0.served.borrow()
    }

    /// Adds everything that is counted.
    pub(crate) fn census(&self, census: &mut Census) {
        for (kind, name) in KINDS {
            census.add(name, self.0.of(kind).load(Ordering::Relaxed), 0);
        }
    }

    /// Waits until there are no connections.
    pub(crate) async fn ended(&self) {
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
