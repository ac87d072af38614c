use super::{DecodeError, Encode};
use crate::wire::{Reader, Writer};

pub(super) const TYPE_CHALLENGE: u64 = 0x1a;
pub(super) const TYPE_RESPONSE: u64 = 0x1b;

/// `PATH_CHALLENGE` (RFC 9000 §19.17).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathChallenge(pub [u8; 8]);

impl PathChallenge {
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self(reader.array()?))
    }
}

impl Encode for PathChallenge {
    fn size(&self) -> usize {
        1 + self.0.len()
    }

    fn encode(&self, writer: &mut Writer<'_>) {
        writer.varint(TYPE_CHALLENGE);
        writer.put(&self.0);
    }
}

/// `PATH_RESPONSE` (RFC 9000 §19.18).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathResponse(pub [u8; 8]);

impl PathResponse {
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self(reader.array()?))
    }
}

impl Encode for PathResponse {
    fn size(&self) -> usize {
        1 + self.0.len()
    }

    fn encode(&self, writer: &mut Writer<'_>) {
        writer.varint(TYPE_RESPONSE);
        writer.put(&self.0);
    }
}
