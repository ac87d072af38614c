//! Initial packets, which anybody on the path can read and write (RFC 9001 §5.2).

use std::ops::RangeInclusive;

use hybriq_tls::Side;

use super::{PacketKind, packets};
use hybriq_proto::wire::{
    Reader, Writer,
    frame::{ConnectionClose, Encode, Frame, FrameType, FrameWriter},
    limits::MIN_DATAGRAM,
    packet::{
        Cid, Decoded, DirectionKeys, Header, Kind, PacketBuilder, PacketNumber, Version, decode,
        initial_direction,
    },
};

/// A frame of an Initial packet.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InitialFrame {
    /// CRYPTO.
    Crypto {
        /// Offset of the data.
        offset: u64,
        /// The data.
        data: Vec<u8>,
    },
    /// PING.
    Ping,
    /// A run of PADDING of this length.
    Padding(usize),
    /// ACK with its ranges, largest first.
    Ack(Vec<RangeInclusive<PacketNumber>>),
    /// CONNECTION_CLOSE with this code.
    Close(u64),
    /// Another frame, which is not allowed there, by its type.
    Other(FrameType),
}

/// An opened Initial packet.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Initial {
    /// QUIC version.
    pub version: Version,
    /// Packet number.
    pub number: PacketNumber,
    /// Destination connection id.
    pub dcid: Cid,
    /// Source connection id.
    pub scid: Cid,
    /// Bytes of the packet.
    pub size: usize,
    /// Bytes of the whole datagram.
    pub datagram_size: usize,
    /// Frames of the packet, in their order.
    pub frames: Vec<InitialFrame>,
}

impl Initial {
    /// Returns the CRYPTO data in the packet, each piece with its offset.
    pub fn crypto(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.frames.iter().filter_map(|frame| match frame {
            InitialFrame::Crypto { offset, data } => Some((*offset, data.as_slice())),
            _ => None,
        })
    }
}

/// Opens the Initial packets of a datagram. `first_dcid` is the destination connection id of the
/// client's first Initial, which determines the keys. Packets that do not open are left out.
pub fn open_initials(datagram: &[u8], first_dcid: &Cid, writer: Side) -> Vec<Initial> {
    packets(datagram)
        .into_iter()
        .filter(|packet| packet.kind == PacketKind::Initial)
        .filter_map(|packet| {
            let version = Version::from_number(packet.version)?;
            let keys = initial_direction(version, first_dcid, writer);
            open(version, &mut datagram.get(packet.range)?.to_vec(), &keys)
        })
        .map(|initial| Initial {
            datagram_size: datagram.len(),
            ..initial
        })
        .collect()
}

fn open(version: Version, packet: &mut [u8], keys: &DirectionKeys) -> Option<Initial> {
    let size = packet.len();
    let (Decoded::Protected(packet), _) = decode(packet, 0).ok()? else {
        return None;
    };
    let (dcid, scid) = (packet.dcid, packet.scid);
    let packet = packet.unprotect(&keys.header, None).ok()?;
    let number = packet.pn;
    let payload = packet.open(&keys.packet).ok()?;
    let mut reader = Reader::new(payload);
    let mut frames = Vec::new();
    while !reader.is_empty() {
        frames.push(match Frame::decode(&mut reader).ok()? {
            Frame::Crypto(frame) => InitialFrame::Crypto {
                offset: frame.offset,
                data: frame.data.to_vec(),
            },
            Frame::Ping => InitialFrame::Ping,
            Frame::Padding(len) => InitialFrame::Padding(len),
            Frame::Ack(ack) => InitialFrame::Ack(ack.ranges().collect()),
            Frame::ConnectionClose(ConnectionClose::Transport { code, .. }) => {
                InitialFrame::Close(code)
            }
            frame => InitialFrame::Other(frame.frame_type()),
        });
    }
    Some(Initial {
        version,
        number,
        dcid,
        scid,
        size,
        datagram_size: size,
        frames,
    })
}

