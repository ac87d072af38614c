//! Datagrams that belong to no connection, and stateless resets.

pub(super) mod answers;
pub(super) mod reset_answers;
pub(super) mod resets;
