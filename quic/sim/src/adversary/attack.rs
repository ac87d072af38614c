//! One hostile peer against one server, step by step.

use std::{
    collections::BTreeSet,
    mem,
    sync::Arc,
    time::{Duration, Instant},
};

use hybriq_proto::{
    TransportConfig,
    connection::{Connection, Event},
    endpoint::{Arrival, Endpoint, Local, Routed, Setup, StartError},
    packet::{Cid, Decoded, DirectionKeys, Kind, Packets, Version},
    params::Params,
};
use hybriq_tls::{Provider, Side};

use super::{
    Arrived, Character,
    disguise::{Disguise, Secrets},
    frames::Frames,
    peer::HostilePeer,
    victim::Victim,
};
use crate::{
    Chance, Datagram, Rng, SERVER_ADDRESS, SeededRandom,
    host::SERVER_NAME,
    invariants::{Bounds, Ledger, Violation},
    ms,
};

/// Time of one way during the handshake.
const DELAY: Duration = ms(10);
/// Round trips of the handshake, losses of nothing included.
const ROUNDS: usize = 50;
/// Bytes that the server's application always has to send.
const TO_SEND: usize = 512 * 1024;
/// A long silence: more than anything without a connection lives.
const SILENCE: Duration = Duration::from_secs(7);
/// Address of the client during its handshake.
const OWN: ([u8; 4], u16) = ([192, 0, 2, 77], 50_000);

/// A server under attack by one authenticated client, in virtual time.
///
/// The same seed and character do the same, except that TLS messages may differ by some bytes.
pub struct Attack {
    seed: u64,
    name: &'static str,
    rng: Rng,
    now: Instant,
    elapsed: Duration,
    peer: Option<HostilePeer>,
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

impl Attack {
    /// Lets the client do its handshake, and the server's application begin to send. If there is no
    /// handshake, because the server refuses the parameters, the attack is over.
    ///
    /// # Errors
    /// The provider of the client cannot begin a handshake.
    pub fn new(
        seed: u64,
        character: Character,
        client: &Arc<dyn Provider>,
        server: Setup,
    ) -> Result<Self, StartError> {
        #[expect(clippy::disallowed_methods, reason = "virtual time needs a base")]
        let now = Instant::now();
        let mut attack = Self {
            seed,
            name: character.name,
            rng: Rng::nth(seed, 1),
            now,
            elapsed: Duration::ZERO,
            peer: None,
            pause: character.pause,
            silence: character.silence,
            read: character.read,
            victim: Victim::new(seed, server),
            ledger: Ledger::new(Bounds::default()),
            steps: 0,
            lost: BTreeSet::new(),
            arrived: Vec::new(),
            buffer: vec![0; 65_536],
        };
        attack.shake_hands(character, client)?;
        attack.victim.write(TO_SEND);
        Ok(attack)
    }

    /// Counts the bytes that the server holds from now on. `allocated` returns the bytes that the
    /// thread, or the program if nothing else runs, holds at present.
    pub fn measure(&mut self, allocated: fn() -> usize) {
        self.victim.allocated = Some(allocated);
    }

    /// Replaces the bounds, before the first step.
    pub fn set_bounds(&mut self, bounds: Bounds) {
        self.ledger = Ledger::new(bounds);
        self.ledger.on_answered(OWN.into());
    }

    /// Loses the datagrams that the peer sends in these steps, counted from 1. The peer draws them
    /// all the same, so the others stay as they are, unless they depend on what the server answers.
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

    /// Returns the bytes that the server holds more than at the beginning, if they are counted.
    pub fn held(&self) -> Option<u64> {
        self.victim.held()
    }

    /// Returns the server's connection while it exists.
    pub fn server(&self) -> Option<&Connection> {
        self.victim.connection()
    }

    /// Returns true if the connection has ended, because the peer broke a rule or timed out.
    pub fn is_over(&self) -> bool {
        self.peer.is_none() || self.server().is_none()
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

    /// Does an honest handshake with extreme parameters, and hands its keys to the hostile peer.
    fn shake_hands(
        &mut self,
        character: Character,
        client: &Arc<dyn Provider>,
    ) -> Result<(), StartError> {
        let secrets = Secrets::default();
        let setup = Setup {
            provider: Arc::new(Disguise {
                inner: client.clone(),
                extremes: character.extremes.clone(),
                secrets: secrets.clone(),
            }),
            // One version has one set of labels for the keys.
            transport: Arc::new(TransportConfig::new().versions([Version::V1])),
        };
        let random = Box::new(SeededRandom::new(self.seed));
        let mut endpoint = Endpoint::new(0, random, None);
        let (slot, mut client) = endpoint.connect(self.now, &setup, SERVER_ADDRESS, SERVER_NAME)?;
        let (mut confirmed, mut from_server) = (false, Vec::new());
        for _ in 0..ROUNDS {
            endpoint.service(slot, &mut client);
            let mut sent = 0;
            while let Some(out) = client.poll_transmit(self.now, &mut self.buffer, 65_507) {
                let bytes = self.buffer.get(..out.size).unwrap_or_default();
                for datagram in bytes.chunks(out.segment_size.unwrap_or(out.size)) {
                    let mut datagram = datagram.to_vec();
                    self.victim
                        .receive(self.now + DELAY, OWN.into(), &mut datagram);
                    sent += 1;
                }
            }
            let mut answers = self.idle(DELAY);
            answers.append(&mut self.victim.drain(self.now));
            answers.append(&mut self.idle(DELAY));
            for answer in answers {
                let mut datagram = answer.payload;
                from_server.push(datagram.clone());
                let arrival = Arrival {
                    peer: SERVER_ADDRESS,
                    local: Local::default(),
                    ecn: None,
                };
                let routed = endpoint.on_datagram(self.now, &arrival, &mut datagram);
                if let Routed::Connection(_, packets) = routed {
                    client.on_packets(self.now, &arrival, packets);
                }
                sent += 1;
            }
            while let Some(event) = client.poll_event() {
                confirmed |= event == Event::HandshakeConfirmed;
            }
            if sent == 0 {
                break;
            }
        }
        let keys = [Side::Client, Side::Server].map(|side| secrets.of(side));
        if let ([Some(own), Some(server)], true) = (keys, confirmed) {
            let keys = [own, server].map(|it| DirectionKeys::from_secret(Version::V1, &it));
            let params = Params::decode(&secrets.params(), Side::Server).unwrap_or_default();
            let frames = Frames::new(params, server_id(&from_server).unwrap_or(Cid::EMPTY));
            let rng = Rng::nth(self.seed, 2);
            let mut peer = HostilePeer::new(character, rng, OWN.into(), keys, frames);
            for datagram in &from_server {
                peer.read(OWN.into(), datagram);
            }
            self.peer = Some(peer);
        }
        self.ledger.on_answered(OWN.into());
        Ok(())
    }
}

/// Returns the connection id that the server gave itself in its first packet with an id of its own.
fn server_id(datagrams: &[Vec<u8>]) -> Option<Cid> {
    let mut datagrams = datagrams.iter();
    datagrams.find_map(|datagram| {
        let mut datagram = datagram.clone();
        let packets = Packets::new(&mut datagram, 8);
        let mut handshake = packets.filter_map(|packet| match packet.ok()? {
            Decoded::Protected(packet) if packet.kind == Kind::Handshake => Some(packet.scid),
            _ => None,
        });
        handshake.next()
    })
}
