//! Programs on the async API over the simulated network, in virtual time: the clock of the runtime is paused.

use std::{io::ErrorKind, net::SocketAddr, time::Duration};

use hybriq::{
    ClientConfig, Endpoint, EndpointError, Identity, ServerConfig, TransportConfig, Trust,
    error::MigrateError,
    tls::{CertificateDer, PrivateKeyDer},
};
use hybriq_sim::{Network, ms, one_in, sockets::Sockets};
use tokio::time::{Instant, sleep};

fn address(host: u8) -> SocketAddr {
    ([192, 0, 2, host], 443).into()
}

fn transport() -> TransportConfig {
    TransportConfig::new().keep_alive(Duration::from_secs(20))
}

fn configs() -> (ServerConfig, ClientConfig) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let chain = made.cert.der().to_vec();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let root = CertificateDer::from(chain.clone());
    let identity = Identity::from_der(vec![CertificateDer::from(chain)], key);
    let server = ServerConfig::new(identity).alpn(["echo"]);
    let client = ClientConfig::new().alpn(["echo"]);
    let client = client.trust(Trust::roots_der([root]));
    (server.transport(transport()), client.transport(transport()))
}

/// An echo server and its client, for half a day over a link that loses one datagram in ten, with pauses of an hour.
#[tokio::test(start_paused = true)]
async fn programs_run_for_hours_in_virtual_time() {
    let sockets = Sockets::new(Network::new(7).delay(ms(40)).loss(one_in(10)));
    let (server, client) = configs();
    let server = Endpoint::builder().server(server);
    let server = server.bind_custom(sockets.server(address(1))).unwrap();
    let serving = tokio::spawn(async move {
        let connection = server.accept().await.unwrap().accept().await.unwrap();
        while let Some((mut send, mut recv)) = connection.accept_bidi().await.unwrap() {
            tokio::io::copy(&mut recv, &mut send).await.unwrap();
            send.finish();
        }
        connection.stats()
    });
    let client = Endpoint::builder().client(client);
    let client = client.bind_custom(sockets.client(address(2))).unwrap();
    assert_eq!(client.local_address(), address(2));
    let begun = Instant::now();
    let connection = client.connect(address(1), "localhost").await.unwrap();
    for hour in 1..=12 {
        let (mut send, mut recv) = connection.open_bidi().await.unwrap();
        let message = vec![hour; 100_000];
        let writing = async {
            send.write_all(&message).await.unwrap();
            send.finish();
        };
        let (echo, ()) = tokio::join!(recv.read_to_end(1 << 20), writing);
        assert!(echo.unwrap() == message);
        sleep(Duration::from_secs(3600)).await;
    }
    let stats = connection.stats();
    assert!(stats.packets_lost > 50, "{}", stats.packets_lost);
    let path = connection.path_stats();
    assert!((ms(80)..ms(90)).contains(&path.min_rtt), "{path:?}");
    // The socket is not the system's, which has no address to move to.
    let moved = connection.migrate(address(3)).await;
    let unsupported = MigrateError::Bind(address(3), ErrorKind::Unsupported);
    assert_eq!(moved, Err(unsupported));
    connection.close(0, b"");
    client.idle().await;
    // The time is that of the connection, which was kept alive all the time.
    let lasted = begun.elapsed();
    assert!(lasted >= Duration::from_secs(12 * 3600), "{lasted:?}");
    let served = serving.await.unwrap();
    assert!(served.packets_received > 2000);
}

#[tokio::test(start_paused = true)]
async fn a_socket_of_the_application_has_one_worker() {
    let sockets = Sockets::new(Network::new(1));
    let builder = Endpoint::builder().client(configs().1).workers(2);
    let refused = builder.bind_custom(sockets.client(address(2)));
    let is_clear = |error: &EndpointError| error.to_string().contains("2 workers need 2 sockets");
    assert!(refused.is_err_and(|error| is_clear(&error)));
}
