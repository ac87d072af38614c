//! What one side of the link saw, also as a file for Wireshark.

use std::{
    fs::File,
    io::{self, BufWriter, Write as _},
    path::Path,
    time::Duration,
};

use crate::runner::Role;

/// A packet at one side of the link.
#[derive(Clone, Debug)]
pub(super) struct Captured {
    /// Time since the link was there.
    pub(super) at: Duration,
    /// End that sent it.
    pub(super) from: Role,
    /// The IP packet.
    pub(super) packet: Vec<u8>,
}

/// All packets at one side of the link.
#[derive(Clone, Debug, Default)]
pub(super) struct Capture(pub(super) Vec<Captured>);

/// IP packets without a header before them.
const LINKTYPE_RAW: u32 = 101;

impl Capture {
    /// Writes a file of the format pcap.
    pub(super) fn write(&self, path: &Path) -> io::Result<()> {
        let mut file = BufWriter::new(File::create(path)?);
        for word in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 0xffff, LINKTYPE_RAW] {
            file.write_all(&u32::to_le_bytes(word))?;
        }
        for Captured { at, packet, .. } in &self.0 {
            let len = packet.len() as u32;
            for word in [at.as_secs() as u32, at.subsec_micros(), len, len] {
                file.write_all(&word.to_le_bytes())?;
            }
            file.write_all(packet)?;
        }
        file.flush()
    }
}
