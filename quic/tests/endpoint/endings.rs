//! Every way in which a connection ends: the table in the documentation of `ConnectionError`.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use hybriq::{
    Backend, ClientConfig, ConnectError, Connection, ConnectionError, Endpoint, Group, KeyExchange,
    ServerConfig, TransportConfig,
    error::{By, Code},
    fleet::{CidGenerator, RandomCids},
};
use tokio::{net::UdpSocket, runtime::Runtime};

use crate::endpoint_support::{Pair, client, client_config, server, server_config, soon};

/// The rows of the table, each with the file and the name of its test.
const ROWS: &[(&str, &str, &str)] = &[
    (
        "`Connection::close`",
        "tests/endpoint/endings.rs",
        "an_application_closes",
    ),
    (
        "`Endpoint::close`",
        "tests/endpoint/endings.rs",
        "an_endpoint_closes",
    ),
    (
        "the deadline of `Endpoint::drain`",
        "tests/endpoint/endings.rs",
        "the_deadline_of_a_drain_comes",
    ),
    (
        "the last handle of the connection is dropped, and finished streams have arrived",
        "tests/endpoint/close.rs",
        "the_last_handle_of_a_connection_closes_it",
    ),
    (
        "the application closes during the handshake (RFC 9000 §10.2.3)",
        "tests/endpoint/endings.rs",
        "an_application_closes_during_the_handshake",
    ),
    (
        "the peer breaks a rule of QUIC",
        "tests/conformance/rfc9000_19_frames.rs",
        "new_token_from_a_client",
    ),
    (
        "this end refuses in TLS: certificate, application protocol, client authentication",
        "tests/endpoint/endings.rs",
        "tls_refuses_the_other_end",
    ),
    (
        "the key exchange does not satisfy the policy of this end",
        "tests/endpoint/endings.rs",
        "the_key_exchange_is_refused",
    ),
    (
        "the server was post-quantum before, is not now, and the client has `Continuity::Refuse`",
        "tests/sim/downgrade.rs",
        "every_downgrade_of_a_full_handshake_is_refused",
    ),
    (
        "the limit of an AEAD or of forged packets is reached (RFC 9001 §6.6)",
        "proto/src/connection/tests/key_update.rs",
        "forgeries_up_to_the_integrity_limit_end_the_connection",
    ),
    (
        "the application refuses a client, or drops its `Incoming`",
        "tests/endpoint/endings.rs",
        "an_application_refuses",
    ),
    (
        "a limit of the endpoint refuses a client",
        "tests/endpoint/endings.rs",
        "a_limit_refuses",
    ),
    (
        "a client comes after `Endpoint::stop_accepting`, `drain`, `close` or the drop of the endpoint",
        "tests/endpoint/endings.rs",
        "an_endpoint_that_takes_no_more_clients_refuses",
    ),
    (
        "the server does not accept the token of a Retry",
        "proto/src/endpoint/tests/tokens.rs",
        "a_forged_retry_token_ends_the_attempt_with_invalid_token",
    ),
    (
        "nothing arrives for the idle timeout",
        "tests/endpoint/close.rs",
        "a_silent_peer_times_out",
    ),
    (
        "the only path breaks, and none is left to return to",
        "proto/src/connection/tests/path_end.rs",
        "a_connection_without_a_validated_address_ends_without_a_packet",
    ),
    (
        "the handshake is not complete in time, although the peer answered",
        "tests/endpoint/endings.rs",
        "a_handshake_takes_too_long",
    ),
    (
        "the server never answers",
        "tests/endpoint/close.rs",
        "an_ignored_client_hears_nothing",
    ),
    (
        "the system cannot send to the server, or learns that nothing listens there, before anything is received from it",
        "tests/endpoint/refused_sends.rs",
        "a_closed_port_ends_a_connect_at_once",
    ),
    (
        "the address of this machine that a server's connection uses is gone",
        "proto/src/connection/tests/refused.rs",
        "a_server_whose_address_is_gone_ends_with_a_reason_unless_it_comes_back",
    ),
    (
        "the socket of the endpoint fails permanently",
        "src/tests/broken_socket.rs",
        "a_socket_that_lasts_in_error_ends_its_endpoint_with_a_reason",
    ),
    (
        "the server speaks none of the client's versions",
        "tests/endpoint/versions.rs",
        "a_client_without_a_version_of_the_servers_is_told_so",
    ),
    (
        "the peer lost its state: it was restarted with the same reset key",
        "tests/workers_under_load.rs",
        "clients_of_a_lost_server_are_reset_by_any_worker",
    ),
    (
        "a worker of the endpoint panics",
        "tests/endpoint/endings.rs",
        "a_worker_panics",
    ),
    (
        "the runtime of the endpoint ends before its connections",
        "tests/endpoint/endings.rs",
        "a_runtime_ends",
    ),
];

