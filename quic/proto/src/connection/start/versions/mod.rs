//! Negotiation of the QUIC version (RFC 9368, RFC 9369 §4).
//!
//! ```text
//! client                                     server
//!   first flight in the original version ──►   (acknowledges a partial ClientHello in it)
//!                                         ◄──   everything else in the version it prefers
//!   the rest in the version of that answer ──►
//! ```
//! Both ends confirm in their transport parameters what they saw in headers, which anybody can
//! forge.

use std::time::Instant;

use hybriq_tls::Side;

use super::{Attempt, ClientStart, Setup};
use crate::{
    connection::Connection,
    events,
    owners::handshake::Opened,
    wire::{
        error::Violation,
        packet::{
            Cid, DirectionKeys, KeyPair, Kind, OpenError, PacketNumber, Protected, Version,
            VersionNegotiation, Versions, initial_direction, initial_keys,
        },
        params::{Params, VersionInformation},
    },
};

#[cfg(test)]
mod tests;

/// State of version negotiation.
pub(in crate::connection) struct Negotiation {
    /// Version of the client's first flight.
    original: Version,
    /// True if a client followed a Version Negotiation packet.
    reacts: bool,
    stage: Stage,
}

enum Stage {
    /// A client waits for the packet that decides the version.
    Open(Box<Again>),
    /// A client must start again in this version.
    Restart(Box<Again>, Version, Instant),
    /// The version is decided: it is that of the keys.
    Settled,
}

/// Data that a client needs to start again.
struct Again {
    setup: Setup,
    server_name: Box<str>,
}

impl Negotiation {
    pub(in crate::connection) fn client(start: &ClientStart<'_>) -> Self {
        Self {
            original: start.attempt.version(),
            reacts: start.attempt.reacts(),
            stage: Stage::Open(Box::new(Again {
                setup: start.setup.clone(),
                server_name: start.server_name.into(),
            })),
        }
    }

    pub(in crate::connection) const fn server(original: Version) -> Self {
        Self {
            original,
            reacts: false,
            stage: Stage::Settled,
        }
    }

    pub(in crate::connection) const fn original(&self) -> Version {
        self.original
    }

    pub(in crate::connection) const fn wants_restart(&self) -> bool {
        matches!(self.stage, Stage::Restart(..))
    }

    pub(in crate::connection) const fn is_open(&self) -> bool {
        matches!(self.stage, Stage::Open(_))
    }

    /// Decides on the version of the keys, if a client waits for a decision.
    pub(in crate::connection) fn decide(&mut self) {
        if self.is_open() {
            self.stage = Stage::Settled;
        }
    }

    /// Requests a restart in another version, if a client waits for a decision.
    fn restart(&mut self, version: Version, now: Instant) {
        match std::mem::replace(&mut self.stage, Stage::Settled) {
            Stage::Open(again) => self.stage = Stage::Restart(again, version, now),
            other => self.stage = other,
        }
    }

    /// Takes the request for a restart.
    fn take_restart(&mut self) -> Option<(Box<Again>, Version, Instant)> {
        match std::mem::replace(&mut self.stage, Stage::Settled) {
            Stage::Restart(again, version, now) => Some((again, version, now)),
            other => {
                self.stage = other;
                None
            }
        }
    }

    /// Checks the peer's version_information against the versions seen in headers, for a side that
    /// supports `ours` (RFC 9368 §4).
    fn confirm(
        &self,
        side: Side,
        ours: Versions,
        in_use: Version,
        info: Option<&VersionInformation>,
    ) -> Result<(), Violation> {
        match (side, info) {
            (Side::Client, Some(info)) => self.confirm_server(ours, in_use, info),
            // Servers that speak only version 1 need not know version negotiation (RFC 9368 §8): a
            // missing parameter means version 1.
            (Side::Client, None)
                if self.original == in_use && (!self.reacts || in_use == Version::V1) =>
            {
                Ok(())
            }
            (Side::Client, None) => Err(Violation::NoVersions),
            (Side::Server, Some(info)) if info.chosen != self.original.number() => {
                Err(Violation::ClientChosenVersion)
            }
            (Side::Server, _) => Ok(()),
        }
    }

    fn confirm_server(
        &self,
        ours: Versions,
        in_use: Version,
        info: &VersionInformation,
    ) -> Result<(), Violation> {
        if info.chosen != in_use.number() {
            return Err(Violation::ServerChosenVersion);
        }
        if !self.reacts {
            return Ok(());
        }
        if info.available.is_empty() {
            return Err(Violation::NoAvailableVersions);
        }
        let known = info.available.iter().copied().chain([info.chosen]);
        if ours.first_of(&known) == Some(self.original) {
            Ok(())
        } else {
            Err(Violation::BetterVersionLeftOut)
        }
    }
}

/// Returns the version of a server's answer: the one it prefers among those compatible with the
/// client's first flight (RFC 9368 §2.3). `None` if it speaks none of them.
pub(in crate::connection) fn chosen_by_server(
    setup: &Setup,
    original: Version,
    client_params: Option<&[u8]>,
) -> Option<Version> {
    let ours = setup.transport.spoken.versions;
    // TLS delivers the parameters later, and errors in them are reported then.
    let params = client_params.and_then(|bytes| Params::decode(bytes, Side::Client).ok());
    let compatible = params
        .and_then(|params| params.version_information)
        .and_then(|info| ours.first_of(&info.available.iter().copied()));
    compatible.or_else(|| ours.contains(original).then_some(original))
}

impl Connection {
    /// Returns the version in use. A client learns it from the server's first packets.
    pub fn version(&self) -> Version {
        self.handshake.keys().version()
    }

    /// Returns the version of the client's first flight.
    pub fn original_version(&self) -> Version {
        self.agreed.original_version
    }

