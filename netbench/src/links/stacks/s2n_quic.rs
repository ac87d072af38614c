use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use s2n_quic::client::Connect;
use s2n_quic::provider::event::{self, events};
use s2n_quic::provider::io::Default as Io;
use s2n_quic::provider::limits::Limits;
use s2n_quic::provider::tls::s2n_tls as tls;
use s2n_tls::security::Policy;

use super::{Answer, Connection, Driver, Reader, Sent, Server, Setup, Writer};
use crate::Failure;
use crate::certificate::SERVER_NAME;
use crate::drivers::ALPN;

/// s2n-quic on s2n-tls.
pub(super) struct S2nQuic;

/// The policy that offers X25519MLKEM768 first.
const POLICY: &str = "default_pq";

impl Driver for S2nQuic {
    fn name(&self) -> &'static str {
        "s2n-quic"
    }

    fn congestion(&self) -> String {
        "cubic (its default)".to_owned()
    }

    fn serve(&self, setup: &Setup, key: &str) -> Result<Box<dyn Server>, Failure> {
        let mut tls = tls::Server::builder()
            .with_application_protocols([ALPN])?
            .with_certificate(setup.chain.as_str(), key)?;
        tls.config_mut()
            .set_security_policy(&Policy::from_version(POLICY)?)?;
        let counts = Arc::new(Counts::default());
        let server = s2n_quic::Server::builder()
            .with_tls(tls.build()?)?
            .with_limits(limits(setup)?)?
            .with_event(Observer(Arc::clone(&counts)))?
            .with_io(io(setup)?)?
            .start()?;
        Ok(Box::new(Listening { server, counts }))
    }

    fn connect<'a>(
        &'a self,
        setup: &'a Setup,
        server: SocketAddr,
    ) -> Answer<'a, Box<dyn Connection>> {
        Box::pin(async move {
            let mut tls = tls::Client::builder()
                .with_application_protocols([ALPN])?
                .with_empty_trust_store()?
                .with_certificate(setup.chain.as_str())?;
            tls.config_mut()
                .set_security_policy(&Policy::from_version(POLICY)?)?;
            let counts = Arc::new(Counts::default());
            let client = s2n_quic::Client::builder()
                .with_tls(tls.build()?)?
                .with_limits(limits(setup)?)?
                .with_event(Observer(Arc::clone(&counts)))?
                .with_io(io(setup)?)?
                .start()?;
            let connect = Connect::new(server).with_server_name(SERVER_NAME);
            let connection = client.connect(connect).await?;
            Ok(Box::new(Opened {
                connection,
                counts,
                _client: Some(client),
            }) as Box<dyn Connection>)
        })
    }
}

fn io(setup: &Setup) -> Result<Io, Failure> {
    Ok(Io::builder()
        .with_receive_address(([127, 0, 0, 1], 0).into())?
        .with_recv_buffer_size(setup.socket_buffer as usize)?
        .with_send_buffer_size(setup.socket_buffer as usize)?
        .build()?)
}

fn limits(setup: &Setup) -> Result<Limits, Failure> {
    let window = setup.window.into();
    Ok(Limits::default()
        .with_data_window(window)?
        .with_bidirectional_local_data_window(window)?
        .with_bidirectional_remote_data_window(window)?
        .with_max_send_buffer_size(setup.window)?)
}

struct Listening {
    server: s2n_quic::Server,
    counts: Arc<Counts>,
}

impl Server for Listening {
    fn address(&self) -> SocketAddr {
        self.server
            .local_addr()
            .unwrap_or_else(|_| ([0, 0, 0, 0], 0).into())
    }

    fn accept(&mut self) -> Answer<'_, Box<dyn Connection>> {
        Box::pin(async {
            let connection = self.server.accept().await.ok_or("the endpoint is closed")?;
            Ok(Box::new(Opened {
                connection,
                counts: Arc::clone(&self.counts),
                _client: None,
            }) as Box<dyn Connection>)
        })
    }
}

struct Opened {
    connection: s2n_quic::Connection,
    counts: Arc<Counts>,
    _client: Option<s2n_quic::Client>,
}

impl Connection for Opened {
    fn open(&mut self) -> Answer<'_, (Writer, Reader)> {
        Box::pin(async {
            let stream = self.connection.open_bidirectional_stream().await?;
            let (reader, writer) = stream.split();
            Ok((Box::new(writer) as Writer, Box::new(reader) as Reader))
        })
    }

    fn accept(&mut self) -> Answer<'_, (Writer, Reader)> {
        Box::pin(async {
            let stream = self.connection.accept_bidirectional_stream().await?;
            let (reader, writer) = stream.ok_or("closed without a stream")?.split();
            Ok((Box::new(writer) as Writer, Box::new(reader) as Reader))
        })
    }

    fn sent(&self) -> Sent {
        Sent {
            packets: self.counts.packets.load(Ordering::Relaxed),
            lost: self.counts.lost.load(Ordering::Relaxed),
        }
    }

    fn close(&mut self) {
        self.connection.close(0_u32.into());
    }
}

/// Of all connections of an endpoint: each has one here.
#[derive(Default)]
struct Counts {
    packets: AtomicU64,
    lost: AtomicU64,
}

struct Observer(Arc<Counts>);

impl event::Subscriber for Observer {
    type ConnectionContext = ();

    fn create_connection_context(
        &mut self,
        _meta: &event::ConnectionMeta,
        _info: &event::ConnectionInfo,
    ) {
    }

    fn on_packet_sent(
        &mut self,
        _context: &mut (),
        _meta: &event::ConnectionMeta,
        _event: &events::PacketSent,
    ) {
        self.0.packets.fetch_add(1, Ordering::Relaxed);
    }

    fn on_packet_lost(
        &mut self,
        _context: &mut (),
        _meta: &event::ConnectionMeta,
        event: &events::PacketLost,
    ) {
        // quinn does not count these among the lost either.
        if !event.is_mtu_probe {
            self.0.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}