#[test]
fn every_row_of_the_table_has_a_test() {
    let documented = include_str!("../../proto/src/wire/error/connection.rs")
        .lines()
        .filter_map(|line| line.strip_prefix("/// | "))
        .filter(|line| !line.starts_with("what happens"))
        .filter_map(|line| line.split(" | ").next());
    let tested = ROWS.iter().map(|(row, ..)| *row);
    assert_eq!(documented.collect::<Vec<_>>(), tested.collect::<Vec<_>>());
    for (_, file, name) in ROWS {
        let path = format!("{}/{file}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(
            text.contains(&format!("fn {name}(")),
            "{file} has no {name}"
        );
    }
}

fn application(by: By, code: u64, reason: &'static str) -> ConnectionError {
    ConnectionError::Application {
        by,
        code,
        reason: reason.into(),
    }
}

fn transport(by: By, code: Code, reason: &'static str) -> ConnectionError {
    ConnectionError::Transport {
        by,
        code,
        frame: None,
        violation: None,
        reason: reason.into(),
    }
}

/// Returns the reason for which a handshake failed.
fn failed<T: std::fmt::Debug>(outcome: Result<T, ConnectError>) -> ConnectionError {
    match outcome.unwrap_err() {
        ConnectError::Connection(error) => error,
        other => panic!("{other}"),
    }
}

async fn assert_ends(connection: &Connection, end: ConnectionError) {
    assert_eq!(soon(connection.closed()).await, end);
    assert_eq!(connection.close_reason(), Some(end));
}

#[tokio::test]
async fn an_application_closes() {
    for server_closes in [false, true] {
        let pair = Pair::new("127.0.0.1:0").await;
        let mut ends = [&pair.client, &pair.server];
        if server_closes {
            ends.reverse();
        }
        let [this, peer] = ends;
        this.close(7, b"enough");
        assert_ends(this, application(By::Local, 7, "enough")).await;
        assert_ends(peer, application(By::Peer, 7, "enough")).await;
        assert_eq!(this.close_reason().unwrap().by(), Some(By::Local));
    }
}

#[tokio::test]
async fn an_endpoint_closes() {
    let pair = Pair::new("127.0.0.1:0").await;
    pair.server_endpoint.close(8, b"all");
    assert_ends(&pair.server, application(By::Local, 8, "all")).await;
    assert_ends(&pair.client, application(By::Peer, 8, "all")).await;
}

#[tokio::test]
async fn the_deadline_of_a_drain_comes() {
    let pair = Pair::new("127.0.0.1:0").await;
    let drained = pair.server_endpoint.drain(Duration::ZERO, 9, b"late");
    assert_eq!(soon(drained).await, 1);
    assert_ends(&pair.server, application(By::Local, 9, "late")).await;
    assert_ends(&pair.client, application(By::Peer, 9, "late")).await;
}

#[tokio::test]
async fn an_application_closes_during_the_handshake() {
    let (server, client) = (server("127.0.0.1:0"), client());
    let connecting = client.connect(server.local_address(), "localhost");
    let accepting = soon(server.accept()).await.unwrap().accept();
    let early = soon(accepting.early()).await.unwrap();
    early.close(9, b"not you");
    let end = soon(early.closed()).await;
    assert_eq!(end, application(By::Local, 9, "not you"));
    let end = failed(soon(connecting).await);
    assert_eq!(end, transport(By::Peer, Code::APPLICATION_ERROR, ""));
}

