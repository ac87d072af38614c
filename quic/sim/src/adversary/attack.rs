//! One hostile peer against one victim, step by step.

use std::{
    collections::BTreeSet,
    fmt, mem,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use hybriq_proto::{
    connection::Connection,
    endpoint::{Setup, StartError},
};
use hybriq_tls::Provider;

use super::{
    Addresses, Character, Move,
    peer::{HostilePeer, handshake::Handshake},
    victim::Victim,
};
use crate::{
    Chance, Datagram, Rng,
    invariants::{Bounds, Ledger, Violation},
    ms,
};

/// One-way delay during the handshake.
const DELAY: Duration = ms(10);
/// Largest number of round trips of the handshake.
const ROUNDS: usize = 50;
/// Bytes that the victim's application always has to send.
const TO_SEND: usize = 512 * 1024;
/// A long silence: longer than anything without a connection lives.
const SILENCE: Duration = Duration::from_secs(7);
/// Address of the client during the handshake.
const CLIENT: ([u8; 4], u16) = ([192, 0, 2, 77], 50_000);

/// Datagram of a hostile peer that arrived at the server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Arrived {
    /// Step in which it was sent, counted from 1.
    pub step: u64,
    /// Virtual time since the beginning.
    pub elapsed: Duration,
    /// Source address.
    pub from: SocketAddr,
    /// Size.
    pub bytes: usize,
    /// True if it acknowledges something.
    pub acknowledges: bool,
    /// True if it answers a challenge.
    pub answers: bool,
    /// Moves that it consists of. A move that is not allowed at that time leaves nothing.
    pub moves: Vec<Move>,
}

impl fmt::Display for Arrived {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            step,
            elapsed,
            from,
            bytes,
            ..
        } = self;
        write!(f, "step {step}, {elapsed:?}: {bytes} bytes from {from}:")?;
        if self.answers {
            write!(f, " answers a challenge")?;
        }
        if self.acknowledges {
            write!(f, " acknowledges")?;
        }
        self.moves.iter().try_for_each(|it| write!(f, " {it:?}"))
    }
}

/// A server under attack by one authenticated client, or a client under attack by its server, in
/// virtual time.
///
/// The same seed and character produce the same attack, except that TLS messages may differ by some
/// bytes.
pub struct Attack {
    seed: u64,
    name: &'static str,
    rng: Rng,
    now: Instant,
    elapsed: Duration,
    peer: Option<HostilePeer>,
    /// Address of the peer during the handshake.
    validated: SocketAddr,
    pause: Duration,
    silence: Chance,
    read: Chance,
    victim: Victim,
    ledger: Ledger,
    steps: u64,
    /// Steps whose datagrams are lost.
    lost: BTreeSet<u64>,
    /// Datagrams that arrived.
    arrived: Vec<Arrived>,
    buffer: Vec<u8>,
}

impl std::fmt::Debug for Attack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Attack").finish_non_exhaustive()
    }
}

impl Attack {
    /// Lets the client do its handshake, and the server's application start to send. If there is no
    /// handshake, because the server refuses the parameters, the attack is over.
    ///
    /// # Errors
    /// The client's provider cannot start a handshake.
    pub fn new(
        seed: u64,
        character: Character,
        client: &Arc<dyn Provider>,
        server: Setup,
    ) -> Result<Self, StartError> {
        let now = base();
        let own = CLIENT.into();
        let honest = Handshake::of_client(now, own, seed, &character, client)?;
        let victim = Victim::server(seed, server);
        Ok(Self::between(seed, now, character, honest, victim))
    }

    /// Attacks a client: lets the hostile server do its handshake, and the client's application
    /// start to send. A client takes packets only from the address of its server, so the server
    /// stays there, unless it sends from anywhere ([`Addresses::Any`]).
    ///
    /// # Errors
    /// The client cannot start a handshake.
    pub fn on_client(
        seed: u64,
        mut character: Character,
        client: &Setup,
        server: &Arc<dyn Provider>,
    ) -> Result<Self, StartError> {
        if character.addresses != Addresses::Any {
            character.addresses = Addresses::Own;
        }
        let now = base();
        let honest = Handshake::of_server(seed, &character, server);
        let victim = Victim::client(seed, now, CLIENT.into(), client)?;
        Ok(Self::between(seed, now, character, honest, victim))
    }

    fn between(
        seed: u64,
        now: Instant,
        character: Character,
        honest: Handshake,
        victim: Victim,
    ) -> Self {
        let mut attack = Self {
            seed,
            name: character.name,
            rng: Rng::nth(seed, 1),
            now,
            elapsed: Duration::ZERO,
            peer: None,
            validated: honest.address(),
            pause: character.pause,
            silence: character.silence,
            read: character.read,
            victim,
            ledger: Ledger::new(Bounds::default()),
            steps: 0,
            lost: BTreeSet::new(),
            arrived: Vec::new(),
            buffer: vec![0; 65_536],
        };
        attack.shake_hands(character, honest);
        attack.victim.write(TO_SEND);
        attack
    }

    /// Counts the bytes that the victim holds from now on. `allocated` returns the bytes that the
    /// thread, or the program if nothing else runs, holds now.
    pub fn measure(&mut self, allocated: fn() -> usize) {
        self.victim.allocated = Some(allocated);
    }

    /// Replaces the bounds, before the first step.
    pub fn set_bounds(&mut self, bounds: Bounds) {
        self.ledger = Ledger::new(bounds);
        self.ledger.on_answered(self.validated);
    }

    /// Loses the datagrams that the peer sends in these steps, counted from 1. The peer still draws
    /// them, so the others stay as they are, unless they depend on what the victim answers.
    pub fn lose(&mut self, steps: impl IntoIterator<Item = u64>) {
        self.lost.extend(steps);
    }

