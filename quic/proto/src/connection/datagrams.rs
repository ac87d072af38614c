//! What datagrams (RFC 9221) have to know of packets.

use std::time::Instant;

use bytes::Bytes;

use super::{Connection, delivery::Carried};
use crate::{
    datagrams::{Datagrams, Rival, SendError},
    frame::FrameWriter,
    packet::{self, Space},
    streams::Timing,
};

/// Bytes of the longest packet number.
const MAX_PN_LEN: usize = 4;

impl Connection {
    /// The datagrams: receive. To send use [`Connection::send_datagram`].
    pub fn datagrams(&mut self) -> &mut Datagrams {
        &mut self.datagrams
    }

    /// Bytes a datagram may have now; `None`: the peer takes none (RFC 9221 §3). It follows the
    /// path's datagram size.
    pub fn max_datagram_size(&self) -> Option<usize> {
        self.datagrams.max_size(self.frame_room())
    }

    /// Queues a datagram to be sent.
    ///
    /// # Errors
    /// It was not taken.
    pub fn send_datagram(&mut self, data: Bytes) -> Result<(), SendError> {
        let room = self.frame_room();
        self.paths.active_mut().mtu_mut().on_message(data.len());
        self.datagrams.send(data, room)
    }

    /// Queues a datagram to be sent if there is room for it, whatever the configuration says.
    ///
    /// # Errors
    /// It was not taken.
    pub fn send_datagram_within(&mut self, data: &Bytes) -> Result<(), SendError> {
        let room = self.frame_room();
        self.paths.active_mut().mtu_mut().on_message(data.len());
        self.datagrams.send_within(data, room)
    }

    pub(super) fn max_datagram_payload(&self) -> usize {
        self.max_datagram_size().unwrap_or_default()
    }

    /// Bytes for frames in a full packet: of 1-RTT, or of 0-RTT, whose header is longer.
    fn frame_room(&self) -> usize {
        let header = self.header(Space::Data).size(MAX_PN_LEN);
        usize::from(self.paths.active().datagram_size()).saturating_sub(header + packet::TAG_LEN)
    }

    /// Fills the rest of a packet with streams and DATAGRAM frames, which share it (see
    /// [`Datagrams`]).
    pub(super) fn write_data(
        &mut self,
        now: Instant,
        out: &mut FrameWriter<'_>,
        carried: &mut Carried,
    ) {
        let timing = Timing {
            now,
            rtt: self.recovery.rtt().smoothed(),
        };
        if !self.datagrams.has_pending() {
            return self.streams.write_frames(timing, out, &mut carried.streams);
        }
        let most = self.max_datagram_payload();
        let rival = if self.streams.has_pending() {
            Rival::Waiting
        } else {
            Rival::Idle
        };
        let sent = &mut carried.datagrams;
        self.datagrams.write_first(most, rival, out, sent);
        let before = out.len();
        self.streams.write_frames(timing, out, &mut carried.streams);
        self.datagrams.on_streams_sent(out.len() - before);
        self.datagrams.write_rest(out, sent);
    }
}
