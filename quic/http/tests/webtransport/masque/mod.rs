//! CONNECT-UDP (RFC 9298): our proxy with our own client, with one that breaks rules, with aioquic and with masque-go.

mod aioquic;
mod hostile;
mod masque_go;
mod tunnels;

use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
};

use axum::{Router, routing::any};
use http::StatusCode;
use hybriq::{Endpoint, TransportConfig};
use hybriq_http::{
    Server,
    masque::{ConnectError, Decision, Limits, Proxy, ProxyClient, Target, Template, UdpTunnel},
};
use tokio::{net::UdpSocket, sync::Semaphore};

use crate::support::{Certificate, Running, client_config, run_with, soon};

/// A proxy to targets of the loopback interface.
struct Host {
    server: Running,
    proxy: Proxy,
    endpoint: Endpoint,
    /// Permits to resolve `slow.test`.
    lookups: Arc<Semaphore>,
}

/// Packets large enough for those of a connection inside.
fn transport() -> TransportConfig {
    TransportConfig::new().datagram_size(1350)
}

/// Resolves the names of the tests.
async fn resolve(name: String, lookups: Arc<Semaphore>) -> io::Result<Vec<IpAddr>> {
    match name.as_str() {
        // The first is not allowed.
        "echo.test" => Ok(vec![[192, 0, 2, 1].into(), Ipv4Addr::LOCALHOST.into()]),
        "slow.test" => {
            lookups.acquire().await.unwrap().forget();
            Ok(vec![Ipv4Addr::LOCALHOST.into()])
        }
        "outside.test" => Ok(vec![[192, 0, 2, 1].into()]),
        "nowhere.test" => Ok(Vec::new()),
        "hangs.test" => std::future::pending().await,
        _ => Err(io::ErrorKind::NotFound.into()),
    }
}

/// Pages that pass for tunnels.
fn router() -> Router {
    let none = any(async || StatusCode::NOT_FOUND);
    Router::new()
        .route("/.well-known/masque/udp/{*target}", none.clone())
        .route("/other/{*target}", none)
}

impl Host {
    fn new() -> Self {
        Self::with(Limits::default())
    }

    fn with(limits: Limits) -> Self {
        let lookups = Arc::new(Semaphore::new(0));
        let permits = lookups.clone();
        let proxy = Proxy::new(|_, address, peer| match address.ip() {
            ip if ip.is_loopback() && peer.tls.is_post_quantum() => Decision::Allow,
            // Nothing is sent there without leave of the system.
            IpAddr::V4(Ipv4Addr::BROADCAST) => Decision::Allow,
            _ => Decision::Deny,
        });
        let proxy = proxy
            .limits(limits)
            .resolver(move |name| resolve(name, permits.clone()));
        let other = Template::well_known("any").unwrap();
        let other = other
            .to_string()
            .replace("/.well-known/masque/udp", "/other");
        let other = proxy.clone().template(other.parse().unwrap());
        let router = router().layer(other).layer(proxy.clone());
        let builder = Server::builder().connect_udp();
        let config = Certificate::shared().config().transport(transport());
        let server = run_with(builder, config, router);
        let config = client_config(&Certificate::shared()).transport(transport());
        Self {
            server,
            proxy,
            endpoint: Endpoint::client(config).unwrap(),
            lookups,
        }
    }

    fn template(&self) -> Template {
        let authority = format!("localhost:{}", self.server.address().port());
        Template::well_known(&authority).unwrap()
    }

    async fn client(&self) -> ProxyClient {
        let connect = ProxyClient::connect(&self.endpoint, self.template());
        soon(connect).await.unwrap()
    }

    /// Waits until so many tunnels are open.
    async fn until_open(&self, tunnels: usize) {
        soon(async {
            while self.proxy.stats().open != tunnels {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
}

/// Returns the address of a socket that sends everything back.
async fn echo() -> SocketAddr {
    echo_at("127.0.0.1:0").await.unwrap()
}

async fn echo_at(address: &str) -> io::Result<SocketAddr> {
    let socket = UdpSocket::bind(address).await?;
    let address = socket.local_addr()?;
    tokio::spawn(async move {
        let mut buffer = vec![0; 65_536];
        while let Ok((len, from)) = socket.recv_from(&mut buffer).await {
            let _ = socket.send_to(&buffer[..len], from).await;
        }
    });
    Ok(address)
}

fn target(target: &str) -> Target {
    target.parse().unwrap()
}

async fn open(client: &ProxyClient, target: &Target) -> Result<UdpTunnel, ConnectError> {
    soon(client.connect_udp(target)).await
}

/// Sends a payload and expects it back.
async fn ping(tunnel: &UdpTunnel, payload: &'static [u8]) {
    tunnel.send(payload.into()).unwrap();
    assert_eq!(soon(tunnel.recv()).await.unwrap().unwrap(), payload);
}
