//! Frames about connection ids.

use crate::wire::{
    Cid, FrameType, Reader, ResetToken, VarInt, Writer,
    error::Violation,
    frame::{Encode, fields},
};

/// `NEW_CONNECTION_ID` (RFC 9000 §19.15).
///
/// Exhaustive: the specification of the frame fixes its fields.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NewConnectionId {
    /// Sequence number of the connection id.
    pub sequence: u64,
    /// Sequence number below which ids must be retired.
    pub retire_prior_to: u64,
    /// The connection id, 1 to 20 bytes.
    pub cid: Cid,
    /// Stateless reset token of the connection id.
    pub reset_token: ResetToken,
}

impl NewConnectionId {
    pub(in crate::wire::frame) fn decode(reader: &mut Reader<'_>) -> Result<Self, Violation> {
        let sequence = reader.varint()?;
        let retire_prior_to = reader.varint()?;
        if retire_prior_to > sequence {
            return Err(Violation::NewCidRetiresItself);
        }
        let len = usize::from(reader.u8()?);
        let cid = Cid::new(reader.bytes(len)?)
            .filter(|cid| !cid.is_empty())
            .ok_or(Violation::NewCidLength)?;
        Ok(Self {
            sequence,
            retire_prior_to,
            cid,
            reset_token: ResetToken::new(reader.array()?),
        })
    }
}

impl Encode for NewConnectionId {
    fn size(&self) -> usize {
        let numbers = [
            FrameType::NEW_CONNECTION_ID.0,
            self.sequence,
            self.retire_prior_to,
        ];
        let numbers = numbers
            .into_iter()
            .map(|number| VarInt::saturating(number).size());
        numbers.sum::<usize>() + 1 + self.cid.len() + ResetToken::LEN
    }

    fn encode(&self, writer: &mut Writer<'_>) {
        writer.varint(FrameType::NEW_CONNECTION_ID.0);
        writer.varint(self.sequence);
        writer.varint(self.retire_prior_to);
        writer.put(&[self.cid.len() as u8]);
        writer.put(self.cid.as_bytes());
        writer.put(self.reset_token.as_bytes());
    }
}

/// `RETIRE_CONNECTION_ID` (RFC 9000 §19.16).
///
/// Exhaustive: the specification of the frame fixes its fields.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetireConnectionId {
    /// Sequence number of the connection id.
    pub sequence: u64,
}

impl RetireConnectionId {
    pub(in crate::wire::frame) fn decode(reader: &mut Reader<'_>) -> Result<Self, Violation> {
        Ok(Self {
            sequence: reader.varint()?,
        })
    }

    const fn fields(self) -> [u64; 2] {
        [FrameType::RETIRE_CONNECTION_ID.0, self.sequence]
    }
}

fields!(RetireConnectionId);
