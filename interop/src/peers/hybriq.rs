//! hybriq itself.

use std::{
    env,
    net::SocketAddr,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use hybriq::{
    Backend, ClientConfig, ConnectError, ConnectionError, Endpoint, Group, Identity, KeyExchange,
    ServerConfig, TransportConfig, Trust, qlog::Qlog, tls::EarlyData,
};
use tokio::sync::mpsc;

use crate::{
    ALPN, Activity, Answer, Bulk, Client, Connection, Early, Failure, Feature, Groups, Handshake,
    NARROW_CONNECTION, NARROW_STREAM, Peer, Reader, Role, SERVER_NAME, Server, Setup, Validation,
    Windows, Writer, echo_stream,
};

/// hybriq itself, on one of its TLS providers.
#[derive(Clone, Copy, Debug)]
pub struct Hybriq(pub Backend);

impl Peer for Hybriq {
    fn name(&self) -> &'static str {
        match self.0 {
            Backend::Rustls => "hybriq/rustls",
            _ => "hybriq/s2n-tls",
        }
    }

    fn supports(&self, role: Role, groups: Groups) -> bool {
        // No policy of s2n-tls lists a classical group before a post-quantum one.
        groups != Groups::ClassicalShareFirst || (role == Role::Client && self.0 == Backend::Rustls)
    }

    fn names_refusals(&self) -> bool {
        true
    }

    fn lacks(&self, _role: Role, feature: Feature) -> Option<&'static str> {
        (feature == Feature::EarlyData && self.0 == Backend::S2nTls)
            .then_some("s2n-tls has no 0-RTT for QUIC")
    }

    fn serve(&self, setup: &Setup) -> Result<Server, Failure> {
        let certificate = &setup.certificate;
        let identity = Identity::from_pem(
            certificate.pem().as_bytes(),
            certificate.key_pem().as_bytes(),
        )
        .map_err(Failure::set_up)?;
        let mut config = ServerConfig::new(identity)
            .alpn([ALPN])
            .key_exchange(policy(setup.groups))
            .transport(transport(setup.windows))
            .tls(self.0);
        if setup.early_data.is_on() {
            config = config.accept_early_data();
        }
        let endpoint = Endpoint::server("127.0.0.1:0", config).map_err(Failure::set_up)?;
        let address = endpoint.local_address();
        let (outcomes, received) = mpsc::unbounded_channel();
        let validation = setup.validation;
        let activity = Arc::new(Activity::default());
        let server = Arc::clone(&activity);
        let task = tokio::spawn(async move {
            while let Some(incoming) = endpoint.accept().await {
                // Clients with a token of an earlier connection get a Retry too.
                if validation == Validation::ByRetry && incoming.may_retry() {
                    let _ = incoming.retry();
                    continue;
                }
                // A handshake that stalls must not hold up the others.
                let (outcomes, server) = (outcomes.clone(), Arc::clone(&server));
                tokio::spawn(async move {
                    match incoming.accept().await {
                        Ok(connection) => {
                            let _ = outcomes.send(Ok(told(&connection)));
                            echo_connection(connection, server).await;
                        }
                        Err(error) => {
                            let _ = outcomes.send(Err(failure(error)));
                        }
                    }
                });
            }
        });
        Ok(Server::new(address, received, activity, task))
    }

    fn client(&self, setup: &Setup) -> Result<Box<dyn Client>, Failure> {
        let mut config = ClientConfig::new()
            .alpn([ALPN])
            .trust(Trust::roots_der([setup.certificate.der()]))
            .key_exchange(policy(setup.groups))
            .transport(transport(setup.windows))
            .tls(self.0);
        if setup.early_data.is_on() {
            config = config.offer_early_data();
        }
        let endpoint = Endpoint::client(config).map_err(Failure::set_up)?;
        Ok(Box::new(Remembering(endpoint)))
    }
}

/// An endpoint whose configuration holds the tickets.
struct Remembering(Endpoint);

impl Client for Remembering {
    fn connect(&self, server: SocketAddr) -> Answer<'_, Result<Box<dyn Connection>, Failure>> {
        Box::pin(async move {
            let connecting = self.0.connect(server, SERVER_NAME);
            let connection = connecting.await.map_err(failure)?;
            Ok(Box::new(Opened(connection)) as Box<dyn Connection>)
        })
    }

    fn connect_early(&self, server: SocketAddr, bulk: Bulk) -> Answer<'_, Result<Early, Failure>> {
        Box::pin(async move {
            let connecting = self.0.connect_early(server, SERVER_NAME).early().await;
            let early =
                connecting.map_err(|_| Failure::Other("no ticket allows early data".into()))?;
            let (writer, reader) = early.open_bidi().await.map_err(Failure::other)?;
            let (echo, established) = tokio::join!(
                bulk.exchange_on(Box::new(writer), Box::new(reader)),
                early.established()
            );
            let (connection, early_data) = established.map_err(failure)?;
            Ok(Early {
                connection: Box::new(Opened(connection)),
                accepted: early_data == EarlyData::Accepted,
                echo,
            })
        })
    }
}

