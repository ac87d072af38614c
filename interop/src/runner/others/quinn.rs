//! The endpoint on quinn.

use std::{path::Path, sync::Arc, time::Duration};

use hybriq::error::Printable;
use hybriq_netbench::stacks;
use quinn::{
    Connection, Endpoint, IdleTimeout, TransportConfig,
    crypto::rustls::{QuicClientConfig, QuicServerConfig},
};
use rustls::{
    KeyLogFile, RootCertStore, Tls13CipherSuite,
    crypto::{
        CryptoProvider,
        aws_lc_rs::{self, cipher_suite},
    },
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    quic::Suite,
};
use tokio::task::JoinSet;

use super::{begin, finish};
use crate::runner::{Download, END, Failure, HANDSHAKE_TIME, Task, TestCase, client, hq, server};

impl Task {
    fn provider(&self) -> Result<Arc<CryptoProvider>, Failure> {
        let mut provider = aws_lc_rs::default_provider();
        if let Some(groups) = &self.params.groups {
            let known = |&group| stacks::rustls::group(group).map_err(|error| error.to_string());
            let groups = groups.iter().map(known);
            provider.kx_groups = groups.collect::<Result<_, _>>()?;
        } else if self.case.is_post_quantum() {
            provider
                .kx_groups
                .retain(|group| hybriq::Group(group.name().into()).is_post_quantum());
        }
        if self.case == TestCase::ChaCha20 {
            provider.cipher_suites = vec![cipher_suite::TLS13_CHACHA20_POLY1305_SHA256];
        }
        Ok(Arc::new(provider))
    }

    pub(super) async fn serve_by_quinn(self) -> Result<(), Failure> {
        let chain = CertificateDer::pem_file_iter(self.certs.join("cert.pem"))?;
        let key = PrivateKeyDer::from_pem_file(self.certs.join("priv.key"))?;
        let mut tls = rustls::ServerConfig::builder_with_provider(self.provider()?)
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_no_client_auth()
            .with_single_cert(chain.collect::<Result<_, _>>()?, key)?;
        tls.alpn_protocols = vec![hq::ALPN.to_vec()];
        tls.key_log = Arc::new(KeyLogFile::new());
        if self.case == TestCase::ZeroRtt {
            tls.max_early_data_size = u32::MAX;
        }
        let tls = QuicServerConfig::with_initial(Arc::new(tls), initial_suite()?)?;
        let mut config = quinn::ServerConfig::with_crypto(Arc::new(tls));
        config.transport_config(transport()?);
        let endpoint = Endpoint::server(config, self.listen)?;
        println!("listening on {}", endpoint.local_addr()?);
        let www: Arc<Path> = self.www.as_path().into();
        let accept = async {
            while let Some(incoming) = endpoint.accept().await {
                if self.case.has_retry() && !incoming.remote_address_validated() {
                    let _ = incoming.retry();
                    continue;
                }
                let www = Arc::clone(&www);
                tokio::spawn(async move {
                    let Ok(connecting) = incoming.accept() else {
                        return;
                    };
                    let connection = match connecting.into_0rtt() {
                        Ok((connection, _)) => connection,
                        Err(connecting) => match connecting.await {
                            Ok(connection) => connection,
                            Err(error) => return eprintln!("no connection: {}", Printable(error)),
                        },
                    };
                    while let Ok((mut send, recv)) = connection.accept_bi().await {
                        let www = Arc::clone(&www);
                        tokio::spawn(async move {
                            if let Err(error) = hq::answer(&www, &mut send, recv).await {
                                eprintln!("a request failed: {}", Printable(error));
                            }
                        });
                    }
                });
            }
        };
        tokio::select! {
            () = accept => {}
            () = server::stopped()? => {}
        }
        endpoint.close(0_u32.into(), b"");
        let _ = tokio::time::timeout(END, endpoint.wait_idle()).await;
        Ok(())
    }

    pub(super) async fn download_by_quinn(self) -> Result<(), Failure> {
        let downloads = self.files()?;
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(self.certs.join("ca.pem"))?)?;
        let mut tls = rustls::ClientConfig::builder_with_provider(self.provider()?)
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_root_certificates(roots)
            .with_no_client_auth();
        tls.alpn_protocols = vec![hq::ALPN.to_vec()];
        tls.key_log = Arc::new(KeyLogFile::new());
        tls.enable_early_data = self.case == TestCase::ZeroRtt;
        let tls = QuicClientConfig::with_initial(Arc::new(tls), initial_suite()?)?;
        let mut config = quinn::ClientConfig::new(Arc::new(tls));
        config.transport_config(transport()?);
        let mut endpoint: Option<Endpoint> = None;
        for (number, downloads) in self.connections(&downloads).into_iter().enumerate() {
            let Some(first) = downloads.first() else {
                return Err("there is no second file".into());
            };
            let server = client::Server::find(&first.uri).await?;
            let address = server.address()?;
            let endpoint = match &endpoint {
                Some(endpoint) => endpoint,
                None => endpoint.insert(Endpoint::client(client::unspecified(address))?),
            };
            let connecting = endpoint.connect_with(config.clone(), address, &server.name)?;
            let is_early = self.case == TestCase::ZeroRtt && number > 0;
            let connection = if is_early {
                let early = connecting.into_0rtt();
                early
                    .map_err(|_| "the server gave no ticket for early data")?
                    .0
            } else {
                connecting.await?
            };
            if self.case == TestCase::KeyUpdate {
                let connection = connection.clone();
                tokio::spawn(async move {
                    // RFC 9001 §6.1: not before the handshake is confirmed, which quinn does not tell.
                    tokio::time::sleep(Duration::from_millis(200)).await;
                    connection.force_key_update();
                });
            }
            get_all(&connection, downloads).await?;
            connection.close(0_u32.into(), b"");
        }
        if let Some(endpoint) = endpoint {
            let _ = tokio::time::timeout(END, endpoint.wait_idle()).await;
        }
        Ok(())
    }
}

/// Returns the suite of Initial packets, whatever others are allowed.
fn initial_suite() -> Result<Suite, Failure> {
    let suite = cipher_suite::TLS13_AES_128_GCM_SHA256.tls13();
    let suite = suite.and_then(Tls13CipherSuite::quic_suite);
    suite.ok_or_else(|| "rustls has no suite for Initial packets".into())
}

fn transport() -> Result<Arc<TransportConfig>, Failure> {
    let mut config = TransportConfig::default();
    let idle: Duration = HANDSHAKE_TIME;
    config
        .mtu_discovery_config(None)
        .max_idle_timeout(Some(IdleTimeout::try_from(idle)?));
    Ok(Arc::new(config))
}

async fn get_all(connection: &Connection, downloads: &[Download]) -> Result<(), Failure> {
    let mut tasks = JoinSet::new();
    for download in downloads {
        begin(&mut tasks, connection.open_bi().await?, download);
    }
    finish(tasks).await
}
