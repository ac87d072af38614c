//! quiche 0.30 on BoringSSL: a TLS stack that shares nothing with the others.

mod driver;
mod stream;

use std::{
    net::SocketAddr,
    sync::{Arc, OnceLock, PoisonError},
};

use boring::{
    pkey::PKey,
    ssl::{SslContextBuilder, SslMethod},
    x509::{X509, store::X509StoreBuilder},
};
use hybriq::By;
use tokio::{
    net::UdpSocket,
    sync::{mpsc, oneshot},
};

use self::driver::{Accept, Command, Driver, Line, Ticket, Told, User};
use crate::{
    ALPN, Activity, Answer, Bulk, Client, Connection, Early, Failure, Feature, Groups, Handshake,
    NARROW_CONNECTION, NARROW_STREAM, Peer, Reader, Role, SERVER_NAME, Server, Setup, Validation,
    Windows, Writer,
};

/// quiche with its own TLS library.
///
/// Its public API tells neither the group nor the HelloRetryRequest.
#[derive(Clone, Copy, Debug)]
pub struct Quiche;

impl Peer for Quiche {
    fn name(&self) -> &'static str {
        "quiche"
    }

    fn supports(&self, role: Role, groups: Groups) -> bool {
        // BoringSSL sends shares for the first classical and the first post-quantum group.
        role == Role::Client && groups != Groups::ClassicalShareFirst || role == Role::Server
    }

    // BoringSSL follows the client's order.
    fn retries_for_post_quantum(&self) -> bool {
        false
    }

    fn lacks(&self, role: Role, feature: Feature) -> Option<&'static str> {
        match feature {
            Feature::KeyUpdates => Some("quiche starts no key updates"),
            Feature::KeyUpdateCount => Some("quiche counts no key updates"),
            // Its own clients wait for it just as often.
            Feature::Rebinding if role == Role::Server => {
                Some("quiche's server often stalls when its client is rebound in a transfer")
            }
            _ => None,
        }
    }

    fn serve(&self, setup: &Setup) -> Result<Server, Failure> {
        let config = config(setup, Role::Server)?;
        let socket = std::net::UdpSocket::bind(("127.0.0.1", 0)).map_err(Failure::set_up)?;
        socket.set_nonblocking(true).map_err(Failure::set_up)?;
        let socket = UdpSocket::from_std(socket).map_err(Failure::set_up)?;
        let address = socket.local_addr().map_err(Failure::set_up)?;
        let (outcomes, received) = mpsc::unbounded_channel();
        let activity = Arc::new(Activity::default());
        let user = {
            let activity = Arc::clone(&activity);
            move || User::Server {
                outcomes: outcomes.clone(),
                activity: Arc::clone(&activity),
                told: false,
                accepted: 0,
            }
        };
        let accept = accept(config, setup.validation, address, user);
        let driver = Driver::new(socket, Some(accept)).map_err(Failure::set_up)?;
        let task = tokio::spawn(driver);
        Ok(Server::new(address, received, activity, task))
    }

    fn client(&self, setup: &Setup) -> Result<Box<dyn Client>, Failure> {
        // A wrong configuration must be reported here.
        config(setup, Role::Client)?;
        Ok(Box::new(Remembering {
            setup: setup.clone(),
            ticket: Ticket::default(),
        }))
    }
}

/// Accepts a new connection, at once or with the token of a Retry.
fn accept(
    mut config: quiche::Config,
    validation: Validation,
    address: SocketAddr,
    user: impl Fn() -> User + Send + 'static,
) -> Accept {
    Box::new(move |header, from| {
        if header.ty != quiche::Type::Initial {
            return (None, None);
        }
        let scid = id();
        let scid = quiche::ConnectionId::from_ref(&scid);
        // The token is the id that the client must return. Enough for a test, although others could
        // make it too.
        let token = header.token.as_deref().unwrap_or_default();
        let connection = match (validation, token) {
            (Validation::ByHandshake, _) => quiche::accept(&scid, None, address, from, &mut config),
            (Validation::ByRetry, []) => {
                let mut packet = vec![0; 1200];
                let (theirs, first) = (&header.scid, &header.dcid);
                let len = quiche::retry(theirs, first, &scid, first, header.version, &mut packet);
                packet.truncate(len.unwrap_or_default());
                return (Some(packet), None);
            }
            (Validation::ByRetry, token) => {
                let first = quiche::ConnectionId::from_ref(token);
                quiche::accept(&header.dcid, Some(&first), address, from, &mut config)
            }
        };
        (None, connection.ok().map(|it| Line::new(it, user())))
    })
}

