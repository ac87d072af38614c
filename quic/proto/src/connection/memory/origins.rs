//! A client's memory of its server: the key share to begin with, and the alarm if the server is no
//! longer post-quantum.

use std::{
    sync::Arc,
    time::{Instant, SystemTime},
};

use arrayvec::ArrayVec;
use hybriq_tls::{CertificateAlgorithms, Group, Lineage};

use crate::{
    connection::{Connection, start::ClientStart},
    events::agreement::Handshake as Agreement,
    remembered::origin::{
        Certificates, Continuity, Downgrade, OriginRecord, Origins, Seen, origin,
    },
    wire::packet::Version,
};

/// Last byte of the context of sessions that began with post-quantum certificates.
const CERTIFIED: u8 = 1;

/// Record of a client's server, as it was when the connection began.
pub(in crate::connection) struct Remembered {
    origins: Arc<Origins>,
    origin: String,
    record: OriginRecord,
    hint: Option<Group>,
    /// Lineage of the sessions that may be resumed.
    lineage: Option<Lineage>,
    /// True if only sessions that began with post-quantum certificates are resumed and stored.
    certified: bool,
}

/// Looks up what a client knows about its server.
pub(in crate::connection) fn recall(start: &ClientStart<'_>) -> Option<Remembered> {
    let origins = start.setup.transport.memory.origins.as_ref()?;
    let origin = origin(start.server_name, start.peer.port());
    let record = origins.recall(&origin);
    let policy = start.setup.provider.key_exchange();
    let hint = origins.predict(&record, start.server_name, policy);
    let pinned_at = origins
        .time(start.now)
        .filter(|_| origins.continuity() != Continuity::Off);
    let pins = |is_pinned: fn(&OriginRecord, SystemTime) -> bool| {
        pinned_at.is_some_and(|now| is_pinned(&record, now))
    };
    Some(Remembered {
        origins: origins.clone(),
        origin,
        record,
        hint,
        lineage: pins(OriginRecord::pins_key_exchange).then_some(Lineage::PostQuantum),
        certified: pins(OriginRecord::pins_certificates),
    })
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
        let context = context(version, self.memory.origin.as_ref());
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
        let Some(Remembered {
            origins, origin, ..
        }) = &self.memory.origin
        else {
            return Ok(());
        };
        let (Continuity::Report | Continuity::Refuse, Some(time)) =
            (origins.continuity(), origins.time(now))
        else {
            return Ok(());
        };
        let seen = self.seen(outcome);
        let Some(downgrade) = origins.recall(origin).downgrade(time, &seen) else {
            return Ok(());
        };
        if origins.continuity() == Continuity::Refuse {
            return Err(downgrade);
        }
        outcome.downgrade = Some(downgrade);
        Ok(())
    }

    /// Stores what a handshake revealed about the server, once it is complete.
    pub(in crate::connection) fn remember_origin(&mut self, now: Instant) {
        let (Some(outcome), Some(known)) = (self.agreed.outcome.clone(), &self.memory.origin)
        else {
            return;
        };
        let seen = self.seen(&outcome);
        if let Some(time) = known.origins.time(now) {
            known
                .origins
                .learn(time, &known.origin, &known.record, &seen);
        }
        // If a server was reported, its session began with what it shows now, whatever it showed
        // before.
        let certified = known.origins.continuity() != Continuity::Off
            && match seen.certificates {
                Certificates::PostQuantum | Certificates::ResumedPostQuantum => true,
                Certificates::Classical | Certificates::Resumed => false,
            };
        if let Some(known) = self
            .memory
            .origin
            .as_mut()
            .filter(|it| it.certified != certified)
        {
            known.certified = certified;
            self.bind_tickets(self.version());
        }
    }

    fn seen(&self, outcome: &Agreement) -> Seen {
        let certified = self.memory.origin.as_ref().is_some_and(|it| it.certified);
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
