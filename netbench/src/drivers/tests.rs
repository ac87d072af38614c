//! Tests of every driver against the contract, and of peculiarities of some.

use std::future::poll_fn;
use std::rc::Rc;

use ::hybriq::tls::Suite;

use super::*;
use crate::handshake::certificates;
use crate::handshake::certificates::SERVER_NAME;
use crate::scenario::axes::{Certificate, Named, Resumption, Stack};
use crate::system::outcome::Kind;

/// Returns the drivers tested here, with each of their providers.
fn stacks() -> Vec<Cell> {
    let mut stacks = Vec::new();
    for stack in [Stack::Hybriq, Stack::Quinn, Stack::S2nQuic] {
        for provider in Backend::ALL {
            let cell = Cell {
                driver: stack,
                client: stack,
                provider,
                ..Cell::default()
            };
            if driver(stack).is_ok_and(|driver| driver.check(Role::Server, &cell).is_ok()) {
                stacks.push(cell);
            }
        }
    }
    stacks
}

fn on_this_thread<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(tokio::task::LocalSet::new().run_until(future))
}

fn setup(cell: &Cell) -> Setup {
    Setup {
        certificates: certificates::make(certificates::Wanted::of(cell)).unwrap(),
        cell: cell.clone(),
        transport: Transport::default(),
    }
}

/// Checks both ends of a cell.
fn check(cell: &Cell) -> Result<(), String> {
    let server = driver(cell.driver).unwrap().check(Role::Server, cell);
    let client = driver(cell.client).unwrap().check(Role::Client, cell);
    server.and(client).map_err(|failure| failure.to_string())
}

type Outcome = Result<Rc<dyn Connection>, Failed>;

struct Pair {
    listener: Box<dyn Listener>,
    connector: Box<dyn Connector>,
}

impl Pair {
    fn new(setup: &Setup) -> Self {
        let (server, client) = (
            driver(setup.cell.driver).unwrap(),
            driver(setup.cell.client).unwrap(),
        );
        let listener = server.listen(setup, ([127, 0, 0, 1], 0).into()).unwrap();
        let connector = client.client(setup, listener.address()).unwrap();
        Self {
            listener,
            connector,
        }
    }

    async fn try_connect(&mut self) -> (Outcome, Outcome) {
        let address = self.listener.address();
        let connect = self.connector.connect(address, SERVER_NAME);
        let accept = async { self.listener.accept().await?.await };
        tokio::join!(connect, accept)
    }

    async fn connect(&mut self) -> (Rc<dyn Connection>, Rc<dyn Connection>) {
        let (client, server) = self.try_connect().await;
        (client.unwrap(), server.unwrap())
    }
}

async fn send(writer: &mut dyn Writer, data: &'static [u8]) {
    let mut data = Bytes::from_static(data);
    while !data.is_empty() {
        poll_fn(|cx| writer.poll_send(cx, &mut data)).await.unwrap();
    }
    poll_fn(|cx| writer.poll_finish(cx)).await.unwrap();
}

async fn receive(reader: &mut dyn Reader) -> Result<Vec<u8>, Failed> {
    let mut received = Vec::new();
    while let Some(bytes) = poll_fn(|cx| reader.poll_receive(cx, 4096)).await? {
        received.extend_from_slice(&bytes);
    }
    Ok(received)
}

/// Exchanges a request and an answer on one stream.
async fn exchange(client: &dyn Connection, server: &dyn Connection) {
    let ask = async {
        let (mut writer, mut reader) = client.open_bidi().await.unwrap();
        send(&mut *writer, b"ping").await;
        assert_eq!(receive(&mut *reader).await.unwrap(), b"pong");
    };
    let answer = async {
        let (mut writer, mut reader) = server.accept_bidi().await.unwrap().unwrap();
        assert_eq!(receive(&mut *reader).await.unwrap(), b"ping");
        send(&mut *writer, b"pong").await;
        // A writer that is dropped first may take its stream with it.
        poll_fn(|cx| writer.poll_acknowledged(cx)).await.unwrap();
    };
    tokio::join!(ask, answer);
}

/// Closes with code 0, and waits for both ends.
async fn close(client: &dyn Connection, server: &dyn Connection) {
    client.close(0);
    let (client, server) = tokio::join!(client.closed(), server.closed());
    client.unwrap();
    server.unwrap();
}

/// Connects once; returns what the client reports as negotiated.
async fn once(pair: &mut Pair) -> Negotiated {
    let (client, server) = pair.connect().await;
    exchange(&*client, &*server).await;
    let negotiated = client.established().await.unwrap();
    server.established().await.unwrap();
    close(&*client, &*server).await;
    negotiated
}

