//! Everything at once: a client comes back with 0-RTT data, transfers both ways, updates keys, gets
//! another address from its NAT and moves, while packets are lost.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Instant,
};

use bytes::Bytes;
use hybriq::{TransportConfig, error::MigrateError, tls::EarlyData, transport::Version};
use hybriq_proto::{
    connection::{Connection, Event},
    endpoint::Setup,
    wire::udp::Local,
};
use hybriq_sim::{Answer, App, Ask, Echo, Network, Progress, World, ms, per_mille};

use crate::{
    path_support::elsewhere,
    support::{LIMIT, early_pair, early_server, transport},
};

/// Bytes each way on each of two streams: both take two thirds of a second or more.
const BYTES: usize = 160 * 1024;

/// Datagrams that a client sends as soon as it may.
const AT_ONCE: u64 = 3;

/// Datagrams that it sends in all.
const DATAGRAMS: u64 = 60;

/// When a datagram was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum When {
    Early,
    Late,
}

fn message(when: When, number: u64) -> Bytes {
    let mut data = vec![number as u8; 600];
    data[0] = when as u8;
    data[1..9].copy_from_slice(&number.to_be_bytes());
    data.into()
}

/// Content of a message.
fn read(data: &Bytes) -> (When, u64) {
    let when = [When::Early, When::Late][usize::from(data[0])];
    let number = u64::from_be_bytes(data[1..9].try_into().unwrap());
    assert_eq!(*data, message(when, number));
    (when, number)
}

/// Asks, and sends a datagram whenever something happens.
struct Client {
    ask: Ask,
    when: When,
    sent: u64,
}

impl Client {
    fn new() -> Self {
        Self {
            ask: Ask::streams(2, BYTES).early(),
            when: When::Late,
            sent: 0,
        }
    }

    fn say(&mut self, count: u64, connection: &mut Connection) {
        for _ in 0..count {
            let said = connection.send_datagram(message(self.when, self.sent));
            assert_eq!(said, Ok(()));
            self.sent += 1;
        }
    }
}

impl App for Client {
    fn on_event(&mut self, now: Instant, event: &Event, connection: &mut Connection) {
        match event {
            Event::EarlyDataReady => {
                self.when = When::Early;
                self.say(AT_ONCE, connection);
            }
            Event::HandshakeComplete => self.when = When::Late,
            Event::Stream(_) if self.sent < DATAGRAMS && self.when == When::Late => {
                self.say(1, connection);
            }
            _ => {}
        }
        self.ask.on_event(now, event, connection);
    }

    fn progress(&self) -> Progress {
        self.ask.progress()
    }
}

type Heard = Arc<Mutex<Vec<(When, u64)>>>;

/// Echoes, and notes the datagrams.
struct Server {
    echo: Echo,
    heard: Heard,
}

impl App for Server {
    fn on_event(&mut self, now: Instant, event: &Event, connection: &mut Connection) {
        while let Some(data) = connection.datagrams().recv() {
            self.heard.lock().unwrap().push(read(&data));
        }
        self.echo.on_event(now, event, connection);
    }

    fn progress(&self) -> Progress {
        self.echo.progress()
    }
}

struct Scene {
    world: World,
    heard: Heard,
    what: String,
}

impl Scene {
    /// A client has been to the server once and is there again, its first flight on its way.
    fn new(seed: u64, loss: u32, versions: &[Version], restarted: bool) -> Self {
        let speaks = || -> TransportConfig { transport().versions(versions.iter().copied()) };
        let (client, server) = early_pair(speaks(), speaks());
        let network = Network::new(seed)
            .delay(ms(10))
            .bandwidth(4_000_000, 40_000)
            .loss(per_mille(loss));
        let mut world = World::new(network, server);
        world.connect(&client, Ask::one_byte());
        world.run(LIMIT);
        let again = restarted.then(|| early_server("sim", speaks()));
        let heard = Self::listen(&mut world, again);
        world.connect(&client, Client::new());
        Self {
            world,
            heard,
            what: format!("seed {seed}, {loss} per mille, {versions:?}"),
        }
    }

    fn listen(world: &mut World, setup: Option<Setup>) -> Heard {
        let heard = Heard::default();
        let noted = heard.clone();
        world.server_mut().on_incoming(move |_| {
            let (echo, heard) = (Echo::new(), noted.clone());
            Answer::Accept(setup.clone(), Box::new(Server { echo, heard }))
        });
        heard
    }

    fn is_over(&self) -> bool {
        self.world.client(1).closed.is_some() || self.world.accepted(1).closed.is_some()
    }

    /// Moves the connection as soon as it may, once it is where it was to be before.
    fn migrate(&mut self, local: Local, moved: usize) {
        let there = |world: &World| {
            let client = world.client(1);
            client.moves.len() == moved || client.closed.is_some()
        };
        assert!(self.world.run_until(LIMIT, there), "{}", self.what);
        while !self.is_over() {
            match self.world.migrate(1, local) {
                Err(MigrateError::NoConnectionId | MigrateError::NotConfirmed) => {
                    self.world.run_for(ms(5));
                }
                outcome => return assert_eq!(outcome, Ok(()), "{}", self.what),
            }
        }
    }

