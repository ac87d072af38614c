//! Connections that start from what earlier ones saw of the path (RFC 9959).

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
    time::{Duration, Instant},
};

use hybriq::{
    Backend, Direction, StreamId, TransportConfig,
    memory::{CarefulResume, SavedPath, ServerMemory},
    transport::Congestion,
};
use hybriq_proto::{
    connection::{Connection, Event},
    endpoint::Setup,
    owners::{
        congestion::careful_resume::Stage,
        streams::{StreamEvent, Streams},
    },
    remembered::known_path::KnownPath,
};
use hybriq_sim::{Answer, App, Network, Peer, Progress, SERVER_ADDRESS, World, ms};

use crate::support::{remembering, resumable_pair, transport};

const RTT: Duration = ms(300);
const MBIT: u64 = 1_000_000;

/// A round trip of the link's rate.
const BDP: u64 = 100 * MBIT / 8 * 3 / 10;

/// Sends this many bytes on one stream, as soon as possible.
struct Send {
    left: usize,
    id: Option<StreamId>,
    /// Waits for the peer to acknowledge by closing.
    sent: bool,
}

impl Send {
    fn bytes(count: usize) -> Self {
        Self {
            left: count,
            id: None,
            sent: false,
        }
    }

    fn write(&mut self, streams: &mut Streams) {
        let Some(id) = self.id.filter(|_| !self.sent) else {
            return;
        };
        let chunk = [7; 16 * 1024];
        while self.left > 0 {
            let (chunk, _) = chunk.split_at(self.left.min(chunk.len()));
            let Ok(taken) = streams.write(id, chunk) else {
                return;
            };
            self.left -= taken;
        }
        self.sent = streams.finish(id).is_ok();
    }
}

impl App for Send {
    fn on_event(&mut self, _: Instant, event: &Event, connection: &mut Connection) {
        let streams = connection.streams();
        if matches!(event, Event::HandshakeComplete) {
            self.id = streams.open(Direction::Uni);
        }
        self.write(streams);
    }

    fn progress(&self) -> Progress {
        Progress::Busy
    }
}

/// Reads one stream to its end, and closes.
#[derive(Default)]
struct Receive {
    id: Option<StreamId>,
    done: bool,
}

impl App for Receive {
    fn on_event(&mut self, now: Instant, event: &Event, connection: &mut Connection) {
        let streams = connection.streams();
        if let Event::Stream(StreamEvent::Opened(Direction::Uni)) = event {
            self.id = streams.accept(Direction::Uni);
        }
        let mut buffer = [0; 16 * 1024];
        while let Some(id) = self.id.filter(|_| !self.done) {
            match streams.read(id, &mut buffer) {
                Ok(0) => self.done = true,
                Ok(_) => {}
                Err(_) => return,
            }
        }
        if self.done && !connection.is_closed() {
            connection.close(now, 0, bytes::Bytes::new());
        }
    }

    fn progress(&self) -> Progress {
        if self.done {
            Progress::Done
        } else {
            Progress::Busy
        }
    }
}

/// Windows that never limit the sender.
fn wide() -> TransportConfig {
    let most = 64 * 1024 * 1024;
    transport()
        .initial_rtt(RTT)
        .receive_window(most)
        .initial_receive_window(most)
        .stream_receive_window(most)
        .initial_stream_receive_window(most)
        .send_buffer(most)
}

/// Direction of a transfer.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Down,
    Up,
}

/// Figures of one transfer, seen by its sender.
#[derive(Debug)]
struct Report {
    took: Duration,
    stages: Vec<Stage>,
    lost: u64,
    resumed: bool,
}

struct Scene {
    world: World,
    client: Setup,
    way: Way,
    connections: usize,
}

impl Scene {
    fn new(network: Network, (client, server): (Setup, Setup), way: Way) -> Self {
        Self {
            world: World::new(network, server),
            client,
            way,
            connections: 0,
        }
    }

    fn sender(world: &World, way: Way, index: usize) -> Option<&Peer> {
        match way {
            Way::Down => world.server().peers().get(index),
            Way::Up => world.client_host(0).peers().get(index),
        }
    }