    /// Returns true if a packet with a long header may use the version in its header.
    pub(in crate::connection) fn may_be_of(&self, kind: Kind, version: Version) -> bool {
        let offered =
            self.opening.awaits_version() && self.config.spoken.versions.contains(version);
        match kind {
            Kind::Initial => {
                version == self.version() || version == self.original_version() || offered
            }
            Kind::ZeroRtt => version == self.original_version(),
            Kind::Handshake => version == self.version() || offered,
            Kind::OneRtt => true,
        }
    }

    /// Returns true if a packet shows a client that the server chose another version.
    pub(in crate::connection) fn tells_version(&self, packet: &Protected<'_>) -> bool {
        packet.kind == Kind::Initial
            && self.opening.awaits_version()
            && packet
                .version
                .is_some_and(|version| version != self.original_version())
    }

    /// Opens the first Initial in another version than the original one, and continues in that
    /// version (RFC 9369 §4.1). The packet proves little: the server's transport parameters must
    /// confirm it.
    pub(in crate::connection) fn open_in_new_version<'p>(
        &mut self,
        packet: Protected<'p>,
        largest: Option<PacketNumber>,
    ) -> Option<Result<Opened<'p>, OpenError>> {
        let version = packet.version?;
        self.handshake.keys().initial()?;
        // Initial keys depend on the destination id of the first Initial, or of the first after a Retry.
        let retried = self.opening.retried().map(|retried| retried.scid);
        let dcid = retried.unwrap_or(self.cids.original);
        let keys = initial_keys(version, &dcid, Side::Client);
        let packet = packet.unprotect(&keys.peer.header, largest).ok()?;
        let pn = packet.pn;
        let payload = match packet.open(&keys.peer.packet) {
            Ok(payload) => payload,
            Err(error) => return Some(Err(error)),
        };
        self.handshake.keys_mut().switch(version, keys);
        self.bind_tickets(version);
        self.opening.fix_version();
        Some(Ok(Opened { pn, payload }))
    }

    /// Checks that the peer's transport parameters confirm the versions in headers, and that nobody
    /// made this end choose a worse version (RFC 9368 §4).
    pub(in crate::connection) fn check_versions(
        &mut self,
        params: &Params,
    ) -> Result<(), Violation> {
        let info = params.version_information.as_ref();
        let Some(negotiation) = self.opening.negotiation() else {
            return Ok(());
        };
        negotiation.confirm(self.side, self.config.spoken.versions, self.version(), info)?;
        let change = events::Change {
            old: self.original_version(),
            new: self.version(),
        };
        self.observer
            .tell(|| events::Event::VersionNegotiated(change));
        Ok(())
    }

    /// Handles a Version Negotiation packet: starts again in the best version that the server lists
    /// (RFC 9000 §6.2, RFC 9368 §2.1). Ignores packets that list the version in use, that arrive
    /// after another packet, or that answer an attempt after Version Negotiation.
    pub(in crate::connection) fn on_version_negotiation(
        &mut self,
        now: Instant,
        packet: &VersionNegotiation<'_>,
    ) {
        let meant = packet.scid == self.cids.peer.active().as_bytes()
            && self
                .cids
                .local
                .active()
                .any(|cid| cid.as_bytes() == packet.dcid);
        let original = self.original_version().number();
        let is_moot = packet.versions().any(|version| version == original);
        if !meant
            || is_moot
            || !self.awaits_server()
            || self.opening.negotiation().is_some_and(|it| it.reacts)
        {
            return;
        }
        let Some(version) = self.config.spoken.versions.first_of(&packet.versions()) else {
            return self.end_for_version();
        };
        if let Some(negotiation) = self.opening.negotiation_mut() {
            negotiation.restart(version, now);
        }
    }

    /// Replaces this connection with one in the version that the server's packet led to.
    pub(crate) fn restart(&mut self, local_cid: Cid, initial_dcid: Cid, seed: u64) {
        let restart = self.opening.negotiation_mut();
        let Some((again, version, now)) = restart.and_then(Negotiation::take_restart) else {
            return;
        };
        let start = ClientStart {
            now,
            setup: &again.setup,
            peer: self.paths.active().peer(),
            server_name: &again.server_name,
            attempt: Attempt::again(now, &again.setup, &again.server_name, version),
            local_cid,
            initial_dcid,
            seed,
        };
        match Self::client(&start) {
            Ok(connection) => {
                let before = std::mem::replace(self, connection);
                self.start_from(before.local().socket);
                self.observer.stats = before.observer.stats;
                self.forget_early_data(before);
            }
            // The same call succeeded for the first attempt.
            Err(_) => self.end_for_version(),
        }
    }
}

/// Keys of a server's Initial packets.
pub(in crate::connection) struct InitialKeys {
    pub(in crate::connection) in_use: KeyPair,
    /// Keys that open a client's Initials of the original version, if the server chose another.
    pub(in crate::connection) original: Option<Box<DirectionKeys>>,
}

impl InitialKeys {
    /// Derives the keys that are missing beside those of the client's first flight.
    pub(in crate::connection) fn of_server(
        in_use: Version,
        original: Version,
        dcid: &Cid,
        client_keys: Option<Box<DirectionKeys>>,
    ) -> Self {
        let derive = || Box::new(initial_direction(original, dcid, Side::Client));
        let client_keys = client_keys.unwrap_or_else(derive);
        if in_use != original {
            return Self {
                in_use: initial_keys(in_use, dcid, Side::Server),
                original: Some(client_keys),
            };
        }
        Self {
            in_use: KeyPair {
                local: initial_direction(in_use, dcid, Side::Server),
                peer: *client_keys,
            },
            original: None,
        }
    }
}
