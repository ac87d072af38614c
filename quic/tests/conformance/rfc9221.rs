//! RFC 9221: datagrams.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use bytes::Bytes;
use hybriq::{
    TransportConfig,
    events::PacketKind,
    tls::{EarlyData, Side},
    transport::DatagramConfig,
};
use hybriq_proto::connection::{Connection, Event};
use hybriq_proto::wire::frame::FrameType;
use hybriq_sim::{Answer, App, Ask, Echo, Network, Progress, World, ms};

use crate::{
    duo::{Duo, early_pair},
    pathtap::{Noted, PathTap},
};

const LIMIT: Duration = Duration::from_secs(120);

/// The type of a DATAGRAM frame, with and without a length.
const DATAGRAM: [Noted; 2] = [
    Noted::Other(FrameType::DATAGRAM),
    Noted::Other(FrameType::DATAGRAM_LEN),
];

fn deaf() -> TransportConfig {
    TransportConfig::new().datagrams(DatagramConfig::new().receive_buffer(0))
}

/// Proves: rfc9221 3 datagrams-need-the-parameter
#[test]
fn who_takes_no_datagrams_gets_none() {
    for to in [Side::Client, Side::Server] {
        let (tap, config) = PathTap::new();
        let (client, server) = match to {
            Side::Client => (deaf(), config),
            Side::Server => (config, deaf()),
        };
        let mut duo = Duo::with(client, server);
        let from = duo.connection(to.peer());
        let refused = from.send_datagram_within(&Bytes::from_static(b"datagram"));
        assert!(refused.is_err());
        duo.world.run_for(ms(100));
        duo.assert_alive();
        assert_eq!(tap.packets_with(&DATAGRAM), []);
    }
}

/// Sends a datagram as soon as 0-RTT packets can be sent, and stores the result.
struct Early(Arc<Mutex<Option<bool>>>);

impl App for Early {
    fn on_event(&mut self, _: Instant, event: &Event, connection: &mut Connection) {
        if let Event::EarlyDataReady = event {
            let sent = connection.send_datagram_within(&Bytes::from_static(b"early"));
            *self.0.lock().unwrap() = Some(sent.is_ok());
        }
    }

    fn progress(&self) -> Progress {
        Progress::Busy
    }
}

/// A client that was here before sends a datagram at once: whether it may, and in what it leaves.
fn early_datagram(server: TransportConfig) -> (bool, Vec<PacketKind>) {
    let (tap, config) = PathTap::new();
    let (client, server) = early_pair(config, server);
    let mut world = World::new(Network::new(1).delay(ms(10)), server);
    world.connect(&client, Ask::one_byte());
    world.run(LIMIT);
    let sent = Arc::default();
    world.connect(&client, Early(Arc::clone(&sent)));
    world.run_for(ms(500));
    let sent = sent.lock().unwrap().take();
    (
        sent.expect("there are 0-RTT keys"),
        tap.packets_with(&DATAGRAM),
    )
}

/// Proves: rfc9221 3 remembered-limit-for-0rtt
#[test]
fn an_early_datagram_leaves_only_where_the_server_is_remembered_to_take_it() {
    let (sent, packets) = early_datagram(TransportConfig::new());
    assert!(sent);
    assert_eq!(packets, [PacketKind::ZeroRtt]);
    assert_eq!(early_datagram(deaf()), (false, Vec::new()));
}

/// Proves: rfc9221 3 remembered-limit-for-0rtt
#[test]
fn a_server_that_takes_no_datagrams_any_more_takes_no_early_data() {
    let (client, server) = early_pair(TransportConfig::new(), TransportConfig::new());
    let mut world = World::new(Network::new(1).delay(ms(10)), server.clone());
    world.connect(&client, Ask::one_byte());
    world.run(LIMIT);
    let changed = hybriq_proto::endpoint::Setup {
        provider: server.provider,
        transport: deaf().into(),
    };
    world
        .server_mut()
        .on_incoming(move |_| Answer::Accept(Some(changed.clone()), Box::new(Echo::new())));
    world.connect(&client, Ask::one_byte().early());
    world.run(LIMIT);
    let outcome = world.client(1).handshake.as_ref().unwrap().early_data;
    assert_eq!(outcome, EarlyData::Rejected);
}
