//! The timers of a connection, and what happens when they expire.

use std::time::{Duration, Instant};

use hybriq_tls::Side;

use crate::{
    config::TransportConfig,
    connection::Connection,
    owners::{
        acks::{AckEliciting, Received},
        recovery::Timeout,
        streams::Awaited,
    },
    wire::{
        frame::{FrameWriter, Owner, Timing},
        limits,
        packet::Space,
    },
};

/// Largest number of times that the interval between two PINGs of a client doubles.
const MOST_DOUBLINGS: u32 = 16;

/// Timers that belong to no owner: idle timeout (RFC 9000 §10.1), keep-alive and the duration of
/// the handshake.
#[derive(Debug)]
pub(in crate::connection) struct Timers {
    /// Smaller of our idle timeout and the peer's.
    idle_timeout: Option<Duration>,
    /// Time since which the connection is idle.
    idle_since: Instant,
    /// Minimum of the idle timeout, for the path as it was at `idle_since`.
    floor: Duration,
    keep_alive: Option<Duration>,
    /// The same, for as long as the application wants it.
    keep_alive_now: Option<Duration>,
    /// Time of the last PING, if nothing arrived or left since.
    asked_at: Option<Instant>,
    /// True if a PING must be sent to keep the connection alive, or to be found by the peer.
    asks: bool,
    /// PINGs since the last ack-eliciting packet arrived or another one left, keep-alives included.
    asked: u32,
    /// True if an ack-eliciting packet was sent since the last packet arrived.
    sent_since_received: bool,
    handshake_until: Option<Instant>,
    /// Time until which a client waits for session tickets before it drops its TLS object.
    tickets_until: Option<Instant>,
    /// Time at which a server drops the keys of 0-RTT packets.
    pub(in crate::connection) zero_rtt_until: Option<Instant>,
}

impl Timers {
    pub(in crate::connection) fn new(now: Instant, config: &TransportConfig) -> Self {
        Self {
            idle_timeout: config.timeouts.idle_timeout,
            idle_since: now,
            floor: Duration::ZERO,
            keep_alive: config.timeouts.keep_alive,
            keep_alive_now: None,
            asked_at: None,
            asks: false,
            asked: 0,
            sent_since_received: false,
            handshake_until: now.checked_add(config.timeouts.handshake_timeout),
            tickets_until: None,
            zero_rtt_until: None,
        }
    }

    /// Applies the peer's max_idle_timeout; zero means none.
    pub(in crate::connection) fn set_peer_idle_timeout(&mut self, timeout: Duration) {
        if !timeout.is_zero() {
            let ours = self.idle_timeout.unwrap_or(timeout);
            self.idle_timeout = Some(ours.min(timeout));
        }
    }

    pub(in crate::connection) fn on_complete(&mut self) {
        self.handshake_until = None;
    }

    pub(in crate::connection) fn await_ticket(&mut self, until: Option<Instant>) {
        self.tickets_until = until;
    }

    pub(in crate::connection) fn on_received(
        &mut self,
        now: Instant,
        pto: Duration,
        eliciting: AckEliciting,
    ) {
        self.sent_since_received = false;
        if eliciting == AckEliciting::Yes {
            self.asked = 0;
        }
        self.restart(now, pto);
    }

    /// Restarts the idle timeout at the first ack-eliciting packet after one was received.
    pub(in crate::connection) fn on_sent(&mut self, now: Instant, pto: Duration) {
        let is_ping = std::mem::take(&mut self.asks);
        if !self.sent_since_received {
            self.sent_since_received = true;
            if !is_ping {
                self.asked = 0;
            }
            self.restart(now, pto);
        }
    }

    /// Restarts the idle timeout, which lasts at least three PTO to leave time for loss recovery
    /// (RFC 9000 §10.1).
    fn restart(&mut self, now: Instant, pto: Duration) {
        self.idle_since = now;
        self.floor = 3 * pto;
        self.asked_at = None;
    }

    fn idle_at(&self) -> Option<Instant> {
        self.idle_since
            .checked_add(self.idle_timeout?.max(self.floor))
    }

    fn gives_up_at(&self) -> Option<Instant> {
        [self.idle_at(), self.handshake_until]
            .into_iter()
            .flatten()
            .min()
    }

    /// Returns the time of the next keep-alive, at most half the idle timeout after the last packet
    /// to leave time for an answer.
    fn asks_at(&self) -> Option<Instant> {
        let idle = self.idle_timeout.map(|idle| idle.max(self.floor));
        let longest = idle.map_or(Duration::MAX, |idle| idle / 2);
        let asked = [self.keep_alive, self.keep_alive_now];
        let interval = asked.into_iter().flatten().min()?.min(longest);
        let since = self.asked_at.unwrap_or(self.idle_since);
        since.checked_add(interval)
    }

    /// Returns the time at which a client that waits for data sends a PING, because its server may
    /// have lost it: if a NAT assigned the client another port, the server still sends to the old
    /// one, and only a packet from the client reveals the new one (RFC 9000 §9.3).
    ///
    /// The server may take long to answer a request, and the NAT may forget the client at any time
    /// meanwhile: the interval doubles with each PING, so that there are few of them. A client that
    /// only waits for news sends one, and then ends with its idle timeout.
    fn makes_itself_heard_at(&self, awaited: Awaited) -> Option<Instant> {
        let doublings = match (awaited, self.asked) {
            (Awaited::Nothing, _) | (Awaited::News, 1..) => return None,
            (_, asked) => asked.min(MOST_DOUBLINGS),
        };
        let silence = limits::SILENCE
            .max(self.floor)
            .saturating_mul(1 << doublings);
        let since = self.asked_at.unwrap_or(self.idle_since);
        since.checked_add(silence)
    }

