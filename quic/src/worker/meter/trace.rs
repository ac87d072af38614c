//! Spans and events of connections, for the crate `tracing`.
//!
//! None of it runs for each packet. Without a subscriber that wants them, spans are empty and an
//! event is one comparison.

use std::{sync::Arc, time::Instant};

use hybriq_proto::{
    connection::{Connection, PathChange},
    events::agreement::Handshake,
    wire::error::ConnectionError,
};
use hybriq_tls::Side;
use tracing::{Span, debug, info_span, warn};

use super::{Life, Meter};
use crate::worker::settings::WorkerSettings;

/// Creates the span of a connection.
pub(in crate::worker) fn span(settings: &WorkerSettings, worker: u8, core: &Connection) -> Span {
    let role = match core.side() {
        Side::Client => "client",
        Side::Server => "server",
    };
    info_span!(
        target: "hybriq",
        parent: None,
        "hybriq.connection",
        id = %core.id(),
        peer = %core.peer_address(),
        role,
        endpoint = settings.name.as_deref(),
        worker,
    )
}

/// Reports a completed handshake.
pub(in crate::worker) fn on_handshake(span: &Span, handshake: &Handshake) {
    debug!(
        target: "hybriq",
        parent: span,
        group = %handshake.key_exchange,
        hello_retry = handshake.key_exchange.hello_retry,
        resumed = handshake.resumed,
        early_data = ?handshake.early_data,
        lineage = ?handshake.lineage,
        version = ?handshake.version,
        "handshake complete"
    );
    if let Some(downgrade) = handshake.downgrade {
        warn!(
            target: "hybriq",
            parent: span,
            %downgrade,
            "the server was post-quantum before and no longer is"
        );
    }
}

/// Reports the path now in use.
pub(in crate::worker) fn on_path_changed(span: &Span, path: &PathChange) {
    debug!(target: "hybriq", parent: span, peer = %path.peer, "migrated");
}

/// Reports a path that failed.
pub(in crate::worker) fn on_path_failed(span: &Span, path: &PathChange) {
    debug!(target: "hybriq", parent: span, peer = %path.peer, "path failed");
}

/// Reports the end of a connection.
pub(in crate::worker) fn on_closed(span: &Span, error: &ConnectionError) {
    debug!(target: "hybriq", parent: span, %error, "closed");
}

/// Events of a connection, taken while it was serviced.
#[derive(Debug, Default)]
pub(in crate::worker) struct Reported {
    /// Outcome of the handshake, if it became complete.
    pub(in crate::worker) handshake: Option<Arc<Handshake>>,
    /// Paths that changed. They are rare: the list takes no memory without them.
    pub(in crate::worker) paths: Vec<PathEvent>,
}

/// Event of a path.
#[derive(Clone, Copy, Debug)]
pub(in crate::worker) enum PathEvent {
    Changed(PathChange),
    Failed(PathChange),
}

impl Reported {
    /// Counts the events and writes them into the connection's span. The connection must not be
    /// locked: a subscriber may be slow.
    pub(in crate::worker) fn report(
        &self,
        span: &Span,
        meter: &mut Meter,
        life: &mut Life,
        now: Instant,
    ) {
        if let Some(handshake) = &self.handshake {
            meter.on_handshake(life, handshake, now);
            on_handshake(span, handshake);
        }
        for path in &self.paths {
            match path {
                PathEvent::Changed(path) => {
                    meter.on_path_changed();
                    on_path_changed(span, path);
                }
                PathEvent::Failed(path) => {
                    meter.on_path_failed();
                    on_path_failed(span, path);
                }
            }
        }
    }
}
