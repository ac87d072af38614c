//! quinn.

use std::{net::SocketAddr, sync::Arc};

use bytes::Bytes;
use hybriq_netbench::stacks;
use quinn::{ConnectionError, Endpoint, VarInt};
use tokio::sync::mpsc;

use super::settings;
use crate::{
    Activity, Answer, Bulk, Client, Connection, Early, Failure, Feature, Groups, Handshake, Peer,
    Reader, Role, SERVER_NAME, Server, Setup, Validation, Writer, echo_stream,
};

/// quinn 0.11 on rustls with aws-lc-rs.
///
/// Its public API tells neither the group nor the HelloRetryRequest.
#[derive(Clone, Copy, Debug)]
pub struct Quinn;

impl Quinn {
    /// Returns the configuration of a server.
    ///
    /// # Errors
    /// [`Failure::SetUp`] where quinn refuses it.
    pub fn server_config(setup: &Setup) -> Result<quinn::ServerConfig, Failure> {
        let tls = settings::tls(setup, Role::Server);
        stacks::quinn::server(&tls, &settings::transport(setup)).map_err(Failure::set_up)
    }
}

impl Peer for Quinn {
    fn name(&self) -> &'static str {
        "quinn"
    }

    fn supports(&self, role: Role, groups: Groups) -> bool {
        role == Role::Client || groups != Groups::ClassicalShareFirst
    }

    // rustls 0.23 follows the client's order.
    fn retries_for_post_quantum(&self) -> bool {
        false
    }

    fn lacks(&self, _role: Role, feature: Feature) -> Option<&'static str> {
        (feature == Feature::KeyUpdateCount).then_some("quinn counts no key updates")
    }

    fn serve(&self, setup: &Setup) -> Result<Server, Failure> {
        let config = Self::server_config(setup)?;
        let endpoint =
            Endpoint::server(config, ([127, 0, 0, 1], 0).into()).map_err(Failure::set_up)?;
        let address = endpoint.local_addr().map_err(Failure::set_up)?;
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
                    match incoming.await {
                        Ok(connection) => {
                            let _ = outcomes.send(Ok(Handshake::default()));
                            echo_connection(connection, server).await;
                        }
                        Err(error) => {
                            let _ = outcomes.send(Err(failure(&error)));
                        }
                    }
                });
            }
        });
        Ok(Server::new(address, received, activity, task))
    }

    fn client(&self, setup: &Setup) -> Result<Box<dyn Client>, Failure> {
        let mut endpoint = Endpoint::client(([127, 0, 0, 1], 0).into()).map_err(Failure::set_up)?;
        let tls = stacks::rustls::client(&settings::tls(setup, Role::Client));
        let (tls, _) = tls.map_err(Failure::set_up)?;
        let config = stacks::quinn::client(tls, &settings::transport(setup));
        endpoint.set_default_client_config(config.map_err(Failure::set_up)?);
        Ok(Box::new(Remembering(endpoint)))
    }
}

/// An endpoint whose configuration holds the tickets.
struct Remembering(Endpoint);

impl Remembering {
    fn opened(&self, connection: quinn::Connection) -> Box<dyn Connection> {
        Box::new(Opened {
            connection,
            endpoint: self.0.clone(),
        })
    }
}

impl Client for Remembering {
    fn connect(&self, server: SocketAddr) -> Answer<'_, Result<Box<dyn Connection>, Failure>> {
        Box::pin(async move {
            let connecting = self.0.connect(server, SERVER_NAME);
            let connecting = connecting.map_err(Failure::set_up)?;
            let connection = connecting.await.map_err(|error| failure(&error))?;
            Ok(self.opened(connection))
        })
    }

    fn connect_early(&self, server: SocketAddr, bulk: Bulk) -> Answer<'_, Result<Early, Failure>> {
        Box::pin(async move {
            let connecting = self.0.connect(server, SERVER_NAME);
            let connecting = connecting.map_err(Failure::set_up)?;
            let (connection, accepted) = connecting
                .into_0rtt()
                .map_err(|_| Failure::Other("no ticket allows early data".into()))?;
            let (writer, reader) = connection
                .open_bi()
                .await
                .map_err(|error| failure(&error))?;
            let exchange = bulk.exchange_on(Box::new(writer), Box::new(reader));
            let (echo, accepted) = tokio::join!(exchange, accepted);
            Ok(Early {
                connection: self.opened(connection),
                accepted,
                echo,
            })
        })
    }
}

async fn echo_connection(connection: quinn::Connection, activity: Arc<Activity>) {
    loop {
        tokio::select! {
            stream = connection.accept_bi() => {
                let Ok((writer, reader)) = stream else { return };
                if activity.is_to_update_keys() {
                    connection.force_key_update();
                }
                activity.saw_client_at(connection.remote_address());
                tokio::spawn(echo_stream(Box::new(writer), Box::new(reader)));
            }
            datagram = connection.read_datagram() => {
                let Ok(datagram) = datagram else { return };
                let _ = connection.send_datagram(datagram);
            }
        }
    }
}

struct Opened {
    connection: quinn::Connection,
    endpoint: Endpoint,
}

impl Connection for Opened {
    fn handshake(&self) -> Handshake {
        Handshake::default()
    }

    fn open(&self) -> Answer<'_, Result<(Writer, Reader), Failure>> {
        Box::pin(async move {
            let (writer, reader) = self
                .connection
                .open_bi()
                .await
                .map_err(|error| failure(&error))?;
            Ok((Box::new(writer) as Writer, Box::new(reader) as Reader))
        })
    }

    fn update_keys(&self) {
        self.connection.force_key_update();
    }

    fn datagram(&self, bytes: Vec<u8>) -> Answer<'_, Result<Vec<u8>, Failure>> {
        Box::pin(async move {
            let sent = self.connection.send_datagram(Bytes::from(bytes));
            sent.map_err(Failure::other)?;
            let datagram = self.connection.read_datagram().await;
            Ok(datagram.map_err(|error| failure(&error))?.into())
        })
    }

    fn migrate(&self) -> Answer<'_, Result<(), Failure>> {
        Box::pin(async move {
            let socket = std::net::UdpSocket::bind(("127.0.0.1", 0)).map_err(Failure::set_up)?;
            self.endpoint.rebind(socket).map_err(Failure::other)
        })
    }

    fn close(&self) {
        self.connection.close(VarInt::from_u32(0), b"");
    }
}

fn failure(error: &ConnectionError) -> Failure {
    stacks::quinn::close(error).map_or_else(|| Failure::other(error), Failure::from)
}