    fn on_asks(&mut self, now: Instant) {
        self.asked_at = Some(now);
        self.asked = self.asked.saturating_add(1);
        self.asks = true;
    }
}

/// Sends the PING that keeps the connection alive. It is not resent when lost, because the next one
/// follows soon.
impl Owner for Timers {
    type Sent = ();

    #[inline]
    fn wants_to_send(&self, _: Space) -> bool {
        self.asks
    }

    /// Writes a PING if nothing in the packet elicits an acknowledgement.
    #[inline]
    fn write_frames(&mut self, _: Timing, out: &mut FrameWriter<'_>, (): &mut ()) {
        if self.asks && !out.is_ack_eliciting() {
            out.ping();
        }
    }

    fn on_acked(&mut self, (): &()) {}

    fn on_lost(&mut self, (): &()) {}
}

impl Connection {
    /// Sends a PING after this much time without packets, in addition to [`TransportConfig::keep_alive`]; the shorter
    /// time applies. `None` or 0 leaves only the configured one.
    pub fn set_keep_alive(&mut self, interval: Option<Duration>) {
        self.timers.keep_alive_now = interval.filter(|interval| !interval.is_zero());
    }

    /// Returns the time at which a PING must leave. A handshake needs none: it has its own probes
    /// and must come to an end.
    pub(in crate::connection) fn next_ping(&self) -> Option<Instant> {
        if !self.state.is_confirmed() {
            return None;
        }
        let awaited = match self.side {
            Side::Client => self.streams.awaited(),
            Side::Server => Awaited::Nothing,
        };
        let heard = self.timers.makes_itself_heard_at(awaited);
        self.timers.asks_at().into_iter().chain(heard).min()
    }

    /// Returns the time at which [`Connection::on_timeout`] must be called.
    pub fn next_timeout(&self) -> Option<Instant> {
        if self.state.is_closed() {
            return self.state.ends();
        }
        let received = self.acks.received.iter();
        let acks = received.filter_map(Received::next_timeout).min();
        let loss = self.recovery.next_timeout(&self.recovery_context());
        let own = [
            self.timers.gives_up_at(),
            self.timers.tickets_until,
            self.paths.paced_until(),
            self.timers.zero_rtt_until,
            self.cids.local.next_timeout(),
            self.next_ping(),
            self.paths.next_timeout(),
            self.datagrams.next_timeout(),
            self.streams.next_timeout(),
        ];
        own.into_iter().chain([loss, acks]).flatten().min()
    }

    /// Acknowledges 0-RTT data again, together with the flight of the handshake. The first
    /// acknowledgement is in a 1-RTT packet, which the client drops if it arrives before that
    /// flight; the client may have filled its congestion window, so that its Finished waits for
    /// room.
    pub(in crate::connection) fn repeat_early_ack(&mut self) {
        let received = self.acks.received.at(Space::Data);
        if received.largest().is_some() {
            received.request_ack();
        }
    }

    /// Releases memory that was kept for the next packets, if nothing was received or sent for
    /// [`limits::QUIET`]: tables and queues without entries. Returns the time at which to call again
    /// if the connection was active since.
    pub fn release_memory(&mut self, now: Instant) -> Option<Instant> {
        if self.state.is_closed() {
            return None;
        }
        let quiet_at = self.timers.idle_since + limits::QUIET;
        if quiet_at > now {
            return Some(quiet_at);
        }
        self.handshake.release_memory();
        self.recovery.release_memory();
        self.streams.release_memory();
        self.datagrams.release_memory();
        self.acks.settled.release_memory();
        self.events.shrink_to_fit();
        None
    }

    /// Handles expired timers. There may be something to transmit afterwards.
    pub fn on_timeout(&mut self, now: Instant) {
        self.observer.at(now);
        self.handle_timeout(now);
        self.observe();
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.state.is_closed() {
            if self.state.ends().is_some_and(|end| end <= now) {
                self.state.on_end();
            }
            return;
        }
        if self.timers.gives_up_at().is_some_and(|at| at <= now) {
            self.time_out(now);
            return;
        }
        if self.timers.tickets_until.is_some_and(|at| at <= now) {
            self.timers.await_ticket(None);
            self.handshake.release();
        }
        if self.timers.zero_rtt_until.is_some_and(|at| at <= now) {
            self.timers.zero_rtt_until = None;
            self.handshake.discard_zero_rtt();
        }
        self.paths
            .pace(self.paths.paced_until().filter(|&at| at > now));
        self.cids.local.on_timeout(now);
        self.datagrams.drop_expired(now);
        self.streams.on_timeout(now);
        if self.next_ping().is_some_and(|at| at <= now) {
            self.timers.on_asks(now);
        }
        self.on_path_timeout(now);
        if self.state.is_closed() {
            return;
        }
        for received in self.acks.received.iter_mut() {
            received.on_timeout(now);
        }
        let context = self.recovery_context();
        let mut outcome = std::mem::take(&mut self.acks.settled);
        let due = self.recovery.on_timeout(now, &context, &mut outcome);
        if let Some(timeout) = due {
            self.observer.on_expired(timeout);
        }
        self.deliver(Space::Data, &mut outcome);
        self.acks.settled = outcome;
        if let Some(Timeout::Probe(space)) = due {
            if space == Space::Data {
                self.probe_data();
            } else {
                self.probe_handshake();
            }
        }
    }
}
