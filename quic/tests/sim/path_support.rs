//! Parts that scenarios about paths share: a download, addresses, attackers.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use hybriq::tls::Side;
use hybriq_proto::connection::Connection;
use hybriq_sim::{Answer, Datagram, Fetch, Hop, Network, Node, Progress, Serve, World};

use crate::support::{LIMIT, client_with, server_with, transport};

/// Another port of the address that the first client has.
pub(crate) fn port(number: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 0], number))
}

/// Another address altogether.
pub(crate) fn elsewhere(number: u8) -> SocketAddr {
    SocketAddr::from(([198, 51, 100, number], 40_000))
}

/// A client that fetches this many bytes, with its handshake confirmed.
pub(crate) fn download(network: Network, bytes: usize) -> World {
    let mut world = World::new(network, server_with(transport()));
    // A client that has nothing to say when its address changes cannot be followed.
    let client = client_with(transport().keep_alive(Duration::from_secs(2)));
    start_download(&mut world, &client, bytes);
    world
}

/// The same in a world with a server of its own.
pub(crate) fn start_download(
    world: &mut World,
    client: &hybriq_proto::endpoint::Setup,
    bytes: usize,
) {
    let serve = move || Box::new(Serve::bytes(bytes));
    world
        .server_mut()
        .on_incoming(move |_| Answer::Accept(None, serve()));
    world.connect(client, Fetch::bytes(bytes));
    let confirmed = |world: &World| world.client(0).confirmed_at.is_some();
    assert!(world.run_until(LIMIT, confirmed));
}

/// Returns the client's address as the server knows it.
pub(crate) fn server_sees(world: &World) -> Option<SocketAddr> {
    let connection = world.accepted(0).connection.as_ref();
    connection.map(Connection::peer_address)
}

/// Runs to the end: the client got what it fetched.
pub(crate) fn finish(world: &mut World) {
    world.run(LIMIT);
    let client = world.client(0);
    assert_eq!(
        client.progress(),
        Progress::Done,
        "{:?}",
        client.close_reason()
    );
}

/// A switch that decides whether the datagrams of an address arrive.
#[derive(Clone, Default)]
pub(crate) struct Switch(Arc<AtomicBool>);

impl Switch {
    pub(crate) fn set(&self, on: bool) {
        self.0.store(on, Ordering::Relaxed);
    }

    pub(crate) fn is_on(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// While it is on, everything from and to the address is lost.
    pub(crate) fn cuts(&self, address: SocketAddr) -> impl Node + use<> {
        let switch = self.clone();
        hybriq_sim::DropIf(move |datagram: &Datagram, _: Side| {
            switch.is_on() && [datagram.source, datagram.destination].contains(&address)
        })
    }
}

/// While the switch is on, a copy of everything the client sends reaches the server first, from an
/// address of the attacker's; the original follows a little later (RFC 9000 §9.3.3).
pub(crate) struct Overtaker {
    pub(crate) switch: Switch,
    pub(crate) source: SocketAddr,
    pub(crate) lead: Duration,
}

impl Node for Overtaker {
    fn on_datagram(&mut self, datagram: Datagram, hop: &mut Hop<'_>) {
        if !self.switch.is_on() {
            return hop.forward(datagram);
        }
        let mut copy = datagram.clone();
        copy.source = self.source;
        hop.forward(copy);
        hop.forward_after(self.lead, datagram);
    }
}

/// While the switch is on, what the client sends seems to come from somebody else (RFC 9000
/// §9.3.1).
pub(crate) struct Spoofer {
    pub(crate) switch: Switch,
    pub(crate) source: SocketAddr,
}

impl Node for Spoofer {
    fn on_datagram(&mut self, mut datagram: Datagram, hop: &mut Hop<'_>) {
        if self.switch.is_on() {
            datagram.source = self.source;
        }
        hop.forward(datagram);
    }
}
