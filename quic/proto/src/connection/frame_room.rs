//! The room for frames in a packet, and the DATAGRAM frames (RFC 9221) that have to fit into it.

use bytes::Bytes;

use super::Connection;
use crate::{
    datagrams::{Datagrams, SendError},
    packet::{self, Space},
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
}
