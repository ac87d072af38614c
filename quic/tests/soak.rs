//! Half an hour of whole connections on a link that never stays as it is: nothing stalls, and the
//! memory afterwards is what it was before. A program of its own, because it counts every byte
//! that is allocated.
#![expect(
    clippy::unwrap_used,
    reason = "a scenario that cannot go on has failed"
)]

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use hybriq::{
    Backend, Identity, TransportConfig, Trust, tls::PrivateKeyDer, transport::Congestion,
};
use hybriq_proto::{
    connection::{Connection, Event},
    endpoint::Setup,
    owners::streams::{Direction, ReadError, StreamEvent, StreamId, Streams, WriteError},
};
use hybriq_sim::{App, Bandwidth, Network, Progress, Rng, World, heap, ms, one_in, per_mille};
use hybriq_tls::{ClientOptions, ServerOptions};

#[global_allocator]
static ALLOCATOR: heap::Counting = heap::Counting;

const HALF_AN_HOUR: Duration = Duration::from_secs(1800);

/// Number of times that the application pauses, and everything is counted.
const EVERY: Duration = Duration::from_secs(300);

/// Streams open at once, and the bytes that each transfers in both directions.
const STREAMS: usize = 4;
const BYTES: usize = 40_000;

/// Opens a stream for each that is answered.
#[derive(Clone, Default)]
struct Load(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    paused: bool,
    open: BTreeMap<StreamId, Exchange>,
    answered: u64,
}

#[derive(Default)]
struct Exchange {
    sent: usize,
    received: usize,
}

impl State {
    fn fill(&mut self, streams: &mut Streams) {
        while !self.paused && self.open.len() < STREAMS {
            let id = streams.open(Direction::Bidi).unwrap();
            self.open.insert(id, Exchange::default());
            self.write(id, streams);
            // Only a reader who was told to wait hears of more.
            self.read(id, streams);
        }
    }

    fn write(&mut self, id: StreamId, streams: &mut Streams) {
        let Some(exchange) = self.open.get_mut(&id) else {
            return;
        };
        while exchange.sent < BYTES {
            let chunk = vec![id.0 as u8; (BYTES - exchange.sent).min(4096)];
            match streams.write(id, &chunk) {
                Ok(taken) => exchange.sent += taken,
                Err(WriteError::Blocked) => return,
                Err(error) => panic!("{error:?}"),
            }
        }
        streams.finish(id).unwrap();
    }

    fn read(&mut self, id: StreamId, streams: &mut Streams) {
        let mut buffer = [0; 4096];
        while let Some(exchange) = self.open.get_mut(&id) {
            match streams.read(id, &mut buffer) {
                Ok(0) => {
                    assert_eq!(exchange.received, BYTES);
                    self.open.remove(&id);
                    self.answered += 1;
                }
                Ok(read) => {
                    let (read, _) = buffer.split_at(read);
                    assert!(read.iter().all(|&byte| byte == id.0 as u8));
                    exchange.received += read.len();
                }
                Err(ReadError::Blocked) => return,
                Err(error) => panic!("{error:?}"),
            }
        }
    }
}

impl App for Load {
    fn on_event(&mut self, _: Instant, event: &Event, connection: &mut Connection) {
        let mut state = self.0.lock().unwrap();
        let streams = connection.streams();
        match event {
            Event::HandshakeComplete => state.fill(streams),
            Event::Stream(StreamEvent::Writable(id)) => state.write(*id, streams),
            Event::Stream(StreamEvent::Readable(id)) => {
                state.read(*id, streams);
                state.fill(streams);
            }
            Event::Closed(error) => panic!("closed: {error}"),
            _ => {}
        }
    }

    fn progress(&self) -> Progress {
        Progress::Busy
    }
}

/// A link whose rate is another one every few seconds, that goes dark now and then, and loses,
/// reorders, repeats and delays datagrams.
fn restless(seed: u64) -> Network {
    let mut rng = Rng::nth(seed, 1000);
    let mut at = Duration::ZERO;
    let (mut rates, mut dark) = (Vec::new(), Vec::new());
    while at < HALF_AN_HOUR {
        at += ms(1000) + rng.up_to(ms(20_000));
        rates.push((at, 60_000 + rng.below(440_000)));
        if rng.happens(one_in(8)) {
            let from = at + rng.up_to(ms(5000));
            dark.push((from, from + ms(100) + rng.up_to(ms(3000))));
        }
    }
    Network::new(seed)
        .node(Bandwidth::new(250_000, 30_000).then(rates))
        .delay(ms(20))
        .blackout(dark)
        .ordered_jitter(ms(5))
        .bursts(one_in(2000), 5)
        .loss(per_mille(2))
        .overtake(one_in(500), 20)
        .duplicate(one_in(500), ms(30))
}

fn setups(congestion: &Congestion) -> (Setup, Setup) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let root = made.cert.der().clone();
    let identity = Identity::from_der(vec![root.clone()], key);
    let server = ServerOptions::new(identity).alpn(["sim"]).without_tickets();
    let client = ClientOptions::new()
        .alpn(["sim"])
        .trust(Trust::roots_der([root]))
        .without_resumption();
    let config = TransportConfig::new()
        .congestion(congestion.clone())
        .idle_timeout(None);
    let transport = Arc::new(config);
    let setup = |provider| Setup {
        provider,
        transport: transport.clone(),
    };
    (
        setup(Backend::Rustls.client(&client).unwrap()),
        setup(Backend::Rustls.server(&server).unwrap()),
    )
}

/// Lets the open streams end and the last acknowledgements arrive; returns what is allocated then.
fn pause(world: &mut World, load: &Load) -> usize {
    load.0.lock().unwrap().paused = true;
    let ended = world.run_until(Duration::from_secs(60), |_| {
        load.0.lock().unwrap().open.is_empty()
    });
    assert!(ended, "a minute was not enough to end {STREAMS} streams");
    world.run_for(Duration::from_secs(20));
    world.forget_trace();
    heap::allocated()
}

fn resume(world: &mut World, load: &Load) {
    let mut state = load.0.lock().unwrap();
    state.paused = false;
    state.fill(world.client_connection(0).streams());
}

/// Pauses until every queue has had its longest burst: they keep some of their room.
const WARM: usize = 3;

/// Largest difference of hash tables and queues from one pause to the next.
const NOISE: usize = 24 * 1024;

#[test]
fn half_an_hour_of_whole_connections_leaks_nothing() {
    for (seed, congestion) in [(1, Congestion::Cubic), (2, Congestion::Bbr)] {
        let (client, server) = setups(&congestion);
        let mut world = World::new(restless(seed), server);
        world.expect_bulk(50_000_000);
        let load = Load::default();
        world.connect(&client, load.clone());
        let mut seen = Vec::new();
        while world.now() < HALF_AN_HOUR {
            let answered = load.0.lock().unwrap().answered;
            world.run_for(EVERY);
            let allocated = pause(&mut world, &load);
            let more = load.0.lock().unwrap().answered - answered;
            println!(
                "{congestion:?}: {more} streams, {allocated} B at {:?}",
                world.now()
            );
            assert!(
                more > 20,
                "{congestion:?} stalls: {more} streams in {EVERY:?}"
            );
            if let Some(&before) = seen.iter().take(WARM).max()
                && seen.len() >= WARM
            {
                assert!(
                    allocated <= before + NOISE,
                    "{congestion:?}: {before} B became {allocated} B"
                );
            }
            seen.push(allocated);
            resume(&mut world, &load);
        }
    }
}
