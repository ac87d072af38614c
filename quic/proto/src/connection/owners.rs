//! The one list of all owners that send frames, and the return of a packet's fate to them.
//!
//! [`Owners`] and the record of a packet ([`Carried`], [`Control`]) are destructured without `..`
//! wherever a call goes to all owners: a new owner does not compile until it is asked for its
//! frames, writes them, and learns their fate.

use super::{
    Connection,
    data::{self, Data},
    new_token::{self, NewTokens},
    timers::Timers,
};
use crate::{
    ack_frequency::{self, AckFrequency},
    cids,
    frame::{FrameWriter, Owner, Timing},
    handshake::{self, Handshake},
    packet::{Kind, Space},
    path::Paths,
    recovery::{Outcome, PathState, Recovery},
};

/// Contents of one packet. Most carry only data; the rest is boxed to keep a record small.
#[derive(Debug)]
pub(super) struct Carried {
    pub(super) space: Space,
    pub(super) data: data::Sent,
    pub(super) control: Option<Box<Control>>,
}

impl Carried {
    pub(super) fn new(space: Space) -> Self {
        Self {
            space,
            data: data::Sent::default(),
            control: None,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        let Self {
            space: _,
            data,
            control,
        } = self;
        data.is_empty() && control.is_none()
    }
}

/// Frames that are rare once the handshake is over.
#[derive(Debug)]
pub(super) struct Control {
    handshake: handshake::Sent,
    pub(super) ack_frequency: ack_frequency::Sent,
    new_token: new_token::Sent,
    local_cids: cids::Sent,
    peer_cids: cids::Sent,
}

impl Control {
    fn new(space: Space) -> Self {
        Self {
            handshake: handshake::Sent::new(space),
            ack_frequency: ack_frequency::Sent::default(),
            new_token: new_token::Sent::default(),
            local_cids: cids::Sent::default(),
            peer_cids: cids::Sent::default(),
        }
    }

    fn is_empty(&self) -> bool {
        let Self {
            handshake,
            ack_frequency,
            new_token,
            local_cids,
            peer_cids,
        } = self;
        handshake.is_empty()
            && ack_frequency.is_empty()
            && new_token.is_empty()
            && local_cids.is_empty()
            && peer_cids.is_empty()
    }
}

/// The fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Acked,
    /// The packet was lost, or a probe repeats its frames.
    Lost,
}

#[inline]
fn tell<O: Owner>(owner: &mut O, fate: Fate, sent: &O::Sent) {
    match fate {
        Fate::Acked => owner.on_acked(sent),
        Fate::Lost => owner.on_lost(sent),
    }
}

/// All owners that send frames.
pub(super) struct Owners<'a> {
    handshake: &'a mut Handshake,
    paths: &'a mut Paths<PathState>,
    ack_frequency: &'a mut AckFrequency,
    new_tokens: &'a mut NewTokens,
    local_cids: &'a mut cids::Local,
    peer_cids: &'a mut cids::Peer,
    data: Data<'a>,
    keep_alive: &'a mut Timers,
}

