//! Counters, and events for a subscriber.

use std::{sync::Arc, time::Instant};

use smallvec::SmallVec;

use crate::{
    config::TransportConfig,
    connection::{Connection, transmit::owners::Carried},
    events::{
        AckFrequencyUpdated, Change, ConnectionState, DropTrigger, Event, KeyLevel, LossTimer,
        LossTrigger, Meta, Packet, PacketBuffered, PacketDropped, PacketLost, Parameters,
        PathAddresses, Subscriber, TimerKind,
    },
    owners::{
        acks::frequency::Request,
        handshake::Keys,
        path::Address,
        recovery::{Recovery, Settled, Timeout},
    },
    stats::{ConnectionStats, PathStats},
    wire::{
        error::By,
        packet::{Cid, Kind, PacketNumber},
        params::Params,
        udp::{Ecn, Transmit},
    },
};

/// Subscribers of a connection, if there are any, and the states that were last reported to them.
#[derive(Default)]
pub(in crate::connection) struct Observer {
    watch: Option<Box<Watch>>,
    /// Counters that no owner keeps.
    pub(in crate::connection) stats: ConnectionStats,
}

struct Watch {
    /// Subscriber from the configuration, and the one from its sampler.
    subscribers: SmallVec<[Arc<dyn Subscriber>; 2]>,
    meta: Meta,
    /// Frames of the packet that is being sealed.
    payload: Vec<u8>,
    told: Told,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Told {
    state: ConnectionState,
    path: Option<PathStats>,
    spurious_losses: u64,
    key_updates: u64,
    timer: Option<(Instant, TimerKind)>,
    closed: bool,
    keys: Held,
    address: Address,
    peer_cid: Cid,
}

/// Levels for which a connection has keys.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Held([bool; 4]);

impl Held {
    const LEVELS: [KeyLevel; 4] = [
        KeyLevel::Initial,
        KeyLevel::ZeroRtt,
        KeyLevel::Handshake,
        KeyLevel::OneRtt,
    ];

    fn of(keys: &Keys) -> Self {
        Self([
            keys.initial().is_some(),
            keys.zero_rtt().is_some(),
            keys.handshake().is_some(),
            keys.one_rtt().is_some(),
        ])
    }

    /// Returns the events that lead from the old levels to these.
    fn since(self, old: Self) -> impl Iterator<Item = Event<'static>> {
        let changes = Self::LEVELS.into_iter().zip(old.0.into_iter().zip(self.0));
        changes.filter_map(|(level, change)| match change {
            (false, true) => Some(Event::KeysInstalled(level)),
            (true, false) => Some(Event::KeysDiscarded(level)),
            _ => None,
        })
    }
}

impl Observer {
    pub(in crate::connection) fn new(
        config: &TransportConfig,
        meta: Meta,
        peer_cid: Cid,
        address: Address,
    ) -> Self {
        let watch = || {
            let own = config.subscriber.as_ref().map(|own| own.0.clone());
            let sampler = config.sampler.as_ref();
            let sampled = sampler.and_then(|sampler| sampler.0.sample(&meta, address.peer));
            let subscribers: SmallVec<_> = own.into_iter().chain(sampled).collect();
            let watch = Watch {
                subscribers,
                meta,
                payload: Vec::new(),
                told: Told {
                    state: ConnectionState::Handshaking,
                    path: None,
                    spurious_losses: 0,
                    key_updates: 0,
                    timer: None,
                    closed: false,
                    keys: Held::default(),
                    address,
                    peer_cid,
                },
            };
            (!watch.subscribers.is_empty()).then(|| Box::new(watch))
        };
        let is_wanted = config.subscriber.is_some() || config.sampler.is_some();
        let observer = Self {
            watch: is_wanted.then(watch).flatten(),
            stats: ConnectionStats::default(),
        };
        observer.tell(|| Event::ConnectionStarted(PathAddresses::new(address)));
        observer
    }

    /// Sets the current time.
    #[inline]
    pub(in crate::connection) fn at(&mut self, now: Instant) {
        if let Some(watch) = &mut self.watch {
            watch.meta.time = now;
        }
    }

