//! Datagrams that belong to no connection: version negotiation, refusals, and acknowledgements of
//! partial ClientHellos.

use std::{collections::VecDeque, time::Instant};

use hybriq_tls::Side;

use crate::{
    endpoint::{Arrival, Transmit, hello::table::Hello},
    wire::{
        error::TransportError,
        frame::{ConnectionClose, FrameWriter},
        limits,
        packet::{self, Cid, Header, Kind, PacketBuilder, Retry, VersionNegotiation, Versions},
        params::ACK_DELAY_EXPONENT,
    },
};

/// Answers waiting to be sent, at most [`limits::WAITING_ANSWERS`].
#[derive(Debug, Default)]
pub(in crate::endpoint) struct Answers {
    pub(in crate::endpoint) waiting: VecDeque<Answer>,
}

#[derive(Debug)]
pub(in crate::endpoint) struct Answer {
    transmit: Transmit,
    pub(in crate::endpoint) bytes: Box<[u8]>,
}

impl Answers {
    /// Queues a Version Negotiation packet (RFC 9000 §6.1). Returns true if there was room.
    pub(in crate::endpoint) fn version_negotiation(
        &mut self,
        arrival: &Arrival,
        [dcid, scid]: [&[u8]; 2],
        versions: Versions,
        random: u32,
    ) -> bool {
        let mut buffer = [0; limits::MIN_DATAGRAM];
        let packet = VersionNegotiation::answer(dcid, scid);
        match packet.encode(versions, random, &mut buffer) {
            Some(size) => self.push(arrival, buffer.split_at(size).0),
            None => false,
        }
    }

    /// Queues a Retry packet (RFC 9000 §17.2.5). Returns true if there was room.
    pub(in crate::endpoint) fn retry(
        &mut self,
        arrival: &Arrival,
        retry: &Retry<'_>,
        original_dcid: &Cid,
        unused: u8,
    ) -> bool {
        let mut buffer = [0; 256];
        match retry.encode(original_dcid, unused, &mut buffer) {
            Some(size) => self.push(arrival, buffer.split_at(size).0),
            None => false,
        }
    }

    /// Queues the refusal of a ClientHello. An Initial with only a CONNECTION_CLOSE needs no
    /// padding and is far smaller than the client's.
    pub(in crate::endpoint) fn close(&mut self, hello: &Hello, error: &TransportError) {
        let mut buffer = [0; 512];
        let frame = ConnectionClose::Transport {
            code: error.code.0,
            frame: error.frame,
            reason: error.reason_for_peer().as_bytes(),
        };
        let size = hello.write_initial(&mut buffer, |frames| {
            frames.close(&frame);
        });
        if size > 0 {
            let arrival = Arrival {
                peer: hello.peer,
                local: hello.local,
                ecn: None,
            };
            self.push(&arrival, buffer.split_at(size).0);
        }
    }

    /// Queues bytes for the sender of a datagram. Returns true if there was room.
    pub(in crate::endpoint) fn push(&mut self, arrival: &Arrival, bytes: &[u8]) -> bool {
        if self.waiting.len() >= limits::WAITING_ANSWERS {
            return false;
        }
        let transmit = Transmit {
            peer: arrival.peer,
            local: arrival.local,
            ecn: None,
            size: bytes.len(),
            segment_size: None,
        };
        self.waiting.push_back(Answer {
            transmit,
            bytes: bytes.into(),
        });
        true
    }

    pub(in crate::endpoint) fn poll(&mut self, out: &mut [u8]) -> Option<Transmit> {
        let answer = self.waiting.pop_front()?;
        out.get_mut(..answer.bytes.len())?
            .copy_from_slice(&answer.bytes);
        Some(answer.transmit)
    }
}

impl Hello {
    /// Acknowledges received packets, if the credit allows it.
    pub(in crate::endpoint) fn acknowledge(
        &mut self,
        now: Instant,
        out: &mut [u8],
    ) -> Option<Transmit> {
        let credit = limits::AMPLIFICATION_FACTOR * self.bytes_received - self.bytes_sent;
        let room = usize::try_from(credit)
            .unwrap_or(usize::MAX)
            .min(limits::MIN_DATAGRAM);
        let mut told = None;
        let size = self.write_initial(out.get_mut(..room)?, |frames| {
            let delay = self.received.ack_delay(now).as_micros() >> ACK_DELAY_EXPONENT;
            let ecn = self.received.ecn_counts();
            told = frames.ack(delay as u64, self.received.ranges(), ecn);
        });
        if size == 0 {
            return None;
        }
        self.received.on_ack_sent(told.unwrap_or_default());
        self.next_pn = self.next_pn.next();
        self.bytes_sent += size as u64;
        Some(Transmit {
            peer: self.peer,
            local: self.local,
            ecn: None,
            size,
            segment_size: None,
        })
    }

    fn write_initial(&self, out: &mut [u8], fill: impl FnOnce(&mut FrameWriter<'_>)) -> usize {
        let header = Header::Long {
            kind: Kind::Initial,
            version: self.version,
            dcid: self.peer_cid,
            scid: self.local_cid,
            token: &[],
        };
        let Some(mut packet) = PacketBuilder::begin(out, &header, self.next_pn, None) else {
            return 0;
        };
        let mut frames = packet.frames();
        fill(&mut frames);
        let len = frames.len();
        if len == 0 {
            return 0;
        }
        let keys = packet::initial_direction(self.version, &self.dcid, Side::Server);
        packet.finish(len, &keys)
    }
}