    /// Connects, sends this many bytes, and closes.
    fn transfer(&mut self, bytes: usize) -> Report {
        let (way, index) = (self.way, self.connections);
        self.connections += 1;
        self.world.server_mut().on_incoming(move |_| {
            let app: Box<dyn App> = match way {
                Way::Down => Box::new(Send::bytes(bytes)),
                Way::Up => Box::new(Receive::default()),
            };
            Answer::Accept(None, app)
        });
        let began = self.world.now();
        match (way, index) {
            (Way::Down, 0) => drop(self.world.connect(&self.client, Receive::default())),
            (Way::Up, 0) => drop(self.world.connect(&self.client, Send::bytes(bytes))),
            (Way::Down, _) => {
                let app = Receive::default();
                self.world.connect_again(0, &self.client, app);
            }
            (Way::Up, _) => {
                let app = Send::bytes(bytes);
                self.world.connect_again(0, &self.client, app);
            }
        }
        let mut stages = Vec::new();
        self.world.run_until(Duration::from_secs(300), |world| {
            let sender = Self::sender(world, way, index);
            if let Some(connection) = sender.and_then(|peer| peer.connection.as_ref()) {
                let stage = connection.resume_stage();
                if stages.last() != Some(&stage) {
                    stages.push(stage);
                }
            }
            index < world.server().peers().len() && world.is_quiet()
        });
        let receiver = match way {
            Way::Down => &self.world.client_host(0).peers()[index],
            Way::Up => &self.world.server().peers()[index],
        };
        let done = receiver.done_at.expect("everything arrived");
        let sender = Self::sender(&self.world, way, index).expect("there is a sender");
        Report {
            took: done.saturating_sub(began),
            stages,
            lost: sender.stats().packets_lost,
            resumed: sender.handshake.as_ref().unwrap().resumed,
        }
    }
}

/// A path to this server as an application kept it, in the bytes of version 1.
fn knowing(peer: Ipv4Addr, capacity: u64) -> CarefulResume {
    let mut bytes = vec![1];
    for number in [RTT.as_micros() as u64, capacity, 1_800_000_000] {
        bytes.extend(number.to_be_bytes());
    }
    bytes.push(4);
    bytes.extend(peer.octets());
    bytes.push(0);
    let saved = SavedPath::from_bytes(&bytes).unwrap();
    CarefulResume::new().path(&saved, Duration::from_secs(60))
}

fn server() -> Ipv4Addr {
    match SERVER_ADDRESS.ip() {
        IpAddr::V4(address) => address,
        IpAddr::V6(_) => panic!("the simulated server has an IPv4 address"),
    }
}

fn link(queue: u64) -> Network {
    Network::new(1).delay(RTT / 2).bandwidth(100 * MBIT, queue)
}

fn with_resume(resume: &CarefulResume) -> TransportConfig {
    wide().careful_resume(resume.clone())
}

const JUMP: [Stage; 5] = [
    Stage::Normal,
    Stage::Reconnaissance,
    Stage::Unvalidated,
    Stage::Validating,
    Stage::Normal,
];

#[test]
fn a_resumed_download_skips_round_trips_of_slow_start() {
    for backend in Backend::ALL {
        let second = |config: TransportConfig| {
            let pair = resumable_pair(backend, wide(), config);
            let mut scene = Scene::new(link(BDP), pair, Way::Down);
            let first = scene.transfer(12_000_000);
            assert_eq!(first.stages, [Stage::Normal]);
            let second = scene.transfer(4_000_000);
            assert!(second.resumed, "{backend}");
            second
        };
        let plain = second(wide());
        assert_eq!(plain.stages, [Stage::Normal], "off by default");
        let resumed = second(with_resume(&CarefulResume::new()));
        assert_eq!(resumed.stages, JUMP, "{backend}");
        assert_eq!(resumed.lost, 0);
        assert!(
            resumed.took + 3 * RTT < plain.took,
            "{backend}: {:?} against {:?}",
            resumed.took,
            plain.took
        );
        // A handshake, the initial window, the jump, and what is left of 4 MB at the full rate.
        assert!(resumed.took < 6 * RTT, "{:?}", resumed.took);
    }
}