    /// Reports an event, which is created only if there is a subscriber.
    #[inline]
    pub(in crate::connection) fn tell<'a>(&self, event: impl FnOnce() -> Event<'a>) {
        if let Some(watch) = &self.watch {
            watch.tell(&event());
        }
    }

    /// Copies the frames of a packet before they are encrypted in place.
    #[inline]
    pub(in crate::connection) fn keep<'a>(&mut self, payload: impl FnOnce() -> &'a [u8]) {
        if let Some(watch) = &mut self.watch {
            watch.payload.clear();
            watch.payload.extend_from_slice(payload());
        }
    }

    /// Counts a sealed packet whose frames were copied, and reports it to the subscriber.
    #[inline]
    pub(in crate::connection) fn on_sealed(
        &mut self,
        kind: impl FnOnce() -> Kind,
        pn: PacketNumber,
        size: usize,
        ecn: Option<Ecn>,
    ) {
        self.stats.packets_sent += 1;
        self.stats.ecn_sent.add(ecn);
        if let Some(watch) = &self.watch {
            let packet = Packet::new(kind(), pn, size, &watch.payload).marked(ecn);
            watch.tell(&Event::PacketSent(packet));
        }
    }

    /// Reports the transport parameters of one end.
    pub(in crate::connection) fn on_params(&self, by: By, params: &Params) {
        self.tell(|| Event::ParametersSet(Parameters::new(by, params)));
    }

    pub(in crate::connection) fn on_buffered(&self, kind: Kind, size: usize) {
        self.tell(|| Event::PacketBuffered(PacketBuffered::new(kind, size)));
    }

    /// Counts the datagrams that leave.
    #[inline]
    pub(in crate::connection) fn counted(&mut self, transmit: Transmit) -> Transmit {
        self.stats.datagrams_sent += transmit.datagrams();
        self.stats.bytes_sent += transmit.size as u64;
        transmit
    }

    #[inline]
    pub(in crate::connection) fn on_lost(
        &self,
        recovery: &Recovery<Carried>,
        lost: &Settled<Carried>,
    ) {
        self.tell(|| {
            let space = lost.packet.record.space;
            let trigger = match recovery.largest_acked(space) {
                None => LossTrigger::Abandoned,
                Some(largest) if largest.distance_from(lost.pn) >= recovery.packet_threshold() => {
                    LossTrigger::ReorderingThreshold
                }
                Some(_) => LossTrigger::TimeThreshold,
            };
            Event::PacketLost(PacketLost::new(space, lost.pn, lost.packet.size, trigger))
        });
    }

    /// Counts a dropped packet, and reports it to the subscriber.
    #[inline]
    pub(in crate::connection) fn on_dropped(&mut self, size: usize, trigger: DropTrigger) {
        self.stats.packets_dropped += 1;
        let drops = &mut self.stats.drops;
        let count = match trigger {
            DropTrigger::Invalid => &mut drops.invalid,
            DropTrigger::Unsupported => &mut drops.unsupported,
            DropTrigger::ConnectionUnknown => &mut drops.connection_unknown,
            DropTrigger::KeyUnavailable => &mut drops.key_unavailable,
            DropTrigger::DecryptionFailure => &mut drops.decryption_failure,
            DropTrigger::Duplicate => &mut drops.duplicate,
        };
        *count = count.saturating_add(1);
        self.tell(|| Event::PacketDropped(PacketDropped::new(size, trigger)));
    }

    /// Reports a request for fewer acknowledgements, or for more.
    pub(in crate::connection) fn on_request(&self, by: By, request: Request) {
        self.tell(|| {
            let Request {
                threshold,
                max_delay,
                reordering,
            } = request;
            let update = AckFrequencyUpdated::new(by, threshold, max_delay, reordering);
            Event::AckFrequencyUpdated(update)
        });
    }

    #[inline]
    pub(in crate::connection) fn on_expired(&self, timeout: Timeout) {
        self.tell(|| {
            Event::LossTimerUpdated(LossTimer::Expired(match timeout {
                Timeout::Lost => TimerKind::Loss,
                Timeout::Probe(_) => TimerKind::Probe,
            }))
        });
    }
}

impl Watch {
    fn tell(&self, event: &Event<'_>) {
        for subscriber in &self.subscribers {
            subscriber.on_event(&self.meta, event);
        }
    }
}

impl Connection {
    /// Reports states that changed since the last call.
    #[inline]
    pub(in crate::connection) fn observe(&mut self) {
        if let Some(watch) = self.observer.watch.take() {
            self.observer.watch = Some(self.report(watch));
        }
    }

    #[cold]
    fn report(&self, mut watch: Box<Watch>) -> Box<Watch> {
        let old = watch.told;
        let new = Told {
            state: self.state.observed(),
            path: Some(self.path_stats()),
            spurious_losses: self.recovery.spurious_losses(),
            key_updates: self.key_updates().max(old.key_updates),
            timer: self.loss_timer(),
            closed: self.close.error().is_some(),
            keys: Held::of(self.handshake.keys()),
            address: self.paths.active().address(),
            peer_cid: *self.cids.peer.active(),
        };
        for event in new.keys.since(old.keys) {
            watch.tell(&event);
        }
        if let Some(change) = changed(old.peer_cid, new.peer_cid) {
            watch.tell(&Event::PeerCidUpdated(change));
        }
        let addresses = [old.address, new.address].map(PathAddresses::new);
        if let Some(change) = changed(addresses[0], addresses[1]) {
            watch.tell(&Event::PathUpdated(change));
        }
        if old.spurious_losses != new.spurious_losses {
            let count = new.spurious_losses - old.spurious_losses;
            watch.tell(&Event::SpuriousLosses(count));
        }
        if let (Some(path), true) = (new.path, old.path != new.path) {
            watch.tell(&Event::MetricsUpdated(path));
            let before = old.path.unwrap_or(path);
            if let Some(change) = changed(before.phase, path.phase) {
                watch.tell(&Event::CongestionStateUpdated(change));
            }
            if let Some(change) = changed(before.ecn, path.ecn) {
                watch.tell(&Event::EcnStateUpdated(change));
            }
        }
        if old.key_updates != new.key_updates {
            watch.tell(&Event::KeyUpdated(new.key_updates));
        }
        if old.timer != new.timer {
            let update = new.timer.map_or(LossTimer::Cancelled, |(at, kind)| {
                let after = at.saturating_duration_since(watch.meta.time);
                LossTimer::Set { kind, after }
            });
            watch.tell(&Event::LossTimerUpdated(update));
        }
        if let (Some(error), false) = (self.close.error(), old.closed) {
            watch.tell(&Event::ConnectionClosed(error));
        }
        if let Some(change) = changed(old.state, new.state) {
            watch.tell(&Event::ConnectionStateUpdated(change));
        }
        watch.told = new;
        watch
    }

    fn loss_timer(&self) -> Option<(Instant, TimerKind)> {
        if self.state.is_closed() {
            return None;
        }
        let at = self.recovery.next_timeout(&self.recovery_context())?;
        let kind = if self.recovery.awaits_loss() {
            TimerKind::Loss
        } else {
            TimerKind::Probe
        };
        Some((at, kind))
    }
}

fn changed<T: PartialEq>(old: T, new: T) -> Option<Change<T>> {
    (old != new).then_some(Change { old, new })
}
