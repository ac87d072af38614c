//! aioquic as the client of our proxy.

use std::{path::Path, process::Stdio};

use hybriq_http::{
    Server,
    masque::{Decision, Proxy},
};
use tokio::process::Command;

use super::{File, echo};
use crate::support::{Certificate, installed, run_with, soon};

#[tokio::test]
async fn aioquic_uses_a_tunnel() {
    let Some(python) = installed("venv/bin/python") else {
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
    let certificate = File::new("aioquic.der", &Certificate::shared().der());
    let client = Command::new(python)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/webtransport/masque/client.py"))
        .arg(server.address().port().to_string())
        .arg(&certificate.0)
        .arg(echo().await.port().to_string())
        .stderr(Stdio::inherit())
        .kill_on_drop(true)
        .output();
    let output = soon(client).await.unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "status 403 hybriq; error=destination_ip_prohibited\n\
         status 200 ?1\n\
         datagram True 0 0\n\
         datagram True 0 1000\n"
    );
}