/// Returns the errors of both ends of a handshake that fails.
async fn fail(server: ServerConfig, client: ClientConfig) -> [ConnectionError; 2] {
    let server = Endpoint::server("127.0.0.1:0", server).unwrap();
    let client = Endpoint::client(client).unwrap();
    let connect = async {
        match client.connect(server.local_address(), "localhost").await {
            // The handshake is complete for the client before the server refuses.
            Ok(connection) => connection.closed().await,
            Err(error) => failed(Err::<(), _>(error)),
        }
    };
    let accept = async { server.accept().await.unwrap().accept().await };
    let (accepted, connected) = soon(async { tokio::join!(accept, connect) }).await;
    [failed(accepted), connected]
}

fn assert_alert(end: &ConnectionError, end_by: By, alert: u8) {
    let &ConnectionError::Transport { by, code, .. } = end else {
        panic!("{end}");
    };
    assert_eq!((by, code.alert()), (end_by, Some(alert)), "{end}");
}

#[tokio::test]
async fn tls_refuses_the_other_end() {
    const BAD_CERTIFICATE: u8 = 42;
    const UNKNOWN_CA: u8 = 48;
    const CERTIFICATE_REQUIRED: u8 = 116;
    const NO_APPLICATION_PROTOCOL: u8 = 120;

    // The client does not trust the server's certificate, which is not the system's.
    let [at_server, at_client] = fail(server_config(), ClientConfig::new().alpn(["test"])).await;
    let &ConnectionError::Transport { code, .. } = &at_client else {
        panic!("{at_client}");
    };
    let alert = code.alert().unwrap();
    assert!(
        [BAD_CERTIFICATE, UNKNOWN_CA].contains(&alert),
        "{at_client}"
    );
    assert_alert(&at_client, By::Local, alert);
    assert_alert(&at_server, By::Peer, alert);

    let [at_server, at_client] = fail(server_config(), client_config().alpn(["other"])).await;
    assert_alert(&at_server, By::Local, NO_APPLICATION_PROTOCOL);
    assert_alert(&at_client, By::Peer, NO_APPLICATION_PROTOCOL);
    // Both ends hear of both lists and what to do, however long the lists are.
    let many = |end: &str| {
        (0..20)
            .map(|it| format!("{end}-protocol-number-{it}"))
            .collect::<Vec<_>>()
    };
    let (server, client) = (server_config().alpn(many("server")), client_config());
    for end in fail(server, client.alpn(many("client"))).await {
        assert_alert(&end, end.by().unwrap(), NO_APPLICATION_PROTOCOL);
        let text = end.to_string();
        for part in [
            "server-protocol-number-0, ",
            "client-protocol-number-0, ",
            "with `alpn`",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }

    let demanding = server_config().client_auth(hybriq::tls::ClientAuth::Required(
        hybriq::Trust::dangerously_accept_any_certificate(),
    ));
    let [at_server, at_client] = fail(demanding, client_config()).await;
    assert_alert(&at_server, By::Local, CERTIFICATE_REQUIRED);
    assert_alert(&at_client, By::Peer, CERTIFICATE_REQUIRED);
}

#[tokio::test]
async fn the_key_exchange_is_refused() {
    let (demanding, classical) = (KeyExchange::RequirePostQuantum, KeyExchange::OnlyClassical);
    let ends = fail(
        server_config().key_exchange(demanding),
        client_config().key_exchange(classical),
    );
    let [at_server, at_client] = ends.await;
    for (end, by_whom) in [(at_server, By::Local), (at_client, By::Peer)] {
        let ConnectionError::KeyExchangeRefused { by, reason, groups } = end else {
            panic!("{end}");
        };
        assert_eq!(by, by_whom);
        assert!(reason.contains("post-quantum"), "{reason}");
        let (ours, theirs) = match by {
            By::Local => (&groups.ours, &groups.peers),
            By::Peer => (&groups.peers, &groups.ours),
        };
        assert_eq!(*ours, KeyExchange::RequirePostQuantum.groups());
        assert_eq!(*theirs, KeyExchange::OnlyClassical.groups());
    }
}

/// The lists do not meet, in either direction and with either library at the server.
#[tokio::test]
async fn both_ends_know_the_groups_that_do_not_meet() {
    use KeyExchange::{Exactly, OnlyClassical, RequirePostQuantum};
    for backend in Backend::ALL {
        for (at_server, at_client) in [
            (OnlyClassical, RequirePostQuantum),
            (OnlyClassical, Exactly(vec![Group::MLKEM1024])),
            (
                Exactly(vec![Group::MLKEM1024, Group::SECP384R1]),
                Exactly(vec![Group::X25519]),
            ),
        ] {
            let ends = fail(
                server_config().tls(backend).key_exchange(at_server.clone()),
                client_config().key_exchange(at_client.clone()),
            );
            let [server, client] = ends.await;
            for (end, by_whom) in [(server, By::Local), (client, By::Peer)] {
                let ConnectionError::KeyExchangeRefused { by, groups, .. } = end else {
                    panic!("{end}");
                };
                assert_eq!(by, by_whom);
                let (of_server, of_client) = match by {
                    By::Local => (&groups.ours, &groups.peers),
                    By::Peer => (&groups.peers, &groups.ours),
                };
                assert_eq!(*of_server, at_server.groups());
                assert_eq!(*of_client, at_client.groups());
            }
        }
    }
}

/// Asserts that a new client is refused for a reason.
async fn assert_refused(server: &Endpoint, reason: &'static str) {
    let client = client();
    let connecting = client.connect(server.local_address(), "localhost");
    let end = failed(soon(connecting).await);
    assert_eq!(end, transport(By::Peer, Code::CONNECTION_REFUSED, reason));
}

#[tokio::test]
async fn an_application_refuses() {
    for is_dropped in [false, true] {
        let server = server("127.0.0.1:0");
        let refuse = async {
            let incoming = server.accept().await.unwrap();
            if is_dropped {
                drop(incoming);
            } else {
                incoming.refuse();
            }
        };
        let reason = "the application refused the connection";
        tokio::join!(assert_refused(&server, reason), refuse);
    }
}

#[tokio::test]
async fn a_limit_refuses() {
    let builder = || Endpoint::builder().server(server_config());
    let limited = builder().max_connections(1).bind("127.0.0.1:0").unwrap();
    let _pair = Pair::of(limited.clone(), client()).await;
    assert_refused(&limited, "too many connections").await;

    let limited = builder().max_handshakes(1).bind("127.0.0.1:0").unwrap();
    let waiting = client();
    let _waits = waiting.connect(limited.local_address(), "localhost");
    // The client proves its address, and is not accepted.
    let _incoming = soon(limited.accept()).await.unwrap();
    assert_refused(&limited, "too many handshakes").await;

    let limited = builder().max_rate_per_network(1, 1);
    let limited = limited.bind("127.0.0.1:0").unwrap();
    // One with a proven address, and one without.
    let _pairs = [
        Pair::of(limited.clone(), client()).await,
        Pair::of(limited.clone(), client()).await,
    ];
    assert_refused(&limited, "too many connections from this network").await;
}

#[tokio::test]
async fn an_endpoint_that_takes_no_more_clients_refuses() {
    let reason = "the server accepts no more connections";
    let pair = Pair::new("127.0.0.1:0").await;
    pair.server_endpoint.stop_accepting();
    assert_refused(&pair.server_endpoint, reason).await;

    let pair = Pair::new("127.0.0.1:0").await;
    pair.server_endpoint.close(0, b"");
    // As long as it answers late packets of the connection.
    assert_refused(&pair.server_endpoint, reason).await;

    let Pair {
        server,
        client: connection,
        server_endpoint,
        client_endpoint: _client_endpoint,
    } = Pair::new("127.0.0.1:0").await;
    let address = server_endpoint.local_address();
    drop(server_endpoint);
    let client = client();
    let end = failed(soon(client.connect(address, "localhost")).await);
    assert_eq!(end, transport(By::Peer, Code::CONNECTION_REFUSED, reason));
    assert_eq!(
        (server.close_reason(), connection.close_reason()),
        (None, None)
    );
}

/// Passes on what the client sends, and only the first datagram of the server.
async fn relay_first_answer(server: SocketAddr) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    tokio::spawn(async move {
        let mut buffer = vec![0; 65536];
        let (mut client, mut answers) = (None, 0);
        while let Ok((len, from)) = socket.recv_from(&mut buffer).await {
            if from != server {
                client = Some(from);
                let _ = socket.send_to(&buffer[..len], server).await;
            } else if let (Some(client), 0) = (client, answers) {
                answers += 1;
                let _ = socket.send_to(&buffer[..len], client).await;
            }
        }
    });
    address
}

