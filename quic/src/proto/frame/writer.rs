use crate::proto::wire::Writer;

/// A frame that can be written.
pub trait Encode {
    /// Whether the peer must acknowledge a packet that carries it (RFC 9000 §13.2).
    const ACK_ELICITING: bool = true;

    /// Bytes of the encoded frame, its type included.
    fn size(&self) -> usize;

    /// Writes the frame. The writer has [`Encode::size`] bytes left.
    fn encode(&self, writer: &mut Writer<'_>);
}

/// Fills the payload of one packet. It refuses what no longer fits, so that callers can simply
/// offer their frames in order of priority.
#[derive(Debug)]
pub struct FrameWriter<'a> {
    writer: Writer<'a>,
    ack_eliciting: bool,
}

impl<'a> FrameWriter<'a> {
    /// Starts an empty payload that may fill `buffer`.
    pub const fn new(buffer: &'a mut [u8]) -> Self {
        Self { writer: Writer::new(buffer), ack_eliciting: false }
    }

    /// Writes the frame, or refuses it and writes nothing.
    #[inline]
    pub fn write<F: Encode>(&mut self, frame: &F) -> bool {
        if frame.size() > self.writer.remaining() {
            return false;
        }
        frame.encode(&mut self.writer);
        self.ack_eliciting |= F::ACK_ELICITING;
        true
    }

    /// Writes one PING.
    pub fn ping(&mut self) -> bool {
        if self.writer.remaining() == 0 {
            return false;
        }
        self.writer.put(&[0x01]);
        self.ack_eliciting = true;
        true
    }

    /// Appends up to `count` bytes of PADDING.
    pub fn pad(&mut self, count: usize) {
        self.writer.put_zeros(count);
    }

    /// Bytes that still fit.
    pub const fn remaining(&self) -> usize {
        self.writer.remaining()
    }

    /// Bytes written.
    pub const fn len(&self) -> usize {
        self.writer.len()
    }

    /// Whether nothing was written.
    pub const fn is_empty(&self) -> bool {
        self.writer.is_empty()
    }

    /// Whether a frame was written that the peer must acknowledge.
    pub const fn is_ack_eliciting(&self) -> bool {
        self.ack_eliciting
    }
}
