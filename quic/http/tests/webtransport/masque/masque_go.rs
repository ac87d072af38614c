//! masque-go as the client of our proxy, and as the proxy of our client.

use std::{net::SocketAddr, process::Stdio};

use hybriq_http::masque::{ConnectError, ProxyClient, Target, Template};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::Command,
};

use super::{Host, echo, open, ping, target};
use crate::aioquic::File;
use crate::support::{Certificate, installed, soon};

#[tokio::test]
async fn masque_go_uses_a_tunnel() {
    let Some(program) = installed("masquego") else {
        return;
    };
    let host = Host::new();
    let certificate = File::new("go-client.der", &Certificate::shared().der());
    let mut client = Command::new(program);
    client
        .args(["client", &host.server.address().port().to_string()])
        .arg(&certificate.0)
        .arg(echo().await.port().to_string());
    let output = client.stderr(Stdio::inherit()).kill_on_drop(true).output();
    let output = soon(output).await.unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "status 403 hybriq; error=destination_ip_prohibited\n\
         status 200 ?1\n\
         payload 1\npayload 1000\npayload 1200\n"
    );
    host.until_open(0).await;
}

#[tokio::test]
async fn masque_go_is_the_proxy_of_our_client() {
    let Some(program) = installed("masquego") else {
        return;
    };
    let own = Certificate::shared();
    let files = [
        File::new("go-proxy.der", &own.der()),
        File::new("go-key.der", own.key().secret_der()),
    ];
    let mut proxy = Command::new(program);
    let proxy = proxy.arg("proxy").args(files.iter().map(|file| &file.0));
    let proxy = proxy.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = proxy.kill_on_drop(true).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let told = soon(lines.next_line()).await.unwrap().unwrap();
    let address: SocketAddr = told.parse().unwrap();
    let template = Template::well_known(&format!("localhost:{}", address.port())).unwrap();
    let host = Host::new();
    let client = ProxyClient::connect(&host.endpoint, template);
    let client = soon(client).await.unwrap();
    let refused = open(&client, &target("192.0.2.1:1")).await.unwrap_err();
    assert!(
        matches!(&refused, ConnectError::Refused { status, .. } if *status == 403),
        "{refused}"
    );
    let tunnel = open(&client, &Target::from(echo().await)).await.unwrap();
    assert!(tunnel.has_datagrams());
    ping(&tunnel, b"ping").await;
    ping(&tunnel, &[7; 1200]).await;
}
