//! Connections that several requests use at once.

use std::sync::Arc;

use crate::{
    client::{http3, tcp::Http2},
    usage::{Exchange, Usage},
};

/// A connection that takes several requests at once.
pub(super) trait Shared: Clone {
    /// Begins a request. Returns `None` if the connection takes no more requests.
    fn begin(&self) -> Option<Exchange>;
    /// Returns true if the server takes another request at once.
    fn has_room(&self) -> bool;
    fn usage(&self) -> &Usage;
}

impl Shared for Arc<http3::Connection> {
    fn begin(&self) -> Option<Exchange> {
        (**self).begin()
    }

    fn has_room(&self) -> bool {
        (**self).has_room()
    }

    fn usage(&self) -> &Usage {
        (**self).usage()
    }
}

impl Shared for Http2 {
    fn begin(&self) -> Option<Exchange> {
        self.begin()
    }

    fn has_room(&self) -> bool {
        self.has_room()
    }

    fn usage(&self) -> &Usage {
        self.usage()
    }
}

/// Begins a request on the first connection with room, or on the one with the fewest requests unless one more
/// connection is opened. Forgets connections that take no more requests.
pub(super) fn begin<C: Shared>(connections: &mut Vec<C>, more: bool) -> Option<(C, Exchange)> {
    loop {
        let place = connections.iter().position(C::has_room);
        let fewest = || {
            let numbered = connections.iter().enumerate();
            let fewest = numbered.min_by_key(|(_, connection)| connection.usage().exchanges());
            fewest.map(|(place, _)| place).filter(|_| !more)
        };
        let place = place.or_else(fewest)?;
        let connection = connections.get(place)?.clone();
        if let Some(exchange) = connection.begin() {
            return Some((connection, exchange));
        }
        connections.remove(place);
    }
}

/// Adds a connection. The oldest one ends if there are too many.
pub(super) fn add<C: Shared>(connections: &mut Vec<C>, connection: C, most: usize) {
    connections.push(connection);
    if connections.len() > most.max(1) {
        connections.remove(0).usage().end();
    }
}
