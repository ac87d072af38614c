//! The room for frames in a packet, and DATAGRAM frames (RFC 9221) that fit into it.

use bytes::Bytes;

use crate::{
    connection::Connection,
    owners::datagrams::{DatagramOptions, Datagrams, SendError},
    wire::packet::{self, Space},
};

/// Number of bytes of the longest packet number.
const MAX_PN_LEN: usize = 4;

impl Connection {
    /// Returns the datagrams, for receiving. To send, use [`Connection::send_datagram`].
    pub fn datagrams(&mut self) -> &mut Datagrams {
        &mut self.datagrams
    }

    /// Returns the largest datagram that can be sent now; `None` if the peer accepts none (RFC 9221
    /// §3). It follows the path's datagram size.
    pub fn max_datagram_size(&self) -> Option<usize> {
        self.datagrams.max_size(self.frame_room())
    }

    /// Queues a datagram.
    ///
    /// # Errors
    /// The datagram was not queued.
    pub fn send_datagram(&mut self, data: Bytes) -> Result<(), SendError> {
        self.send_datagram_with(data, DatagramOptions::new())
    }

    /// Queues a datagram with options.
    ///
    /// # Errors
    /// The datagram was not queued.
    pub fn send_datagram_with(
        &mut self,
        data: Bytes,
        options: DatagramOptions,
    ) -> Result<(), SendError> {
        let room = self.frame_room();
        self.paths.active_mut().mtu_mut().on_message(data.len());
        self.datagrams.send(data, options, room)
    }

    /// Queues a datagram if the queue has room, regardless of the configuration.
    ///
    /// # Errors
    /// The datagram was not queued.
    pub fn send_datagram_within(&mut self, data: &Bytes) -> Result<(), SendError> {
        let room = self.frame_room();
        self.paths.active_mut().mtu_mut().on_message(data.len());
        self.datagrams.send_within(data, room)
    }

    /// Returns the number of bytes for frames in a full packet: 1-RTT, or 0-RTT with its longer
    /// header.
    fn frame_room(&self) -> usize {
        let header = self.header(Space::Data).size(MAX_PN_LEN);
        usize::from(self.paths.active().datagram_size()).saturating_sub(header + packet::TAG_LEN)
    }
}
