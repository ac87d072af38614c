//! quinn and noq, after the examples of either and their tool `perf`.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use rustls::pki_types::PrivatePkcs8KeyDer;
use tokio::task::JoinSet;

use super::{ALPN, CHUNK, Failure, IN_FLIGHT, Load, NAME, Own, Stack, asked, bind, part, run};

fn server_tls(own: &Own) -> Result<rustls::ServerConfig, Failure> {
    let key = PrivatePkcs8KeyDer::from(own.0.signing_key.serialize_der());
    let mut tls = rustls::ServerConfig::builder_with_provider(
        rustls::crypto::aws_lc_rs::default_provider().into(),
    )
    .with_protocol_versions(&[&rustls::version::TLS13])?
    .with_no_client_auth()
    .with_single_cert(vec![own.0.cert.der().clone()], key.into())?;
    tls.alpn_protocols = vec![ALPN.to_vec()];
    Ok(tls)
}

fn client_tls(own: &Own) -> Result<rustls::ClientConfig, Failure> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(own.0.cert.der().clone())?;
    let mut tls = rustls::ClientConfig::builder_with_provider(
        rustls::crypto::aws_lc_rs::default_provider().into(),
    )
    .with_protocol_versions(&[&rustls::version::TLS13])?
    .with_root_certificates(roots)
    .with_no_client_auth();
    tls.alpn_protocols = vec![ALPN.to_vec()];
    Ok(tls)
}

/// Implements a stack with the API that quinn and noq have in common.
macro_rules! stack {
    ($name:ident, $library:ident, $read:expr) => {
        pub(super) struct $name;

        impl Stack for $name {
            fn serve(own: &Own, started: impl FnOnce(SocketAddr)) -> Result<(), Failure> {
                use $library::crypto::rustls::QuicServerConfig;
                run(async {
                    let tls = QuicServerConfig::try_from(server_tls(own)?)?;
                    let config = $library::ServerConfig::with_crypto(Arc::new(tls));
                    let endpoint = $library::Endpoint::new(
                        $library::EndpointConfig::default(),
                        Some(config),
                        bind()?,
                        Arc::new($library::TokioRuntime),
                    )?;
                    started(endpoint.local_addr()?);
                    let zeros = Bytes::from(vec![0; CHUNK]);
                    while let Some(incoming) = endpoint.accept().await {
                        let connection = incoming.await?;
                        while let Ok((mut send, mut receive)) = connection.accept_bi().await {
                            let zeros = zeros.clone();
                            tokio::spawn(async move {
                                let request = receive.read_to_end(1024).await?;
                                let mut left = asked(&request).ok_or("a short request")?;
                                while left > 0 {
                                    let part = part(&zeros, left);
                                    left -= part.len() as u64;
                                    send.write_chunk(part).await?;
                                }
                                send.finish()?;
                                Ok::<(), Failure>(())
                            });
                        }
                    }
                    Ok(())
                })
            }

            fn load(
                own: &Own,
                server: SocketAddr,
                loads: [Load; 2],
                mut done: impl FnMut(),
            ) -> Result<(), Failure> {
                use $library::crypto::rustls::QuicClientConfig;
                run(async {
                    let tls = QuicClientConfig::try_from(client_tls(own)?)?;
                    let endpoint = $library::Endpoint::new(
                        $library::EndpointConfig::default(),
                        None,
                        bind()?,
                        Arc::new($library::TokioRuntime),
                    )?;
                    let config = $library::ClientConfig::new(Arc::new(tls));
                    let connection = endpoint.connect_with(config, server, NAME)?.await?;
                    for load in loads {
                        let mut users = JoinSet::new();
                        let count = load.requests.min(IN_FLIGHT);
                        for user in 0..count {
                            let connection = connection.clone();
                            users.spawn(async move {
                                let message = load.message();
                                for _ in (user..load.requests).step_by(count as usize) {
                                    let (mut send, mut receive) = connection.open_bi().await?;
                                    send.write_chunk(message.clone()).await?;
                                    send.finish()?;
                                    let mut received = 0;
                                    while let Some(bytes) = $read(&mut receive).await? {
                                        received += bytes.len() as u64;
                                    }
                                    if received != load.response {
                                        return Err("a short response".into());
                                    }
                                }
                                Ok::<(), Failure>(())
                            });
                        }
                        while let Some(user) = users.join_next().await {
                            user??;
                        }
                        done();
                    }
                    Ok(())
                })
            }
        }
    };
}

#[cfg(feature = "quinn")]
stack!(
    Quinn,
    quinn,
    async |stream: &mut quinn::RecvStream| -> Result<Option<Bytes>, quinn::ReadError> {
        Ok(stream.read_chunk(CHUNK, true).await?.map(|it| it.bytes))
    }
);
#[cfg(feature = "noq")]
stack!(Noq, noq, async |stream: &mut noq::RecvStream| stream
    .read_chunk(CHUNK)
    .await);
