//! Events of a connection that are reported in traces and metrics.

use std::{sync::Arc, time::Instant};

use hybriq_proto::{connection::PathChange, events::agreement::Handshake};
use tracing::Span;

use crate::worker::meter::{Life, Meter, trace};

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
            trace::on_handshake(span, handshake);
        }
        for path in &self.paths {
            match path {
                PathEvent::Changed(path) => {
                    meter.on_path_changed();
                    trace::on_path_changed(span, path);
                }
                PathEvent::Failed(path) => {
                    meter.on_path_failed();
                    trace::on_path_failed(span, path);
                }
            }
        }
    }
}
