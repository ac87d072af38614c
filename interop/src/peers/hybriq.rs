use std::net::SocketAddr;

use hybriq::{
    Backend, ClientConfig, ConnectError, ConnectionError, Endpoint, Group, Identity, KeyExchange,
    ServerConfig, TransportConfig, Trust,
};
use tokio::sync::mpsc;

use crate::{
    ALPN, Answer, Connection, Failure, Groups, Handshake, NARROW_CONNECTION, NARROW_STREAM, Peer,
    Reader, Role, SERVER_NAME, Server, Setup, Windows, Writer, echo_stream,
};

/// hybriq itself, on one of its TLS providers.
#[derive(Clone, Copy, Debug)]
pub struct Hybriq(pub Backend);

impl Peer for Hybriq {
    fn name(&self) -> &'static str {
        match self.0 {
            Backend::Rustls => "hybriq/rustls",
            Backend::S2nTls => "hybriq/s2n-tls",
        }
    }

    fn supports(&self, role: Role, groups: Groups) -> bool {
        // No policy of s2n-tls lists a classical group before a post-quantum one.
        groups != Groups::ClassicalShareFirst || (role == Role::Client && self.0 == Backend::Rustls)
    }

    fn names_refusals(&self) -> bool {
        true
    }

    fn serve(&self, setup: &Setup) -> Result<Server, Failure> {
        let certificate = &setup.certificate;
        let identity = Identity::from_pem(
            certificate.pem().as_bytes(),
            certificate.key_pem().as_bytes(),
        )
        .map_err(Failure::set_up)?;
        let config = ServerConfig::new(identity)
            .alpn([ALPN])
            .key_exchange(policy(setup.groups))
            .transport(transport(setup.windows))
            .tls(self.0);
        let endpoint = Endpoint::server("127.0.0.1:0", config).map_err(Failure::set_up)?;
        let address = endpoint.local_address();
        let (outcomes, received) = mpsc::unbounded_channel();
        let task = tokio::spawn(async move {
            while let Some(incoming) = endpoint.accept().await {
                match incoming.accept().await {
                    Ok(connection) => {
                        let _ = outcomes.send(Ok(told(&connection)));
                        tokio::spawn(echo_connection(connection));
                    }
                    Err(error) => {
                        let _ = outcomes.send(Err(failure(error)));
                    }
                }
            }
        });
        Ok(Server::new(address, received, task))
    }

    fn connect<'a>(
        &'a self,
        setup: &'a Setup,
        server: SocketAddr,
    ) -> Answer<'a, Result<Box<dyn Connection>, Failure>> {
        Box::pin(async move {
            let config = ClientConfig::new()
                .alpn([ALPN])
                .trust(Trust::roots_der([setup.certificate.der()]))
                .key_exchange(policy(setup.groups))
                .transport(transport(setup.windows))
                .tls(self.0);
            let endpoint = Endpoint::client(config).map_err(Failure::set_up)?;
            let connection = endpoint
                .connect(server, SERVER_NAME)
                .await
                .map_err(failure)?;
            Ok(Box::new(Opened(connection)) as Box<dyn Connection>)
        })
    }
}

async fn echo_connection(connection: hybriq::Connection) {
    while let Ok(Some((writer, reader))) = connection.accept_bidi().await {
        tokio::spawn(echo_stream(Box::new(writer), Box::new(reader)));
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

    fn close(&self) {
        self.0.close(0, b"");
    }
}

fn told(connection: &hybriq::Connection) -> Handshake {
    let key_exchange = connection.handshake().key_exchange;
    Handshake {
        group: Some(key_exchange.group),
        hello_retry: Some(key_exchange.hello_retry),
    }
}

fn failure(error: ConnectError) -> Failure {
    match error {
        ConnectError::Connection(ConnectionError::KeyExchangeRefused { by, reason }) => {
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
    match windows {
        Windows::Default => TransportConfig::new(),
        Windows::Narrow => TransportConfig::new()
            .stream_receive_window(NARROW_STREAM.into())
            .receive_window(NARROW_CONNECTION.into()),
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
