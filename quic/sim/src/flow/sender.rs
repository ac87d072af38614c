//! The sending end of a flow.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use hybriq_tls::Side;

use super::{FlowReport, FlowSetup, NOTHING, PING_EVERY, stand_in};
use crate::{Datagram, StandIn, world::peer::Clock};
use hybriq_proto::{
    owners::{
        congestion,
        recovery::{
            Ack, Amplification, Config, Context, Held, Outcome, Progress, Recovery, SentPacket,
            Timeout,
        },
    },
    wire::{Reader, frame::Frame, packet::Space, udp::Ecn},
};

/// Maximum number of timers due at one instant.
const TIMERS_AT_ONCE: usize = 8;

/// The end of a flow that has data to send.
pub(super) struct Sender {
    recovery: Recovery<u64>,
    outcome: Outcome<u64>,
    context: Context,
    size: u16,
    starts_at: Instant,
    /// End of new data; `None` means never.
    ends_at: Option<Instant>,
    /// Chunks to send again, oldest first.
    lost: VecDeque<u64>,
    next_chunk: u64,
    /// Time at which the pacer lets the next train be sent.
    paced_until: Option<Instant>,
    /// Largest number in an acknowledgement that itself requested one.
    known: u64,
    sent: u64,
    retransmitted: u64,
    ptos: u64,
}

impl Sender {
    pub(super) fn new(clock: Clock, setup: &FlowSetup, seed: u64) -> Self {
        let starts_at = clock.base + setup.starts_at;
        let start = congestion::Start {
            now: starts_at,
            datagram_size: setup.datagram_size,
            initial_rtt: setup.initial_rtt,
            seed,
        };
        let config = Config {
            side: Side::Client,
            initial_rtt: setup.initial_rtt,
            datagram_size: setup.datagram_size,
            controller: setup.congestion.start(&start),
            skip_seed: Some(seed),
            ecn: setup.ecn,
            pacing: setup.pacing,
        };
        Self {
            recovery: Recovery::new(starts_at, config),
            outcome: Outcome::default(),
            context: Context {
                handshake: Progress::Confirmed,
                peer_max_ack_delay: setup.max_ack_delay,
                amplification: Amplification::Open,
            },
            size: setup.datagram_size,
            starts_at,
            ends_at: clock.base.checked_add(setup.ends_at),
            lost: VecDeque::new(),
            next_chunk: 0,
            paced_until: None,
            known: NOTHING,
            sent: 0,
            retransmitted: 0,
            ptos: 0,
        }
    }

    /// Handles an acknowledgement.
    pub(super) fn on_datagram(&mut self, now: Instant, datagram: &Datagram) {
        let mut reader = Reader::new(&datagram.payload);
        let Ok(Frame::Ack(ack)) = Frame::decode(&mut reader) else {
            panic!("{:?} is no ACK frame", datagram.payload);
        };
        let [number, ..] = datagram.stand_in.label;
        if number % PING_EVERY == 0 {
            self.known = ack.largest.get();
        }
        let ack = Ack {
            space: Space::Data,
            largest: ack.largest,
            delay: Duration::from_micros(ack.delay),
            ranges: ack.ranges(),
            ecn: ack.ecn,
        };
        let taken = self
            .recovery
            .on_ack(now, ack, &self.context, &mut self.outcome);
        if let Err(error) = taken {
            panic!("{error:?}");
        }
        self.queue_lost();
    }

    pub(super) fn on_timeout(&mut self, now: Instant) {
        for _ in 0..TIMERS_AT_ONCE {
            if self
                .recovery
                .next_timeout(&self.context)
                .is_none_or(|at| at > now)
            {
                return;
            }
            let due = self
                .recovery
                .on_timeout(now, &self.context, &mut self.outcome);
            self.ptos += u64::from(matches!(due, Some(Timeout::Probe(_))));
            if self.lost.is_empty() && self.is_over(now) && matches!(due, Some(Timeout::Probe(_))) {
                if let Some(&oldest) = self.recovery.outstanding(Space::Data).next() {
                    self.lost.push_back(oldest);
                }
            }
            self.queue_lost();
        }
        panic!("a timer never rests");
    }

    fn queue_lost(&mut self) {
        for lost in self.outcome.lost.drain(..) {
            self.retransmitted += u64::from(lost.packet.size);
            self.lost.push_back(lost.packet.record);
        }
        self.outcome.clear();
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        if self.sent == 0 {
            return Some(self.starts_at)
                .filter(|&start| self.ends_at.is_none_or(|end| start < end));
        }
        let recovery = self.recovery.next_timeout(&self.context);
        recovery.into_iter().chain(self.paced_until).min()
    }

    fn is_over(&self, now: Instant) -> bool {
        self.ends_at.is_some_and(|end| end <= now)
    }

    /// Returns the next datagram that may be sent now.
    pub(super) fn poll_transmit(&mut self, now: Instant) -> Option<(StandIn, Option<Ecn>)> {
        self.paced_until = None;
        if now < self.starts_at {
            return None;
        }
        let size = u64::from(self.size);
        let room = self.recovery.can_send(size);
        if self.lost.is_empty() && self.is_over(now) {
            if room {
                self.recovery.on_app_limited();
            }
            return None;
        }
        if self.probes() == 0 {
            if !room {
                return None;
            }
            if !self.recovery.may_send_now(now) {
                self.paced_until = Some(self.recovery.on_paced(now));
                return None;
            }
        }
        let chunk = self.lost.pop_front().unwrap_or_else(|| {
            self.next_chunk += 1;
            self.next_chunk - 1
        });
        let pn = self.recovery.next_number(Space::Data);
        let mark = self.recovery.ecn_mark();
        self.recovery.on_packet_sent(
            Space::Data,
            pn,
            SentPacket {
                time_sent: now,
                size: self.size,
                ack_eliciting: true,
                in_flight: true,
                largest_acked: None,
                ecn: mark,
                snapshot: None,
                held: Held::default(),
                record: chunk,
            },
        );
        self.sent += size;
        Some((
            stand_in(self.size.into(), [pn.get(), chunk, self.known]),
            mark,
        ))
    }

    fn probes(&self) -> u8 {
        self.recovery.probes(Space::Data)
    }

    /// Checks that bytes in flight are those of the packets in flight.
    pub(super) fn audit(&self) {
        let packets = self.recovery.outstanding(Space::Data).count() as u64;
        assert_eq!(
            packets * u64::from(self.size),
            self.recovery.bytes_in_flight(),
            "bytes in flight against {packets} packets"
        );
    }

    pub(super) fn report(&self, report: &mut FlowReport) {
        report.sent = self.sent;
        report.retransmitted = self.retransmitted;
        report.ptos = self.ptos;
        report.window = self.recovery.window();
        report.bytes_in_flight = self.recovery.bytes_in_flight();
        report.smoothed_rtt = self.recovery.rtt().smoothed();
        report.pto = self
            .recovery
            .pto(Space::Data, self.context.peer_max_ack_delay);
        report.backoff = self.recovery.pto_count();
        report.held += self.recovery.outstanding(Space::Data).count() + self.lost.len();
    }
}
