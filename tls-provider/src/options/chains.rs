//! Choice among certificate chains, and what is sent of them.

use super::{ClientOptions, ServerOptions};

/// Choice among the certificates of a server that have the client's name and whose signatures the
/// client verifies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChainChoice {
    /// The one that was added first.
    #[default]
    First,
    /// The first whose whole chain is post-quantum, or else the first.
    PostQuantumFirst,
    /// The one with which the handshake takes the fewest round trips, and among equals the first:
    /// add the post-quantum certificate first, and it is used where it costs no round trip.
    ///
    /// The sizes of the chains, the group, certificate compression and the address validation of each
    /// connection count.
    FewestRoundTrips,
}

/// Intermediate certificates of a chain, on the wire.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Intermediates {
    #[default]
    Sent,
    LeftOut,
    /// Left out for connections that agree on one of these application protocols.
    LeftOutFor(Vec<Vec<u8>>),
}

impl ServerOptions {
    /// Sets the choice among several certificates. Default: [`ChainChoice::First`].
    ///
    /// s2n-tls chooses by itself and refuses any other.
    #[must_use]
    pub fn chain_choice(mut self, choice: ChainChoice) -> Self {
        self.chain_choice = choice;
        self
    }

    /// Sends the server's own certificates alone, without their intermediates, to every client.
    ///
    /// For clients that have them: see [`Trust::intermediates`](crate::Trust::intermediates). All
    /// others refuse the server with `unknown_ca`.
    #[must_use]
    pub fn leave_out_intermediates(mut self) -> Self {
        self.intermediates = Intermediates::LeftOut;
        self
    }

    /// Does the same only for connections that agree on one of these application protocols.
    ///
    /// s2n-tls refuses this: it knows no protocol yet when it chooses a chain.
    #[must_use]
    pub fn leave_out_intermediates_for(
        mut self,
        protocols: impl IntoIterator<Item: AsRef<[u8]>>,
    ) -> Self {
        self.intermediates = Intermediates::LeftOutFor(super::protocol_list(protocols));
        self
    }
}

impl ClientOptions {
    /// Sends the client's own certificate alone, without its intermediates.
    ///
    /// For servers that have them: see [`Trust::intermediates`](crate::Trust::intermediates). All
    /// others refuse the client with `unknown_ca`.
    #[must_use]
    pub fn leave_out_intermediates(mut self) -> Self {
        self.leaves_out_intermediates = true;
        self
    }
}
