//! Assembly of ClientHellos: the part of the endpoint that opens Initial packets itself.

use std::time::Instant;

use hybriq_tls::{ClientHello, Side};
use smallvec::SmallVec;

use super::{
    early_packets::OVERHEAD,
    retry::Answered,
    table::{Crypto, Hello},
};
use crate::{
    endpoint::{
        Arrival, Endpoint, Incoming, Routed, Transmit,
        admit::admission::{Proof, Verdict},
        route::routing::Target,
    },
    owners::acks::{AckEliciting, Received},
    stats::DropReason,
    wire::{
        Reader,
        error::{Code, TransportError, Violation},
        frame::{Frame, FrameType},
        limits,
        packet::{self, Decoded, Kind, OpenError, PacketNumber, Packets, Protected},
    },
};

/// 0-RTT packets from a datagram with Initial packets.
struct Coalesced<'d> {
    /// Destination connection id of the first packet in the datagram.
    dcid: packet::Cid,
    zero_rtt: SmallVec<[Protected<'d>; 2]>,
}

/// Effect of one packet.
enum Taken {
    Useful,
    Useless,
    /// The client closed.
    Closed,
    Failed(TransportError),
}

/// Effect of a datagram on a ClientHello.
enum Grown {
    Partial,
    Whole(ClientHello),
    /// The datagram was useless.
    Useless,
    /// The client gave up.
    Closed,
    Failed(TransportError),
}