impl Owners<'_> {
    /// Returns true if an owner wants to send a packet of this kind.
    #[inline]
    pub(super) fn want_to_send(&self, kind: Kind) -> bool {
        let Self {
            handshake,
            paths,
            ack_frequency,
            new_tokens,
            local_cids,
            peer_cids,
            data,
            keep_alive,
        } = self;
        let space = kind.space();
        match kind {
            Kind::Initial | Kind::Handshake => handshake.wants_to_send(space),
            Kind::ZeroRtt => data.wants_to_send(space),
            Kind::OneRtt => {
                handshake.wants_to_send(space)
                    || paths.wants_to_send(space)
                    || ack_frequency.wants_to_send(space)
                    || new_tokens.wants_to_send(space)
                    || local_cids.wants_to_send(space)
                    || peer_cids.wants_to_send(space)
                    || data.wants_to_send(space)
                    || keep_alive.wants_to_send(space)
            }
        }
    }

    /// Fills a packet of this kind. Earlier lines win: the order below is the priority.
    #[inline]
    pub(super) fn write_frames(
        &mut self,
        kind: Kind,
        timing: Timing,
        out: &mut FrameWriter<'_>,
        carried: &mut Carried,
    ) {
        let Self {
            handshake,
            paths,
            ack_frequency,
            new_tokens,
            local_cids,
            peer_cids,
            data,
            keep_alive,
        } = self;
        let space = kind.space();
        let has_handshake = kind != Kind::ZeroRtt && handshake.has_frames(space);
        let has_rare = kind == Kind::OneRtt
            && (paths.has_frames(space)
                || ack_frequency.has_frames(space)
                || new_tokens.has_frames(space)
                || local_cids.has_frames(space)
                || peer_cids.has_frames(space));
        // Most packets carry only data, and need no record of anything else.
        if has_handshake || has_rare {
            let mut control = Control::new(space);
            handshake.write_frames(timing, out, &mut control.handshake);
            if has_rare {
                paths.write_frames(timing, out, &mut ());
                ack_frequency.write_frames(timing, out, &mut control.ack_frequency);
                new_tokens.write_frames(timing, out, &mut control.new_token);
                local_cids.write_frames(timing, out, &mut control.local_cids);
                peer_cids.write_frames(timing, out, &mut control.peer_cids);
            }
            if !control.is_empty() {
                carried.control = Some(Box::new(control));
            }
        }
        match kind {
            Kind::Initial | Kind::Handshake => {}
            Kind::ZeroRtt => data.write_frames(timing, out, &mut carried.data),
            Kind::OneRtt => {
                data.write_frames(timing, out, &mut carried.data);
                keep_alive.write_frames(timing, out, &mut ());
            }
        }
    }

    /// Tells the owners of rare frames the fate of a packet.
    fn tell(&mut self, fate: Fate, control: &Control) {
        let Control {
            handshake,
            ack_frequency,
            new_token,
            local_cids,
            peer_cids,
        } = control;
        tell(self.handshake, fate, handshake);
        tell(self.ack_frequency, fate, ack_frequency);
        tell(self.new_tokens, fate, new_token);
        tell(self.local_cids, fate, local_cids);
        tell(self.peer_cids, fate, peer_cids);
    }

    /// Queues the frames of a packet again, for a probe: those of streams only if `streams` says
    /// so, DATAGRAM frames never (RFC 9221 §5.2).
    fn repeat(&mut self, streams: Repeat, carried: &Carried) {
        let Carried {
            space: _,
            data:
                data::Sent {
                    streams: sent,
                    datagrams: _,
                },
            control,
        } = carried;
        if streams == Repeat::Streams {
            self.data.streams.on_lost(sent);
        }
        if let Some(control) = control {
            self.tell(Fate::Lost, control);
        }
    }
}

/// The part of a packet that a probe repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repeat {
    Streams,
    ControlAlone,
}

impl Connection {
    /// Returns all owners that send frames.
    #[inline]
    pub(super) fn owners(&mut self) -> Owners<'_> {
        self.owners_and_recovery().0
    }

    #[inline]
    fn owners_and_recovery(&mut self) -> (Owners<'_>, &Recovery<Carried>) {
        let owners = Owners {
            handshake: &mut self.handshake,
            paths: &mut self.paths,
            ack_frequency: &mut self.acks.frequency,
            new_tokens: &mut self.memory.tokens,
            local_cids: &mut self.cids.local,
            peer_cids: &mut self.cids.peer,
            data: Data {
                streams: &mut self.streams,
                datagrams: &mut self.datagrams,
            },
            keep_alive: &mut self.timers,
        };
        (owners, &self.recovery)
    }

    /// Tells the owners the fate of their frames and empties the outcome. `space` is that of the
    /// ACK frame behind the outcome.
    pub(super) fn deliver(&mut self, space: Space, outcome: &mut Outcome<Carried>) {
        for settled in &outcome.acked {
            self.on_size_acked(settled);
            self.tell(Fate::Acked, &settled.packet.record);
        }
        for settled in &outcome.lost {
            self.observe_loss(settled);
            self.on_size_lost(settled);
            self.tell(Fate::Lost, &settled.packet.record);
        }
        if let Some(largest) = outcome.largest_acked_ack {
            self.acks.received[space].on_ack_of_ack(largest);
        }
        self.follow_mtu();
        outcome.clear();
    }

    /// Tells the owners the fate of a packet.
    #[inline]
    fn tell(&mut self, fate: Fate, carried: &Carried) {
        let Carried {
            space: _,
            data,
            control,
        } = carried;
        tell(&mut self.owners().data, fate, data);
        if let Some(control) = control {
            self.owners().tell(fate, control);
        }
    }

    /// Queues what probes carry after the handshake: new data, if there is any, and the oldest data
    /// in flight, one packet for each probe so that no two carry the same (RFC 9002 §6.2.4).
    pub(super) fn probe_data(&mut self) {
        let (mut owners, recovery) = self.owners_and_recovery();
        let probes = usize::from(recovery.probes(Space::Data).max(1));
        let old = if owners.data.streams.has_pending() {
            probes - 1
        } else {
            probes
        };
        let oldest = recovery
            .outstanding(Space::Data)
            .filter(|carried| !carried.is_empty());
        for (place, carried) in oldest.take(probes).enumerate() {
            let part = if place < old {
                Repeat::Streams
            } else {
                Repeat::ControlAlone
            };
            owners.repeat(part, carried);
        }
    }
}
