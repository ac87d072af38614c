//! The one list of all owners that send frames, through which they also learn whether their packets were
//! acknowledged or lost.
//!
//! [`Connection`], [`Owners`] and the record of a packet ([`Carried`], [`Control`]) are destructured
//! without `..` wherever a call goes to all owners: a new owner does not compile until it is asked
//! for its frames, writes them, and learns their fate.
//!
//! Two more learn the fate of packets, in `deliver`, but are not owners, because they are not
//! interested in frames. [`Received`](crate::owners::acks::Received) writes the ACK frames, which
//! come before all owners, are never repaired, and matter only through the largest number that was
//! acknowledged; loss detection stores that number. [`Mtu`](crate::owners::path::Mtu) learns from
//! the size and the number of a packet, whatever it carries.

use crate::{
    connection::{
        Acks, Cids, Connection, Memory,
        life::timers::Timers,
        memory::new_token::{self, NewTokens},
    },
    owners::{
        acks::frequency::{self, AckFrequency},
        cids,
        datagrams::{self, Datagrams, Rival},
        handshake::{self, Handshake},
        path::Paths,
        recovery::{Outcome, PathState, Recovery, SentPacket, Settled},
        streams::{self, Streams},
    },
    wire::{
        frame::{FrameWriter, Owner, Timing},
        packet::{Kind, Space},
    },
};

/// Contents of one packet. Most carry only data; the rest is boxed to keep a record small.
#[derive(Debug)]
pub(in crate::connection) struct Carried {
    pub(in crate::connection) space: Space,
    streams: streams::Sent,
    datagrams: datagrams::Sent,
    pub(in crate::connection) control: Option<Box<Control>>,
}

impl Carried {
    pub(in crate::connection) fn new(space: Space) -> Self {
        Self {
            space,
            streams: streams::Sent::default(),
            datagrams: datagrams::Sent::default(),
            control: None,
        }
    }

    pub(in crate::connection) fn is_empty(&self) -> bool {
        let Self {
            space: _,
            streams,
            datagrams,
            control,
        } = self;
        streams.is_empty() && datagrams.is_empty() && control.is_none()
    }

    /// Returns the bytes of memory that it holds in addition to its own size.
    #[inline]
    pub(in crate::connection) fn held(&self) -> usize {
        let control = self.control.as_ref();
        self.streams.held() + control.map_or(0, |_| size_of::<Control>())
    }
}

/// Frames that are rare once the handshake is over.
#[derive(Debug)]
pub(in crate::connection) struct Control {
    handshake: handshake::Sent,
    pub(in crate::connection) ack_frequency: frequency::Sent,
    new_token: new_token::Sent,
    local_cids: cids::Sent,
    peer_cids: cids::Sent,
}

impl Control {
    fn new(space: Space) -> Self {
        Self {
            handshake: handshake::Sent::new(space),
            ack_frequency: frequency::Sent::default(),
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
pub(in crate::connection) struct Owners<'a> {
    handshake: &'a mut Handshake,
    rare: Rare<'a>,
    streams: &'a mut Streams,
    datagrams: &'a mut Datagrams,
    keep_alive: &'a mut Timers,
}

/// Owners whose frames are rare once the handshake is over, apart from the handshake itself. They
/// send with 1-RTT keys only.
struct Rare<'a> {
    paths: &'a mut Paths<PathState>,
    ack_frequency: &'a mut AckFrequency,
    new_tokens: &'a mut NewTokens,
    local_cids: &'a mut cids::Local,
    peer_cids: &'a mut cids::Peer,
}

impl Rare<'_> {
    /// Returns true if one of them wants to send a packet.
    #[inline]
    fn want_to_send(&self, space: Space) -> bool {
        let Self {
            paths,
            ack_frequency,
            new_tokens,
            local_cids,
            peer_cids,
        } = self;
        paths.wants_to_send(space)
            || ack_frequency.wants_to_send(space)
            || new_tokens.wants_to_send(space)
            || local_cids.wants_to_send(space)
            || peer_cids.wants_to_send(space)
    }

    /// Returns true if one of them has frames for a packet.
    #[inline]
    fn have_frames(&self, space: Space) -> bool {
        let Self {
            paths,
            ack_frequency,
            new_tokens,
            local_cids,
            peer_cids,
        } = self;
        paths.has_frames(space)
            || ack_frequency.has_frames(space)
            || new_tokens.has_frames(space)
            || local_cids.has_frames(space)
            || peer_cids.has_frames(space)
    }

