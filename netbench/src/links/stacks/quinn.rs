use std::net::SocketAddr;
use std::sync::Arc;

use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{Endpoint, EndpointConfig, TokioRuntime, TransportConfig, VarInt};
use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::{self, kx_group};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::TLS13;
use socket2::{Domain, Protocol, Socket, Type};

use super::{Answer, Connection, Driver, Reader, Sent, Server, Setup, Writer};
use crate::Failure;
use crate::certificate::SERVER_NAME;
use crate::drivers::ALPN;

/// quinn on rustls with aws-lc-rs.
pub(super) struct Quinn;

impl Driver for Quinn {
    fn name(&self) -> &'static str {
        "quinn"
    }

    fn congestion(&self) -> String {
        "cubic (its default)".to_owned()
    }

    fn serve(&self, setup: &Setup, key: &str) -> Result<Box<dyn Server>, Failure> {
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes())?;
        let mut tls = rustls::ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13])?
            .with_no_client_auth()
            .with_single_cert(chain(setup)?, key)?;
        tls.alpn_protocols = vec![ALPN.into()];
        let tls = QuicServerConfig::try_from(tls)?;
        let mut config = quinn::ServerConfig::with_crypto(Arc::new(tls));
        config.transport_config(transport(setup));
        Ok(Box::new(endpoint(setup, Some(config))?))
    }

    fn connect<'a>(
        &'a self,
        setup: &'a Setup,
        server: SocketAddr,
    ) -> Answer<'a, Box<dyn Connection>> {
        Box::pin(async move {
            let mut roots = RootCertStore::empty();
            for certificate in chain(setup)? {
                roots.add(certificate)?;
            }
            let mut tls = rustls::ClientConfig::builder_with_provider(provider())
                .with_protocol_versions(&[&TLS13])?
                .with_root_certificates(roots)
                .with_no_client_auth();
            tls.alpn_protocols = vec![ALPN.into()];
            let mut config = quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
            config.transport_config(transport(setup));
            let connecting = endpoint(setup, None)?.connect_with(config, server, SERVER_NAME)?;
            Ok(Box::new(connecting.await?) as Box<dyn Connection>)
        })
    }
}

/// On a socket with buffers as large as the others have them; quinn leaves them as they are.
fn endpoint(setup: &Setup, config: Option<quinn::ServerConfig>) -> Result<Endpoint, Failure> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_recv_buffer_size(setup.socket_buffer as usize)?;
    socket.set_send_buffer_size(setup.socket_buffer as usize)?;
    socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into())?;
    Ok(Endpoint::new(
        EndpointConfig::default(),
        config,
        socket.into(),
        Arc::new(TokioRuntime),
    )?)
}

fn transport(setup: &Setup) -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
    config
        .stream_receive_window(setup.window.into())
        .receive_window(setup.window.into())
        .send_window(setup.window.into());
    Arc::new(config)
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(CryptoProvider {
        kx_groups: vec![kx_group::X25519MLKEM768],
        ..aws_lc_rs::default_provider()
    })
}

fn chain(setup: &Setup) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let chain: Result<_, _> = CertificateDer::pem_slice_iter(setup.chain.as_bytes()).collect();
    Ok(chain?)
}

impl Server for Endpoint {
    fn address(&self) -> SocketAddr {
        self.local_addr()
            .unwrap_or_else(|_| ([0, 0, 0, 0], 0).into())
    }

    fn accept(&mut self) -> Answer<'_, Box<dyn Connection>> {
        Box::pin(async {
            let incoming = Endpoint::accept(self)
                .await
                .ok_or("the endpoint is closed")?;
            Ok(Box::new(incoming.await?) as Box<dyn Connection>)
        })
    }
}

impl Connection for quinn::Connection {
    fn open(&mut self) -> Answer<'_, (Writer, Reader)> {
        Box::pin(async {
            let (writer, reader) = self.open_bi().await?;
            Ok((Box::new(writer) as Writer, Box::new(reader) as Reader))
        })
    }

    fn accept(&mut self) -> Answer<'_, (Writer, Reader)> {
        Box::pin(async {
            let (writer, reader) = self.accept_bi().await?;
            Ok((Box::new(writer) as Writer, Box::new(reader) as Reader))
        })
    }

    fn sent(&self) -> Sent {
        let path = self.stats().path;
        Sent {
            packets: path.sent_packets,
            lost: path.lost_packets,
        }
    }

    fn close(&mut self) {
        quinn::Connection::close(self, VarInt::from_u32(0), b"");
    }
}
