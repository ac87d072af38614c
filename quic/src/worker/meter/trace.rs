//! Spans and events of connections, for the crate `tracing`.
//!
//! None of it runs for each packet. Without a subscriber that wants them, spans are empty and an
//! event is one comparison.

use hybriq_proto::{
    connection::{Connection, PathChange},
    events::agreement::Handshake,
    wire::error::ConnectionError,
};
use hybriq_tls::Side;
use tracing::{Span, debug, info_span, warn};

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
