//! Events of s2n-quic about its connections.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use s2n_quic::connection::Error;
use s2n_quic::provider::event::{ConnectionInfo, ConnectionMeta, Subscriber, events};
use tokio::sync::Notify;

use super::super::{Stats, Traffic};

/// Counters of datagrams, of one connection or of a whole endpoint.
#[derive(Default)]
pub(super) struct Endpoint {
    sent_datagrams: AtomicU64,
    sent_bytes: AtomicU64,
    received_datagrams: AtomicU64,
    received_bytes: AtomicU64,
}

impl Endpoint {
    pub(super) fn traffic(&self) -> Traffic {
        Traffic {
            sent_datagrams: self.sent_datagrams.load(Relaxed),
            sent_bytes: self.sent_bytes.load(Relaxed),
            received_datagrams: self.received_datagrams.load(Relaxed),
            received_bytes: self.received_bytes.load(Relaxed),
        }
    }

    fn sent(&self, bytes: u16) {
        self.sent_datagrams.fetch_add(1, Relaxed);
        self.sent_bytes.fetch_add(bytes.into(), Relaxed);
    }

    fn received(&self, bytes: u16) {
        self.received_datagrams.fetch_add(1, Relaxed);
        self.received_bytes.fetch_add(bytes.into(), Relaxed);
    }
}

/// Counters of one connection.
#[derive(Default)]
pub(super) struct Counts {
    datagrams: Endpoint,
    packets_sent: AtomicU64,
    packets_lost: AtomicU64,
    timeouts: AtomicU64,
    timeouts_in_a_row: AtomicU32,
    closed: OnceLock<Error>,
    closing: Notify,
}

impl Counts {
    pub(super) fn stats(&self) -> Stats {
        Stats {
            traffic: Some(self.datagrams.traffic()),
            packets_sent: self.packets_sent.load(Relaxed),
            packets_lost: self.packets_lost.load(Relaxed),
            timeouts: self.timeouts.load(Relaxed),
        }
    }

    /// Waits until the connection is closed.
    pub(super) async fn closed(&self) -> Error {
        loop {
            let closing = self.closing.notified();
            if let Some(error) = self.closed.get() {
                return *error;
            }
            closing.await;
        }
    }
}

/// Subscriber that counts for the endpoint and for each connection.
pub(super) struct Observer(pub(super) Arc<Endpoint>);

impl Subscriber for Observer {
    type ConnectionContext = Arc<Counts>;

    fn create_connection_context(
        &mut self,
        _meta: &ConnectionMeta,
        _info: &ConnectionInfo,
    ) -> Arc<Counts> {
        Arc::default()
    }

    fn on_datagram_sent(
        &mut self,
        counts: &mut Arc<Counts>,
        _meta: &ConnectionMeta,
        event: &events::DatagramSent,
    ) {
        counts.datagrams.sent(event.len);
        self.0.sent(event.len);
    }

    fn on_datagram_received(
        &mut self,
        counts: &mut Arc<Counts>,
        _meta: &ConnectionMeta,
        event: &events::DatagramReceived,
    ) {
        counts.datagrams.received(event.len);
        self.0.received(event.len);
    }

    fn on_packet_sent(
        &mut self,
        counts: &mut Arc<Counts>,
        _meta: &ConnectionMeta,
        _event: &events::PacketSent,
    ) {
        counts.packets_sent.fetch_add(1, Relaxed);
    }

    fn on_packet_lost(
        &mut self,
        counts: &mut Arc<Counts>,
        _meta: &ConnectionMeta,
        event: &events::PacketLost<'_>,
    ) {
        // The other stacks do not count lost MTU probes either.
        if !event.is_mtu_probe {
            counts.packets_lost.fetch_add(1, Relaxed);
        }
    }

    fn on_recovery_metrics(
        &mut self,
        counts: &mut Arc<Counts>,
        _meta: &ConnectionMeta,
        event: &events::RecoveryMetrics<'_>,
    ) {
        let before = counts.timeouts_in_a_row.swap(event.pto_count, Relaxed);
        let more = event.pto_count.saturating_sub(before);
        counts.timeouts.fetch_add(more.into(), Relaxed);
    }

    fn on_connection_closed(
        &mut self,
        counts: &mut Arc<Counts>,
        _meta: &ConnectionMeta,
        event: &events::ConnectionClosed,
    ) {
        let _ = counts.closed.set(event.error);
        counts.closing.notify_waiters();
    }

    fn on_endpoint_datagram_sent(
        &mut self,
        _meta: &events::EndpointMeta,
        event: &events::EndpointDatagramSent,
    ) {
        self.0.sent(event.len);
    }
}
