use super::Encode;
use crate::proto::{
    packet::Cid,
    wire::{VarInt, Writer},
};

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

impl Encode for NewConnectionId {
    fn size(&self) -> usize {
        let numbers = [self.sequence, self.retire_prior_to];
        1 + numbers.map(|number| VarInt::saturating(number).size()).iter().sum::<usize>()
            + 1
            + self.cid.len()
            + 16
    }

    fn encode(&self, writer: &mut Writer<'_>) {
        writer.put(&[0x18]);
        writer.varint(self.sequence);
        writer.varint(self.retire_prior_to);
        writer.put(&[self.cid.len() as u8]);
        writer.put(self.cid.as_bytes());
        writer.put(&self.reset_token);
    }
}

impl Encode for RetireConnectionId {
    fn size(&self) -> usize {
        1 + VarInt::saturating(self.sequence).size()
    }

    fn encode(&self, writer: &mut Writer<'_>) {
        writer.put(&[0x19]);
        writer.varint(self.sequence);
    }
}
