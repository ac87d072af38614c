//! A client and a server whose handshake is confirmed, either of which can be made to send what
//! no sane peer would.

use std::{
    sync::{Arc, OnceLock},
    time::{Instant, SystemTime},
};

use hybriq::{
    Backend, ConnectionError, Identity, TransportConfig, Trust,
    error::By,
    memory::ServerMemory,
    tls::{CertificateDer, PrivateKeyDer, Side},
};
use hybriq_proto::{
    endpoint::Setup,
    remembered::{
        origin::Origins,
        server::{Epoch, Servers},
    },
    wire::{frame::FrameWriter, packet::Space},
};
use hybriq_sim::{Datagram, Forge, Idle, Network, Raw, SERVER_ADDRESS, World, ms};
use hybriq_tls::{ClientOptions, EarlyDataPolicy, ServerOptions};

fn certificate() -> &'static (Identity, CertificateDer<'static>) {
    static MADE: OnceLock<(Identity, CertificateDer<'static>)> = OnceLock::new();
    MADE.get_or_init(|| {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let root = made.cert.der().clone();
        (Identity::from_der(vec![root.clone()], key), root)
    })
}

fn client_options() -> ClientOptions {
    ClientOptions::new()
        .alpn(["sim"])
        .trust(Trust::roots_der([certificate().1.clone()]))
        .without_resumption()
}

/// A client's setup.
pub(crate) fn client(transport: TransportConfig) -> Setup {
    client_with(Backend::Rustls, transport, |options| options)
}

/// A client's setup with a TLS provider and changed options.
pub(crate) fn client_with(
    backend: Backend,
    transport: TransportConfig,
    change: impl FnOnce(ClientOptions) -> ClientOptions,
) -> Setup {
    Setup {
        provider: backend.client(&change(client_options())).unwrap(),
        transport: Arc::new(transport),
    }
}

/// A server's setup.
pub(crate) fn server(transport: TransportConfig) -> Setup {
    server_of(Backend::Rustls, transport)
}

/// A server's setup with a TLS provider.
pub(crate) fn server_of(backend: Backend, transport: TransportConfig) -> Setup {
    let options = ServerOptions::new(certificate().0.clone())
        .alpn(["sim"])
        .without_tickets();
    Setup {
        provider: backend.server(&options).unwrap(),
        transport: Arc::new(transport),
    }
}

/// A client that offers 0-RTT data and a server that takes it, with tickets.
#[expect(
    clippy::disallowed_methods,
    reason = "the virtual time of a test begins with that of the clock"
)]
pub(crate) fn early_pair(
    client_transport: TransportConfig,
    server_transport: TransportConfig,
) -> (Setup, Setup) {
    let trust = Trust::roots_der([certificate().1.clone()]);
    let options = ClientOptions::new().alpn(["sim"]).trust(trust);
    let epoch = Epoch {
        instant: Instant::now(),
        time: SystemTime::now(),
    };
    let servers = Servers::new(Arc::new(ServerMemory::new()), Origins::default(), epoch);
    let client = Setup {
        provider: Backend::Rustls.client(&options).unwrap(),
        transport: Arc::new(
            client_transport
                .early_data(EarlyDataPolicy::On)
                .remember_servers(servers),
        ),
    };
    (client, early_server(server_transport))
}

/// A server that takes 0-RTT data.
pub(crate) fn early_server(transport: TransportConfig) -> Setup {
    let options = ServerOptions::new(certificate().0.clone())
        .alpn(["sim"])
        .accept_early_data();
    Setup {
        provider: Backend::Rustls.server(&options).unwrap(),
        transport: Arc::new(transport),
    }
}

/// Error with which the receiver of something ended the connection.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// The code on the wire: what the other end was told.
    pub(crate) code: u64,
    /// The type of the frame at fault, zero for none.
    pub(crate) frame: u64,
}

/// The two ends.
pub(crate) struct Duo {
    pub(crate) world: World,
}

