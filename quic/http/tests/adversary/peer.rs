//! What peers of all versions have in common.

use hybriq_sim::Rng;

/// How a peer leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moves {
    /// It closes the connection.
    Close,
    /// It is silent from now on.
    Vanish,
}

/// A hostile peer, which acts without waiting for answers.
pub(crate) trait Peer {
    /// Does one thing that the random numbers decide.
    fn act(&mut self, rng: &mut Rng);

    /// Returns the bytes that it has sent, without what the transport adds.
    fn sent(&self) -> u64;

    /// Returns true if the server has ended the connection.
    fn is_over(&self) -> bool;

    /// Gives up every request, but keeps the connection.
    fn let_go(&mut self);

    /// Ends the connection.
    fn leave(self, moves: Moves) -> impl Future<Output = ()>;
}
