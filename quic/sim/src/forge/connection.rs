//! Packets sealed with a connection's keys, with frames that the connection itself would not send.

use hybriq_proto::{
    connection::Connection,
    wire::{
        frame::FrameWriter,
        limits::MIN_DATAGRAM,
        packet::{Header, PacketBuilder, Space},
    },
};

/// The reserved bits of a short header (RFC 9000 §17.3.1).
const RESERVED_SHORT: u8 = 0x18;
/// The reserved bits of a long header (RFC 9000 §17.2).
const RESERVED_LONG: u8 = 0x0c;

/// Builds authentic packets of a connection to test the other end.
pub trait Forge {
    /// Returns a datagram with one packet, padded to `pad_to` bytes. `change` edits its header,
    /// `fill` writes its frames.
    ///
    /// # Panics
    /// Panics if the space has no keys.
    fn forge(
        &mut self,
        space: Space,
        change: impl FnOnce(&mut Header<'_>),
        pad_to: usize,
        fill: impl FnOnce(&mut FrameWriter<'_>),
    ) -> Vec<u8>;

    /// Returns a datagram with one packet that has a PING but not the QUIC bit.
    ///
    /// # Panics
    /// Panics if the space has no keys.
    fn forge_without_quic_bit(&mut self, space: Space) -> Vec<u8>;

    /// Returns a datagram with one packet that has a PING and the reserved bits set, padded to
    /// `pad_to` bytes.
    ///
    /// # Panics
    /// Panics if the space has no keys.
    fn forge_with_reserved_bits(&mut self, space: Space, pad_to: usize) -> Vec<u8>;
}

impl Forge for Connection {
    fn forge(
        &mut self,
        space: Space,
        change: impl FnOnce(&mut Header<'_>),
        pad_to: usize,
        fill: impl FnOnce(&mut FrameWriter<'_>),
    ) -> Vec<u8> {
        forge(self, space, change, |packet| {
            let mut frames = packet.frames();
            fill(&mut frames);
            (frames.len(), pad_to)
        })
    }

    fn forge_without_quic_bit(&mut self, space: Space) -> Vec<u8> {
        forge(
            self,
            space,
            |_| (),
            |packet| {
                packet.clear_quic_bit();
                (ping(packet), 0)
            },
        )
    }

    fn forge_with_reserved_bits(&mut self, space: Space, pad_to: usize) -> Vec<u8> {
        forge(
            self,
            space,
            |_| (),
            |packet| {
                let first = packet.first_byte_mut().expect("a header");
                *first |= if *first & 0x80 == 0 {
                    RESERVED_SHORT
                } else {
                    RESERVED_LONG
                };
                (ping(packet), pad_to)
            },
        )
    }
}

/// Builds one packet with the next number of its space. `fill` returns the bytes of its frames and
/// the size to pad the packet to.
fn forge(
    connection: &mut Connection,
    space: Space,
    change: impl FnOnce(&mut Header<'_>),
    fill: impl FnOnce(&mut PacketBuilder<'_>) -> (usize, usize),
) -> Vec<u8> {
    let (number, mut header, keys) = connection.forge_parts(space).expect("the space has keys");
    change(&mut header);
    let mut buffer = vec![0; MIN_DATAGRAM];
    let mut packet =
        PacketBuilder::begin(&mut buffer, &header, number, None).expect("room for a header");
    let (len, pad_to) = fill(&mut packet);
    let size = packet.finish_padded(len, pad_to, keys);
    buffer.truncate(size);
    buffer
}

fn ping(packet: &mut PacketBuilder<'_>) -> usize {
    let mut frames = packet.frames();
    frames.ping();
    frames.len()
}