/// A client with its latest ticket.
struct Remembering {
    setup: Setup,
    ticket: Ticket,
}

impl Remembering {
    async fn start(
        &self,
        server: SocketAddr,
    ) -> Result<(Opened, oneshot::Receiver<Result<Told, Failure>>), Failure> {
        let mut config = config(&self.setup, Role::Client)?;
        let socket = UdpSocket::bind(("127.0.0.1", 0)).await;
        let socket = socket.map_err(Failure::set_up)?;
        let local = socket.local_addr().map_err(Failure::set_up)?;
        let scid = id();
        let scid = quiche::ConnectionId::from_ref(&scid);
        let mut connection = quiche::connect(Some(SERVER_NAME), &scid, local, server, &mut config)
            .map_err(Failure::set_up)?;
        let ticket = self.ticket.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ticket) = ticket.as_deref() {
            connection.set_session(ticket).map_err(Failure::set_up)?;
        }
        drop(ticket);
        Opened::new(connection, socket, Arc::clone(&self.ticket))
    }
}

impl Client for Remembering {
    fn connect(&self, server: SocketAddr) -> Answer<'_, Result<Box<dyn Connection>, Failure>> {
        Box::pin(async move {
            let (opened, established) = self.start(server).await?;
            let told = established.await.map_err(Failure::other)??;
            let _ = opened.told.set(told);
            Ok(Box::new(opened) as Box<dyn Connection>)
        })
    }

    fn connect_early(&self, server: SocketAddr, bulk: Bulk) -> Answer<'_, Result<Early, Failure>> {
        Box::pin(async move {
            let (opened, established) = self.start(server).await?;
            let (echo, told) = tokio::join!(bulk.exchange(&opened), established);
            let told = told.map_err(Failure::other)??;
            let _ = opened.told.set(told);
            Ok(Early {
                accepted: told.early_data,
                connection: Box::new(opened),
                echo,
            })
        })
    }
}

/// A connection that a driver runs.
struct Opened {
    commands: mpsc::UnboundedSender<Command>,
    told: OnceLock<Told>,
}

impl Opened {
    fn new(
        connection: quiche::Connection,
        socket: UdpSocket,
        ticket: Ticket,
    ) -> Result<(Self, oneshot::Receiver<Result<Told, Failure>>), Failure> {
        let (established, outcome) = oneshot::channel();
        let (to, commands) = mpsc::unbounded_channel();
        let mut driver = Driver::new(socket, None).map_err(Failure::set_up)?;
        driver.lines.push(Line::new(
            connection,
            User::Client {
                established: Some(established),
                commands,
                next_stream: 0,
                wants: Vec::new(),
                echoes: Vec::new(),
                ticket,
            },
        ));
        tokio::spawn(driver);
        let opened = Self {
            commands: to,
            told: OnceLock::new(),
        };
        Ok((opened, outcome))
    }

    async fn ask<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<T>) -> Command,
    ) -> Result<T, Failure> {
        let (to, answer) = oneshot::channel();
        let _ = self.commands.send(command(to));
        answer
            .await
            .map_err(|_| Failure::Other("the connection is over".into()))
    }
}

impl Connection for Opened {
    fn handshake(&self) -> Handshake {
        Handshake {
            resumed: self.told.get().map(|told| told.resumed),
            ..Handshake::default()
        }
    }

