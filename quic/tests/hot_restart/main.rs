//! Endpoints that go from one process to the next. Both ends of a hand-over may be in one process, as
//! in most of these tests; those at the end start processes.
#![cfg(any(target_os = "linux", target_os = "android"))]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../endpoint_support/mod.rs"]
mod endpoint_support;
mod moves;

use std::{
    net::SocketAddr,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    task::Poll,
};

use endpoint_support::{client, client_config, server_config, soon};
use hybriq::{
    Connection, Endpoint, EndpointBuilder, EndpointError,
    error::RestartError,
    fleet::{AddressValidation, FleetKeys, Placement, QuicLb, RandomCids},
    transport::SystemRandom,
};
use tokio::{net::UdpSocket, sync::Notify};

/// A folder for sockets, which is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("hybriq-restart-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn path(&self) -> PathBuf {
        self.0.join("socket")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

fn keys(secret: u8) -> FleetKeys {
    FleetKeys::from_secret(&[secret; 32]).unwrap()
}

fn builder() -> EndpointBuilder {
    Endpoint::builder()
        .server(server_config())
        .fleet_keys(&keys(1))
}

/// Serves every client of an endpoint by echoing, until there is a successor.
fn serve(server: &Endpoint) -> tokio::task::JoinHandle<usize> {
    let server = server.clone();
    tokio::spawn(async move {
        let mut accepted = 0;
        while let Some(incoming) = server.accept().await {
            accepted += 1;
            tokio::spawn(async move { echo_all(incoming.accept().await.unwrap()).await });
        }
        accepted
    })
}

async fn echo_all(connection: Connection) {
    while let Ok(Some((mut send, mut recv))) = connection.accept_bidi().await {
        tokio::spawn(async move {
            let _ = tokio::io::copy(&mut recv, &mut send).await;
            send.finish();
        });
    }
}

async fn echo(connection: &Connection, message: &[u8]) {
    let ask = async {
        let (mut send, mut recv) = connection.open_bidi().await.unwrap();
        let write = async {
            send.write_all(message).await.unwrap();
            send.finish();
        };
        tokio::join!(write, recv.read_to_end(1 << 28)).1.unwrap()
    };
    assert_eq!(soon(ask).await, message);
}

async fn connect(client: &Endpoint, server: &Endpoint) -> Connection {
    soon(client.connect(server.local_address(), "localhost"))
        .await
        .unwrap()
}

/// Hands an endpoint over to one that is made with `builder`.
async fn succeed(old: &Endpoint, builder: EndpointBuilder, path: &Path) -> Endpoint {
    let take = async {
        loop {
            match Box::pin(builder.clone().take_over(path)).await {
                Err(EndpointError::Restart(RestartError::NoPredecessor(_))) => {
                    tokio::task::yield_now().await;
                }
                taken => return taken.unwrap(),
            }
        }
    };
    let (given, taken) = soon(async { tokio::join!(old.hand_over(path), take) }).await;
    given.unwrap();
    taken
}

#[tokio::test]
async fn connections_stay_and_new_ones_go_to_the_successor() {
    let folder = Folder::new("stay");
    let old = builder().bind("127.0.0.1:0").unwrap();
    let serving = serve(&old);
    let (first, second) = (client(), client());
    let before = connect(&first, &old).await;
    echo(&before, b"before").await;

    let new = succeed(&old, builder(), &folder.path()).await;
    assert_eq!((old.generation(), new.generation()), (0, 1));
    assert_eq!(new.local_address(), old.local_address());
    assert_eq!(soon(serving).await.unwrap(), 1, "accept ends");
    let served = serve(&new);
    let after = connect(&second, &new).await;
    for connection in [&before, &after, &before] {
        echo(connection, &vec![7; 100_000]).await;
    }
    assert_eq!(old.stats().connections, 1);
    assert_eq!(new.stats().connections, 1);
    assert!(new.stats().datagrams_forwarded > 0);
    assert_eq!(new.stats().forwards_dropped, 0);
    assert_eq!(
        old.stats().forwards_received,
        new.stats().datagrams_forwarded
    );
    before.close(0, b"");
    soon(old.idle()).await;
    drop(old);
    echo(&after, b"alone").await;
    new.close(0, b"");
    soon(served).await.unwrap();
}

