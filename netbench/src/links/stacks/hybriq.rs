use std::net::SocketAddr;

use hybriq::congestion::Congestion;
use hybriq::tls::{Identity, Trust};
use hybriq::{ClientConfig, Endpoint, ServerConfig, TransportConfig};

use super::{Answer, Connection, Driver, Reader, Sent, Server, Setup, Writer};
use crate::Failure;
use crate::certificate::SERVER_NAME;
use crate::drivers::ALPN;

/// This project's own.
pub(super) struct Hybriq {
    name: &'static str,
    congestion: Congestion,
}

/// What the other stacks find by path MTU discovery on these links, told: a window counted in
/// datagrams grows with them.
const DATAGRAM: u16 = 1452;

impl Hybriq {
    pub(super) fn new(congestion: Option<&str>) -> Result<Self, Failure> {
        let known = [
            ("new-reno", Congestion::NewReno),
            ("cubic", Congestion::Cubic),
            ("bbr", Congestion::Bbr),
            ("prague", Congestion::Prague),
        ];
        let names = known.each_ref().map(|(name, _)| *name).join(", ");
        let wanted = congestion.unwrap_or("cubic");
        known
            .into_iter()
            .find(|(name, _)| *name == wanted)
            .map(|(name, congestion)| Self { name, congestion })
            .ok_or_else(|| {
                format!("unknown congestion controller '{wanted}'; valid: {names}").into()
            })
    }

    fn transport(&self, setup: &Setup) -> TransportConfig {
        let window = setup.window.into();
        TransportConfig::new()
            .receive_window(window)
            .stream_receive_window(window)
            .max_send_buffer(window)
            .datagram_size(DATAGRAM)
            .without_mtu_discovery()
            .congestion(self.congestion.clone())
    }
}

impl Driver for Hybriq {
    fn name(&self) -> &'static str {
        "hybriq"
    }

    fn congestion(&self) -> String {
        self.name.to_owned()
    }

    fn serve(&self, setup: &Setup, key: &str) -> Result<Box<dyn Server>, Failure> {
        let identity = Identity::from_pem(setup.chain.as_bytes(), key.as_bytes())?;
        let config = ServerConfig::new(identity)
            .alpn([ALPN])
            .transport(self.transport(setup));
        Ok(Box::new(Listening(Endpoint::server(
            "127.0.0.1:0",
            config,
        )?)))
    }

    fn connect<'a>(
        &'a self,
        setup: &'a Setup,
        server: SocketAddr,
    ) -> Answer<'a, Box<dyn Connection>> {
        Box::pin(async move {
            let config = ClientConfig::new()
                .alpn([ALPN])
                .trust(Trust::roots_pem(setup.chain.as_bytes())?)
                .transport(self.transport(setup));
            let endpoint = Endpoint::client(config)?;
            let connection = endpoint.connect(server, SERVER_NAME).await?;
            Ok(Box::new(connection) as Box<dyn Connection>)
        })
    }
}

struct Listening(Endpoint);

impl Server for Listening {
    fn address(&self) -> SocketAddr {
        self.0.local_address()
    }

    fn accept(&mut self) -> Answer<'_, Box<dyn Connection>> {
        Box::pin(async {
            let incoming = self.0.accept().await.ok_or("the endpoint is closed")?;
            Ok(Box::new(incoming.accept().await?) as Box<dyn Connection>)
        })
    }
}

impl Connection for hybriq::Connection {
    fn open(&mut self) -> Answer<'_, (Writer, Reader)> {
        Box::pin(async {
            let (writer, reader) = self.open_bidi().await?;
            Ok((Box::new(writer) as Writer, Box::new(reader) as Reader))
        })
    }

    fn accept(&mut self) -> Answer<'_, (Writer, Reader)> {
        Box::pin(async {
            let (writer, reader) = self.accept_bidi().await?.ok_or("closed without a stream")?;
            Ok((Box::new(writer) as Writer, Box::new(reader) as Reader))
        })
    }

    fn sent(&self) -> Sent {
        let stats = self.stats();
        Sent {
            packets: stats.packets_sent,
            lost: stats.packets_lost,
        }
    }

    fn close(&mut self) {
        hybriq::Connection::close(self, 0, b"");
    }
}