#[tokio::test]
async fn a_handshake_takes_too_long() {
    let impatient = TransportConfig::new().handshake_timeout(Duration::from_millis(100));
    let config = server_config().transport(impatient.clone());
    let server = Endpoint::server("127.0.0.1:0", config).unwrap();
    let client = Endpoint::client(client_config().transport(impatient)).unwrap();
    let address = relay_first_answer(server.local_address()).await;
    let connecting = client.connect(address, "localhost");
    let accept = async { server.accept().await.unwrap().accept().await };
    let (accepted, connected) = soon(async { tokio::join!(accept, connecting) }).await;
    assert_eq!(failed(accepted), ConnectionError::HandshakeTimedOut);
    assert_eq!(failed(connected), ConnectionError::HandshakeTimedOut);
}

/// Ids whose generator fails once, when it is told to.
#[derive(Debug, Default)]
struct Failing(Arc<AtomicBool>);

impl CidGenerator for Failing {
    fn len(&self) -> usize {
        8
    }

    fn generate(&self, worker: u8, cid: &mut [u8]) {
        assert!(
            !self.0.swap(false, Ordering::Relaxed),
            "the generator was told to fail"
        );
        RandomCids::default().generate(worker, cid);
    }

    fn worker(&self, cid: &[u8]) -> Option<u8> {
        RandomCids::default().worker(cid)
    }
}