#[test]
fn each_group_is_negotiated_with_and_without_a_hello_retry() {
    for cell in stacks() {
        let mut lacks = Vec::new();
        for group in Group::ALL {
            for hello_retry in [false, true] {
                let cell = Cell {
                    group,
                    hello_retry,
                    ..cell.clone()
                };
                if check(&cell).is_err() {
                    lacks.push(group);
                    continue;
                }
                let negotiated =
                    on_this_thread(async { once(&mut Pair::new(&setup(&cell))).await });
                assert_eq!(negotiated.group, group.to_string(), "{cell:?}");
                assert_eq!(negotiated.hello_retry, Some(hello_retry), "{cell:?}");
                assert_eq!(negotiated.suite, "TLS_AES_128_GCM_SHA256", "{cell:?}");
                assert_eq!(negotiated.resumed, Some(false), "{cell:?}");
            }
        }
        lacks.dedup();
        let expected: &[Group] = match (cell.driver, cell.provider) {
            (Stack::Hybriq, Backend::Rustls) => &[],
            (Stack::Hybriq, _) => &[Group::MLKEM768],
            (_, Backend::Rustls) => &[Group::SECP384R1MLKEM1024],
            _ => &[Group::SECP384R1MLKEM1024, Group::MLKEM768],
        };
        assert_eq!(lacks, expected, "{} {}", cell.driver, cell.provider);
    }
}

#[test]
fn each_certificate_and_chain_is_shown_and_verified_on_both_sides() {
    for cell in stacks() {
        for certificate in Certificate::ALL {
            let cell = Cell {
                certificate,
                chain: 3,
                client_auth: true,
                ..cell.clone()
            };
            if let Err(reason) = check(&cell) {
                assert_eq!(cell.provider, Backend::S2nTls, "{reason}");
                assert_eq!(certificate, Certificate::Ed25519, "{reason}");
                continue;
            }
            let negotiated = on_this_thread(async { once(&mut Pair::new(&setup(&cell))).await });
            let signature = match certificate {
                Certificate::EcdsaP256 => "ecdsa_secp256r1_sha256",
                Certificate::EcdsaP384 => "ecdsa_secp384r1_sha384",
                Certificate::Rsa2048 => "rsa_pss_rsae_sha",
                Certificate::Ed25519 => "ed25519",
                Certificate::MlDsa44 => "mldsa44",
                Certificate::MlDsa65 => "mldsa65",
                Certificate::MlDsa87 => "mldsa87",
            };
            assert!(
                negotiated.signature.starts_with(signature),
                "{cell:?} {negotiated:?}"
            );
        }
    }
}

#[test]
fn each_suite_is_the_only_one() {
    for cell in stacks() {
        for suite in <Suite as Named>::ALL.iter().copied() {
            let cell = Cell {
                suite,
                ..cell.clone()
            };
            check(&cell).unwrap();
            let negotiated = on_this_thread(async { once(&mut Pair::new(&setup(&cell))).await });
            assert_eq!(negotiated.suite, suite.to_string(), "{cell:?}");
        }
    }
}

#[test]
fn connections_after_the_first_are_resumed() {
    for cell in stacks() {
        let cell = Cell {
            resumption: Resumption::Psk,
            ..cell
        };
        if let Err(reason) = check(&cell) {
            assert!(
                cell.provider == Backend::S2nTls || cell.driver == Stack::S2nQuic,
                "{reason}"
            );
            continue;
        }
        on_this_thread(async {
            let mut pair = Pair::new(&setup(&cell));
            assert_eq!(once(&mut pair).await.resumed, Some(false), "{cell:?}");
            for _ in 0..4 {
                assert_eq!(once(&mut pair).await.resumed, Some(true), "{cell:?}");
            }
        });
    }
}

#[test]
fn early_data_is_answered_before_the_handshake_is_complete() {
    for cell in stacks() {
        let cell = Cell {
            resumption: Resumption::ZeroRtt,
            ..cell
        };
        if let Err(reason) = check(&cell) {
            assert!(
                cell.provider == Backend::S2nTls || cell.driver == Stack::S2nQuic,
                "{reason}"
            );
            continue;
        }
        on_this_thread(async {
            let mut pair = Pair::new(&setup(&cell));
            let first = once(&mut pair).await;
            assert_eq!(first.early_data, Some(false), "{cell:?}");
            for _ in 0..3 {
                // The client is refused before it contacts the server.
                let address = pair.listener.address();
                let client = pair.connector.connect(address, SERVER_NAME).await.unwrap();
                let server = pair.listener.accept().await.unwrap().await.unwrap();
                assert_eq!(
                    server.server_name().as_deref(),
                    Some(SERVER_NAME),
                    "{cell:?}"
                );
                exchange(&*client, &*server).await;
                let negotiated = client.established().await.unwrap();
                assert_eq!(negotiated.resumed, Some(true), "{cell:?}");
                assert_eq!(negotiated.early_data, Some(true), "{cell:?}");
                server.established().await.unwrap();
                close(&*client, &*server).await;
            }
        });
    }
}

