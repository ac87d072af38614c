//! 0-RTT: what a client sends before it has heard from the server, within the limits of an earlier
//! connection (RFC 9001 §4.6, RFC 9000 §7.4.1).
//!
//! ```text
//!  client   none ── ticket with parameters ──> offered ──> accepted ──> 1-RTT, new parameters
//!                                                 │
//!                                                 └──────> rejected ──> 1-RTT, no stream opened yet
//!
//!  server   none ── ClientHello ──> keys ── 1-RTT packet ──> keys ── three PTO ──> none
//! ```

use std::time::Instant;

use hybriq_tls::{EarlyDataPolicy, EarlyDataStatus, Side};

use super::KeptPacket;
use crate::{
    connection::{
        Connection, Event,
        start::{ClientStart, Setup},
    },
    owners::streams::PeerLimits,
    wire::{
        error::{TransportError, Violation},
        packet::{Space, Version},
        params::Params,
    },
};

impl Connection {
    /// Lets 0-RTT data follow a client's first flight if TLS offers it; otherwise drops its keys.
    pub(in crate::connection) fn offer_early_data(&mut self) {
        let offered = self.handshake.early_data() == EarlyDataStatus::Offered
            && self.handshake.keys().zero_rtt().is_some();
        let remembered = self
            .handshake
            .remembered_params()
            .filter(|_| offered)
            .and_then(|bytes| Params::decode(bytes, Side::Server).ok());
        match remembered {
            Some(params) => {
                self.set_limits(&params);
                self.opening.set_remembered(Some(params));
                self.events.push_back(Event::EarlyDataReady);
            }
            None => self.handshake.discard_zero_rtt(),
        }
    }

    /// Applies the limits of the peer's parameters. A client in 0-RTT keeps the remembered limits
    /// until it may send 1-RTT packets (RFC 9000 §7.4.1).
    pub(in crate::connection) fn take_limits(&mut self) {
        if self.opening.remembered().is_none() {
            if let Some(params) = self.agreed.params.take() {
                self.set_limits(&params);
                self.agreed.params = Some(params);
            }
        }
    }

    fn set_limits(&mut self, params: &Params) {
        self.streams.set_peer_limits(limits_of(params));
        self.datagrams
            .set_peer_limit(params.max_datagram_frame_size);
    }

    /// Handles a rejection of 0-RTT data as soon as TLS knows it.
    pub(in crate::connection) fn follow_early_data(&mut self) {
        if self.opening.remembered().is_some()
            && self.handshake.early_data() == EarlyDataStatus::Rejected
        {
            self.reject_early_data();
        }
    }

    /// Ends a client's 0-RTT phase when TLS is complete.
    pub(in crate::connection) fn end_early_data(&mut self) -> Result<(), TransportError> {
        if self.side.is_server() {
            return Ok(());
        }
        if self.opening.remembered().is_some() {
            if self.handshake.early_data() == EarlyDataStatus::Accepted {
                if let (Some(before), Some(now)) = (self.opening.remembered(), &self.agreed.params)
                {
                    check_limits(before, now)?;
                }
                self.opening.set_remembered(None);
                self.take_limits();
            } else {
                self.reject_early_data();
            }
        }
        self.handshake.discard_zero_rtt();
        Ok(())
    }

    /// Drops everything that depended on 0-RTT: the data and datagrams sent, and the streams
    /// opened. Packet numbers continue (RFC 9001 §4.6.2).
    fn reject_early_data(&mut self) {
        self.opening.set_remembered(None);
        self.agreed.early_data_refused = true;
        self.handshake.discard_zero_rtt();
        let mut outcome = std::mem::take(&mut self.acks.settled);
        self.recovery.abandon_space(Space::Data, &mut outcome);
        outcome.clear();
        self.acks.settled = outcome;
        self.streams.on_early_data_rejected();
        self.datagrams.on_early_data_rejected();
        self.take_limits();
        self.events.push_back(Event::EarlyDataRejected);
    }

    /// Schedules the end of a server's 0-RTT keys after the client's first 1-RTT packet, with time
    /// for reordered packets (RFC 9001 §4.9.3).
    pub(in crate::connection) fn on_one_rtt_opened(&mut self, now: Instant) {
        if self.timers.zero_rtt_until.is_none() && self.handshake.keys().zero_rtt().is_some() {
            self.timers.zero_rtt_until = now.checked_add(3 * self.pto(Space::Data));
        }
    }

    /// Handles packets that arrived before the connection existed.
    pub(crate) fn on_kept_packets(&mut self, now: Instant, packets: Vec<KeptPacket>) {
        self.observer.at(now);
        for mut kept in packets {
            self.take_packets(now, kept.seen, &mut kept.packet.packets());
        }
        self.observe();
    }

