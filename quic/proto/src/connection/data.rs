//! Streams and DATAGRAM frames (RFC 9221), which share the rest of a packet.

use crate::{
    datagrams::{self, Datagrams, Rival},
    frame::{FrameWriter, Owner, Timing},
    packet::Space,
    streams::{self, Streams},
};

/// The owners of application data.
pub(super) struct Data<'a> {
    pub(super) streams: &'a mut Streams,
    pub(super) datagrams: &'a mut Datagrams,
}

/// Application data in one packet.
#[derive(Debug, Default)]
pub(super) struct Sent {
    pub(super) streams: streams::Sent,
    pub(super) datagrams: datagrams::Sent,
}

impl Sent {
    pub(super) fn is_empty(&self) -> bool {
        let Self { streams, datagrams } = self;
        streams.is_empty() && datagrams.is_empty()
    }
}

impl Owner for Data<'_> {
    type Sent = Sent;

    #[inline]
    fn wants_to_send(&self, space: Space) -> bool {
        let Self { streams, datagrams } = self;
        streams.wants_to_send(space) || datagrams.has_pending()
    }

    /// Fills the rest of a packet (see [`Datagrams`] for the shares).
    #[inline]
    fn write_frames(&mut self, timing: Timing, out: &mut FrameWriter<'_>, sent: &mut Sent) {
        let Self { streams, datagrams } = self;
        if !datagrams.has_pending() {
            return streams.write_frames(timing, out, &mut sent.streams);
        }
        let rival = if streams.has_pending() {
            Rival::Waiting
        } else {
            Rival::Idle
        };
        datagrams.write_first(rival, out, &mut sent.datagrams);
        let before = out.len();
        streams.write_frames(timing, out, &mut sent.streams);
        datagrams.on_streams_sent(out.len() - before);
        datagrams.write_rest(out, &mut sent.datagrams);
    }

    #[inline]
    fn on_acked(&mut self, sent: &Sent) {
        let Sent { streams, datagrams } = sent;
        self.streams.on_acked(streams);
        self.datagrams.on_acked(datagrams);
    }

    #[inline]
    fn on_lost(&mut self, sent: &Sent) {
        let Sent { streams, datagrams } = sent;
        self.streams.on_lost(streams);
        self.datagrams.on_lost(datagrams);
    }
}
