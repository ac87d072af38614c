//! aioquic as the client of our proxy.

use hybriq_http::{
    Server,
    masque::{Decision, Proxy},
};

use super::echo;
use crate::{
    aioquic::{File, aioquic},
    support::{Certificate, run_with, soon},
};

#[tokio::test]
async fn aioquic_uses_a_tunnel() {
    let Some(mut client) = aioquic("client.py") else {
        return;
    };
    // aioquic has no post-quantum key exchange.
    let proxy = Proxy::new(|_, address, _| match address.ip() {
        ip if ip.is_loopback() => Decision::Allow,
        _ => Decision::Deny,
    });
    let none = axum::routing::any(async || http::StatusCode::NOT_FOUND);
    let router = axum::Router::new().route("/.well-known/masque/udp/{*target}", none);
    let builder = Server::builder().connect_udp();
    let server = run_with(builder, Certificate::shared().config(), router.layer(proxy));
    let certificate = File::new("tunnels-client.der", &Certificate::shared().der());
    let (port, target) = (server.address().port(), echo().await.port());
    client
        .args(["tunnels", &port.to_string()])
        .arg(&certificate.0);
    let output = soon(client.arg(target.to_string()).output()).await.unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "status 403 hybriq; error=destination_ip_prohibited\n\
         status 200 ?1\n\
         datagram True 0 0\n\
         datagram True 0 1000\n"
    );
}
