//! The counters of an endpoint.

use std::ops::AddAssign;

use hybriq_proto::endpoint::{DatagramDrops, DropReason};

/// Counters of an endpoint, without those of its connections. Bytes are UDP payload bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndpointStats {
    /// Number of connections now, closing ones included.
    pub connections: u64,
    /// Datagrams received.
    pub datagrams_received: u64,
    /// Bytes received.
    pub bytes_received: u64,
    /// Datagrams sent.
    pub datagrams_sent: u64,
    /// Bytes sent.
    pub bytes_sent: u64,
    /// Calls to the system that sent something: a call may send many datagrams.
    pub send_calls: u64,
    /// Calls to the system that received something: a call may receive many datagrams.
    pub receive_calls: u64,
    /// Datagrams that the system refused to send. They are lost like any other.
    pub send_errors: u64,
    /// Errors of the system while receiving.
    pub receive_errors: u64,
    /// Datagrams received that belonged to no connection and were useless.
    pub datagrams_dropped: u64,
    /// The same datagrams by reason.
    pub drops: DatagramDrops,
    /// Datagrams that a worker received for another one, and passed on to it.
    pub datagrams_passed_on: u64,
    /// Datagrams received for connections of earlier processes, and forwarded to them.
    pub datagrams_forwarded: u64,
    /// Such datagrams that were dropped because the earlier process was too slow to take them.
    pub forwards_dropped: u64,
    /// Datagrams that a later process received and forwarded to this one.
    pub forwards_received: u64,
    /// Times that a worker failed by a panic, lost its connections, and was started again.
    pub worker_failures: u64,
    /// Partial ClientHellos held now.
    pub partial_hellos: u64,
    /// Complete ClientHellos that wait for a decision now.
    pub waiting_incoming: u64,
    /// ClientHellos refused before any public-key work because they offered no post-quantum group.
    pub key_exchange_refused: u64,
    /// Version Negotiation packets sent.
    pub version_negotiations: u64,
    /// Stateless resets sent: packets came for connections that are not here any more.
    pub stateless_resets: u64,
    /// ClientHellos ignored because too many waited for [`Endpoint::accept`](crate::Endpoint::accept).
    pub incoming_ignored: u64,
    /// Clients refused by the application, or because the endpoint accepts no more.
    pub refused_by_application: u64,
    /// Clients refused because there were as many connections as
    /// [`max_connections`](crate::EndpointBuilder::max_connections) allows.
    pub refused_too_many: u64,
    /// Clients refused because as many had not completed their handshake as
    /// [`max_handshakes`](crate::EndpointBuilder::max_handshakes) allows.
    pub refused_too_busy: u64,
    /// Clients refused because their network started more connections than
    /// [`max_rate_per_network`](crate::EndpointBuilder::max_rate_per_network) allows.
    pub refused_too_fast: u64,
    /// Accepted connections that have not completed their handshake now.
    pub handshaking: u64,
    /// Workers that send clients away now to prove their address, because the load is high:
    /// [`AddressValidation::Adaptive`](crate::AddressValidation::Adaptive).
    pub retrying: u64,
    /// Retry packets sent.
    pub retries_sent: u64,
    /// Clients that proved their address by a token.
    pub addresses_validated: u64,
    /// Tokens that were forged, expired, or meant for another address.
    pub tokens_rejected: u64,
    /// Tokens that were used before.
    pub tokens_replayed: u64,
}

impl EndpointStats {
    /// Counts a datagram that belonged to no connection and was dropped.
    pub(super) const fn on_dropped(&mut self, reason: DropReason) {
        self.datagrams_dropped += 1;
        self.drops.add(reason);
    }

    /// Adds what the protocol counts, and takes over its current numbers.
    pub(super) fn with(mut self, core: hybriq_proto::endpoint::EndpointCounters) -> Self {
        self.connections = core.connections;
        self.waiting_incoming = core.waiting_incoming;
        self.partial_hellos = core.partial_hellos;
        self.key_exchange_refused += core.key_exchange_refused;
        self.version_negotiations += core.version_negotiations;
        self.handshaking = core.handshaking;
        self.retrying = core.retrying;
        self.retries_sent += core.retries_sent;
        self.addresses_validated += core.addresses_validated;
        self.tokens_rejected += core.tokens_rejected;
        self.tokens_replayed += core.tokens_replayed;
        self.stateless_resets += core.stateless_resets;
        self.datagrams_dropped += core.datagrams_dropped;
        self.drops += core.drops;
        self
    }
}

impl AddAssign for EndpointStats {
    fn add_assign(&mut self, other: Self) {
        self.connections += other.connections;
        self.datagrams_received += other.datagrams_received;
        self.bytes_received += other.bytes_received;
        self.datagrams_sent += other.datagrams_sent;
        self.bytes_sent += other.bytes_sent;
        self.send_calls += other.send_calls;
        self.receive_calls += other.receive_calls;
        self.send_errors += other.send_errors;
        self.receive_errors += other.receive_errors;
        self.datagrams_dropped += other.datagrams_dropped;
        self.drops += other.drops;
        self.datagrams_passed_on += other.datagrams_passed_on;
        self.datagrams_forwarded += other.datagrams_forwarded;
        self.forwards_dropped += other.forwards_dropped;
        self.forwards_received += other.forwards_received;
        self.worker_failures += other.worker_failures;
        self.waiting_incoming += other.waiting_incoming;
        self.partial_hellos += other.partial_hellos;
        self.key_exchange_refused += other.key_exchange_refused;
        self.version_negotiations += other.version_negotiations;
        self.stateless_resets += other.stateless_resets;
        self.incoming_ignored += other.incoming_ignored;
        self.refused_by_application += other.refused_by_application;
        self.refused_too_many += other.refused_too_many;
        self.refused_too_busy += other.refused_too_busy;
        self.refused_too_fast += other.refused_too_fast;
        self.handshaking += other.handshaking;
        self.retrying += other.retrying;
        self.retries_sent += other.retries_sent;
        self.addresses_validated += other.addresses_validated;
        self.tokens_rejected += other.tokens_rejected;
        self.tokens_replayed += other.tokens_replayed;
    }
}
