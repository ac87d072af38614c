//! Glue between the paths and the rest of the connection: the facts they depend on, and the effects
//! of a change.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    time::Instant,
};

use crate::{
    config::PeerMigration,
    connection::{Connection, Event, PathChange},
    owners::{
        cids,
        path::{
            Address, Consequence, Facts, Moves, MtuRange, PathEvent, Paths, PeerCids, Preferred,
            Standing, Switch, Waits,
        },
        recovery::PathState,
    },
    wire::{
        error::{ConnectionError, MigrateError, SystemError},
        frame::PathResponse,
        limits,
        packet::{self, Cid, NumberedCid, Space},
        params::PreferredAddress,
        udp::Local,
    },
};

/// Datagrams that the system refused to send.
///
/// Exhaustive: a driver must say everything about a refused datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Address that they were for.
    pub peer: SocketAddr,
    /// Local address and socket that they were to leave from.
    pub local: Local,
    /// Cause of the refusal.
    pub cause: RefusalCause,
    /// Error reported by the system.
    pub reason: SystemError,
}

/// Cause of a refusal to send a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RefusalCause {
    /// This machine does not have the address to send from.
    OwnAddress,
    /// There is no route to the peer, or nothing listens there.
    Peer,
}

impl PeerCids for cids::Peer {
    fn active(&self) -> NumberedCid {
        NumberedCid {
            sequence: self.active_sequence(),
            cid: *Self::active(self),
        }
    }

    fn find(&self, sequence: u64) -> Option<Cid> {
        Self::find(self, sequence).copied()
    }

    fn take_spare(&mut self) -> Option<NumberedCid> {
        self.take_for_path()
    }

    fn activate(&mut self, sequence: u64) -> bool {
        Self::activate(self, sequence)
    }

    fn retire(&mut self, sequence: u64) {
        Self::retire(self, sequence);
    }
}

impl From<PathEvent> for Event {
    fn from(event: PathEvent) -> Self {
        match event {
            PathEvent::Changed(at) => Self::PathChanged(PathChange::of(at)),
            PathEvent::Failed(at) => Self::PathFailed(PathChange::of(at)),
        }
    }
}

impl Connection {
    /// Moves a client to another local address. The new path is validated and used once the server
    /// answered there ([`Event::PathChanged`]). Otherwise the connection stays on its path
    /// ([`Event::PathFailed`]).
    ///
    /// # Errors
    /// See [`MigrateError`].
    pub fn migrate(&mut self, now: Instant, local: Local) -> Result<(), MigrateError> {
        let standing = Standing {
            is_closed: self.state.is_closed(),
            is_confirmed: self.state.is_confirmed(),
            is_disabled: self.agreed.disable_active_migration,
        };
        let (paths, mut facts) = self.paths_with_facts(now);
        paths.migrate(local, standing, &mut facts)
    }

    /// Returns the policy for the peer's migrations.
    #[inline]
    pub(in crate::connection) fn moves(&self) -> Moves {
        if !self.state.is_confirmed() {
            Moves::Nowhere
        } else if self.config.migration.of_peer == PeerMigration::Allowed {
            Moves::Anywhere
        } else {
            Moves::ToAnotherPort
        }
    }

    /// Returns the paths, and the facts on which their changes depend.
    pub(in crate::connection) fn paths_with_facts(
        &mut self,
        now: Instant,
    ) -> (&mut Paths<PathState>, Facts<'_>) {
        let waits = Waits::new(self.pto(Space::Data), self.config.flight.initial_rtt);
        let facts = Facts {
            now,
            waits,
            cids: &mut self.cids.peer,
        };
        (&mut self.paths, facts)
    }

    /// Tries to move to the server's preferred address (RFC 9000 §9.6.1).
    pub(in crate::connection) fn seek_preferred(
        &mut self,
        now: Instant,
        preferred: &PreferredAddress,
    ) {
        // Without connection ids of ours, packets from that address would not be routed to this
        // connection.
        if self.cids.local.cid_len() > 0 {
            let preferred = Preferred {
                v4: preferred.v4,
                v6: preferred.v6,
            };
            let (paths, mut facts) = self.paths_with_facts(now);
            paths.seek(preferred, &mut facts);
        }
    }

    /// Follows a peer that moved to the source of the current packet.
    pub(in crate::connection) fn on_peer_moved(&mut self, now: Instant, dcid: &Cid) {
        let (paths, mut facts) = self.paths_with_facts(now);
        if let Some(switch) = paths.on_peer_moved(dcid, &mut facts) {
            self.on_switched(now, switch);
        }
    }

    /// Handles the answer to one of our PATH_CHALLENGE frames.
    pub(in crate::connection) fn on_path_response(&mut self, now: Instant, response: PathResponse) {
        let (paths, mut facts) = self.paths_with_facts(now);
        let outcome = paths.on_response(response, &mut facts);
        self.on_path_outcome(now, outcome);
    }