impl Duo {
    /// Two ends with the usual configuration that have confirmed their handshake and fallen silent.
    pub(crate) fn new() -> Self {
        Self::with(TransportConfig::new(), TransportConfig::new())
    }

    /// The same with configurations of their own.
    pub(crate) fn with(
        client_transport: TransportConfig,
        server_transport: TransportConfig,
    ) -> Self {
        Self::between(&client(client_transport), server(server_transport))
    }

    /// The same with both setups given.
    pub(crate) fn between(client: &Setup, server: Setup) -> Self {
        let mut world = World::new(Network::new(1).delay(ms(10)), server);
        world.connect(client, Idle);
        world.run_for(ms(2000));
        Self { world }
    }

    /// The connection of one end.
    pub(crate) fn connection(&mut self, side: Side) -> &mut hybriq_proto::connection::Connection {
        match side {
            Side::Client => self.world.client_connection(0),
            Side::Server => self.world.accepted_connection(0),
        }
    }

    /// Puts an authentic 1-RTT packet of `from` on the wire, with frames of the test's choice.
    pub(crate) fn send(&mut self, from: Side, fill: impl FnOnce(&mut FrameWriter<'_>)) {
        let payload = self.connection(from).forge(Space::Data, |_| (), 0, fill);
        self.put(from, payload);
    }

    /// The same with frames as raw bytes.
    pub(crate) fn send_raw(&mut self, from: Side, frames: &[u8]) {
        self.send(from, |out| assert!(out.write(&Raw(frames))));
    }

    /// Puts a datagram on the wire as if `from` had sent it.
    pub(crate) fn put(&mut self, from: Side, payload: Vec<u8>) {
        let client = self.world.client_host(0).address;
        let datagram = match from {
            Side::Client => Datagram::new(client, SERVER_ADDRESS, payload),
            Side::Server => Datagram::new(SERVER_ADDRESS, client, payload),
        };
        self.world.inject(from.peer(), datagram);
        self.world.run_for(ms(200));
    }

    pub(crate) fn reason(&self, side: Side) -> Option<&ConnectionError> {
        match side {
            Side::Client => self.world.client(0).close_reason(),
            Side::Server => self.world.accepted(0).close_reason(),
        }
    }

    /// Returns the error with which `victim` ended the connection, as its peer read it; `None` if
    /// it continues.
    pub(crate) fn verdict(&self, victim: Side) -> Option<Verdict> {
        let &ConnectionError::Transport {
            by: By::Peer,
            code,
            frame,
            violation,
            ..
        } = self.reason(victim.peer())?
        else {
            panic!(
                "{:?} ended with {:?}",
                victim.peer(),
                self.reason(victim.peer())
            );
        };
        let told = (code, violation);
        match self.reason(victim) {
            Some(&ConnectionError::Transport {
                by: By::Local,
                code,
                violation,
                ..
            }) => assert_eq!((code, violation), told, "what is told is what is meant"),
            other => panic!("{victim:?} ended with {other:?}"),
        }
        Some(Verdict {
            code: code.0,
            frame: frame.map_or(0, |ty| ty.0),
        })
    }

    /// Neither end found anything wrong.
    pub(crate) fn assert_alive(&self) {
        assert_eq!(self.reason(Side::Client), None);
        assert_eq!(self.reason(Side::Server), None);
    }
}

/// Sends raw frames in a 1-RTT packet, and returns the error with which their receiver ended the
/// connection.
pub(crate) fn verdict_on(from: Side, frames: &[u8]) -> Option<Verdict> {
    let mut duo = Duo::new();
    duo.send_raw(from, frames);
    duo.verdict(from.peer())
}

/// Sends raw frames in 1-RTT packets from both ends, and checks that the connections continue.
pub(crate) fn assert_harmless(frames: &[u8]) {
    for from in [Side::Client, Side::Server] {
        let mut duo = Duo::new();
        duo.send_raw(from, frames);
        duo.assert_alive();
    }
}
