//! What a peer that breaks rules would send: authentic packets with frames of a test's choice.

use super::Connection;
use crate::{
    frame::FrameWriter,
    limits,
    packet::{Header, PacketBuilder, Space},
};

/// What is odd about the first byte of a forged packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Oddity {
    None,
    NoQuicBit,
    ReservedBits,
}

fn ping(out: &mut FrameWriter<'_>) {
    out.ping();
}

impl Connection {
    /// A datagram of one packet, padded to `pad_to` bytes, under a header that the test changes.
    /// For tests.
    ///
    /// # Panics
    /// Where the space has no keys, or the frames do not fit 1200 bytes.
    #[doc(hidden)]
    pub fn forge(
        &mut self,
        space: Space,
        change: impl FnOnce(&mut Header<'_>),
        pad_to: usize,
        fill: impl FnOnce(&mut FrameWriter<'_>),
    ) -> Vec<u8> {
        self.forge_packet(space, change, pad_to, (Oddity::None, fill))
    }

    /// The same with a PING, and without the QUIC bit.
    #[doc(hidden)]
    pub fn forge_without_quic_bit(&mut self, space: Space) -> Vec<u8> {
        self.forge_packet(space, |_| (), 0, (Oddity::NoQuicBit, ping))
    }

    /// The same with a PING, padded to `pad_to` bytes, and with the reserved bits set.
    #[doc(hidden)]
    pub fn forge_with_reserved_bits(&mut self, space: Space, pad_to: usize) -> Vec<u8> {
        self.forge_packet(space, |_| (), pad_to, (Oddity::ReservedBits, ping))
    }

    #[expect(clippy::expect_used, reason = "for tests")]
    fn forge_packet(
        &mut self,
        space: Space,
        change: impl FnOnce(&mut Header<'_>),
        pad_to: usize,
        (oddity, fill): (Oddity, impl FnOnce(&mut FrameWriter<'_>)),
    ) -> Vec<u8> {
        let pn = self.recovery.next_number(space);
        let mut header = self.header(space);
        change(&mut header);
        let mut buffer = vec![0; limits::MIN_DATAGRAM];
        let mut packet =
            PacketBuilder::begin(&mut buffer, &header, pn, None).expect("room for a header");
        let mut frames = packet.frames();
        fill(&mut frames);
        let len = frames.len();
        match oddity {
            Oddity::None => {}
            Oddity::NoQuicBit => packet.clear_quic_bit(),
            Oddity::ReservedBits => packet.set_reserved_bits(),
        }
        let keys = self.sealing_keys(space).expect("the space has keys");
        let size = packet.finish_padded(len, pad_to, keys);
        self.recovery.on_number_used(space, pn);
        buffer.truncate(size);
        buffer
    }
}
