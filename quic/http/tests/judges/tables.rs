//! The use that judges make of dynamic tables, by what the server says of their connections.

use std::{
    fmt::Debug,
    net::SocketAddr,
    sync::{Mutex, Once},
};

use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

use super::support::soon;

/// Entries that were inserted on a connection.
#[derive(Debug, Default)]
struct Entries {
    server: String,
    sent: u64,
    received: u64,
}

static CONNECTIONS: Mutex<Vec<Entries>> = Mutex::new(Vec::new());

/// Begins to listen. Later calls have no effect.
pub(super) fn listen() {
    static BEGUN: Once = Once::new();
    BEGUN.call_once(|| tracing::subscriber::set_global_default(Log).unwrap());
}

/// The ends that insert entries.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    Both,
    /// The client, which allows the server no table.
    Client,
}

/// Waits for a connection to a server on which these ends inserted entries.
pub(super) async fn used(server: SocketAddr, by: By) {
    let server = server.to_string();
    let is_used = || {
        let connections = CONNECTIONS.lock().unwrap();
        let mut of_server = connections.iter().filter(|it| it.server == server);
        of_server.any(|it| it.received > 0 && (it.sent > 0) == (by == By::Both))
    };
    let used = async {
        while !is_used() {
            tokio::task::yield_now().await;
        }
    };
    soon(used).await;
}

struct Log;

impl Visit for Entries {
    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            "entries_sent" => self.sent = value,
            "entries_received" => self.received = value,
            _ => {}
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "server" {
            self.server = format!("{value:?}");
        }
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::DEBUG && metadata.fields().field("entries_sent").is_some()
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut entries = Entries::default();
        event.record(&mut entries);
        CONNECTIONS.lock().unwrap().push(entries);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}
