//! Samples of a measurement, and progress reports to the parent.

use std::io;
use std::time::Duration;

use tokio::time::Instant;

use super::phase::Phase;
use super::process::Meter;
use super::recorder::Totals;
use crate::engine::{FromClient, Progress};
use crate::report::results::Sample;

/// Sampler that reports progress to the parent.
pub(crate) struct Progressing<'a>(Option<Measuring<'a>>);

struct Measuring<'a> {
    phase: &'a Phase,
    meter: &'a Meter,
    limit: Option<Duration>,
    connections: Option<u64>,
    tell: &'a dyn Fn(FromClient) -> io::Result<()>,
    samples: Vec<Sample>,
    sampled: Reading,
    told: Reading,
}

/// Values of the counters.
#[derive(Clone, Copy)]
struct Reading {
    at: Instant,
    cpu: Duration,
    connections: u64,
    requests: u64,
    failures: u64,
    bytes_sent: u64,
    bytes_received: u64,
}

impl Reading {
    fn of(totals: &Totals, cpu: Duration, at: Instant) -> Self {
        Self {
            at,
            cpu,
            connections: totals.connections.get(),
            requests: totals.requests.get(),
            failures: totals.failures.get(),
            bytes_sent: totals.bytes_sent.get(),
            bytes_received: totals.bytes_received.get(),
        }
    }

    fn sample(&self, before: &Self, begin: Instant) -> Sample {
        let millis = |time: Duration| time.as_secs_f64() * 1e3;
        Sample {
            at_ms: millis(self.at.duration_since(begin)),
            lasted_ms: millis(self.at.duration_since(before.at)),
            connections: self.connections - before.connections,
            requests: self.requests - before.requests,
            failures: self.failures - before.failures,
            bytes_sent: self.bytes_sent - before.bytes_sent,
            bytes_received: self.bytes_received - before.bytes_received,
            cpu_us: self.cpu.saturating_sub(before.cpu).as_secs_f64() * 1e6,
        }
    }
}

impl<'a> Progressing<'a> {
    /// Makes a sampler for a warm-up, which reports nothing.
    pub(crate) fn none() -> Self {
        Self(None)
    }

    /// Starts to sample; `connections` is their planned number.
    pub(crate) fn new(
        phase: &'a Phase,
        meter: &'a Meter,
        limit: Option<Duration>,
        connections: Option<u64>,
        tell: &'a dyn Fn(FromClient) -> io::Result<()>,
    ) -> Self {
        let begin = Reading::of(&phase.recorder.totals, Duration::ZERO, phase.begin);
        Self(Some(Measuring {
            phase,
            meter,
            limit,
            connections,
            tell,
            samples: Vec::new(),
            sampled: begin,
            told: begin,
        }))
    }

    pub(crate) fn sample(&mut self) {
        if let Some(measuring) = &mut self.0 {
            measuring.sample();
        }
    }

    pub(crate) fn tell(&mut self) -> io::Result<()> {
        self.0.as_mut().map_or(Ok(()), Measuring::tell)
    }

    /// Returns all samples, including the last, shorter interval.
    pub(crate) fn end(mut self) -> Vec<Sample> {
        self.sample();
        self.0
            .map(|measuring| measuring.samples)
            .unwrap_or_default()
    }
}

impl Measuring<'_> {
    fn read(&self) -> Reading {
        Reading::of(
            &self.phase.recorder.totals,
            self.meter.cpu(),
            Instant::now(),
        )
    }

    fn sample(&mut self) {
        let now = self.read();
        let sample = now.sample(&self.sampled, self.phase.begin);
        match self.samples.last_mut() {
            // An empty interval has no rate.
            Some(last) if now.at == self.sampled.at => add(last, &sample),
            _ => self.samples.push(sample),
        }
        self.sampled = now;
    }

    fn tell(&mut self) -> io::Result<()> {
        let now = self.read();
        let sample = now.sample(&self.told, self.phase.begin);
        self.told = now;
        let (handshakes, requests) = self.phase.recorder.distributions();
        (self.tell)(FromClient::Progress(Progress {
            connections: now.connections,
            of: self.connections,
            requests: now.requests,
            failures: now.failures,
            share: self.share(now),
            sample,
            handshake_p50_us: handshakes.us_at(0.5),
            handshake_p99_us: handshakes.us_at(0.99),
            request_p50_us: requests.us_at(0.5),
            request_p99_us: requests.us_at(0.99),
        }))
    }

    /// Returns the finished part, by connections or by time, whichever is larger.
    fn share(&self, now: Reading) -> Option<f64> {
        let of_connections = self
            .connections
            .filter(|&all| all > 0)
            .map(|all| now.connections as f64 / all as f64);
        let of_time = self.limit.map(|limit| {
            now.at.duration_since(self.phase.begin).as_secs_f64() / limit.as_secs_f64()
        });
        [of_connections, of_time]
            .into_iter()
            .flatten()
            .reduce(f64::max)
            .map(|share| share.min(1.0))
    }
}

fn add(to: &mut Sample, more: &Sample) {
    to.connections += more.connections;
    to.requests += more.requests;
    to.failures += more.failures;
    to.bytes_sent += more.bytes_sent;
    to.bytes_received += more.bytes_received;
    to.cpu_us += more.cpu_us;
}