    /// Handles datagrams that the system refused to send. They count as lost: once the connection
    /// has heard from its peer, it never relies on the system's report alone.
    pub fn on_refused(&mut self, now: Instant, refused: Refused) {
        if self.state.is_closed() {
            return;
        }
        let Refused {
            peer,
            local,
            cause,
            reason,
        } = refused;
        let at = Address { peer, local };
        match (cause, local.ip) {
            (RefusalCause::OwnAddress, Some(ip)) => self.on_own_address_gone(now, at, ip, reason),
            _ if self.awaits_first_answer() && self.paths.active().peer() == peer => {
                self.end_quietly(now, ConnectionError::Unreachable { peer, reason });
            }
            _ => {}
        }
    }

    /// Handles the report of a router or a host that a datagram did not arrive (ICMP). `quoted` is
    /// the part of the datagram that the report repeats.
    ///
    /// Anybody can send such reports. One counts only before anything was received from the server, and
    /// only if it quotes the connection id of the first packet, which proves that its sender has seen that
    /// packet. A closed port is then final; a missing route may be temporary, and is final once a
    /// probe has met it again.
    pub fn on_reported(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        quoted: &[u8],
        reason: SystemError,
    ) {
        let counts = self.awaits_first_answer()
            && !self.state.is_closed()
            && self.paths.active().peer() == peer
            && packet::quoted_ids(quoted)
                .is_some_and(|[dcid, _]| dcid == self.cids.peer.active().as_bytes());
        let is_final =
            reason.kind == io::ErrorKind::ConnectionRefused || self.recovery.pto_count() > 0;
        if counts && is_final {
            self.end_quietly(now, ConnectionError::Unreachable { peer, reason });
        }
    }

    /// Ends the connection silently because the socket that it uses failed permanently.
    pub fn on_socket_failed(&mut self, now: Instant, reason: SystemError) {
        if self.state.is_closed() {
            self.state.on_end();
        } else {
            self.end_quietly(now, ConnectionError::SocketFailed(reason));
        }
    }

    /// Returns true if this is a client that has received nothing so far.
    pub(in crate::connection) fn awaits_first_answer(&self) -> bool {
        self.side.is_client() && self.observer.stats.datagrams_received == 0
    }

    fn on_own_address_gone(&mut self, now: Instant, at: Address, ip: IpAddr, reason: SystemError) {
        let is_confirmed = self.state.is_confirmed();
        let (paths, mut facts) = self.paths_with_facts(now);
        if let Some(switch) = paths.leave_local(at, is_confirmed, &mut facts) {
            self.on_switched(now, switch);
            self.recovery.on_path_failed(now);
        } else if self.side.is_server()
            && self.paths.active().address() == at
            && self.recovery.pto_count() >= limits::PROBES_FROM_NOWHERE
        {
            let address = ip;
            self.end_quietly(now, ConnectionError::AddressGone { address, reason });
        }
    }

    /// Handles expired timers of the paths.
    pub(in crate::connection) fn on_path_timeout(&mut self, now: Instant) {
        if self.paths.next_timeout().is_some_and(|at| at <= now) {
            let (paths, mut facts) = self.paths_with_facts(now);
            let outcome = paths.on_timeout(&mut facts);
            let has_failed = outcome.switch.is_some();
            self.on_path_outcome(now, outcome);
            if has_failed {
                self.recovery.on_path_failed(now);
            }
        }
    }

    fn on_path_outcome(&mut self, now: Instant, outcome: Consequence<PathState>) {
        let Consequence {
            switch,
            round_trip,
            is_end,
        } = outcome;
        if let Some(switch) = switch {
            self.on_switched(now, switch);
        }
        if let Some(round_trip) = round_trip {
            self.recovery.guess_rtt(now, round_trip);
        }
        if is_end {
            self.end_quietly(now, ConnectionError::TimedOut);
        }
    }

    /// Switches loss detection, congestion control and the header bits to another path.
    fn on_switched(&mut self, now: Instant, switch: Switch<PathState>) {
        match switch {
            Switch::SameWay => self.recovery.follow_path(now),
            Switch::OtherWay { left, saved } => {
                let state = if let Some(saved) = saved {
                    *saved
                } else {
                    let size = self.paths.active().datagram_size();
                    let seed = self.paths.draw();
                    PathState::new(now, self.config.flight.start(now, self.side, size, seed))
                };
                let known = self.recovery.change_path(now, state);
                self.paths.save_left(left, known);
                self.paths.resume_mtu();
                let size = self.paths.active().datagram_size();
                self.recovery.on_datagram_size(size);
            }
        }
        self.header_bits.on_new_path();
    }

    /// Starts MTU discovery with a peer that accepts UDP payloads of this size.
    pub(in crate::connection) fn start_mtu(&mut self, peer: u64) {
        self.paths.start_mtu(MtuRange {
            size: self.config.mtu.datagram_size,
            most: self.config.mtu.max_datagram_size,
            peer: u16::try_from(peer).unwrap_or(u16::MAX),
        });
        let size = self.paths.active().datagram_size();
        self.recovery.on_datagram_size(size);
    }
}