impl Endpoint {
    pub(in crate::endpoint) fn on_first_hello(
        &mut self,
        now: Instant,
        arrival: &Arrival,
        packets: Packets<'_>,
    ) -> Routed<'static> {
        let Some((initial, verdict)) = self.judge(now, arrival, &packets) else {
            return Routed::Dropped(DropReason::Malformed);
        };
        let proof = match verdict {
            Verdict::Admit(proof) => proof,
            Verdict::Invalid => Proof::default(),
            Verdict::Retry if self.send_retry(now, arrival, &initial) => return Routed::Consumed,
            Verdict::Retry => return Routed::Dropped(DropReason::Overload),
        };
        let mut hello = self.new_hello(now, arrival, &initial, proof);
        let (grown, behind) = hello.grow(now, arrival, packets);
        self.keep_coalesced(now, arrival, &grown, behind);
        match grown {
            Grown::Useless | Grown::Closed => Routed::Dropped(DropReason::UselessHello),
            // Only after the packet proved authentic: the token may have been damaged.
            _ if matches!(verdict, Verdict::Invalid) => {
                self.reject(&hello, &Violation::InvalidRetryToken.into());
                Routed::Consumed
            }
            Grown::Whole(client_hello) => {
                self.insert_routes(&hello, Target::Waiting);
                self.offer(now, hello, client_hello)
            }
            Grown::Failed(error) => {
                self.reject(&hello, &error);
                Routed::Consumed
            }
            Grown::Partial => {
                let (dcid, peer, local_cid) = (hello.dcid, hello.peer, hello.local_cid);
                while let Some(evicted) = self.hellos.pop_to_add() {
                    self.forget_routes(&evicted);
                }
                let place = self.hellos.insert(hello);
                self.routing.insert(local_cid, Target::Hello(place));
                self.routing
                    .insert_initial(dcid, peer, Target::Hello(place));
                self.hellos
                    .schedule_ack(place, now + limits::PARTIAL_HELLO_ACK_DELAY);
                self.evict_hellos();
                Routed::Consumed
            }
        }
    }

    fn evict_hellos(&mut self) {
        while let Some(evicted) = self.hellos.pop_excess() {
            self.forget_routes(&evicted);
        }
    }

    pub(in crate::endpoint) fn on_more_hello(
        &mut self,
        now: Instant,
        arrival: &Arrival,
        place: usize,
        packets: Packets<'_>,
    ) -> Routed<'static> {
        let Some(hello) = self
            .hellos
            .get_mut(place)
            .filter(|hello| hello.peer == arrival.peer)
            // RFC 9000 §14.1: every datagram with an Initial is full, not only the first.
            .filter(|_| packets.bytes().len() >= limits::MIN_DATAGRAM)
        else {
            return Routed::Dropped(DropReason::UselessHello);
        };
        let (grown, behind) = hello.grow(now, arrival, packets);
        self.keep_coalesced(now, arrival, &grown, behind);
        match grown {
            Grown::Useless => return Routed::Dropped(DropReason::UselessHello),
            Grown::Partial => {
                self.hellos.count(place);
                self.evict_hellos();
                self.hellos
                    .schedule_ack(place, now + limits::PARTIAL_HELLO_ACK_DELAY);
                return Routed::Consumed;
            }
            Grown::Whole(_) | Grown::Closed | Grown::Failed(_) => {}
        }
        let Some(hello) = self.hellos.remove(place) else {
            return Routed::Dropped(DropReason::UselessHello);
        };
        match grown {
            Grown::Whole(client_hello) => {
                self.insert_routes(&hello, Target::Waiting);
                self.offer(now, hello, client_hello)
            }
            Grown::Failed(error) => {
                self.reject(&hello, &error);
                Routed::Consumed
            }
            _ => {
                self.forget_routes(&hello);
                Routed::Consumed
            }
        }
    }

    /// Sets how many clients may wait for the application's decision, clamped to between 1 and
    /// [`limits::WAITING_INCOMING`].
    pub fn set_accept_backlog(&mut self, clients: usize) {
        self.backlog = clients.clamp(1, limits::WAITING_INCOMING);
    }

    /// Keeps the 0-RTT packets coalesced with a partial ClientHello.
    fn keep_coalesced(
        &mut self,
        now: Instant,
        arrival: &Arrival,
        grown: &Grown,
        behind: Coalesced<'_>,
    ) {
        let wanted = match grown {
            Grown::Partial => true,
            Grown::Whole(client_hello) => client_hello.wants_early_data(),
            Grown::Useless | Grown::Closed | Grown::Failed(_) => false,
        };
        if wanted && self.wants_early() {
            self.keep_zero_rtt(now, arrival, &behind.dcid, behind.zero_rtt);
        }
    }

    /// Passes a complete ClientHello to the application, unless too many are waiting. Half of the
    /// places are reserved for clients that proved their address; the others may prove theirs when
    /// their half is full.
    fn offer(&mut self, now: Instant, hello: Hello, client_hello: ClientHello) -> Routed<'static> {
        let is_proven = hello.proof.validated;
        let has_room = self.waiting < self.backlog && (is_proven || !self.has_waiting_enough());
        let incoming = Incoming {
            hello: Box::new(hello),
            client_hello,
        };
        if has_room {
            self.waiting += 1;
            self.waiting_unproven += usize::from(!is_proven);
            return Routed::Incoming(Box::new(incoming));
        }
        let hello = &incoming.hello;
        self.forget_routes(hello);
        if !is_proven
            && incoming.may_retry()
            && self.send_retry(now, &hello.arrival(), &hello.answered())
        {
            return Routed::Consumed;
        }
        Routed::Dropped(DropReason::Overload)
    }

    fn new_hello(
        &mut self,
        now: Instant,
        arrival: &Arrival,
        initial: &Answered,
        proof: Proof,
    ) -> Hello {
        let keys = packet::initial_direction(initial.version, &initial.dcid, Side::Client);
        Hello {
            peer: arrival.peer,
            local: arrival.local,
            dcid: initial.dcid,
            peer_cid: initial.scid,
            local_cid: self.new_cid(),
            version: initial.version,
            proof,
            keys: Some(Box::new(keys)),
            received: Received::of_hello(),
            next_pn: PacketNumber::ZERO,
            bytes_received: 0,
            bytes_sent: 0,
            crypto: Crypto::default(),
            counted: 0,
            ack_at: None,
            expires: now + limits::PARTIAL_HELLO_LIFETIME,
        }
    }

    fn insert_routes(&mut self, hello: &Hello, target: Target) {
        self.routing.insert(hello.local_cid, target);
        self.routing.insert_initial(hello.dcid, hello.peer, target);
    }

    pub(in crate::endpoint) fn forget_routes(&mut self, hello: &Hello) {
        self.routing.remove(&hello.local_cid);
        self.routing.remove_initial(&hello.dcid, hello.peer);
        self.early.take_of(hello);
    }

    /// Rejects a client, and forgets its ClientHello.
    pub(in crate::endpoint) fn reject(&mut self, hello: &Hello, error: &TransportError) {
        self.forget_routes(hello);
        self.answers.close(hello, error);
    }

    /// Acknowledges a partial ClientHello whose rest did not arrive in time. The datagram is not
    /// padded: before address validation, every byte is at the expense of the server's answer.
    pub(in crate::endpoint) fn acknowledge_partial_hello(
        &mut self,
        now: Instant,
        out: &mut [u8],
    ) -> Option<Transmit> {
        while let Some(hello) = self.hellos.poll_ack(now) {
            if !self.early.fill_half_a_window(hello) {
                return hello.acknowledge(now, out);
            }
        }
        None
    }
}