/// Builds a client's datagram with one Initial packet of version 1 and these frames, padded to
/// 1,200 bytes.
///
/// # Panics
/// Panics if the frames do not fit, or are of a kind that cannot be built.
pub fn build_initial(
    dcid: Cid,
    scid: Cid,
    number: PacketNumber,
    frames: &[InitialFrame],
) -> Vec<u8> {
    build_initial_with_token(&[], dcid, scid, number, frames)
}

/// Builds a client's Initial as [`build_initial`] does, with a token.
///
/// # Panics
/// Panics if the frames do not fit, or are of a kind that cannot be built.
pub fn build_initial_with_token(
    token: &[u8],
    dcid: Cid,
    scid: Cid,
    number: PacketNumber,
    frames: &[InitialFrame],
) -> Vec<u8> {
    let keys = initial_direction(Version::V1, &dcid, Side::Client);
    let header = Header::Long {
        kind: Kind::Initial,
        version: Version::V1,
        dcid,
        scid,
        token,
    };
    seal_packet(&header, number, &keys, |out| {
        for frame in frames {
            write(out, frame);
        }
        MIN_DATAGRAM
    })
}

/// Returns the header of a client's Initial of version 1 without a token.
pub const fn initial_header(dcid: Cid, scid: Cid) -> Header<'static> {
    Header::Long {
        kind: Kind::Initial,
        version: Version::V1,
        dcid,
        scid,
        token: &[],
    }
}

/// Builds one packet of any kind, given its keys. `fill` writes the frames and returns the size to
/// which the packet is padded.
///
/// # Panics
/// Panics if the header alone fills a datagram.
pub fn seal_packet(
    header: &Header<'_>,
    number: PacketNumber,
    keys: &DirectionKeys,
    fill: impl FnOnce(&mut FrameWriter<'_>) -> usize,
) -> Vec<u8> {
    let mut buffer = vec![0; MIN_DATAGRAM];
    let mut packet = PacketBuilder::begin(&mut buffer, header, number, None)
        .expect("there is room for a packet");
    let mut out = packet.frames();
    let pad_to = fill(&mut out);
    let len = out.len();
    let size = packet.finish_padded(len, pad_to, keys);
    buffer.truncate(size);
    buffer
}

/// Bytes that are written as they are, whether they are frames or not.
#[derive(Clone, Copy, Debug)]
pub struct Raw<'a>(pub &'a [u8]);

impl Encode for Raw<'_> {
    fn size(&self) -> usize {
        self.0.len()
    }

    fn encode(&self, writer: &mut Writer<'_>) {
        writer.put(self.0);
    }
}

fn write(out: &mut FrameWriter<'_>, frame: &InitialFrame) {
    let written = match frame {
        InitialFrame::Crypto { offset, data } => {
            out.crypto(*offset, data.len(), |target| target.copy_from_slice(data))
                == Some(data.len())
        }
        InitialFrame::Ping => out.ping(),
        InitialFrame::Padding(len) => {
            out.pad(*len);
            true
        }
        InitialFrame::Ack(ranges) => out.ack(0, ranges.iter().cloned(), None).is_some(),
        InitialFrame::Close(_) | InitialFrame::Other(_) => false,
    };
    assert!(written, "{frame:?} cannot be written");
}

/// Joins the CRYPTO data of some packets from offset 0 up to the first gap.
pub fn join<'a>(initials: impl IntoIterator<Item = &'a Initial>) -> Vec<u8> {
    let mut pieces: Vec<_> = initials.into_iter().flat_map(Initial::crypto).collect();
    pieces.sort_by_key(|&(offset, _)| offset);
    let mut joined = Vec::new();
    for (offset, data) in pieces {
        let Some(known) = (joined.len() as u64).checked_sub(offset) else {
            break;
        };
        joined.extend(data.get(known as usize..).unwrap_or_default());
    }
    joined
}
