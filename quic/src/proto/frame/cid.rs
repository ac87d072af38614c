use crate::proto::packet::Cid;

/// NEW_CONNECTION_ID (RFC 9000 §19.15).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NewConnectionId {
    /// The number of the connection id.
    pub sequence: u64,
    /// Ids below this number are to be retired.
    pub retire_prior_to: u64,
    /// The connection id, 1 to 20 bytes.
    pub cid: Cid,
    /// The stateless reset token that goes with it.
    pub reset_token: [u8; 16],
}

/// RETIRE_CONNECTION_ID (RFC 9000 §19.16).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetireConnectionId {
    /// The number of the connection id.
    pub sequence: u64,
}