impl Hello {
    /// Takes the Initial packets of a datagram. Returns what became of the ClientHello, and the
    /// 0-RTT packets of the datagram.
    fn grow<'d>(
        &mut self,
        now: Instant,
        arrival: &Arrival,
        packets: Packets<'d>,
    ) -> (Grown, Coalesced<'d>) {
        self.bytes_received += packets.bytes().len() as u64;
        let mut behind = Coalesced {
            dcid: packets.dcid().unwrap_or(self.dcid),
            zero_rtt: SmallVec::new(),
        };
        let mut useful = false;
        for packet in packets {
            let Ok(Decoded::Protected(packet)) = packet else {
                break;
            };
            if packet.kind == Kind::ZeroRtt {
                if behind.zero_rtt.len() < limits::EARLY_BYTES / OVERHEAD {
                    behind.zero_rtt.push(packet);
                }
                continue;
            }
            match self.take_initial(now, arrival, packet) {
                Taken::Useful => useful = true,
                Taken::Useless => {}
                Taken::Closed => return (Grown::Closed, behind),
                Taken::Failed(error) => return (Grown::Failed(error), behind),
            }
        }
        let grown = if useful {
            self.progress()
        } else {
            Grown::Useless
        };
        (grown, behind)
    }

    /// Takes one packet.
    fn take_initial(&mut self, now: Instant, arrival: &Arrival, packet: Protected<'_>) -> Taken {
        let ours = packet.dcid == self.dcid || packet.dcid == self.local_cid;
        let same = packet.version == Some(self.version) && packet.kind == Kind::Initial;
        if !same || !ours || packet.scid != self.peer_cid {
            return Taken::Useless;
        }
        let largest = self.received.largest().map(|(pn, _)| pn);
        let Some(keys) = &self.keys else {
            return Taken::Useless;
        };
        let Ok(packet) = packet.unprotect(&keys.header, largest) else {
            return Taken::Useless;
        };
        let pn = packet.pn;
        let payload = match packet.open(&keys.packet) {
            Ok(payload) => payload,
            Err(OpenError::ReservedBits) => return Taken::Failed(Violation::ReservedBits.into()),
            Err(OpenError::Undecryptable) => return Taken::Useless,
        };
        if self.received.is_duplicate(pn) {
            return Taken::Useless;
        }
        match self.take_frames(payload) {
            Ok(Some(eliciting)) => {
                self.received.on_packet(now, pn, eliciting, arrival.ecn);
                Taken::Useful
            }
            Ok(None) => Taken::Closed,
            Err(error) => Taken::Failed(error),
        }
    }

    /// Returns the state of the ClientHello after the CRYPTO data so far.
    fn progress(&mut self) -> Grown {
        match ClientHello::parse(self.crypto.contiguous()) {
            Ok(Some((client_hello, len))) => {
                self.crypto.release(len);
                Grown::Whole(client_hello)
            }
            Ok(None) => Grown::Partial,
            Err(error) => Grown::Failed(
                TransportError::new(Code::crypto(error.alert().0), error.to_string())
                    .in_frame(FrameType::CRYPTO),
            ),
        }
    }

    /// Takes the CRYPTO frames of one packet. Returns `None` if the client closed.
    fn take_frames(&mut self, payload: &[u8]) -> Result<Option<AckEliciting>, TransportError> {
        let mut reader = Reader::new(payload);
        let mut eliciting = AckEliciting::No;
        if reader.is_empty() {
            return Err(Violation::PacketWithoutFrames.into());
        }
        while !reader.is_empty() {
            let frame = Frame::decode(&mut reader)?;
            if frame.is_ack_eliciting() {
                eliciting = AckEliciting::Yes;
            }
            match frame {
                Frame::Crypto(crypto) => {
                    self.crypto
                        .insert(crypto.offset, crypto.data)
                        .map_err(|_| Violation::ClientHelloTooLarge.in_frame(FrameType::CRYPTO))?;
                }
                Frame::Padding(_) | Frame::Ping | Frame::Ack(_) => {}
                Frame::ConnectionClose(_) => return Ok(None),
                frame => {
                    return Err(Violation::FrameInInitial.in_frame(frame.frame_type()));
                }
            }
        }
        Ok(Some(eliciting))
    }
}
