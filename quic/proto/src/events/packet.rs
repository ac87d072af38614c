//! Packets that were sent or received, and their frames.

use std::fmt;

use crate::wire::{
    frame::{FrameReader, FrameType},
    packet::{Kind as PacketKind, PacketNumber},
    udp::Ecn,
};

/// A packet that was sent or received.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Packet<'a> {
    /// Type of the packet.
    pub kind: PacketKind,
    /// Packet number.
    pub number: PacketNumber,
    /// Bytes of the packet, header and tag included.
    pub size: usize,
    /// The ECN mark of its datagram.
    pub ecn: Option<Ecn>,
    /// Frames that the packet carries.
    pub frames: Frames<'a>,
}

impl<'a> Packet<'a> {
    pub(crate) fn new(
        kind: PacketKind,
        number: PacketNumber,
        size: usize,
        payload: &'a [u8],
    ) -> Self {
        Self {
            kind,
            number,
            size,
            ecn: None,
            frames: Frames::new(payload),
        }
    }

    pub(crate) const fn marked(mut self, ecn: Option<Ecn>) -> Self {
        self.ecn = ecn;
        self
    }
}

/// Frames of a packet, decoded on demand.
#[derive(Clone, Copy)]
pub struct Frames<'a> {
    payload: &'a [u8],
}

impl<'a> Frames<'a> {
    /// Creates the frames of a packet from its payload without header and tag.
    pub const fn new(payload: &'a [u8]) -> Self {
        Self { payload }
    }

    /// Returns the bytes of the frames, without header and tag.
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// Returns an iterator over the frames. It ends early at a frame that breaks a rule; such a
    /// frame closes the connection.
    pub const fn iter(&self) -> FramesIter<'a> {
        FramesIter {
            frames: FrameReader::new(self.payload),
        }
    }
}

impl<'a> IntoIterator for &Frames<'a> {
    type Item = FrameInfo;
    type IntoIter = FramesIter<'a>;

    fn into_iter(self) -> FramesIter<'a> {
        self.iter()
    }
}

/// Reads the frames of a packet.
#[derive(Clone)]
pub struct FramesIter<'a> {
    frames: FrameReader<'a>,
}

impl std::fmt::Debug for FramesIter<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FramesIter").finish_non_exhaustive()
    }
}

/// One frame of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FrameInfo {
    /// Type of the frame (RFC 9000 §19).
    pub ty: FrameType,
    /// Name that qlog gives the type.
    pub name: &'static str,
    /// Bytes of the frame, type included; for PADDING, those of the whole run.
    pub size: usize,
    /// Stream that the frame refers to.
    pub stream: Option<u64>,
}

impl Iterator for FramesIter<'_> {
    type Item = FrameInfo;

    fn next(&mut self) -> Option<FrameInfo> {
        let (frame, size) = self.frames.next()?;
        let (name, stream) = frame.in_qlog();
        Some(FrameInfo {
            ty: frame.frame_type(),
            name,
            size,
            stream,
        })
    }
}

impl fmt::Debug for Frames<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self).finish()
    }
}
