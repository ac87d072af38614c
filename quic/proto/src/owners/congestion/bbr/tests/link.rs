//! A bottleneck in virtual time, with flows of `Recovery` and BBR behind it.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    sync::{Arc, Mutex, PoisonError},
};

use hybriq_tls::Side;

use super::*;
use crate::{
    owners::recovery::{
        Ack, Amplification, Config, Context, Held, Outcome, Pacing, Progress, Recovery, SentPacket,
        Timeout,
    },
    testing::{pn, pns},
    wire::{
        packet::{PacketNumber, Space},
        udp::EcnState,
    },
};

pub(super) const SIZE: u16 = 1200;
const BYTES: u64 = SIZE as u64;

pub(super) const fn mbit(rate: u64) -> u64 {
    rate * 1_000_000 / 8
}

pub(super) const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

pub(super) const fn secs(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// A controller that the test can inspect.
#[derive(Clone, Debug)]
pub(super) struct Shared(Arc<Mutex<Bbr>>);

impl Shared {
    pub(super) fn with<T>(&self, read: impl FnOnce(&mut Bbr) -> T) -> T {
        read(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Controller for Shared {
    fn on_sent(&mut self, sent: &Sent) {
        self.with(|bbr| bbr.on_sent(sent));
    }
    fn on_acked(&mut self, acked: &Acked) {
        self.with(|bbr| bbr.on_acked(acked));
    }
    fn on_lost(&mut self, lost: &Lost<'_>) {
        self.with(|bbr| bbr.on_lost(lost));
    }
    fn on_marked(&mut self, marked: &Marked) {
        self.with(|bbr| bbr.on_marked(marked));
    }
    fn on_spurious(&mut self, spurious: &Spurious) {
        self.with(|bbr| bbr.on_spurious(spurious));
    }
    fn on_resume(&mut self, resume: &Resume) {
        self.with(|bbr| bbr.on_resume(resume));
    }
    fn on_datagram_size(&mut self, bytes: u16) {
        self.with(|bbr| bbr.on_datagram_size(bytes));
    }
    fn window(&self) -> u64 {
        self.with(|bbr| bbr.window())
    }
    fn pacing_rate(&self) -> Option<u64> {
        self.with(|bbr| bbr.pacing_rate())
    }
    fn phase(&self) -> Phase {
        self.with(|bbr| bbr.phase())
    }
    fn name(&self) -> &'static str {
        "shared"
    }
}

/// The bottleneck.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    /// Bytes per second.
    pub(super) rate: u64,
    /// Round trip without a queue.
    pub(super) rtt: Duration,
    /// Bytes that may wait.
    pub(super) buffer: u64,
    /// Packets lost at random, of ten thousand.
    pub(super) loss: u64,
}

impl Link {
    pub(super) fn bdp(&self) -> u64 {
        params::volume(self.rate, self.rtt)
    }

    /// Creates a bottleneck with a buffer in hundredths of the bandwidth-delay product.
    pub(super) fn new(rate: u64, rtt: Duration, buffer: u64) -> Self {
        let mut link = Self {
            rate,
            rtt,
            buffer: 0,
            loss: 0,
        };
        link.buffer = link.bdp() * buffer / 100;
        link
    }

    pub(super) fn lossy(self, loss: u64) -> Self {
        Self { loss, ..self }
    }
}

/// Data of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Bulk,
    Idle,
    /// Bytes per second, one packet at a time.
    Rate(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Send(usize),
    Arrive(usize, u64),
    AckTimer(usize),
    Acked(usize, u64),
}

#[derive(Debug)]
pub(super) struct Flow {
    pub(super) bbr: Shared,
    recovery: Recovery<()>,
    outcome: Outcome<()>,
    pub(super) source: Source,
    /// Bytes that the application wrote and that were not sent.
    written_until: Instant,
    next_pn: u64,
    send_scheduled: Option<Instant>,
    ranges: Vec<(u64, u64)>,
    unacked: u32,
    ack_at: Option<Instant>,
    acks: Vec<Vec<(u64, u64)>>,
    pub(super) delivered: u64,
    pub(super) sent: u64,
    pub(super) dropped: u64,
}

pub(super) struct World {
    pub(super) start: Instant,
    pub(super) now: Instant,
    pub(super) link: Link,
    pub(super) flows: Vec<Flow>,
    events: BinaryHeap<Reverse<(Instant, u64, Event)>>,
    count: u64,
    free_at: Instant,
    random: SplitMix,
    /// Longest wait in the queue since last asked.
    pub(super) max_queue: Duration,
    queue_sum: Duration,
    queue_count: u32,
}

const CONTEXT: Context = Context {
    handshake: Progress::Confirmed,
    peer_max_ack_delay: ms(25),
    amplification: Amplification::Open,
};

impl World {
    pub(super) fn new(link: Link, flows: usize, seed: u64) -> Self {
        println!("seed {seed} {link:?}");
        let start = Instant::now();
        let mut world = Self {
            start,
            now: start,
            link,
            flows: Vec::new(),
            events: BinaryHeap::new(),
            count: 0,
            free_at: start,
            random: SplitMix::new(seed),
            max_queue: Duration::ZERO,
            queue_sum: Duration::ZERO,
            queue_count: 0,
        };
        for _ in 0..flows {
            world.add_flow();
        }
        world
    }

    pub(super) fn add_flow(&mut self) {
        let now = self.now;
        let bbr = Shared(Arc::new(Mutex::new(Bbr::new(&Start {
            now,
            datagram_size: SIZE,
            initial_rtt: ms(333),
            seed: self.random.draw(),
        }))));
        let config = Config {
            side: Side::Client,
            initial_rtt: ms(333),
            datagram_size: SIZE,
            controller: Box::new(bbr.clone()),
            skip_seed: None,
            ecn: EcnState::Disabled,
            pacing: Pacing::On,
        };
        self.flows.push(Flow {
            bbr,
            recovery: Recovery::new(now, config),
            outcome: Outcome::default(),
            source: Source::Bulk,
            written_until: now,
            next_pn: 0,
            send_scheduled: None,
            ranges: Vec::new(),
            unacked: 0,
            ack_at: None,
            acks: Vec::new(),
            delivered: 0,
            sent: 0,
            dropped: 0,
        });
        self.wake(self.flows.len() - 1, now);
    }

    fn at(&mut self, at: Instant, event: Event) {
        self.count += 1;
        self.events.push(Reverse((at, self.count, event)));
    }

    fn wake(&mut self, flow: usize, at: Instant) {
        let at = at.max(self.now);
        let scheduled = &mut self.flows[flow].send_scheduled;
        if scheduled.is_none_or(|scheduled| at < scheduled) {
            *scheduled = Some(at);
            self.at(at, Event::Send(flow));
        }
    }

    pub(super) fn set_source(&mut self, flow: usize, source: Source) {
        self.flows[flow].source = source;
        self.flows[flow].written_until = self.now;
        self.wake(flow, self.now);
    }

    pub(super) fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(&Reverse((at, _, event))) = self.events.peek() {
            if at > end {
                break;
            }
            self.events.pop();
            self.now = at;
            match event {
                Event::Send(flow) => self.on_send(flow),
                Event::Arrive(flow, pn) => self.on_arrive(flow, pn),
                Event::AckTimer(flow) => {
                    if self.flows[flow].ack_at.is_some_and(|at| at <= self.now) {
                        self.send_ack(flow);
                    }
                }
                Event::Acked(flow, ack) => self.on_ack(flow, ack),
            }
        }
        self.now = end;
    }

    /// Runs until `done` holds for the controller of the first flow. Returns false if that takes
    /// longer than `limit`.
    pub(super) fn run_until(&mut self, limit: Duration, done: impl Fn(&mut Bbr) -> bool) -> bool {
        let end = self.now + limit;
        while self.now < end {
            if self.flows[0].bbr.with(&done) {
                return true;
            }
            self.run(ms(1));
        }
        false
    }

    fn on_send(&mut self, index: usize) {
        let now = self.now;
        let flow = &mut self.flows[index];
        if flow.send_scheduled.is_some_and(|at| at > now) {
            return;
        }
        flow.send_scheduled = None;
        let mut probes = 0;
        while flow
            .recovery
            .next_timeout(&CONTEXT)
            .is_some_and(|at| at <= now)
        {
            if let Some(Timeout::Probe(_)) =
                flow.recovery.on_timeout(now, &CONTEXT, &mut flow.outcome)
            {
                probes = 1;
            }
            flow.outcome.clear();
        }
        for _ in 0..probes {
            self.send_packet(index);
        }
        loop {
            let flow = &mut self.flows[index];
            if !flow.recovery.can_send(BYTES) {
                break;
            }
            let available = match flow.source {
                Source::Bulk => None,
                Source::Idle => Some(Duration::MAX),
                Source::Rate(rate) => {
                    let gap = ms(1000 * BYTES / rate);
                    let wait = (flow.written_until + gap).saturating_duration_since(now);
                    if wait.is_zero() {
                        flow.written_until += gap;
                        None
                    } else {
                        Some(wait)
                    }
                }
            };
            if let Some(wait) = available {
                flow.recovery.on_app_limited();
                if wait < secs(60) {
                    self.wake(index, now + wait);
                }
                break;
            }
            if !flow.recovery.may_send_now(now) {
                let at = flow.recovery.on_paced(now);
                self.wake(index, at);
                break;
            }
            self.send_packet(index);
        }
        if let Some(at) = self.flows[index].recovery.next_timeout(&CONTEXT) {
            self.wake(index, at);
        }
    }

    fn send_packet(&mut self, index: usize) {
        let now = self.now;
        let flow = &mut self.flows[index];
        let pn = flow.next_pn;
        flow.next_pn += 1;
        flow.sent += BYTES;
        let packet = SentPacket {
            time_sent: now,
            size: SIZE,
            ack_eliciting: true,
            in_flight: true,
            largest_acked: None,
            ecn: None,
            snapshot: None,
            held: Held::default(),
            record: (),
        };
        flow.recovery
            .on_packet_sent(Space::Data, PacketNumber::saturating(pn), packet);
        let waiting = self.free_at.saturating_duration_since(now);
        let lost = self.random.draw() % 10_000 < self.link.loss;
        if lost || params::volume(self.link.rate, waiting) + BYTES > self.link.buffer.max(BYTES) {
            self.flows[index].dropped += BYTES;
            return;
        }
        self.max_queue = self.max_queue.max(waiting);
        self.queue_sum += waiting;
        self.queue_count += 1;
        let service = Duration::from_nanos(BYTES * 1_000_000_000 / self.link.rate);
        self.free_at = self.free_at.max(now) + service;
        let at = self.free_at + self.link.rtt / 2;
        self.at(at, Event::Arrive(index, pn));
    }

    fn on_arrive(&mut self, index: usize, pn: u64) {
        let flow = &mut self.flows[index];
        flow.delivered += BYTES;
        flow.unacked += 1;
        let in_order = match flow.ranges.last_mut() {
            Some((_, last)) if *last + 1 == pn => {
                *last = pn;
                true
            }
            _ => {
                flow.ranges.push((pn, pn));
                false
            }
        };
        if flow.ranges.len() > 32 {
            flow.ranges.remove(0);
        }
        if flow.unacked >= 2 || !in_order {
            self.send_ack(index);
        } else if flow.ack_at.is_none() {
            let at = self.now + ms(25);
            flow.ack_at = Some(at);
            self.at(at, Event::AckTimer(index));
        }
    }

    fn send_ack(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        flow.unacked = 0;
        flow.ack_at = None;
        flow.acks.push(flow.ranges.clone());
        let number = flow.acks.len() as u64 - 1;
        let at = self.now + self.link.rtt / 2;
        self.at(at, Event::Acked(index, number));
    }

    fn on_ack(&mut self, index: usize, number: u64) {
        let now = self.now;
        let flow = &mut self.flows[index];
        let ranges = std::mem::take(&mut flow.acks[usize::try_from(number).unwrap()]);
        let ack = Ack {
            space: Space::Data,
            largest: pn(ranges.last().unwrap().1),
            delay: Duration::ZERO,
            ecn: None,
            ranges: ranges.iter().rev().map(|&(first, last)| pns(first..=last)),
        };
        flow.recovery
            .on_ack(now, ack, &CONTEXT, &mut flow.outcome)
            .unwrap();
        flow.outcome.clear();
        flow.send_scheduled = None;
        self.wake(index, now);
    }

    /// Returns the mean wait in the queue since last asked.
    pub(super) fn mean_queue(&mut self) -> Duration {
        let mean = self.queue_sum / self.queue_count.max(1);
        self.queue_sum = Duration::ZERO;
        self.queue_count = 0;
        mean
    }

    /// Runs for `time`. Returns the share of the link's capacity that a flow delivered, in
    /// hundredths.
    pub(super) fn measure(&mut self, flow: usize, time: Duration) -> u64 {
        let before = self.flows[flow].delivered;
        self.run(time);
        let delivered = self.flows[flow].delivered - before;
        delivered * 100 / params::volume(self.link.rate, time)
    }
}
