//! Handshakes that stand still half way, so that their packets can be forged.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use hybriq::{TransportConfig, tls::Side};
use hybriq_proto::wire::frame::FrameWriter;
use hybriq_sim::{
    Datagram, Hop, Idle, Network, Node, PacketKind, SERVER_ADDRESS, World, ms, packets,
};

use crate::duo::{client, server};

/// One PING.
pub(crate) fn ping(out: &mut FrameWriter<'_>) {
    assert!(out.ping());
}

/// A filter that loses the server's datagrams: all of them, or all but the Initial packets.
struct Filter {
    initials: bool,
    forged: Arc<AtomicBool>,
}

impl Node for Filter {
    fn on_datagram(&mut self, mut datagram: Datagram, hop: &mut Hop<'_>) {
        if self.forged.swap(false, Ordering::Relaxed) {
            return hop.forward(datagram);
        }
        if !self.initials {
            return;
        }
        let initials = packets(&datagram.payload)
            .into_iter()
            .filter(|packet| packet.kind == PacketKind::Initial)
            .flat_map(|packet| datagram.payload[packet.range].to_vec());
        let payload: Vec<u8> = initials.collect();
        if !payload.is_empty() {
            datagram.payload = payload;
            hop.forward(datagram);
        }
    }
}

/// A handshake of which the client hears less than the server says.
pub(crate) struct Stalled {
    pub(crate) world: World,
    forged: Arc<AtomicBool>,
}

impl std::ops::Deref for Stalled {
    type Target = World;

    fn deref(&self) -> &World {
        &self.world
    }
}

impl std::ops::DerefMut for Stalled {
    fn deref_mut(&mut self) -> &mut World {
        &mut self.world
    }
}

fn stalled(initials: bool) -> Stalled {
    let forged = Arc::new(AtomicBool::new(false));
    let filter = Filter {
        initials,
        forged: forged.clone(),
    };
    let network = Network::new(1).delay(ms(10)).toward(Side::Client, filter);
    let mut world = World::new(network, server(TransportConfig::new()));
    world.connect(&client(TransportConfig::new()), Idle);
    Stalled { world, forged }
}

/// The client sent its ClientHello, the server answered, and nothing of it arrived.
pub(crate) fn heard_nothing() -> Stalled {
    let mut stalled = stalled(false);
    stalled.world.run_for(ms(11));
    stalled
}

/// The client got the ServerHello and nothing behind it: both ends have all the keys of the
/// handshake.
pub(crate) fn heard_initials_only() -> Stalled {
    let mut stalled = stalled(true);
    stalled.world.run_for(ms(21));
    stalled
}

/// Hands a forged datagram to an end.
pub(crate) fn give(stalled: &mut Stalled, to: Side, payload: Vec<u8>) {
    let client = stalled.world.client_host(0).address;
    let datagram = match to {
        Side::Client => {
            stalled.forged.store(true, Ordering::Relaxed);
            Datagram::new(SERVER_ADDRESS, client, payload)
        }
        Side::Server => Datagram::new(client, SERVER_ADDRESS, payload),
    };
    stalled.world.inject(to, datagram);
    stalled.world.run_for(ms(11));
}

/// Packets that an end has accepted.
pub(crate) fn received(world: &mut World, side: Side) -> u64 {
    let peer = match side {
        Side::Client => world.client(0),
        Side::Server => world.accepted(0),
    };
    peer.stats().packets_received
}
