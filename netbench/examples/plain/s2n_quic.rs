//! s2n-quic, after its examples.

use std::net::SocketAddr;

use bytes::Bytes;
use s2n_quic::{Client, Server};
use tokio::task::JoinSet;

use super::{CHUNK, Failure, IN_FLIGHT, Load, NAME, Own, Stack, asked, part, run};

pub(super) struct S2nQuic;

impl Stack for S2nQuic {
    fn serve(own: &Own, started: impl FnOnce(SocketAddr)) -> Result<(), Failure> {
        run(async {
            let (certificate, key) = (own.0.cert.pem(), own.0.signing_key.serialize_pem());
            let mut server = Server::builder()
                .with_tls((certificate.as_str(), key.as_str()))?
                .with_io("127.0.0.1:0")?
                .start()?;
            started(server.local_addr()?);
            let zeros = Bytes::from(vec![0; CHUNK]);
            while let Some(mut connection) = server.accept().await {
                while let Ok(Some(mut stream)) = connection.accept_bidirectional_stream().await {
                    let zeros = zeros.clone();
                    tokio::spawn(async move {
                        let mut request = Vec::new();
                        while let Some(bytes) = stream.receive().await? {
                            request.extend_from_slice(&bytes);
                        }
                        let mut left = asked(&request).ok_or("a short request")?;
                        while left > 0 {
                            let part = part(&zeros, left);
                            left -= part.len() as u64;
                            stream.send(part).await?;
                        }
                        stream.finish()?;
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
        run(async {
            let client = Client::builder()
                .with_tls(own.0.cert.pem().as_str())?
                .with_io("127.0.0.1:0")?
                .start()?;
            let connect = s2n_quic::client::Connect::new(server).with_server_name(NAME);
            let connection = client.connect(connect).await?;
            for load in loads {
                let mut users = JoinSet::new();
                let count = load.requests.min(IN_FLIGHT);
                for user in 0..count {
                    let mut connection = connection.handle();
                    users.spawn(async move {
                        let message = load.message();
                        for _ in (user..load.requests).step_by(count as usize) {
                            let mut stream = connection.open_bidirectional_stream().await?;
                            stream.send(message.clone()).await?;
                            stream.finish()?;
                            let mut received = 0;
                            while let Some(bytes) = stream.receive().await? {
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
