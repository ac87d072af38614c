//! Headers of a datagram as an observer without keys reads them.

use std::{fmt, ops::Range};

use hybriq_proto::wire::{Eof, Reader, packet::Cid};

/// Version number of QUIC version 2 (RFC 9369 §3.1).
const VERSION_2: u32 = 0x6b33_43cf;

/// Type of a packet, as far as an observer without keys can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PacketKind {
    /// Version Negotiation.
    VersionNegotiation,
    /// Initial.
    Initial,
    /// 0-RTT.
    ZeroRtt,
    /// Handshake.
    Handshake,
    /// Retry.
    Retry,
    /// 1-RTT.
    OneRtt,
    /// Bytes that cannot be read as a packet.
    Unknown,
}

impl fmt::Display for PacketKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Header of a packet, as far as an observer without keys can read it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Header {
    /// Type of the packet.
    pub kind: PacketKind,
    /// Version of a long header; 0 for 1-RTT packets and Version Negotiation.
    pub version: u32,
    /// Destination connection id; empty for 1-RTT packets, where its length is not on the wire.
    pub dcid: Cid,
    /// Source connection id; empty for 1-RTT packets.
    pub scid: Cid,
    /// True if the QUIC bit is set (RFC 9287).
    pub quic_bit: bool,
    /// True if the spin bit is set; only 1-RTT packets have it (RFC 9000 §17.4).
    pub spin_bit: bool,
    /// Range of the datagram that the packet occupies.
    pub range: Range<usize>,
}

/// Minimum number of bytes after the first byte of a 1-RTT packet: what header protection skips and
/// samples.
const SHORTEST_PACKET: usize = 20;

/// Reads the headers of a datagram's packets (RFC 9000 §17.2, RFC 9369 §3.2). It deliberately does
/// not use the core's parser, because it checks the core.
pub fn packets(datagram: &[u8]) -> Vec<Header> {
    let mut packets = Vec::new();
    let mut reader = Reader::new(datagram);
    while !reader.is_empty() {
        let start = datagram.len() - reader.remaining();
        let mut attempt = reader.clone();
        let (kind, version, dcid, scid) = if let Ok(header) = header(&mut attempt) {
            reader = attempt;
            header
        } else {
            reader.take_rest();
            (PacketKind::Unknown, 0, Cid::EMPTY, Cid::EMPTY)
        };
        let range = start..datagram.len() - reader.remaining();
        let first = datagram.get(start).copied().unwrap_or_default();
        packets.push(Header {
            kind,
            version,
            dcid,
            scid,
            quic_bit: first & 0x40 != 0,
            spin_bit: kind == PacketKind::OneRtt && first & 0x20 != 0,
            range,
        });
    }
    packets
}

fn header(reader: &mut Reader<'_>) -> Result<(PacketKind, u32, Cid, Cid), Eof> {
    let first = reader.u8()?;
    if first & 0x80 == 0 {
        // Without the QUIC bit (RFC 9287), a packet is recognised only by its length.
        let kind = if first & 0x40 == 0 && reader.remaining() < SHORTEST_PACKET {
            PacketKind::Unknown
        } else {
            PacketKind::OneRtt
        };
        reader.take_rest();
        return Ok((kind, 0, Cid::EMPTY, Cid::EMPTY));
    }
    let version = reader.u32()?;
    let [dcid, scid] = [cid(reader)?, cid(reader)?];
    // In version 2 the packet types start with Retry.
    let shift = if version == VERSION_2 { 3 } else { 0 };
    let kind = match (version, ((first >> 4) + shift) & 3) {
        (0, _) => PacketKind::VersionNegotiation,
        (_, 0) => PacketKind::Initial,
        (_, 1) => PacketKind::ZeroRtt,
        (_, 2) => PacketKind::Handshake,
        _ => PacketKind::Retry,
    };
    // Only Version Negotiation may echo ids that are longer than ours.
    let cid = |id: &[u8]| match (Cid::new(id), kind) {
        (None, PacketKind::VersionNegotiation) => Ok(Cid::EMPTY),
        (cid, _) => cid.ok_or(Eof),
    };
    let (dcid, scid) = (cid(dcid)?, cid(scid)?);
    match kind {
        PacketKind::VersionNegotiation | PacketKind::Retry => {
            reader.take_rest();
        }
        PacketKind::Initial => {
            reader.prefixed()?;
            reader.prefixed()?;
        }
        _ => {
            reader.prefixed()?;
        }
    }
    Ok((kind, version, dcid, scid))
}

fn cid<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], Eof> {
    let len = reader.u8()?;
    reader.bytes(len.into())
}
