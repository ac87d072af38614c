//! The choice among certificate chains, and which of their certificates are sent.

use super::{ClientOptions, ServerOptions};

/// Choice among the certificates of a server that match the client's server name and whose
/// signatures the client verifies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChainChoice {
    /// The certificate that was added first.
    #[default]
    First,
    /// The first one whose whole chain is post-quantum; otherwise the first one.
    PostQuantumFirst,
    /// The one with which the handshake takes the fewest round trips, the first one in case of a
    /// tie: add the post-quantum certificate first, and it is used whenever it costs no round trip.
    ///
    /// This takes into account the sizes of the chains, the group, certificate compression and the
    /// address validation of each connection.
    FewestRoundTrips,
}

/// How the intermediate certificates of a chain are sent.
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
    /// s2n-tls makes its own choice and refuses any other.
    #[must_use]
    pub fn chain_choice(mut self, choice: ChainChoice) -> Self {
        self.chain_choice = choice;
        self
    }

    /// Sends the server's own certificates alone, without their intermediates, to every client.
    ///
    /// For clients that already have them: see
    /// [`Trust::intermediates`](crate::Trust::intermediates). All other clients refuse the server
    /// with `unknown_ca`.
    #[must_use]
    pub fn leave_out_intermediates(mut self) -> Self {
        self.intermediates = Intermediates::LeftOut;
        self
    }

    /// Does the same only for connections that agree on one of these application protocols.
    ///
    /// s2n-tls refuses this: when it chooses a chain, it does not know the protocol yet.
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
    /// For servers that already have them: see
    /// [`Trust::intermediates`](crate::Trust::intermediates). All other servers refuse the client
    /// with `unknown_ca`.
    #[must_use]
    pub fn leave_out_intermediates(mut self) -> Self {
        self.leaves_out_intermediates = true;
        self
    }
}