    /// Writes the frames into a packet. Earlier lines win: the order below is the priority.
    fn write_frames(&mut self, timing: Timing, out: &mut FrameWriter<'_>, control: &mut Control) {
        let Self {
            paths,
            ack_frequency,
            new_tokens,
            local_cids,
            peer_cids,
        } = self;
        paths.write_frames(timing, out, &mut ());
        ack_frequency.write_frames(timing, out, &mut control.ack_frequency);
        new_tokens.write_frames(timing, out, &mut control.new_token);
        local_cids.write_frames(timing, out, &mut control.local_cids);
        peer_cids.write_frames(timing, out, &mut control.peer_cids);
    }
}

impl Owners<'_> {
    /// Returns true if an owner wants to send a packet of this kind.
    #[inline]
    pub(in crate::connection) fn want_to_send(&self, kind: Kind) -> bool {
        let Self {
            handshake,
            rare,
            streams,
            datagrams,
            keep_alive,
        } = self;
        let space = kind.space();
        match kind {
            Kind::Initial | Kind::Handshake => handshake.wants_to_send(space),
            Kind::ZeroRtt => streams.wants_to_send(space) || datagrams.wants_to_send(space),
            Kind::OneRtt => {
                handshake.wants_to_send(space)
                    || rare.want_to_send(space)
                    || streams.wants_to_send(space)
                    || datagrams.wants_to_send(space)
                    || keep_alive.wants_to_send(space)
            }
        }
    }

    /// Fills a packet of this kind. Earlier lines win: the order below is the priority.
    #[inline]
    pub(in crate::connection) fn write_frames(
        &mut self,
        kind: Kind,
        timing: Timing,
        out: &mut FrameWriter<'_>,
        carried: &mut Carried,
    ) {
        let Self {
            handshake,
            rare,
            streams,
            datagrams,
            keep_alive,
        } = self;
        let space = kind.space();
        let has_handshake = kind != Kind::ZeroRtt && handshake.has_frames(space);
        let has_rare = kind == Kind::OneRtt && rare.have_frames(space);
        // Most packets carry only data, and need no record of anything else.
        if has_handshake || has_rare {
            let mut control = Control::new(space);
            handshake.write_frames(timing, out, &mut control.handshake);
            if has_rare {
                rare.write_frames(timing, out, &mut control);
            }
            if !control.is_empty() {
                carried.control = Some(Box::new(control));
            }
        }
        match kind {
            Kind::Initial | Kind::Handshake => {}
            Kind::ZeroRtt => write_data(streams, datagrams, timing, out, carried),
            Kind::OneRtt => {
                write_data(streams, datagrams, timing, out, carried);
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
        tell(self.rare.ack_frequency, fate, ack_frequency);
        tell(self.rare.new_tokens, fate, new_token);
        tell(self.rare.local_cids, fate, local_cids);
        tell(self.rare.peer_cids, fate, peer_cids);
    }

    /// Queues the frames of a packet again, for a probe: those of streams only if `streams` says
    /// so, DATAGRAM frames never (RFC 9221 §5.2).
    fn repeat(&mut self, streams: Repeat, carried: &Carried) {
        let Carried {
            space: _,
            streams: sent,
            datagrams: _,
            control,
        } = carried;
        if streams == Repeat::Streams {
            self.streams.repeat(sent);
        }
        if let Some(control) = control {
            self.tell(Fate::Lost, control);
        }
    }
}

/// Returns the packet if its fate says something about the datagram size of the path in use: a
/// packet with 1-RTT keys that was sent there.
#[inline]
fn sized(settled: &Settled<Carried>) -> Option<&SentPacket<Carried>> {
    let packet = &settled.packet;
    let is_on_path = packet.record.space == Space::Data && packet.snapshot.is_some();
    is_on_path.then_some(packet)
}

/// Fills the rest of a packet with application data: streams between the datagrams that go first
/// and those that fit after them (see [`Datagrams`] for the shares).
#[inline]
fn write_data(
    streams: &mut Streams,
    datagrams: &mut Datagrams,
    timing: Timing,
    out: &mut FrameWriter<'_>,
    carried: &mut Carried,
) {
    if !datagrams.has_pending() {
        return streams.write_frames(timing, out, &mut carried.streams);
    }
    let rival = if streams.has_pending() {
        Rival::Waiting
    } else {
        Rival::Idle
    };
    datagrams.write_first(rival, out, &mut carried.datagrams);
    let before = out.len();
    streams.write_frames(timing, out, &mut carried.streams);
    datagrams.on_streams_sent(out.len() - before);
    datagrams.write_frames(timing, out, &mut carried.datagrams);
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
    pub(in crate::connection) fn owners(&mut self) -> Owners<'_> {
        self.owners_and_recovery().0
    }

    #[inline]
    fn owners_and_recovery(&mut self) -> (Owners<'_>, &Recovery<Carried>) {
        let Self {
            handshake,
            paths,
            acks:
                Acks {
                    frequency,
                    // ACK frames come before the owners: see `schedule`.
                    received: _,
                    settled: _,
                },
            memory:
                Memory {
                    tokens,
                    path_keys: _,
                    server: _,
                },
            cids:
                Cids {
                    local,
                    peer,
                    initial: _,
                    original: _,
                },
            streams,
            datagrams,
            timers,
            recovery,
            // These send nothing, or nothing that is repaired (CONNECTION_CLOSE, in a packet of its
            // own after which no other follows).
            side: _,
            config: _,
            state: _,
            agreed: _,
            opening: _,
            close: _,
            header_bits: _,
            events: _,
            observer: _,
        } = self;
        let owners = Owners {
            handshake,
            rare: Rare {
                paths,
                ack_frequency: frequency,
                new_tokens: tokens,
                local_cids: local,
                peer_cids: peer,
            },
            streams,
            datagrams,
            keep_alive: timers,
        };
        (owners, recovery)
    }

    /// Tells the owners the fate of their frames and empties the outcome. `space` is that of the
    /// ACK frame that caused the outcome.
    pub(in crate::connection) fn deliver(&mut self, space: Space, outcome: &mut Outcome<Carried>) {
        for settled in &outcome.acked {
            if let Some(packet) = sized(settled) {
                let mtu = self.paths.active_mut().mtu_mut();
                mtu.on_acked(settled.pn, packet.size, packet.time_sent);
            }
            self.tell(Fate::Acked, &settled.packet.record);
        }
        for settled in &outcome.lost {
            self.observer.on_lost(&self.recovery, settled);
            if let Some(packet) = sized(settled) {
                let rtt = self.recovery.rtt().smoothed();
                self.paths
                    .on_size_lost(settled.pn, packet.size, packet.time_sent, rtt);
            }
            self.tell(Fate::Lost, &settled.packet.record);
        }
        let received = self.acks.received.get_mut(space);
        if let (Some(received), Some(largest)) = (received, outcome.largest_acked_ack) {
            received.on_ack_of_ack(largest);
        }
        let size = self.paths.active().datagram_size();
        self.recovery.on_datagram_size(size);
        outcome.clear();
    }

    /// Tells the owners the fate of a packet.
    #[inline]
    fn tell(&mut self, fate: Fate, carried: &Carried) {
        let Carried {
            space: _,
            streams,
            datagrams,
            control,
        } = carried;
        let mut owners = self.owners();
        tell(owners.streams, fate, streams);
        tell(owners.datagrams, fate, datagrams);
        if let Some(control) = control {
            owners.tell(fate, control);
        }
    }

    /// Queues what handshake probes carry: the whole flight of every level, because one lost
    /// datagram makes the others useless, and the oldest 1-RTT data, which has no timer before the
    /// handshake is confirmed (RFC 9002 §6.2.4).
    pub(in crate::connection) fn probe_handshake(&mut self) {
        self.handshake.repeat_flights();
        self.repeat_early_ack();
        self.probe_data();
    }

    /// Queues what probes carry after the handshake: new data, if there is any, and the oldest data
    /// in flight, one packet for each probe so that no two carry the same data (RFC 9002 §6.2.4).
    pub(in crate::connection) fn probe_data(&mut self) {
        let (mut owners, recovery) = self.owners_and_recovery();
        let probes = usize::from(recovery.probes(Space::Data).max(1));
        let old = if owners.streams.has_pending() {
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