/// Takes over ten times while connections of all processes live.
async fn restart_ten_times(name: &str, builder: impl Fn() -> EndpointBuilder) {
    let folder = Folder::new(name);
    let mut servers = vec![builder().bind("127.0.0.1:0").unwrap()];
    let mut serving = vec![serve(&servers[0])];
    let mut connections = Vec::new();
    for round in 1..=10 {
        for _ in 0..3 {
            let client = client();
            let connection = connect(&client, &servers[round - 1]).await;
            connections.push((client, connection));
        }
        let new = succeed(&servers[round - 1], builder(), &folder.path()).await;
        assert_eq!(usize::from(new.generation()), round);
        serving.push(serve(&new));
        servers.push(new);
        for (_, connection) in &connections {
            echo(connection, &[round as u8; 5000]).await;
        }
    }
    for (generation, server) in servers.iter().enumerate() {
        let stats = server.stats();
        let connections = if generation == 10 { 0 } else { 3 };
        assert_eq!(stats.connections, connections, "{generation}: {stats:?}");
        assert_eq!(stats.forwards_dropped, 0, "{generation}: {stats:?}");
        assert_eq!(stats.stateless_resets, 0, "{generation}: {stats:?}");
    }
    for (_, connection) in &connections {
        connection.close(0, b"");
    }
    for (server, serving) in servers.iter().zip(serving) {
        soon(server.idle()).await;
        server.close(0, b"");
        soon(serving).await.unwrap();
    }
}