#[test]
fn both_ends_count_the_same_datagrams() {
    for cell in stacks() {
        on_this_thread(async {
            let mut pair = Pair::new(&setup(&cell));
            let (client, server) = pair.connect().await;
            exchange(&*client, &*server).await;
            close(&*client, &*server).await;
            // The last data may still be in the server's socket.
            let received = || {
                pair.listener
                    .traffic()
                    .map(|traffic| traffic.received_bytes)
            };
            let sent = || pair.connector.traffic().map(|traffic| traffic.sent_bytes);
            yield_until(|| received() == sent()).await;
            let (ours, theirs) = (pair.connector.traffic(), pair.listener.traffic());
            if let (Some(ours), Some(theirs)) = (ours, theirs) {
                assert_eq!(ours.sent_bytes, theirs.received_bytes, "{cell:?}");
                assert_eq!(ours.sent_datagrams, theirs.received_datagrams, "{cell:?}");
                assert!(ours.received_bytes <= theirs.sent_bytes, "{cell:?}");
                let stats = client.stats().traffic.unwrap();
                assert_eq!(stats.sent_bytes, ours.sent_bytes, "{cell:?}");
            }
        });
    }
}

#[test]
fn a_server_that_nobody_trusts_is_told_so() {
    for cell in stacks() {
        on_this_thread(async {
            let setup = setup(&cell);
            let other = certificates::of_server(cell.certificate, 1).unwrap();
            let mut pair = Pair::new(&setup);
            let mut distrusting = setup.clone();
            distrusting.certificates.root = other.root;
            let stack = driver(cell.client).unwrap();
            let address = pair.listener.address();
            pair.connector = stack.client(&distrusting, address).unwrap();
            let connect = pair.connector.connect(address, SERVER_NAME);
            // Not every server reports failures in its handshake.
            let accept = async {
                while let Ok(accepting) = pair.listener.accept().await {
                    let _ = accepting.await;
                }
            };
            let failed = tokio::select! {
                client = connect => client.err().unwrap(),
                () = accept => panic!("the server went away"),
            };
            let alerts = ["unknown_ca", "bad_certificate", "certificate_unknown"];
            assert!(
                alerts
                    .iter()
                    .any(|alert| failed.kind == Kind::Alert((*alert).to_owned())),
                "{cell:?} {failed}"
            );
        });
    }
}

#[test]
fn a_code_of_the_application_reaches_the_other_end() {
    for cell in stacks() {
        on_this_thread(async {
            let (client, server) = Pair::new(&setup(&cell)).connect().await;
            client.close(7);
            assert_eq!(
                server.closed().await.unwrap_err().kind,
                Kind::Application(7)
            );
            let failed = server.accept_bidi().await.err().unwrap();
            assert_eq!(failed.kind, Kind::Application(7), "{cell:?}");
        });
    }
}

#[test]
fn a_stream_that_is_given_up_is_reset_also_by_dropping_it() {
    for cell in stacks() {
        on_this_thread(async {
            let (client, server) = Pair::new(&setup(&cell)).connect().await;
            for dropped in [false, true] {
                let mut writer = client.open_uni().await.unwrap();
                let mut data = Bytes::from_static(b"half of it");
                poll_fn(|cx| writer.poll_send(cx, &mut data)).await.unwrap();
                let mut reader = server.accept_uni().await.unwrap().unwrap();
                if dropped {
                    drop(writer);
                } else {
                    writer.reset(3);
                }
                let failed = receive(&mut *reader).await.unwrap_err();
                assert_eq!(failed.kind, Kind::Reset, "{cell:?}");
            }
        });
    }
}

#[test]
fn datagrams_arrive() {
    for cell in stacks() {
        on_this_thread(async {
            let (client, server) = Pair::new(&setup(&cell)).connect().await;
            client
                .send_datagram(Bytes::from_static(b"hello"))
                .await
                .unwrap();
            let data = server.receive_datagram().await.unwrap().unwrap();
            assert_eq!(&data[..], b"hello", "{cell:?}");
        });
    }
}

#[test]
fn a_server_that_does_not_answer_is_a_timeout() {
    for cell in stacks() {
        on_this_thread(async {
            let mut setup = setup(&cell);
            setup.transport.idle_timeout_ms = Some(50);
            let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            let address = silent.local_addr().unwrap();
            let stack = driver(cell.client).unwrap();
            let connector = stack.client(&setup, address).unwrap();
            let failed = connector.connect(address, SERVER_NAME).await.err().unwrap();
            assert_eq!(failed.kind, Kind::Timeout, "{cell:?} {failed}");
        });
    }
}

#[test]
fn what_is_impossible_is_told_in_one_line() {
    let cell = Cell {
        provider: Backend::S2nTls,
        resumption: Resumption::ZeroRtt,
        ..Cell::default()
    };
    let reason = check(&cell).unwrap_err();
    assert!(reason.contains("use provider rustls"), "{reason}");
    assert_eq!(reason.lines().count(), 1, "{reason}");
}
