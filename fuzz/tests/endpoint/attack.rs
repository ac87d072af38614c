//! A server with several clients and an attacker who does what the input says.

use std::{
    net::SocketAddr,
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    time::Duration,
};

use hybriq::{fleet::AddressValidation, tls::Side};
use hybriq_proto::{
    endpoint::{Incoming, Setup},
    owners::cids::ResetKey,
    remembered::token::Ring,
    wire::{
        limits,
        packet::{Cid, PacketNumber, Space, Version, initial_direction},
    },
};
use hybriq_sim::{
    Answer, Ask, Datagram, Echo, Forge, Host, Network, Progress, Raw, SERVER_ADDRESS, World,
    initial_header, ms, seal_packet,
};

use crate::{
    captures,
    tap::{Fault, Tap, flip, spoofed},
};

/// Maximum number of clients of one input: each costs a handshake.
const CLIENTS: usize = 3;

/// Maximum number of steps of one input.
const STEPS: usize = 48;

/// Maximum number of times at which the server is replaced.
const RESTARTS: u8 = 2;

/// One step: its kind, two small choices, a number, and bytes.
pub(crate) type Step = (u8, u8, u8, u16, Vec<u8>);

/// Configurations, which are made once.
pub(crate) struct Setups {
    pub(crate) server: Setup,
    pub(crate) client: Setup,
}

/// State of one input.
pub(crate) struct Attack<'s> {
    setups: &'s AssertUnwindSafe<Setups>,
    world: World,
    tap: Tap,
    /// Decision about the next clients.
    answer: Arc<AtomicU8>,
    clients: Vec<Client>,
    restarts: u8,
    /// Number of datagrams that may have started something.
    delivered: u64,
}

/// A client, and what the attacker made of it.
#[derive(Clone, Copy)]
struct Client {
    address: SocketAddr,
    closed: bool,
}

impl<'s> Attack<'s> {
    pub(crate) fn new(setups: &'s AssertUnwindSafe<Setups>, validation: u8) -> Self {
        let tap = Tap::default();
        let network = Network::new(1).node(tap.clone());
        let mut world = World::new(network, setups.server.clone());
        world.expect_hostile_clients();
        let mut attack = Self {
            setups,
            world,
            tap,
            answer: Arc::default(),
            clients: Vec::new(),
            restarts: 0,
            delivered: 0,
        };
        attack.set_up_server(validation);
        attack
    }

    /// Gives the server its keys and its decision about clients.
    fn set_up_server(&mut self, validation: u8) {
        let answer = self.answer.clone();
        let host: &mut Host = self.world.server_mut();
        host.on_incoming(move |incoming| decide(answer.load(Ordering::Relaxed), incoming));
        host.endpoint_mut()
            .set_reset_key(ResetKey::from_secret([self.restarts; 32]));
        self.set_token_keys(validation);
    }

    fn set_token_keys(&mut self, choice: u8) {
        let policy = [
            AddressValidation::Never,
            AddressValidation::Adaptive,
            AddressValidation::Always,
        ];
        let policy = policy[usize::from(choice) % policy.len()];
        let ring = Arc::new(Ring::new(&[choice / 3 % 4; 32]));
        self.world.server_mut().validate_addresses(ring, policy);
    }

    pub(crate) fn run(&mut self, steps: &[Step]) {
        for step in steps.iter().take(STEPS) {
            self.step(step);
            self.check();
        }
    }

    fn step(&mut self, (kind, a, b, number, bytes): &Step) {
        let (a, b, number) = (*a, *b, *number);
        match kind % 20 {
            0 | 1 => self.connect(a),
            2..=4 => self.world.run_for(ms(u64::from(a) / 4)),
            5 => self.world.run_for(ms(u64::from(number))),
            6..=8 => self.plan(a, b, number),
            9 | 10 => self.replay(a, b, number),
            11 => self.deliver(spoofed(a), bytes.clone()),
            12 | 13 => self.deliver_capture(a, b, number),
            14 => self.deliver_initial(a, b, bytes),
            15 | 16 => self.deliver_forged(a, b, bytes),
            17 => self.change_client(a, b),
            18 => self.answer.store(a, Ordering::Relaxed),
            _ if a % 4 == 0 && self.restarts < RESTARTS => {
                self.restarts += 1;
                self.world.restart_server(self.setups.server.clone());
                self.set_up_server(b);
            }
            _ => self.set_token_keys(b),
        }
    }

    fn connect(&mut self, size: u8) {
        if self.clients.len() < CLIENTS {
            let app = Ask::streams(1 + usize::from(size % 4), usize::from(size) * 16);
            let index = self.world.connect(&self.setups.client, app.keep_open());
            self.clients.push(Client {
                address: self.world.client_host(index).address,
                closed: false,
            });
            self.delivered += 100;
        }
    }

    /// Plans a fault on the path.
    fn plan(&mut self, a: u8, b: u8, number: u16) {
        let toward = [Side::Server, Side::Client][usize::from(a & 1)];
        let fault = match (a / 2) % 8 {
            0 | 1 => Fault::Drop,
            2 => Fault::Repeat,
            3 => Fault::Delay(b),
            4 | 5 => Fault::Flip(number),
            6 => Fault::Truncate(number),
            _ => Fault::Source(spoofed(b)),
        };
        self.tap.seen().plan(toward, fault);
    }

