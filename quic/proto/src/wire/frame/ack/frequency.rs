//! The `ACK_FREQUENCY` frame.

use crate::wire::{
    FrameType, Reader, VarInt, Writer,
    error::Violation,
    frame::{Encode, fields},
};

/// `ACK_FREQUENCY` (draft-ietf-quic-ack-frequency §4): requests an acknowledgement frequency.
///
/// Exhaustive: the specification of the frame fixes its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckFrequency {
    /// Sequence number of the request: the largest one applies.
    pub sequence: u64,
    /// Number of ack-eliciting packets that may arrive without an acknowledgement.
    pub threshold: u64,
    /// Microseconds that an acknowledgement may be delayed.
    pub max_delay: u64,
    /// Reordering, in packets, that is acknowledged at once; 0 if none is.
    pub reordering: u64,
}

impl AckFrequency {
    pub(in crate::wire::frame) fn decode(reader: &mut Reader<'_>) -> Result<Self, Violation> {
        Ok(Self {
            sequence: reader.varint()?,
            threshold: reader.varint()?,
            max_delay: reader.varint()?,
            reordering: reader.varint()?,
        })
    }

    const fn fields(self) -> [u64; 5] {
        [
            FrameType::ACK_FREQUENCY.0,
            self.sequence,
            self.threshold,
            self.max_delay,
            self.reordering,
        ]
    }
}

fields!(AckFrequency);
