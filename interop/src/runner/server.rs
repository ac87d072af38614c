//! The server: files over HTTP/0.9 and HTTP/3.

use std::{
    net::{SocketAddr, UdpSocket},
    path::Path,
    sync::Arc,
};

use hybriq::{
    Connection, Endpoint, EndpointBuilder, Identity, ServerConfig, TransportConfig,
    error::Printable, fleet::AddressValidation, tls::KeyLog,
};
use tokio::signal::unix::{SignalKind, signal};

use super::{END, Failure, Task, TestCase, hq, http3, qlog};

impl Task {
    /// Serves until a signal asks it to stop.
    pub(super) async fn serve(self) -> Result<(), Failure> {
        let qlog = qlog()?;
        let (endpoint, transport) = self.sockets(self.transport(qlog.as_ref()))?;
        let config = self.server_config()?.transport(transport);
        if self.by_http3() {
            let (case, listen, www) = (self.case, self.listen, &self.www);
            http3::serve(case, endpoint, listen, config, www, stopped()?).await?;
        } else {
            let endpoint = endpoint.server(config).bind(self.listen)?;
            println!("listening on {}", endpoint.local_address());
            tokio::select! {
                () = accept(&endpoint, self.www.as_path().into()) => {}
                () = stopped()? => {}
            }
            endpoint.drain(END, 0, b"").await;
            // A client that no longer answers is not waited for.
            let _ = tokio::time::timeout(END, endpoint.idle()).await;
        }
        if let Some(qlog) = qlog {
            qlog.flush();
        }
        Ok(())
    }

    /// Returns the sockets of the case, and what the transport tells clients about them.
    fn sockets(
        &self,
        mut transport: TransportConfig,
    ) -> Result<(EndpointBuilder, TransportConfig), Failure> {
        // The links of the runner carry single packets.
        let mut endpoint = Endpoint::builder().without_gso();
        if self.case.has_retry() {
            endpoint = endpoint.address_validation(AddressValidation::Always);
        }
        if self.case == TestCase::ConnectionMigration {
            let preferred = match self.params.preferred.as_slice() {
                [] => own_addresses(self.listen.port().wrapping_add(1)),
                given => given.to_vec(),
            };
            let (mut v4, mut v6) = (None, None);
            for address in preferred {
                endpoint = endpoint.also_bind(address);
                match address {
                    SocketAddr::V4(address) => v4 = Some(address),
                    SocketAddr::V6(address) => v6 = Some(address),
                }
            }
            if (v4, v6) == (None, None) {
                return Err("this machine has no second address; name one: preferred=".into());
            }
            transport = transport.preferred_address(v4, v6);
        }
        Ok((endpoint, transport))
    }

    fn server_config(&self) -> Result<ServerConfig, Failure> {
        let (chain, key) = (self.certs.join("cert.pem"), self.certs.join("priv.key"));
        let mut config = ServerConfig::new(Identity::from_pem_files(chain, key)?)
            .alpn([self.alpn()])
            .tls(self.params.backend)
            .key_log(KeyLog::Environment);
        if let Some(policy) = self.key_exchange() {
            config = config.key_exchange(policy);
        }
        if let Some(suites) = self.suites() {
            config = config.suites(suites);
        }
        if self.case == TestCase::ZeroRtt {
            config = config.accept_early_data();
        }
        Ok(config)
    }
}

/// Returns addresses of this machine that others reach, one of each family.
fn own_addresses(port: u16) -> Vec<SocketAddr> {
    // The system chooses the source address; nothing is sent.
    let routes = [("0.0.0.0:0", "192.0.2.1:9"), ("[::]:0", "[2001:db8::1]:9")];
    let own = |(from, to): (&str, &str)| -> Option<SocketAddr> {
        let socket = UdpSocket::bind(from).ok()?;
        socket.connect(to).ok()?;
        let address = socket.local_addr().ok()?.ip();
        Some((address, port).into())
    };
    routes.into_iter().filter_map(own).collect()
}

/// Answers the requests of all clients.
async fn accept(endpoint: &Endpoint, www: Arc<Path>) {
    while let Some(incoming) = endpoint.accept().await {
        let www = www.clone();
        tokio::spawn(async move {
            match incoming.accept().await {
                Ok(connection) => answer(connection, www).await,
                Err(error) => eprintln!("no connection: {}", Printable(error)),
            }
        });
    }
}

/// Answers the requests of a client.
async fn answer(connection: Connection, www: Arc<Path>) {
    loop {
        match connection.accept_bidi().await {
            Ok(Some((mut send, recv))) => {
                let www = www.clone();
                tokio::spawn(async move {
                    if let Err(error) = hq::answer(&www, &mut send, recv).await {
                        send.reset(hq::NO_FILE);
                        eprintln!("a request failed: {}", Printable(error));
                    }
                });
            }
            Ok(None) => return,
            Err(error) => return eprintln!("a connection ended: {}", Printable(error)),
        }
    }
}

/// Waits for a signal to stop: Ctrl-C, or what `kill` and `timeout` send.
///
/// # Errors
/// The system allows no handlers of signals.
pub(crate) fn stopped() -> Result<impl Future<Output = ()>, Failure> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
