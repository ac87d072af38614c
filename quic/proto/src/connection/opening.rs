//! State that is needed only until the handshake is confirmed.

use super::{Connection, receive::Early, retry::Retried, versions::Negotiation};
use crate::params::Params;

/// State that is needed only until the handshake is confirmed; it is dropped then.
pub(super) struct Opening {
    pub(super) negotiation: Negotiation,
    /// Contents of the server's Retry, if there was one.
    pub(super) retried: Option<Retried>,
    /// Packets that wait for their keys.
    pub(super) early: Early,
    /// Parameters that limit a client's 0-RTT data until the server accepts or refuses it.
    pub(super) remembered: Option<Box<Params>>,
}

impl Opening {
    pub(super) fn new(negotiation: Negotiation) -> Self {
        Self {
            negotiation,
            retried: None,
            early: Early::default(),
            remembered: None,
        }
    }
}

impl Connection {
    /// Returns the parameters that limit 0-RTT data, until the server has accepted or refused it.
    pub(super) fn remembered(&self) -> Option<&Params> {
        self.opening.as_ref()?.remembered.as_deref()
    }

    /// Returns the contents of the Retry that was followed.
    pub(super) fn retried(&self) -> Option<&Retried> {
        self.opening.as_ref()?.retried.as_ref()
    }

    /// Returns true if a client must begin again in another version.
    pub(super) fn wants_restart(&self) -> bool {
        let opening = self.opening.as_ref();
        opening.is_some_and(|opening| opening.negotiation.wants_restart())
    }

    /// Returns true if a client waits for the packet that decides the version.
    pub(super) fn awaits_version(&self) -> bool {
        let opening = self.opening.as_ref();
        opening.is_some_and(|opening| opening.negotiation.is_open())
    }

    /// Returns the number of packets that wait for keys.
    #[cfg(test)]
    pub(super) fn kept_packets(&self) -> usize {
        let opening = self.opening.as_ref();
        opening.map_or(0, |opening| opening.early.len())
    }

    /// Returns the destination connection id of the client's first Initial.
    #[cfg(test)]
    pub(super) fn original_dcid(&self) -> crate::packet::Cid {
        self.cids.original
    }
}
