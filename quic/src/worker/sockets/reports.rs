//! Reports by routers and hosts about a client's first datagrams, which end an attempt to connect
//! early.
//!
//! The system keeps them only while a client waits for its first answer: they are useless to
//! established connections, and anybody can send them.

use std::task::{Context, Poll};

use crate::worker::Worker;

/// Largest number of reports that are read in one turn.
const REPORTS: usize = 64;

/// How a worker deals with reports.
#[derive(Default)]
pub(in crate::worker) struct Reports {
    /// Number of clients that are still in their handshake.
    pub(in crate::worker) connecting: usize,
    /// True while the system keeps reports.
    kept: bool,
    /// True if reports may be waiting.
    waiting: bool,
    /// True for an endpoint that accepts no connections: its socket options affect nobody else.
    only_connects: bool,
}

impl Reports {
    pub(in crate::worker) fn new(accepts: bool) -> Self {
        Self {
            only_connects: !accepts,
            ..Self::default()
        }
    }

    /// Notes an error that may be a report, or may come with one.
    pub(in crate::worker) const fn may_wait(&mut self) {
        self.waiting = true;
    }
}

impl Worker {
    /// Starts listening for reports, for a client that starts.
    pub(in crate::worker) fn begin_reports(&mut self) {
        self.reports.connecting += 1;
        self.reports.kept = true;
        self.sockets.keep_reports(true);
    }

    /// Returns ready when there may be reports.
    pub(in crate::worker) fn poll_reports(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.reports.kept {
            return Poll::Pending;
        }
        self.sockets.poll_reports(cx).map(|()| {
            self.reports.waiting = true;
        })
    }

    /// Reads the waiting reports, and ends the connections that they are about. Stops listening
    /// once no client waits for an answer.
    pub(in crate::worker) fn hear_reports(&mut self) {
        if !self.reports.kept {
            return;
        }
        if std::mem::take(&mut self.reports.waiting) {
            for _ in 0..REPORTS {
                let Some(report) = self.sockets.take_report() else {
                    break;
                };
                let slot = self.endpoint.find_quoted(report.peer, report.quoted());
                let Some(entry) = slot.and_then(|slot| self.connections.get(slot)) else {
                    continue;
                };
                let (peer, reason) = (report.peer, report.reason);
                let mut state = entry.connection.lock();
                state
                    .core
                    .on_reported(self.now, peer, report.quoted(), reason);
                drop(state);
                self.queues.touch(entry);
            }
        }
        if self.reports.connecting == 0 && !self.reports.only_connects {
            self.reports.kept = false;
            self.sockets.keep_reports(false);
        }
    }
}
