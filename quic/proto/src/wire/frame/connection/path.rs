//! Frames that validate addresses: PATH_CHALLENGE, PATH_RESPONSE and NEW_TOKEN.

use crate::wire::{FrameType, Reader, VarInt, Writer, error::Violation, frame::Encode};

/// `PATH_CHALLENGE` (RFC 9000 §19.17).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathChallenge(pub [u8; 8]);

impl PathChallenge {
    pub(in crate::wire::frame) fn decode(reader: &mut Reader<'_>) -> Result<Self, Violation> {
        Ok(Self(reader.array()?))
    }
}

impl Encode for PathChallenge {
    fn size(&self) -> usize {
        1 + self.0.len()
    }

    fn encode(&self, writer: &mut Writer<'_>) {
        writer.varint(FrameType::PATH_CHALLENGE.0);
        writer.put(&self.0);
    }
}

/// `PATH_RESPONSE` (RFC 9000 §19.18).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathResponse(pub [u8; 8]);

impl PathResponse {
    pub(in crate::wire::frame) fn decode(reader: &mut Reader<'_>) -> Result<Self, Violation> {
        Ok(Self(reader.array()?))
    }
}

impl Encode for PathResponse {
    fn size(&self) -> usize {
        1 + self.0.len()
    }

    fn encode(&self, writer: &mut Writer<'_>) {
        writer.varint(FrameType::PATH_RESPONSE.0);
        writer.put(&self.0);
    }
}

/// `NEW_TOKEN` (RFC 9000 §19.7).
///
/// Exhaustive: the specification of the frame fixes its fields.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NewToken<'a> {
    /// The token, never empty.
    pub token: &'a [u8],
}

impl<'a> NewToken<'a> {
    pub(in crate::wire::frame) fn decode(reader: &mut Reader<'a>) -> Result<Self, Violation> {
        let token = reader.prefixed()?;
        if token.is_empty() {
            return Err(Violation::EmptyNewToken);
        }
        Ok(Self { token })
    }
}

impl Encode for NewToken<'_> {
    fn size(&self) -> usize {
        1 + VarInt::saturating(self.token.len() as u64).size() + self.token.len()
    }

    fn encode(&self, writer: &mut Writer<'_>) {
        writer.varint(FrameType::NEW_TOKEN.0);
        writer.prefixed(self.token);
    }
}