async fn echo_connection(connection: hybriq::Connection, activity: Arc<Activity>) {
    let connection = Arc::new(connection);
    loop {
        tokio::select! {
            stream = connection.accept_bidi() => {
                let Ok(Some((writer, reader))) = stream else { return };
                if activity.is_to_update_keys() {
                    connection.update_keys();
                }
                let (connection, activity) = (Arc::clone(&connection), Arc::clone(&activity));
                tokio::spawn(async move {
                    activity.saw_client_at(connection.peer_address());
                    echo_stream(Box::new(writer), Box::new(reader)).await;
                    activity.saw_key_updates(connection.stats().key_updates);
                });
            }
            datagram = connection.recv_datagram() => {
                let Ok(Some(datagram)) = datagram else { return };
                let _ = connection.send_datagram(datagram);
            }
        }
    }
}

struct Opened(hybriq::Connection);

impl Connection for Opened {
    fn handshake(&self) -> Handshake {
        told(&self.0)
    }

    fn open(&self) -> Answer<'_, Result<(Writer, Reader), Failure>> {
        Box::pin(async move {
            let (writer, reader) = self
                .0
                .open_bidi()
                .await
                .map_err(|error| failure(error.into()))?;
            Ok((Box::new(writer) as Writer, Box::new(reader) as Reader))
        })
    }

    fn update_keys(&self) {
        self.0.update_keys();
    }

    fn key_updates(&self) -> Option<u64> {
        Some(self.0.stats().key_updates)
    }

    fn datagram(&self, bytes: Vec<u8>) -> Answer<'_, Result<Vec<u8>, Failure>> {
        Box::pin(async move {
            self.0
                .send_datagram(Bytes::from(bytes))
                .map_err(Failure::other)?;
            let datagram = self.0.recv_datagram().await.map_err(Failure::other)?;
            let datagram = datagram.ok_or_else(|| Failure::Other("closed".into()))?;
            Ok(datagram.into())
        })
    }

    fn migrate(&self) -> Answer<'_, Result<(), Failure>> {
        Box::pin(async move {
            let moved = self.0.migrate(([127, 0, 0, 1], 0).into()).await;
            moved.map(drop).map_err(Failure::other)
        })
    }

    fn close(&self) {
        self.0.close(0, b"");
    }
}

fn told(connection: &hybriq::Connection) -> Handshake {
    let handshake = connection.handshake();
    let key_exchange = handshake.key_exchange;
    Handshake {
        group: Some(key_exchange.group),
        hello_retry: Some(key_exchange.hello_retry),
        resumed: Some(handshake.resumed),
    }
}

fn failure(error: ConnectError) -> Failure {
    match error {
        ConnectError::Connection(ConnectionError::KeyExchangeRefused { by, reason, .. }) => {
            Failure::KeyExchangeRefused { by, reason }
        }
        ConnectError::Connection(ConnectionError::Transport {
            by, code, reason, ..
        }) => {
            let reason = String::from_utf8_lossy(&reason).into_owned();
            Failure::Transport {
                by,
                code: code.0,
                reason,
            }
        }
        ConnectError::Connection(error) => Failure::other(error),
        other => Failure::set_up(other),
    }
}

fn transport(windows: Windows) -> TransportConfig {
    let config = match qlog() {
        Some(qlog) => TransportConfig::new().sampler(Arc::new(qlog.clone())),
        None => TransportConfig::new(),
    };
    match windows {
        Windows::Default => config,
        Windows::Narrow => config
            .stream_receive_window(NARROW_STREAM.into())
            .receive_window(NARROW_CONNECTION.into()),
    }
}

/// Returns the writer of logs into the directory that `QLOGDIR` names, as the QUIC interop runner
/// sets it. Made once, for all endpoints of the process.
fn qlog() -> Option<&'static Qlog> {
    static QLOG: OnceLock<Option<Qlog>> = OnceLock::new();
    let start = || {
        let directory = env::var_os("QLOGDIR").filter(|directory| !directory.is_empty())?;
        let builder = Qlog::directory(directory).max_connections(1000);
        match builder.start() {
            Ok(qlog) => Some(qlog),
            Err(error) => {
                eprintln!("no logs: QLOGDIR: {error}");
                None
            }
        }
    };
    QLOG.get_or_init(start).as_ref()
}

/// Waits until the logs of closed connections are written.
pub fn flush_logs() {
    if let Some(qlog) = qlog() {
        qlog.flush();
    }
}

fn policy(groups: Groups) -> KeyExchange {
    match groups {
        Groups::PreferPostQuantum => KeyExchange::PreferPostQuantum,
        Groups::RequirePostQuantum => KeyExchange::RequirePostQuantum,
        Groups::OnlyClassical => KeyExchange::OnlyClassical,
        Groups::ClassicalShareFirst => {
            KeyExchange::Exactly(vec![Group::X25519, Group::X25519MLKEM768])
        }
        Groups::OnlySecp384r1 => KeyExchange::Exactly(vec![Group::SECP384R1]),
    }
}