    /// Takes the list of the datagrams that arrived so far.
    pub(super) fn take_arrived(&mut self) -> Vec<Arrived> {
        mem::take(&mut self.arrived)
    }

    /// Returns the number of steps so far.
    pub const fn steps(&self) -> u64 {
        self.steps
    }

    /// Returns the virtual time since the beginning.
    pub const fn elapsed(&self) -> Duration {
        self.elapsed
    }

    /// Returns by how many bytes the victim's memory has grown since the beginning, if it is
    /// counted.
    pub fn held(&self) -> Option<u64> {
        self.victim.held()
    }

    /// Returns the victim's connection while it exists.
    pub fn victim(&self) -> Option<&Connection> {
        self.victim.connection()
    }

    /// Returns true if the connection has ended, because the peer broke a rule or timed out.
    pub fn is_over(&self) -> bool {
        self.peer.is_none() || self.victim().is_none()
    }

    /// Takes this many steps, or fewer if the connection ends.
    ///
    /// # Errors
    /// An invariant does not hold.
    pub fn run(&mut self, steps: u64) -> Result<(), Violation> {
        for _ in 0..steps {
            if self.is_over() {
                break;
            }
            self.step()?;
        }
        Ok(())
    }

    /// Lets time pass, delivers one datagram of the hostile peer, and checks every invariant.
    ///
    /// # Errors
    /// An invariant does not hold.
    pub fn step(&mut self) -> Result<(), Violation> {
        self.steps += 1;
        self.try_step().map_err(|violation| Violation {
            place: format!(
                "a peer that {}, seed {}, step {}",
                self.name, self.seed, self.steps
            ),
            ..violation
        })
    }

    fn try_step(&mut self) -> Result<(), Violation> {
        let pause = if self.rng.happens(self.silence) {
            SILENCE
        } else {
            self.rng.up_to(self.pause)
        };
        self.wait(pause)?;
        if self.rng.happens(self.read) {
            self.victim.read(&mut self.buffer);
        }
        let Some(peer) = &mut self.peer else {
            return Ok(());
        };
        let mut forged = peer.next();
        if self.lost.contains(&self.steps) {
            return Ok(());
        }
        self.arrived.push(Arrived {
            step: self.steps,
            elapsed: self.elapsed,
            from: forged.from,
            bytes: forged.payload.len(),
            acknowledges: forged.acknowledges,
            answers: forged.answers,
            moves: mem::take(&mut forged.moves),
        });
        self.ledger.on_received(forged.from, forged.payload.len());
        if forged.acknowledges {
            self.ledger.on_acknowledged();
        }
        if forged.answers {
            self.ledger.on_answered(forged.from);
        }
        self.victim
            .receive(self.now, forged.from, &mut forged.payload);
        let sent = self.victim.drain(self.now);
        self.take(&sent);
        self.check()
    }

    /// Lets time pass, and timers expire.
    fn wait(&mut self, time: Duration) -> Result<(), Violation> {
        let end = self.now + time;
        while let Some(at) = self.victim.next_timeout().filter(|at| *at <= end) {
            let passed = at.saturating_duration_since(self.now);
            self.pass(passed);
            let (timers, sent) = self.victim.on_timeout(self.now)?;
            self.ledger.on_quiet(passed, timers);
            self.take(&sent);
            self.check()?;
        }
        let passed = end.saturating_duration_since(self.now);
        self.pass(passed);
        self.ledger.on_quiet(passed, 0);
        self.check()
    }

    /// Lets time pass during the handshake, and returns what timers release.
    fn idle(&mut self, time: Duration) -> Vec<Datagram> {
        let end = self.now + time;
        let mut released = Vec::new();
        while let Some(at) = self.victim.next_timeout().filter(|at| *at <= end) {
            self.pass(at.saturating_duration_since(self.now));
            match self.victim.on_timeout(self.now) {
                Ok((_, mut sent)) => released.append(&mut sent),
                // The first step finds it again.
                Err(_) => break,
            }
        }
        self.pass(end.saturating_duration_since(self.now));
        released
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        self.elapsed += time;
    }

    fn take(&mut self, sent: &[Datagram]) {
        for datagram in sent {
            let (to, payload) = (datagram.destination, &datagram.payload);
            self.ledger.on_sent(to, payload.len());
            if let Some(peer) = &mut self.peer {
                peer.read(to, payload);
            }
        }
    }

    fn check(&mut self) -> Result<(), Violation> {
        if let Some(connection) = self.victim.connection() {
            self.ledger.check(connection, self.victim.held())?;
        }
        let stats = self.victim.endpoint().stats();
        self.ledger.check_endpoint(&stats)?;
        self.ledger.check_timers()?;
        self.ledger.check_work(self.victim.calls)
    }

    /// Does an honest handshake, and lets the hostile peer take over.
    fn shake_hands(&mut self, character: Character, mut honest: Handshake) {
        for _ in 0..ROUNDS {
            let datagrams = honest.transmit(self.now);
            let mut sent = datagrams.len();
            for mut datagram in datagrams {
                self.victim
                    .receive(self.now + DELAY, honest.address(), &mut datagram);
            }
            let mut answers = self.idle(DELAY);
            answers.append(&mut self.victim.drain(self.now));
            answers.append(&mut self.idle(DELAY));
            sent += answers.len();
            for answer in answers {
                honest.receive(self.now, answer.source, answer.payload);
            }
            if sent == 0 {
                break;
            }
        }
        self.ledger.on_answered(honest.address());
        self.peer = honest.hand_over(character, Rng::nth(self.seed, 2));
    }
}

#[expect(clippy::disallowed_methods, reason = "virtual time needs a base")]
fn base() -> Instant {
    Instant::now()
}
