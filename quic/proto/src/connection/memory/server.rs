//! A client's memory of its server: the version and the share to begin with, and the alarm if the
//! server is no longer post-quantum.

use std::time::Instant;

use arrayvec::ArrayVec;
use hybriq_tls::{CertificateAlgorithms, Group, Lineage};

use crate::{
    connection::{Connection, start::ClientStart},
    events::agreement::Handshake as Agreement,
    remembered::{
        origin::{Certificates, Continuity, Downgrade, OriginRecord, Seen},
        server::Server,
    },
    wire::packet::Version,
};

/// Last byte of the context of sessions that began with post-quantum certificates.
const CERTIFIED: u8 = 1;

/// A client's server, and what was remembered of it when the connection began.
pub(in crate::connection) struct Remembered {
    pub(super) server: Server,
    port: u16,
    record: OriginRecord,
    version: Option<Version>,
    hint: Option<Group>,
    /// Lineage of the sessions that may be resumed.
    lineage: Option<Lineage>,
    /// True if only sessions that began with post-quantum certificates are resumed and stored.
    certified: bool,
}

/// Looks up what a client knows about its server.
pub(in crate::connection) fn recall(start: &ClientStart<'_>) -> Option<Remembered> {
    let server = start.setup.transport.server(start.server_name)?;
    let port = start.peer.port();
    let (record, version) = server.read(|known| (known.port(port), known.version()));
    let origins = server.memory().origins();
    let policy = start.setup.provider.key_exchange();
    let hint = origins.predict(&record, start.server_name, policy);
    let is_on = origins.continuity() != Continuity::Off;
    let time = server.memory().time(start.now);
    Some(Remembered {
        hint,
        lineage: (is_on && record.pins_key_exchange(time)).then_some(Lineage::PostQuantum),
        certified: is_on && record.pins_certificates(time),
        server,
        port,
        record,
        version,
    })
}

impl Remembered {
    /// Returns the bytes of the server's name.
    pub(in crate::connection) fn name_len(&self) -> usize {
        self.server.key().as_str().len()
    }

    fn continuity(&self) -> Continuity {
        self.server.memory().origins().continuity()
    }

    /// Stores the version of a connection and the facts of its handshake, unless that changes next to
    /// nothing.
    fn learn(&self, now: Instant, version: Version, seen: &Seen) {
        let memory = self.server.memory();
        let (origins, time) = (memory.origins(), memory.time(now));
        let is_news = origins.would_change(time, &self.record, seen);
        if is_news || self.version != Some(version) {
            self.server.change(now, |record| {
                record.set_version(version);
                if is_news {
                    let learn = |record: &mut OriginRecord| origins.learn(time, record, seen);
                    record.change_port(time, self.port, learn);
                }
            });
        }
    }
}

/// Returns the group that the server will probably choose, and the lineage of the sessions that may
/// be resumed.
pub(in crate::connection) fn wishes(
    remembered: Option<&Remembered>,
) -> (Option<Group>, Option<Lineage>) {
    remembered.map_or((None, None), |it| (it.hint, it.lineage))
}

/// Returns the context of a client's sessions in a version of QUIC. Sessions that began with
/// post-quantum certificates have a context of their own, because a resumed connection does not
/// show its certificates.
pub(in crate::connection) fn context(
    version: Version,
    remembered: Option<&Remembered>,
) -> ArrayVec<u8, 5> {
    let certified = remembered.is_some_and(|it| it.certified);
    let version = version.resumption_context().into_iter();
    version.chain(certified.then_some(CERTIFIED)).collect()
}

impl Connection {
    /// Binds tickets that arrive from now on to a version, and to the server's certificates.
    pub(in crate::connection) fn bind_tickets(&mut self, version: Version) {
        let context = context(version, self.memory.server.as_ref());
        self.handshake.set_resumption_context(&context);
    }

    /// Compares a handshake with what is remembered about the server.
    ///
    /// The record is read again, because another connection may have changed it meanwhile. This
    /// happens once the server is verified and before the client has sent anything in answer, so
    /// that a refused server learns nothing.
    pub(in crate::connection) fn check_continuity(
        &self,
        now: Instant,
        outcome: &mut Agreement,
    ) -> Result<(), Downgrade> {
        let Some(known) = &self.memory.server else {
            return Ok(());
        };
        let continuity = known.continuity();
        if continuity == Continuity::Off {
            return Ok(());
        }
        let time = known.server.memory().time(now);
        let seen = self.seen(outcome);
        let record = known.server.read(|record| record.port(known.port));
        let Some(downgrade) = record.downgrade(time, &seen) else {
            return Ok(());
        };
        if continuity == Continuity::Refuse {
            return Err(downgrade);
        }
        outcome.downgrade = Some(downgrade);
        Ok(())
    }

    /// Stores what a handshake showed of the server, once it is complete.
    pub(in crate::connection) fn remember_server(&mut self, now: Instant) {
        let (Some(outcome), Some(known)) = (self.agreed.outcome.clone(), &self.memory.server)
        else {
            return;
        };
        let seen = self.seen(&outcome);
        known.learn(now, self.version(), &seen);
        // The session of a server that was reported began with what it shows now, whatever it was
        // before.
        let certified = known.continuity() != Continuity::Off
            && match seen.certificates {
                Certificates::PostQuantum | Certificates::ResumedPostQuantum => true,
                Certificates::Classical | Certificates::Resumed => false,
            };
        if let Some(known) = self
            .memory
            .server
            .as_mut()
            .filter(|it| it.certified != certified)
        {
            known.certified = certified;
            self.bind_tickets(self.version());
        }
    }

    fn seen(&self, outcome: &Agreement) -> Seen {
        let certified = self.memory.server.as_ref().is_some_and(|it| it.certified);
        let shown = self.handshake.peer_certificates().len();
        let readable = &outcome.peer_certificates;
        let all_are = shown > 0
            && shown == readable.len()
            && readable.iter().all(CertificateAlgorithms::is_post_quantum);
        let certificates = match (outcome.resumed, certified, all_are) {
            (true, true, _) => Certificates::ResumedPostQuantum,
            (true, false, _) => Certificates::Resumed,
            (false, _, true) => Certificates::PostQuantum,
            (false, _, false) => Certificates::Classical,
        };
        let params = self.agreed.params.as_ref();
        Seen {
            group: outcome.key_exchange.group,
            lineage: outcome.lineage,
            certificates,
            commitment: params.and_then(|params| params.post_quantum_commitment),
        }
    }
}