#[tokio::test]
async fn a_worker_panics() {
    let fails = Arc::new(AtomicBool::new(false));
    let server = Endpoint::builder()
        .server(server_config())
        .cid_generator(Failing(fails.clone()))
        .bind("127.0.0.1:0")
        .unwrap();
    let pair = Pair::of(server, client()).await;
    fails.store(true, Ordering::Relaxed);
    // Another client needs an id.
    let other = client();
    let _connecting = other.connect(pair.server_endpoint.local_address(), "localhost");
    let reason = "the worker of the connection failed";
    let local = transport(By::Local, Code::INTERNAL_ERROR, reason);
    assert_ends(&pair.server, local).await;
    // The peer learns it from the reset of its next packet.
    let mut send = pair.client.open_uni().await.unwrap();
    let _ = send.write_all(&[0; 2000]).await;
    assert_ends(&pair.client, ConnectionError::Reset).await;
}

#[tokio::test]
async fn a_runtime_ends() {
    let machine = Runtime::new().unwrap();
    let server = {
        let _guard = machine.enter();
        server("127.0.0.1:0")
    };
    let idle = TransportConfig::new().idle_timeout(Some(Duration::from_millis(100)));
    let client = Endpoint::client(client_config().transport(idle)).unwrap();
    let pair = Pair::of(server, client).await;
    machine.shutdown_background();
    let reason = "the endpoint's task ended";
    let local = transport(By::Local, Code::INTERNAL_ERROR, reason);
    assert_ends(&pair.server, local).await;
    assert_ends(&pair.client, ConnectionError::TimedOut).await;
}
