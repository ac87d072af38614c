//! The `ACK_FREQUENCY` frame.

use super::{DecodeError, Encode, fields};
use crate::wire::{FrameType, Reader, VarInt, Writer};

/// `ACK_FREQUENCY` (draft-ietf-quic-ack-frequency §4): when the sender wants acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckFrequency {
    /// Its place among the frames of this type: the largest counts.
    pub sequence: u64,
    /// Ack-eliciting packets that may come without an acknowledgement.
    pub threshold: u64,
    /// Microseconds that an acknowledgement may be delayed.
    pub max_delay: u64,
    /// How far packets may be out of order before that is acknowledged at once; 0: however far.
    pub reordering: u64,
}

impl AckFrequency {
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
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