    /// Returns true if the application may use the connection before the handshake is complete: on
    /// a client only with 0-RTT, on a server always.
    pub fn may_use_early(&self) -> bool {
        self.state.is_handshaking()
            && (self.side.is_server() || self.opening.remembered().is_some())
    }

    /// Returns the application protocol of early data.
    pub fn early_alpn(&self) -> Option<Vec<u8>> {
        match &self.agreed.outcome {
            Some(agreement) => agreement.alpn.clone(),
            None => self.handshake.early_alpn(),
        }
    }

    /// Reports early data as refused when a client starts again in another version.
    pub(in crate::connection) fn forget_early_data(&mut self, before: Self) {
        if before.opening.remembered().is_some() {
            self.agreed.early_data_refused = true;
            self.datagrams.go_on_after(before.datagrams);
            self.events.push_front(Event::EarlyDataRejected);
        }
    }

    /// Returns true if a client's 0-RTT data was refused, so that all streams and datagrams before
    /// that are void.
    pub const fn is_early_data_refused(&self) -> bool {
        self.agreed.early_data_refused
    }

    /// Returns the state of 0-RTT data.
    pub fn early_data(&self) -> EarlyDataStatus {
        if self.agreed.early_data_refused {
            EarlyDataStatus::Rejected
        } else {
            self.handshake.early_data()
        }
    }
}

/// Returns the limits of streams in a peer's parameters.
fn limits_of(params: &Params) -> PeerLimits {
    PeerLimits {
        max_data: params.initial_max_data,
        bidi_local: params.initial_max_stream_data_bidi_local,
        bidi_remote: params.initial_max_stream_data_bidi_remote,
        uni: params.initial_max_stream_data_uni,
        max_bidi: params.initial_max_streams_bidi,
        max_uni: params.initial_max_streams_uni,
        reset_at: params.reset_stream_at,
    }
}

/// Returns the limits that 0-RTT relies on, by name.
fn relied_on(params: &Params) -> [(&'static str, u64); 9] {
    [
        (
            "active_connection_id_limit",
            params.active_connection_id_limit,
        ),
        ("initial_max_data", params.initial_max_data),
        (
            "initial_max_stream_data_bidi_local",
            params.initial_max_stream_data_bidi_local,
        ),
        (
            "initial_max_stream_data_bidi_remote",
            params.initial_max_stream_data_bidi_remote,
        ),
        (
            "initial_max_stream_data_uni",
            params.initial_max_stream_data_uni,
        ),
        ("initial_max_streams_bidi", params.initial_max_streams_bidi),
        ("initial_max_streams_uni", params.initial_max_streams_uni),
        ("max_datagram_frame_size", params.max_datagram_frame_size),
        ("reset_stream_at", params.reset_stream_at.into()),
    ]
}

/// Checks that a server that accepts 0-RTT data has not lowered its limits (RFC 9000 §7.4.1).
fn check_limits(before: &Params, now: &Params) -> Result<(), TransportError> {
    match reduced(before, now) {
        Some(name) => Err(Violation::EarlyDataLimit.of(name)),
        None => Ok(()),
    }
}

/// Returns the name of the first limit that is lower than before.
fn reduced(before: &Params, now: &Params) -> Option<&'static str> {
    let pairs = relied_on(before).into_iter().zip(relied_on(now));
    let mut lower = pairs.filter(|((_, before), (_, now))| now < before);
    lower.next().map(|((name, _), _)| name)
}

/// Returns what a server stores in its tickets, so that it accepts 0-RTT data only with the same
/// limits, with the same settings of the application, and in the same version (RFC 9369 §5).
pub(in crate::connection) fn early_context(
    version: Version,
    params: &Params,
    setup: &Setup,
) -> Vec<u8> {
    let settings = &setup.transport.server_terms.early_settings;
    let limits = relied_on(params).map(|(_, limit)| limit);
    let numbers = [u64::from(version.number())].into_iter().chain(limits);
    let numbers = numbers.flat_map(u64::to_be_bytes);
    numbers.chain(settings.iter().copied()).collect()
}

/// Returns a client's policy for 0-RTT data. An attempt after Version Negotiation does not offer
/// it, so that nothing is sent twice.
pub(in crate::connection) fn offer(start: &ClientStart<'_>) -> EarlyDataPolicy {
    if start.attempt.reacts() {
        EarlyDataPolicy::Off
    } else {
        start.setup.transport.memory.early_data
    }
}

/// Returns a server's policy for 0-RTT data. Its tickets are for the version in use, and the
/// client's first flight must be in the same version (RFC 9369 §5).
pub(in crate::connection) fn takes(original: Version, version: Version) -> EarlyDataPolicy {
    if original == version {
        EarlyDataPolicy::On
    } else {
        EarlyDataPolicy::Off
    }
}
