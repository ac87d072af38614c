//! Both ends and their work.

use std::{sync::Arc, time::Instant};

use hybriq::{
    Group, Identity, TransportConfig, Trust,
    tls::{PrivateKeyDer, Side},
};
use hybriq_proto::{endpoint::Setup, owners::streams::Direction};
use hybriq_qlog::Qlog;
use hybriq_tls::{ClientOptions, ServerOptions};

use crate::{
    Logs, Options, REQUEST, Result,
    counting::{Counted, counted_start},
    link::{ONE_WAY, OneWay},
    machine::Machine,
};

const CLIENT: &str = "10.0.0.1:50000";
const SERVER: &str = "192.0.2.1:4433";
const SERVER_NAME: &str = "localhost";

/// A client, a server and the link between them.
pub(crate) struct World {
    pub(crate) now: Instant,
    pub(crate) client: Machine,
    pub(crate) server: Machine,
    pub(crate) to_client: OneWay,
    pub(crate) to_server: OneWay,
    pub(crate) setup: Setup,
    pub(crate) group: Group,
    /// Ends whose work will be counted.
    pub(crate) ends: (Counted, Counted),
}

impl World {
    pub(crate) fn new(options: &Options) -> Result<Self> {
        let (client, server) = setups(options)?;
        Ok(Self {
            now: Instant::now(),
            client: Machine::new(CLIENT, 1, None)?,
            server: Machine::new(SERVER, 2, Some(server))?,
            to_client: OneWay::default(),
            to_server: OneWay::default(),
            setup: client,
            group: options.group,
            ends: (options.client, options.server),
        })
    }

    /// Begins to count.
    pub(crate) fn count(&mut self) {
        (self.client.counted, self.server.counted) = self.ends;
    }

    /// Makes `count` connections one after the other.
    pub(crate) fn handshakes(&mut self, count: usize) -> Result<()> {
        for _ in 0..count {
            self.connect()?;
            self.disconnect()?;
        }
        Ok(())
    }

    pub(crate) fn connect(&mut self) -> Result<()> {
        self.client.app.confirmed = false;
        self.server.app.confirmed = false;
        self.setup.provider.prepare();
        match self.client.counted {
            Counted::Yes => counted_start(self)?,
            Counted::No => self.start()?,
        }
        self.run_until(|world| world.client.app.confirmed && world.server.app.confirmed)?;
        let connection = self.client.connection.as_ref();
        let agreed = connection.and_then(|(_, it)| it.handshake());
        if agreed.is_none_or(|it| it.key_exchange.group != self.group) {
            return Err(format!("agreed on {agreed:?}").into());
        }
        Ok(())
    }

    /// Begins a connection, with its ClientHello.
    pub(crate) fn start(&mut self) -> Result<()> {
        let (client, server) = (&mut self.client, self.server.address);
        let made = client
            .endpoint
            .connect(self.now, &self.setup, server, SERVER_NAME)?;
        client.connection = Some(made);
        Ok(())
    }

    pub(crate) fn disconnect(&mut self) -> Result<()> {
        let now = self.now;
        if let Some((_, connection)) = &mut self.client.connection {
            connection.close(now, 0, bytes::Bytes::new());
        }
        self.run_until(|world| {
            world.client.connection.is_none() && world.server.connection.is_none()
        })
    }

    /// Sends this number of bytes on a new stream of one end.
    pub(crate) fn transfer(&mut self, from: Side, bytes: usize) -> Result<()> {
        let (sender, receiver) = match from {
            Side::Client => (&mut self.client, &mut self.server),
            Side::Server => (&mut self.server, &mut self.client),
        };
        receiver.app.received = 0;
        receiver.app.ended = false;
        let Some((_, connection)) = &mut sender.connection else {
            return Err("there is no connection".into());
        };
        let streams = connection.streams();
        sender.app.to_send = bytes;
        sender.app.stream = streams.open(Direction::Uni);
        sender.app.write(streams)?;
        self.run_until(|world| world.end(from.peer()).app.ended)?;
        if self.end(from.peer()).app.received != bytes {
            return Err("another number of bytes came".into());
        }
        Ok(())
    }

    /// Makes `count` requests one after the other.
    pub(crate) fn requests(&mut self, count: usize) -> Result<()> {
        for _ in 0..count {
            self.client.app.received = 0;
            self.client.app.ended = false;
            let Some((_, connection)) = &mut self.client.connection else {
                return Err("there is no connection".into());
            };
            let streams = connection.streams();
            self.client.app.to_send = REQUEST;
            let stream = streams.open(Direction::Bidi);
            self.client.app.stream = stream;
            self.client.app.write(streams)?;
            // Whoever was told that there is nothing to read is told when there is.
            self.client
                .app
                .read(stream.ok_or("no stream may be opened")?, streams)?;
            self.run_until(|world| world.client.app.ended)?;
            if self.client.app.received != REQUEST {
                return Err("another number of bytes came".into());
            }
        }
        Ok(())
    }

    pub(crate) const fn end(&self, side: Side) -> &Machine {
        match side {
            Side::Client => &self.client,
            Side::Server => &self.server,
        }
    }

    /// Returns the number of packets that one end sent over its connection.
    pub(crate) fn packets_sent(&self, side: Side) -> u64 {
        let connection = self.end(side).connection.as_ref();
        connection.map_or(0, |(_, it)| it.stats().packets_sent)
    }

    pub(crate) fn run_until(&mut self, done: impl Fn(&Self) -> bool) -> Result<()> {
        loop {
            let (to_server, to_client) = (&mut self.to_server, &mut self.to_client);
            self.server.work(self.now, to_server, to_client)?;
            self.client.work(self.now, to_client, to_server)?;
            if done(self) {
                return Ok(());
            }
            let next = [
                self.client.next_timeout(),
                self.server.next_timeout(),
                self.to_client.next_arrival(),
                self.to_server.next_arrival(),
            ];
            let next = next.into_iter().flatten().min();
            self.now = self.now.max(next.ok_or("nothing is left to happen")?);
        }
    }
}

/// Returns the client's and the server's setup: an ECDSA P-256 certificate, and no session tickets.
fn setups(options: &Options) -> Result<(Setup, Setup)> {
    let made = rcgen::generate_simple_self_signed([SERVER_NAME.to_owned()])?;
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der())?;
    let certificate = made.cert.der().clone();
    let server = ServerOptions::new(Identity::from_der(vec![certificate.clone()], key))
        .alpn(["count"])
        .without_tickets();
    let client = ClientOptions::new()
        .alpn(["count"])
        .key_exchange(options.key_exchange())
        .trust(Trust::roots_der([certificate]))
        .key_shares_ahead(options.shares_ahead)
        .without_resumption();
    let mut transport = TransportConfig::new().initial_rtt(2 * ONE_WAY);
    if options.logs == Logs::On {
        let endless = Qlog::writer(std::io::sink()).max_log_bytes(u64::MAX);
        transport = transport.sampler(Arc::new(endless.start()?));
    }
    let transport = Arc::new(transport);
    Ok((
        Setup {
            provider: options.backend.client(&client)?,
            transport: transport.clone(),
        },
        Setup {
            provider: options.backend.server(&server)?,
            transport,
        },
    ))
}
