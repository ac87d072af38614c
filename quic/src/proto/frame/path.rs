use super::Encode;
use crate::proto::wire::Writer;

/// PATH_CHALLENGE (RFC 9000 §19.17).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathChallenge(pub [u8; 8]);

/// PATH_RESPONSE (RFC 9000 §19.18).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathResponse(pub [u8; 8]);

impl Encode for PathResponse {
    fn size(&self) -> usize {
        9
    }

    fn encode(&self, writer: &mut Writer<'_>) {
        writer.put(&[0x1b]);
        writer.put(&self.0);
    }
}