    fn open(&self) -> Answer<'_, Result<(Writer, Reader), Failure>> {
        Box::pin(self.ask(Command::Open))
    }

    fn datagram(&self, bytes: Vec<u8>) -> Answer<'_, Result<Vec<u8>, Failure>> {
        Box::pin(self.ask(|to| Command::Datagram(bytes, to)))
    }

    fn migrate(&self) -> Answer<'_, Result<(), Failure>> {
        Box::pin(async move {
            let moved = self.ask(Command::Migrate).await?;
            moved
                .then_some(())
                .ok_or_else(|| Failure::Other("it could not move".into()))
        })
    }

    fn close(&self) {
        let _ = self.commands.send(Command::Close);
    }
}

fn id() -> [u8; quiche::MAX_CONN_ID_LEN] {
    let mut id = [0; quiche::MAX_CONN_ID_LEN];
    // If no random bytes can be drawn, the id still serves one connection.
    let _ = aws_lc_rs::rand::fill(&mut id);
    id
}

/// Returns the reason for the end of a connection.
fn failure_of(connection: &quiche::Connection) -> Failure {
    let told = |by, error: &quiche::ConnectionError| Failure::Transport {
        by,
        code: error.error_code,
        reason: String::from_utf8_lossy(&error.reason).into_owned(),
    };
    match (connection.peer_error(), connection.local_error()) {
        (Some(error), _) => told(By::Peer, error),
        (_, Some(error)) => told(By::Local, error),
        _ => Failure::Other("timed out".into()),
    }
}

fn groups(groups: Groups) -> &'static str {
    match groups {
        Groups::PreferPostQuantum => "X25519MLKEM768:X25519:P-256:P-384",
        Groups::RequirePostQuantum => "X25519MLKEM768",
        Groups::OnlyClassical => "X25519:P-256:P-384",
        Groups::ClassicalShareFirst => "X25519:X25519MLKEM768",
        Groups::OnlySecp384r1 => "P-384",
    }
}

fn config(setup: &Setup, role: Role) -> Result<quiche::Config, Failure> {
    let mut tls = SslContextBuilder::new(SslMethod::tls()).map_err(Failure::set_up)?;
    tls.set_curves_list(groups(setup.groups))
        .map_err(Failure::set_up)?;
    let certificate = X509::from_der(&setup.certificate.der()).map_err(Failure::set_up)?;
    match role {
        Role::Server => {
            let key = PKey::private_key_from_pem(setup.certificate.key_pem().as_bytes());
            tls.set_certificate(&certificate).map_err(Failure::set_up)?;
            tls.set_private_key(&*key.map_err(Failure::set_up)?)
                .map_err(Failure::set_up)?;
        }
        Role::Client => {
            let mut store = X509StoreBuilder::new().map_err(Failure::set_up)?;
            store.add_cert(&certificate).map_err(Failure::set_up)?;
            tls.set_cert_store_builder(store);
        }
    }
    let mut config = quiche::Config::with_boring_ssl_ctx_builder(quiche::PROTOCOL_VERSION, tls)
        .map_err(Failure::set_up)?;
    config.verify_peer(role == Role::Client);
    config
        .set_application_protos(&[ALPN.as_bytes()])
        .map_err(Failure::set_up)?;
    let (stream, connection) = match setup.windows {
        Windows::Default => (4 << 20, 16 << 20),
        Windows::Narrow => (NARROW_STREAM.into(), NARROW_CONNECTION.into()),
    };
    config.set_initial_max_data(connection);
    config.set_max_connection_window(connection);
    config.set_max_stream_window(stream);
    config.set_initial_max_stream_data_bidi_local(stream);
    config.set_initial_max_stream_data_bidi_remote(stream);
    config.set_initial_max_stream_data_uni(stream);
    config.set_initial_max_streams_bidi(100);
    config.set_initial_max_streams_uni(100);
    config.set_max_idle_timeout(30_000);
    config.set_active_connection_id_limit(4);
    config.enable_dgram(true, 64, 64);
    if setup.early_data.is_on() {
        config.enable_early_data();
    }
    Ok(config)
}