#[test]
fn a_client_that_uploads_resumes_too() {
    let config = with_resume(&CarefulResume::new());
    let pair = resumable_pair(Backend::Rustls, config, wide());
    let mut scene = Scene::new(link(BDP), pair, Way::Up);
    let first = scene.transfer(12_000_000);
    assert_eq!(first.stages, [Stage::Normal]);
    let second = scene.transfer(4_000_000);
    assert_eq!(second.stages, JUMP);
    assert!(second.took < 6 * RTT, "{:?}", second.took);
}

#[test]
fn what_a_client_saw_of_a_path_outlives_its_process() {
    let config = || with_resume(&CarefulResume::new());
    let memory = ServerMemory::new();
    let (mut client, server) = resumable_pair(Backend::Rustls, config(), wide());
    client.transport = Arc::new(remembering(config(), &memory));
    let mut scene = Scene::new(link(BDP), (client, server), Way::Up);
    assert_eq!(scene.transfer(12_000_000).stages, [Stage::Normal]);
    assert_eq!(memory.get("localhost").unwrap().paths().len(), 1);
    let read = ServerMemory::from_bytes(&memory.to_bytes()).unwrap();
    scene.client.transport = Arc::new(remembering(config(), &ServerMemory::new()));
    let stranger = scene.transfer(4_000_000);
    assert_eq!(stranger.stages, [Stage::Normal], "another memory");
    scene.client.transport = Arc::new(remembering(config(), &read));
    assert_eq!(scene.transfer(12_000_000).stages, JUMP);
    // Without the option, nothing is taken from the memory.
    scene.client.transport = Arc::new(remembering(wide(), &read));
    assert_eq!(read.get("localhost").unwrap().paths().len(), 1);
    assert_eq!(scene.transfer(4_000_000).stages, [Stage::Normal]);
    assert_eq!(read.get("localhost").unwrap().paths().len(), 1);
}

#[test]
fn a_client_uses_no_path_that_is_too_old() {
    let config = with_resume(&CarefulResume::new().lifetime(Duration::from_secs(60)));
    let pair = resumable_pair(Backend::Rustls, config, wide());
    let mut scene = Scene::new(link(BDP), pair, Way::Up);
    scene.transfer(12_000_000);
    assert_eq!(scene.transfer(12_000_000).stages, JUMP);
    scene.world.run_for(Duration::from_secs(61));
    assert_eq!(scene.transfer(4_000_000).stages, [Stage::Normal]);
}

/// An upload of 4 MB over this network by a client that knows a path of 100 Mbit/s, or knows none.
fn upload(network: Network, congestion: Congestion, resume: Option<CarefulResume>) -> Report {
    let mut config = wide().congestion(congestion);
    if let Some(resume) = resume {
        config = config.careful_resume(resume);
    }
    let pair = resumable_pair(Backend::Rustls, config, wide());
    Scene::new(network, pair, Way::Up).transfer(4_000_000)
}

#[test]
fn every_controller_resumes() {
    for congestion in [
        Congestion::NewReno,
        Congestion::Cubic,
        Congestion::Bbr,
        Congestion::Prague,
    ] {
        let plain = upload(link(BDP), congestion.clone(), None);
        let resumed = upload(link(BDP), congestion.clone(), Some(knowing(server(), BDP)));
        assert_eq!(resumed.stages, JUMP, "{congestion:?}");
        assert!(
            resumed.took + 3 * RTT < plain.took,
            "{congestion:?}: {:?} against {:?}",
            resumed.took,
            plain.took
        );
    }
}