    fn update_keys(&mut self, updates: u32) {
        if !self.is_over() {
            match updates % 3 {
                0 => self.world.client_connection(1).request_key_update(),
                1 => self.world.accepted_connection(1).request_key_update(),
                _ => {
                    self.world.client_connection(1).request_key_update();
                    self.world.accepted_connection(1).request_key_update();
                }
            }
        }
    }

    /// Runs to the end, with all that may happen to a connection on the way.
    fn run(&mut self) {
        let confirmed = |world: &World| world.client(1).confirmed_at.is_some();
        assert!(self.world.run_until(LIMIT, confirmed), "{}", self.what);
        let at_home = self.world.client_connection(1).local();
        let away = self.world.bind_client(1, elsewhere(1));
        let mut step = 0;
        while !self.is_over() {
            self.update_keys(step);
            match step {
                1 => self.world.rebind(1, elsewhere(7)),
                3 => self.migrate(away, 0),
                6 => self.migrate(at_home, 1),
                8 => self.world.rebind(1, elsewhere(8)),
                _ => {}
            }
            self.world.run_for(ms(50));
            step += 1;
            assert!(step < 400, "{}: no end", self.what);
        }
        self.world.run(LIMIT);
    }

    fn check(&self, early_data: EarlyData, version: Version) {
        let (client, server) = (self.world.client(1), self.world.accepted(1));
        let what = format!("{}: {:?}", self.what, client.close_reason());
        assert_eq!(client.progress(), Progress::Done, "{what}");
        assert_eq!(server.progress(), Progress::Done, "{what}");
        for end in [client, server] {
            let handshake = end.handshake.as_ref().unwrap();
            assert_eq!(handshake.early_data, early_data, "{what}");
            assert_eq!(handshake.version, version, "{what}");
        }
        let [ours, theirs] = [client, server].map(|end| end.stats().key_updates);
        assert!(
            ours >= 2 && ours.abs_diff(theirs) <= 1,
            "{what}: {ours}, {theirs}"
        );
        // Back home the NAT may give the client yet another address before it had an answer.
        let moves = client.moves.len() + client.failed_paths.len();
        assert!(moves >= 2, "{what}: {:?}", client.moves);
        assert!(server.moves.len() >= 2, "{what}: {:?}", server.moves);
    }

    /// The datagrams that came; none came twice.
    fn heard(&self) -> BTreeSet<(When, u64)> {
        let heard = self.heard.lock().unwrap();
        let set: BTreeSet<_> = heard.iter().copied().collect();
        assert_eq!(set.len(), heard.len(), "{}: {heard:?}", self.what);
        set
    }
}

fn each(mut run: impl FnMut(u64, u32, &[Version], Version)) {
    let cases = [
        (&[Version::V1][..], Version::V1),
        // The first connection begins in version 1 and is upgraded; its ticket is of version 2.
        (&[Version::V2, Version::V1], Version::V2),
    ];
    for (versions, spoken) in cases {
        for loss in [0, 10, 50] {
            for seed in 0..4 {
                run(seed, loss, versions, spoken);
            }
        }
    }
}

/// Proves: rfc9000 9.3 data-follows-the-migration
/// Proves: rfc9000 9 new-address-is-validated
/// Proves: rfc9001 6.2 update-is-followed
/// Proves: rfc9221 3 remembered-limit-for-0rtt
#[test]
fn a_connection_survives_everything_at_once() {
    each(|seed, loss, versions, spoken| {
        let mut scene = Scene::new(seed, loss, versions, false);
        scene.run();
        scene.check(EarlyData::Accepted, spoken);
        let heard = scene.heard();
        let early = heard.iter().filter(|(when, _)| *when == When::Early);
        let least = if loss == 0 { AT_ONCE } else { 0 };
        assert!(early.count() as u64 >= least, "{}", scene.what);
        let sent = scene.world.client(1).stats().datagram_frames;
        assert_eq!(
            (sent.sent, sent.dropped_unsent),
            (DATAGRAMS, 0),
            "{}",
            scene.what
        );
        assert!(heard.len() as u64 >= sent.acknowledged, "{}", scene.what);
    });
}

/// Proves: rfc9001 4.6.2 rejected-0rtt-resets-streams
/// Proves: rfc9001 4.6.2 rejected-0rtt-is-not-read
#[test]
fn refused_early_data_is_asked_again_amid_everything() {
    each(|seed, loss, versions, spoken| {
        let mut scene = Scene::new(seed, loss, versions, true);
        scene.run();
        scene.check(EarlyData::Rejected, spoken);
        let heard = scene.heard();
        assert!(
            heard.iter().all(|(when, _)| *when == When::Late),
            "{}",
            scene.what
        );
        let sent = scene.world.client(1).stats().datagram_frames;
        assert!(sent.lost >= AT_ONCE, "{}: {sent:?}", scene.what);
    });
}
