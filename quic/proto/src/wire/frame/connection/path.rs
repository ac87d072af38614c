//! The `PATH_CHALLENGE` and `PATH_RESPONSE` frames.

use crate::wire::{FrameType, Reader, Writer, error::Violation, frame::Encode};

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