    /// Delivers a datagram again that was seen on the path, perhaps changed or from another source.
    fn replay(&mut self, which: u8, how: u8, number: u16) {
        let seen = {
            let seen = self.tap.seen();
            let Some(place) = usize::from(which).checked_rem(seen.recent.len()) else {
                return;
            };
            seen.recent[place].clone()
        };
        let source = if how & 1 == 0 || seen.source == SERVER_ADDRESS {
            spoofed(how)
        } else {
            seen.source
        };
        self.deliver(source, changed(seen.payload, how, number));
    }

    fn deliver_capture(&mut self, which: u8, how: u8, number: u16) {
        let all = captures::all();
        if let Some(place) = usize::from(which).checked_rem(all.len()) {
            let payload = changed(all[place].to_vec(), how, number);
            self.deliver(spoofed(how), payload);
        }
    }

    /// Delivers an Initial with arbitrary frames, for a connection of its own or that of a client.
    fn deliver_initial(&mut self, a: u8, b: u8, frames: &[u8]) {
        let (dcid, scid) = if a & 1 == 0 {
            (Cid::from([b; 8]), Cid::from([b ^ 1; 8]))
        } else {
            let seen = self.tap.seen();
            let packets = seen.recent.iter().find_map(|it| it.packets().pop());
            packets.map_or((Cid::EMPTY, Cid::EMPTY), |it| (it.dcid, it.scid))
        };
        let keys = initial_direction(Version::V1, &dcid, Side::Client);
        let frames = &frames[..frames.len().min(1000)];
        let payload = seal_packet(
            &initial_header(dcid, scid),
            PacketNumber::saturating((a / 2).into()),
            &keys,
            |out| {
                out.write(&Raw(frames));
                limits::MIN_DATAGRAM
            },
        );
        self.deliver(spoofed(b), payload);
    }

    /// Delivers a packet with arbitrary frames under the keys of a client.
    fn deliver_forged(&mut self, a: u8, b: u8, frames: &[u8]) {
        let Some(index) = usize::from(a / 4).checked_rem(self.clients.len()) else {
            return;
        };
        let Client { address, .. } = self.clients[index];
        let host = self.world.client_host(index);
        let complete = self.world.client(index).complete_at.is_some();
        if host.live_connections() == 0 || !complete {
            return;
        }
        let frames = &frames[..frames.len().min(1000)];
        let pad_to = if b & 2 == 0 { 0 } else { limits::MIN_DATAGRAM };
        let connection = self.world.client_connection(index);
        let payload = connection.forge(
            Space::Data,
            |_| (),
            pad_to,
            |out| {
                out.write(&Raw(frames));
            },
        );
        // Its streams and datagrams are of no application, which reads none of them.
        self.world.keep("the attacker speaks for clients");
        self.deliver(if b & 1 == 0 { address } else { spoofed(b) }, payload);
    }

    /// Closes or moves a client.
    fn change_client(&mut self, a: u8, b: u8) {
        let Some(index) = usize::from(a / 4).checked_rem(self.clients.len()) else {
            return;
        };
        let live = self.world.client_host(index).live_connections() > 0;
        let client = &mut self.clients[index];
        if a.is_multiple_of(4) && live && !client.closed {
            client.closed = true;
            self.world.close_client(index, b.into());
        } else {
            client.address = SocketAddr::from(([10, 1, index as u8, b], 50_000 + u16::from(a)));
            self.world.rebind(index, client.address);
        }
    }

    fn deliver(&mut self, source: SocketAddr, payload: Vec<u8>) {
        let datagram = Datagram::new(source, SERVER_ADDRESS, payload);
        self.tap.seen().count_received(&datagram);
        self.delivered += 1;
        self.world.deliver(datagram);
        self.world.run_for(Duration::ZERO);
    }

    /// Checks the counters of the server. The world has checked each datagram and timer.
    fn check(&self) {
        let stats = self.world.server().stats();
        assert_eq!(
            stats.waiting_incoming, 0,
            "each client is decided on at once"
        );
        assert!(stats.partial_hellos <= self.delivered.min(limits::PARTIAL_HELLOS as u64));
        assert!(stats.handshaking <= stats.connections);
        assert!(stats.connections <= self.delivered);
    }

    /// Checks that an honest client is served after the attack, and that the server forgets
    /// everything.
    pub(crate) fn finish(mut self, honest: bool) {
        self.tap.seen().spare_all();
        self.answer.store(0, Ordering::Relaxed);
        if honest {
            let index = self.world.connect(&self.setups.client, Ask::one_byte());
            let served = self.world.run_until(Duration::from_secs(5), |world| {
                world.client(index).progress() == Progress::Done
            });
            assert!(served, "an honest client is not served");
        }
        self.world.run(Duration::from_mins(3));
        let stats = self.world.server().stats();
        assert_eq!((stats.connections, stats.partial_hellos), (0, 0));
    }
}

fn decide(choice: u8, incoming: &Incoming) -> Answer {
    match choice % 8 {
        1 if incoming.may_retry() => Answer::Retry,
        2 => Answer::Refuse,
        3 => Answer::Ignore,
        _ => Answer::Accept(None, Box::new(Echo::new())),
    }
}

/// Changes a datagram in one way, or not.
fn changed(mut payload: Vec<u8>, how: u8, number: u16) -> Vec<u8> {
    match (how / 8) % 4 {
        0 => flip(&mut payload, number),
        1 => payload.truncate(usize::from(number) % (payload.len() + 1)),
        2 => payload.extend(number.to_be_bytes()),
        _ => {}
    }
    payload
}