#[tokio::test]
async fn ten_restarts_lose_nothing() {
    restart_ten_times("ten", builder).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_restarts_lose_nothing_with_several_workers() {
    let builder = || builder().workers(4).placement(Placement::Threads);
    restart_ten_times("workers", builder).await;
    restart_ten_times("unsteered", || builder().without_steering()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_generation_survives_every_kind_of_id() {
    let plain = || QuicLb::plaintext(1, &[1, 2], 6, &mut SystemRandom::new()).unwrap();
    restart_ten_times("plain", || builder().cid_generator(plain()).workers(2)).await;
    let encrypted = || QuicLb::encrypted(0, &[7], 9, [3; 16], &mut SystemRandom::new()).unwrap();
    restart_ten_times("encrypted", || builder().cid_generator(encrypted())).await;
    let long = || builder().cid_generator(RandomCids::of_len(20)).workers(3);
    restart_ten_times("long", long).await;
}

/// A path between a client and a server that passes only this many datagrams of the client until it
/// is opened.
async fn gate(server: SocketAddr, datagrams: usize) -> (SocketAddr, Arc<Notify>) {
    let (outside, inside) = (
        UdpSocket::bind("127.0.0.1:0").await.unwrap(),
        UdpSocket::bind("127.0.0.1:0").await.unwrap(),
    );
    let (address, open) = (outside.local_addr().unwrap(), Arc::new(Notify::new()));
    let opened = open.clone();
    tokio::spawn(async move {
        let (mut there, mut back) = (vec![0; 65536], vec![0; 65536]);
        let (mut left, mut held, mut client) = (datagrams, Vec::new(), None);
        loop {
            tokio::select! {
                Ok((len, from)) = outside.recv_from(&mut there) => {
                    client = Some(from);
                    if left > 0 {
                        left -= 1;
                        inside.send_to(&there[..len], server).await.unwrap();
                    } else {
                        held.push(there[..len].to_vec());
                    }
                }
                Ok((len, _)) = inside.recv_from(&mut back) => {
                    outside.send_to(&back[..len], client.unwrap()).await.unwrap();
                }
                () = opened.notified() => {
                    left = usize::MAX;
                    for datagram in held.drain(..) {
                        inside.send_to(&datagram, server).await.unwrap();
                    }
                }
            }
        }
    });
    (address, open)
}

async fn until(condition: impl Fn() -> bool) {
    soon(async {
        while !condition() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// The old process has half of the ClientHello, or all of it and no decision, or has answered it.
#[tokio::test]
async fn a_handshake_ends_where_it_began() {
    for datagrams in [1, 2] {
        for accepted in [false, true] {
            if accepted && datagrams == 1 {
                continue;
            }
            let folder = Folder::new(&format!("handshake-{datagrams}-{accepted}"));
            let old = builder().bind("127.0.0.1:0").unwrap();
            let (address, open) = gate(old.local_address(), datagrams).await;
            let client = client();
            let connecting = client.connect(address, "localhost");
            let mut serving = accepted.then(|| serve(&old));
            until(|| {
                let stats = old.stats();
                match (datagrams, accepted) {
                    (1, _) => stats.partial_hellos == 1,
                    (_, false) => stats.waiting_incoming == 1,
                    (_, true) => stats.handshaking == 1,
                }
            })
            .await;
            let new = succeed(&old, builder(), &folder.path()).await;
            let serving = serving.take().unwrap_or_else(|| serve(&old));
            let serving_new = serve(&new);
            open.notify_one();
            let connection = soon(connecting).await.unwrap();
            echo(&connection, b"where it began").await;
            assert_eq!(soon(serving).await.unwrap(), 1);
            assert_eq!(old.stats().connections, 1);
            assert_eq!(new.stats().connections, 0);
            new.close(0, b"");
            assert_eq!(soon(serving_new).await.unwrap(), 0);
        }
    }
}

/// The old process keeps nothing about a client that it sent away to prove its address.
#[tokio::test]
async fn a_client_with_a_token_of_the_old_process_goes_to_the_new_one() {
    let folder = Folder::new("retry");
    let builder = || builder().address_validation(AddressValidation::Always);
    let old = builder().bind("127.0.0.1:0").unwrap();
    let (address, open) = gate(old.local_address(), 1).await;
    let client = client();
    let connecting = client.connect(address, "localhost");
    until(|| old.stats().retries_sent == 1).await;
    let new = succeed(&old, builder(), &folder.path()).await;
    let serving = serve(&new);
    open.notify_one();
    let connection = soon(connecting).await.unwrap();
    echo(&connection, b"with a token").await;
    assert_eq!(old.stats().connections, 0);
    assert_eq!(new.stats().addresses_validated, 1);
    assert!(soon(old.accept()).await.is_none());
    serving.abort();
}

/// Returns the error with which a builder cannot take over, and checks that the old process
/// continues.
async fn refused(old: EndpointBuilder, new: EndpointBuilder, name: &str) -> RestartError {
    let folder = Folder::new(name);
    let old = old.bind("127.0.0.1:0").unwrap();
    let serving = serve(&old);
    let path = folder.path();
    let waiting = old.clone();
    let waits = tokio::spawn({
        let path = path.clone();
        async move { waiting.hand_over(path).await }
    });
    until(|| path.exists()).await;
    let taken = soon(new.take_over(&path)).await;
    let EndpointError::Restart(error) = taken.unwrap_err() else {
        panic!("another error");
    };
    let client = client();
    let connection = connect(&client, &old).await;
    echo(&connection, b"as before").await;
    // Another one may still succeed.
    let taken = builder().take_over(&path).await.unwrap();
    soon(waits).await.unwrap().unwrap();
    assert_eq!(taken.generation(), 1);
    echo(&connection, b"forwarded").await;
    assert_eq!(soon(serving).await.unwrap(), 1);
    error
}

#[tokio::test]
async fn a_process_that_cannot_succeed_is_told_why() {
    let other = |secret| {
        Endpoint::builder()
            .server(server_config())
            .fleet_keys(&keys(secret))
    };
    let error = refused(builder(), other(2), "keys").await;
    assert!(matches!(error, RestartError::Keys), "{error}");
    let without = Endpoint::builder().server(server_config());
    let error = refused(builder(), without, "none").await;
    assert!(matches!(error, RestartError::Keys), "{error}");
    let error = refused(builder(), builder().workers(2), "count").await;
    assert!(
        matches!(error, RestartError::Workers { other: 1, own: 2 }),
        "{error}"
    );
    let longer = builder().cid_generator(RandomCids::of_len(9));
    let error = refused(builder(), longer, "ids").await;
    assert!(matches!(error, RestartError::Ids), "{error}");
}

#[tokio::test]
async fn a_path_without_a_process_and_one_with_another() {
    let folder = Folder::new("paths");
    let error = builder().take_over(folder.path()).await.unwrap_err();
    assert!(
        matches!(
            error,
            EndpointError::Restart(RestartError::NoPredecessor(_))
        ),
        "{error}"
    );
    let path = folder.path();
    let old = builder().take_over_or_bind(&path, "127.0.0.1:0");
    let old = old.await.unwrap();
    assert_eq!(old.generation(), 0);
    let waiting = old.clone();
    let waits = tokio::spawn({
        let path = path.clone();
        async move { waiting.hand_over(path).await }
    });
    until(|| path.exists()).await;
    let other = builder().bind("127.0.0.1:0").unwrap();
    let error = other.hand_over(&path).await.unwrap_err();
    assert!(matches!(error, RestartError::PathInUse), "{error}");
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    waits.abort();
    assert!(waits.await.unwrap_err().is_cancelled());
    assert!(!path.exists(), "nobody waits there any more");
    let nowhere = other.hand_over(folder.0.join("no/folder")).await;
    assert!(matches!(nowhere.unwrap_err(), RestartError::Path(_)));
    let missing = builder().zero_length_cids().take_over(&path).await;
    let error = missing.unwrap_err();
    assert!(matches!(error, EndpointError::ZeroLengthCids), "{error}");
}

/// However far a successor gets before it gives up, the old process continues.
#[tokio::test]
async fn a_successor_that_gives_up_takes_nothing() {
    let folder = Folder::new("gives-up");
    let path = folder.path();
    let old = builder().bind("127.0.0.1:0").unwrap();
    let serving = serve(&old);
    let client = client();
    let connection = connect(&client, &old).await;
    let waiting = old.clone();
    let waits = tokio::spawn({
        let path = path.clone();
        async move { while waiting.hand_over(&path).await.is_err() {} }
    });
    until(|| path.exists()).await;
    let mut finished = 0;
    for steps in 0..20 {
        let mut take = Box::pin(builder().take_over(&path));
        for _ in 0..steps {
            let polled = std::future::poll_fn(|cx| Poll::Ready(take.as_mut().poll(cx))).await;
            if let Poll::Ready(taken) = polled {
                finished += usize::from(taken.is_ok());
                break;
            }
            // So often that the other side has answered.
            for _ in 0..50 {
                tokio::task::yield_now().await;
            }
        }
        drop(take);
        if finished > 0 {
            break;
        }
        echo(&connection, b"still here").await;
        let another = connect(&client, &old).await;
        echo(&another, b"and open").await;
        until(|| path.exists()).await;
    }
    assert_eq!(finished, 1, "it succeeds in the end");
    soon(waits).await.unwrap();
    soon(serving).await.unwrap();
}

/// The old process receives again, and waits for another successor.
#[tokio::test]
async fn a_successor_that_dies_leaves_the_connections_to_its_predecessors() {
    let folder = Folder::new("dies");
    let first = builder().bind("127.0.0.1:0").unwrap();
    let serving = serve(&first);
    let client = client();
    let oldest = connect(&client, &first).await;
    let second = succeed(&first, builder(), &folder.path()).await;
    let serving_second = serve(&second);
    let older = connect(&client, &second).await;
    let third = succeed(&second, builder(), &folder.path()).await;
    let serving_third = serve(&third);
    let lost = connect(&client, &third).await;
    for connection in [&oldest, &older, &lost] {
        echo(connection, b"three").await;
    }
    soon(serving).await.unwrap();
    soon(serving_second).await.unwrap();
    third.close(7, b"");
    soon(serving_third).await.unwrap();
    soon(third.idle()).await;
    drop(third);
    for connection in [&oldest, &older] {
        echo(connection, b"two").await;
    }
    assert!(second.stats().datagrams_forwarded > 0);
    let fourth = succeed(&second, builder(), &folder.path()).await;
    assert_eq!(fourth.generation(), 2, "the number is free again");
    let serving_fourth = serve(&fourth);
    let newest = connect(&client, &fourth).await;
    for connection in [&oldest, &older, &newest] {
        echo(connection, b"three again").await;
    }
    serving_fourth.abort();
}

/// An endpoint that also connects can continue to do so: on the shared socket, on its own, and on
/// those that its connections moved to.
#[tokio::test]
async fn connections_that_the_old_process_started_go_on() {
    let folder = Folder::new("both");
    let elsewhere = builder().bind("127.0.0.1:0").unwrap();
    let serving_elsewhere = serve(&elsewhere);
    let both = || builder().client(client_config());
    let old = both().bind("127.0.0.1:0").unwrap();
    let serving = serve(&old);
    let shared = connect(&old, &elsewhere).await;
    let moved = connect(&old, &elsewhere).await;
    soon(moved.migrate("127.0.0.1:0".parse().unwrap()))
        .await
        .unwrap();
    // The answer comes after the hand-over.
    let (address, open) = gate(elsewhere.local_address(), 0).await;
    let begun = old.connect(address, "localhost");
    let new = succeed(&old, both(), &folder.path()).await;
    open.notify_one();
    soon(serving).await.unwrap();
    let serving = serve(&new);
    let begun = soon(begun).await.unwrap();
    let after = connect(&old, &elsewhere).await;
    let of_new = connect(&new, &elsewhere).await;
    let visitor = client();
    let visit = connect(&visitor, &new).await;
    for connection in [&shared, &moved, &begun, &after, &of_new, &visit] {
        echo(connection, b"from both processes").await;
    }
    assert_eq!(new.stats().drops.useless_hello, 0);
    serving.abort();
    serving_elsewhere.abort();
}

#[tokio::test]
async fn an_endpoint_that_was_moved_is_not_handed_over() {
    let old = builder().bind("127.0.0.1:0").unwrap();
    old.rebind("127.0.0.1:0").unwrap();
    let folder = Folder::new("moved");
    let path = folder.path();
    let waiting = old.clone();
    let waits = tokio::spawn({
        let path = path.clone();
        async move { waiting.hand_over(path).await }
    });
    until(|| path.exists()).await;
    let error = soon(builder().take_over(&path)).await.unwrap_err();
    assert!(
        matches!(error, EndpointError::Restart(RestartError::Moved)),
        "{error}"
    );
    waits.abort();
}

/// However far the old process comes before it stops waiting, one of both has the endpoint.
#[tokio::test]
async fn a_hand_over_that_nobody_waits_for_any_more_is_finished_or_has_not_begun() {
    let mut finished = 0;
    for steps in 1..20 {
        let folder = Folder::new(&format!("dropped-{steps}"));
        let path = folder.path();
        let old = builder().bind("127.0.0.1:0").unwrap();
        let serving = serve(&old);
        let mut giving = Some(Box::pin(old.hand_over(&path)));
        let gives = std::cell::Cell::new(true);
        let mut left = steps;
        let mut taking = Box::pin(async {
            loop {
                match Box::pin(builder().take_over(&path)).await {
                    Err(EndpointError::Restart(RestartError::NoPredecessor(_))) if gives.get() => {
                        tokio::task::yield_now().await;
                    }
                    taken => return taken,
                }
            }
        });
        let taken = std::future::poll_fn(|cx| {
            if let Some(future) = &mut giving {
                left -= 1;
                if left == 0 || future.as_mut().poll(cx).is_ready() {
                    giving = None;
                    gives.set(false);
                }
            }
            taking.as_mut().poll(cx)
        });
        let Ok(new) = soon(taken).await else {
            serving.abort();
            continue;
        };
        finished += 1;
        assert_eq!(new.generation(), 1);
        // The old process accepts no more, because the new one does.
        soon(serving).await.unwrap();
    }
    assert!(finished > 3, "{finished}");
}

#[tokio::test]
async fn an_endpoint_that_is_closed_waits_for_no_successor() {
    let folder = Folder::new("closed");
    let path = folder.path();
    let old = builder().bind("127.0.0.1:0").unwrap();
    let address = old.local_address();
    let waits = tokio::spawn({
        let (old, path) = (old.clone(), path.clone());
        async move { old.hand_over(path).await }
    });
    until(|| path.exists()).await;
    assert_eq!(old.drain(std::time::Duration::ZERO, 0, b"").await, 0);
    let error = soon(waits).await.unwrap().unwrap_err();
    assert!(matches!(error, RestartError::Closed), "{error}");
    assert!(!path.exists());
    drop(old);
    let new = soon(builder().take_over_or_bind(&path, address))
        .await
        .unwrap();
    assert_eq!(new.generation(), 0);
}

#[tokio::test]
async fn a_file_at_the_path_is_left_alone() {
    let folder = Folder::new("file");
    let path = folder.path();
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, "precious").unwrap();
    let server = builder().bind("127.0.0.1:0").unwrap();
    let error = server.hand_over(&path).await.unwrap_err();
    assert!(matches!(error, RestartError::Path(_)), "{error}");
    assert!(error.to_string().contains("else than a socket"), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
    // A path that is too long for a socket is told at the start, not at the first restart.
    let long = folder.0.join("x".repeat(200));
    let error = builder().take_over_or_bind(&long, "127.0.0.1:0").await;
    let error = error.unwrap_err();
    assert!(
        matches!(error, EndpointError::Restart(RestartError::Path(_))),
        "{error}"
    );
}
