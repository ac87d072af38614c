//! A proxy for UDP (RFC 9298), and a QUIC connection through it, in one program: HTTP/3 outside, QUIC inside, both with
//! post-quantum key exchange. The proxy sees no more of what is inside than the network does.

use axum::Router;
use clap::Parser;
use hybriq::{ClientConfig, Endpoint, ServerConfig, TransportConfig};
use hybriq_examples::Failure;
use hybriq_http::{
    Server,
    masque::{Decision, Proxy, ProxyClient, Template, forward},
};

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let args = hybriq_examples::Server::parse();
    // The packets inside have 1200 bytes at first.
    let outside = || TransportConfig::new().datagram_size(1350);

    // The target: a server whose address only the proxy uses.
    let config = ServerConfig::new(args.identity()?).alpn(["hello"]);
    let target = Endpoint::server("127.0.0.1:0", config)?;
    let only = target.local_address();

    let proxy = Proxy::new(move |_, address, peer| {
        if address == only && peer.tls.is_post_quantum() {
            Decision::Allow
        } else {
            Decision::Deny
        }
    });
    let config = ServerConfig::new(args.identity()?).transport(outside());
    let server = Server::builder().connect_udp().bind(args.listen, config)?;
    println!("listening on {}", server.local_address());
    let authority = format!("localhost:{}", server.local_address().port());
    let handle = server.handle();
    let serving = tokio::spawn(server.serve(Router::new().layer(proxy)));

    let trusting = hybriq_examples::Client {
        server: only,
        name: "localhost".to_owned(),
        ca: args.ca.clone(),
    };
    let config = ClientConfig::new().alpn(["h3"]).trust(trusting.trust()?);
    let endpoint = Endpoint::client(config.transport(outside()))?;
    let client = ProxyClient::connect(&endpoint, Template::well_known(&authority)?).await?;
    let group = &client.connection().handshake().key_exchange.group;
    println!("outside: {group}");

    // Whatever is sent to this socket goes through the tunnel.
    let socket = std::net::UdpSocket::bind("127.0.0.1:0")?;
    let local = socket.local_addr()?;
    let tunnel = client.connect_udp(&only.into()).await?;
    let forwarding = tokio::spawn(forward(socket, tunnel)?);
    let config = ClientConfig::new().alpn(["hello"]).trust(trusting.trust()?);
    let inside = Endpoint::client(config)?;
    let accept = async {
        let incoming = target.accept().await.ok_or("the target is closed")?;
        Ok::<_, Failure>(incoming.accept().await?)
    };
    let (mine, accepted) = tokio::join!(inside.connect(local, "localhost"), accept);
    let (mine, accepted) = (mine?, accepted?);
    println!("inside: {}", mine.handshake().key_exchange.group);

    mine.send_datagram("hello through the tunnel".into())?;
    let received = accepted.recv_datagram().await?.unwrap_or_default();
    println!("received: {}", String::from_utf8_lossy(&received));
    let is_hidden = accepted.peer_address() != inside.local_address();
    println!("the target sees the proxy: {is_hidden}");
    mine.close(0, b"done");
    inside.idle().await;
    forwarding.abort();
    handle.shutdown(std::time::Duration::from_secs(1)).await;
    serving.await??;
    Ok(())
}