#[test]
fn a_path_that_became_ten_times_slower_is_retreated_on() {
    let retreat = [
        Stage::Normal,
        Stage::Reconnaissance,
        Stage::Unvalidated,
        Stage::Validating,
        Stage::SafeRetreat,
        Stage::Normal,
    ];
    for congestion in [Congestion::NewReno, Congestion::Cubic, Congestion::Bbr] {
        let slow = || {
            Network::new(1)
                .delay(RTT / 2)
                .bandwidth(10 * MBIT, BDP / 10)
        };
        let plain = upload(slow(), congestion.clone(), None);
        let resumed = upload(slow(), congestion.clone(), Some(knowing(server(), BDP)));
        assert_eq!(resumed.stages, retreat, "{congestion:?}");
        assert!(
            resumed.took < plain.took * 3 / 2,
            "{congestion:?}: {:?} against {:?}",
            resumed.took,
            plain.took
        );
    }
}

#[test]
fn a_longer_way_to_the_same_address_is_another_path() {
    struct Longer(Duration);
    impl hybriq_sim::Node for Longer {
        fn on_datagram(&mut self, datagram: hybriq_sim::Datagram, hop: &mut hybriq_sim::Hop<'_>) {
            let wait = if hop.now < self.0 { ms(5) } else { ms(55) };
            hop.forward_after(wait, datagram);
        }
    }
    let moved = Duration::from_secs(60);
    let network = Network::new(1)
        .node(Longer(moved))
        .bandwidth(100 * MBIT, 200_000);
    let config = with_resume(&CarefulResume::new());
    let pair = resumable_pair(Backend::Rustls, wide(), config);
    let mut scene = Scene::new(network, pair, Way::Down);
    scene.transfer(12_000_000);
    let rest = moved.saturating_sub(scene.world.now());
    scene.world.run_for(rest);
    let second = scene.transfer(4_000_000);
    assert_eq!(
        second.stages,
        [Stage::Normal, Stage::Reconnaissance, Stage::Normal]
    );
}

#[test]
fn what_was_seen_is_used_once_and_renewed() {
    let resume = CarefulResume::new();
    let pair = resumable_pair(Backend::Rustls, wide(), with_resume(&resume));
    let mut scene = Scene::new(link(BDP), pair, Way::Down);
    scene.transfer(12_000_000);
    assert_eq!(scene.transfer(12_000_000).stages, JUMP);
    assert_eq!(scene.transfer(1_000).stages, JUMP[..2], "nothing to win");
    assert_eq!(
        scene.transfer(4_000_000).stages,
        [Stage::Normal],
        "the one before saw nothing"
    );
}

#[test]
fn a_path_to_somebody_else_is_not_resumed() {
    let elsewhere = Ipv4Addr::new(192, 0, 2, 254);
    let resume = knowing(elsewhere, BDP);
    let report = upload(link(BDP), Congestion::default(), Some(resume));
    assert_eq!(report.stages, [Stage::Normal]);
}

#[test]
fn a_connection_tells_what_an_application_may_keep() {
    let pair = resumable_pair(Backend::Rustls, with_resume(&CarefulResume::new()), wide());
    let mut scene = Scene::new(link(BDP), pair, Way::Up);
    let mut known = None;
    scene
        .world
        .server_mut()
        .on_incoming(|_| Answer::Accept(None, Box::new(Receive::default())));
    scene.world.connect(&scene.client, Send::bytes(12_000_000));
    scene.world.run_until(Duration::from_secs(60), |world| {
        let connection = world.client(0).connection.as_ref();
        known = connection.and_then(Connection::known_path).or(known);
        world.client(0).closed.is_some()
    });
    let KnownPath { observed, peer, .. } = known.expect("the path was measured");
    assert_eq!(peer, server());
    assert!(observed.rtt >= RTT && observed.rtt < RTT + ms(5));
    assert!((BDP / 2..=BDP * 11 / 10).contains(&observed.capacity));
}

#[test]
fn a_connection_without_much_to_send_remembers_nothing() {
    let config = with_resume(&CarefulResume::new());
    let pair = resumable_pair(Backend::Rustls, wide(), config);
    let mut scene = Scene::new(link(BDP), pair, Way::Down);
    scene.transfer(10_000);
    assert_eq!(scene.transfer(4_000_000).stages, [Stage::Normal]);
}
