//! The endpoint on s2n-quic and s2n-tls.

use std::{net::SocketAddr, path::Path, sync::Arc, time::Duration};

use hybriq::{Group, error::Printable};
use s2n_quic::{
    Client, Server,
    client::Connect,
    provider::{
        endpoint_limits::{ConnectionAttempt, Limiter, Outcome},
        io::tokio::Provider as Io,
        limits::Limits,
    },
};
use s2n_tls::security::Policy;
use tokio::task::JoinSet;

use super::{begin, finish};
use crate::runner::{Failure, HANDSHAKE_TIME, Task, client, hq, server};

impl Task {
    /// Returns the policy of s2n-tls: it takes names, not lists of groups.
    fn policy(&self) -> Result<Policy, Failure> {
        let name = match (self.params.groups.as_deref(), self.case) {
            (None, case) if case.is_post_quantum() => "test_pq_only",
            (None, _) => "default_pq",
            (Some([Group::SECP384R1]), _) => "20250414",
            _ => return Err("s2n-tls has no policy with these groups".into()),
        };
        Ok(Policy::from_version(name)?)
    }

    pub(super) async fn serve_by_s2n_quic(self) -> Result<(), Failure> {
        let mut tls = s2n_quic::provider::tls::s2n_tls::Server::builder()
            .with_application_protocols([hq::ALPN])?
            .with_certificate(&*self.certs.join("cert.pem"), &*self.certs.join("priv.key"))?
            .with_key_logging()?;
        let config = tls.config_mut().set_security_policy(&self.policy()?)?;
        let mut key = [0; 32];
        aws_lc_rs::rand::fill(&mut key).map_err(|_| "the system has no random bytes")?;
        config.add_session_ticket_key(b"tickets", &key, std::time::SystemTime::now())?;
        let mut server = Server::builder()
            .with_tls(tls.build()?)?
            .with_io(io(self.listen)?)?
            .with_limits(limits()?)?
            .with_endpoint_limits(Admission {
                retries: self.case.has_retry(),
            })?
            .start()
            .map_err(|error| error.to_string())?;
        println!("listening on {}", server.local_addr()?);
        let www: Arc<Path> = self.www.as_path().into();
        let accept = async {
            while let Some(mut connection) = server.accept().await {
                let www = Arc::clone(&www);
                tokio::spawn(async move {
                    while let Ok(Some(stream)) = connection.accept_bidirectional_stream().await {
                        let www = Arc::clone(&www);
                        tokio::spawn(async move {
                            let (recv, mut send) = stream.split();
                            if let Err(error) = hq::answer(&www, &mut send, recv).await {
                                eprintln!("a request failed: {}", Printable(error));
                            }
                        });
                    }
                });
            }
        };
        let stopped = server::stopped()?;
        tokio::select! {
            () = accept => {}
            () = stopped => {}
        }
        Ok(())
    }

    pub(super) async fn download_by_s2n_quic(self) -> Result<(), Failure> {
        let downloads = self.files()?;
        let mut tls = s2n_quic::provider::tls::s2n_tls::Client::builder()
            .with_application_protocols([hq::ALPN])?
            .with_empty_trust_store()?
            .with_certificate(&*self.certs.join("ca.pem"))?
            .with_key_logging()?;
        let ticket = hybriq_netbench::stacks::s2n_quic::Ticket::default();
        tls.config_mut()
            .set_security_policy(&self.policy()?)?
            .set_session_ticket_callback(ticket.clone())?
            .set_connection_initializer(ticket)?;
        let tls = tls.build()?;
        let first = downloads.first().ok_or("REQUESTS names no URL")?;
        let server = client::Server::find(&first.uri).await?;
        let address = server.address()?;
        let client = Client::builder()
            .with_tls(tls)?
            .with_io(io(client::unspecified(address))?)?
            .with_limits(limits()?)?
            .start()
            .map_err(|error| error.to_string())?;
        for downloads in self.connections(&downloads) {
            let connect = Connect::new(address).with_server_name(server.name.as_str());
            let mut connection = client.connect(connect).await?;
            let mut tasks = JoinSet::new();
            for download in downloads {
                let stream = connection.open_bidirectional_stream().await?;
                let (recv, send) = stream.split();
                begin(&mut tasks, (send, recv), download);
            }
            finish(tasks).await?;
            connection.close(0_u32.into());
        }
        let mut client = client;
        let _ = tokio::time::timeout(Duration::from_secs(1), client.wait_idle()).await;
        Ok(())
    }
}

fn io(address: SocketAddr) -> Result<Io, Failure> {
    Ok(Io::builder()
        .with_receive_address(address)?
        .with_max_mtu(1280)?
        .build()?)
}

fn limits() -> Result<Limits, Failure> {
    Ok(Limits::new().with_max_handshake_duration(HANDSHAKE_TIME)?)
}

/// Answers clients with a Retry, where that is the case.
struct Admission {
    retries: bool,
}

impl Limiter for Admission {
    fn on_connection_attempt(&mut self, _: &ConnectionAttempt<'_>) -> Outcome {
        if self.retries {
            Outcome::retry()
        } else {
            Outcome::allow()
        }
    }
}
