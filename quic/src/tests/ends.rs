//! Ends that race with waiting tasks.

use std::sync::Arc;

use bytes::Bytes;
use hybriq_proto::config::TransportConfig;
use hybriq_proto::wire::error::ConnectionError;
use shuttle::future::spawn;

use super::world::{Settings, World, check, client_config, pause, server_address, server_config};
use crate::{
    endpoint::Endpoint,
    errors::{ConnectError, ReadError, WriteError},
};

/// Returns settings of a server that allows one stream and 1000 bytes on it.
fn narrow() -> Settings {
    let transport = TransportConfig::new()
        .max_uni_streams(1)
        .stream_receive_window(1000);
    let client = TransportConfig::new().send_buffer(1000);
    Settings::new(
        server_config().transport(transport),
        client_config().transport(client),
    )
}

fn is_seven(error: &ConnectionError) -> bool {
    matches!(error, ConnectionError::Application { code: 7, .. })
}

/// Waits for everything that a client can wait for, and expects the end with code 7.
async fn wait_for_everything(world: &World) {
    let (server, client) = world.connect().await;
    let mut send = client.open_uni().await.unwrap();
    let (mut unread, mut recv) = client.open_bidi().await.unwrap();
    unread.write_all(b"x").await.unwrap();
    let closed = |result: Result<bool, ConnectionError>| match result {
        Ok(some) => panic!("{some}"),
        Err(error) => assert!(is_seven(&error), "{error}"),
    };
    let handles = [(); 5].map(|()| client.clone());
    let [open, accept, bidi, datagram, end] = handles;
    let tasks = [
        spawn(async move { closed(open.open_uni().await.map(|_| true)) }),
        spawn(async move { closed(accept.accept_uni().await.map(|some| some.is_some())) }),
        spawn(async move { closed(bidi.accept_bidi().await.map(|some| some.is_some())) }),
        spawn(async move { closed(datagram.recv_datagram().await.map(|some| some.is_some())) }),
        spawn(async move { assert!(is_seven(&end.closed().await)) }),
        spawn(async move {
            let error = send.write_all(&[0; 10_000]).await.unwrap_err();
            assert!(matches!(error, WriteError::Connection(error) if is_seven(&error)));
        }),
        spawn(async move {
            let error = recv.read_chunk(1).await.unwrap_err();
            assert!(matches!(error, ReadError::Connection(error) if is_seven(&error)));
        }),
        spawn(async move {
            let error = unread.stopped().await.map(|_| ());
            // One byte and no more was acknowledged.
            assert!(matches!(error, Err(WriteError::Connection(error)) if is_seven(&error)));
        }),
    ];
    let closer = if super::world::random(2) == 0 {
        server
    } else {
        client
    };
    pause().await;
    closer.close(7, b"");
    for task in tasks {
        task.await.unwrap();
    }
}

#[test]
fn everybody_who_waits_learns_the_end() {
    check(narrow(), |world: Arc<World>| async move {
        wait_for_everything(&world).await;
    });
}

async fn connect_and_close(world: &World, endpoint: Endpoint) {
    let server = world.server.clone();
    let accept = spawn(async move {
        while let Some(incoming) = server.accept().await {
            if let Ok(connection) = incoming.accept().await {
                connection.closed().await;
            }
        }
    });
    let client = world.client.clone();
    let connect = spawn(async move {
        match client.connect(server_address(), "localhost").await {
            Ok(connection) => drop(connection.closed().await),
            Err(ConnectError::EndpointClosed | ConnectError::Connection(_)) => {}
            Err(error) => panic!("{error}"),
        }
    });
    pause().await;
    endpoint.close(3, b"");
    connect.await.unwrap();
    endpoint.idle().await;
    world.server.close(0, b"");
    accept.await.unwrap();
}

#[test]
fn a_client_that_closes_its_endpoint_waits_for_no_handshake() {
    check(
        Settings::default().in_time(),
        |world: Arc<World>| async move {
            connect_and_close(&world, world.client.clone()).await;
        },
    );
}

#[test]
fn a_server_that_closes_refuses_who_comes() {
    check(
        Settings::default().in_time(),
        |world: Arc<World>| async move {
            connect_and_close(&world, world.server.clone()).await;
        },
    );
}

/// The worker may end just as a request arrives.
#[test]
fn a_request_to_a_worker_that_ends_is_answered() {
    check(
        Settings::default().in_time(),
        |world: Arc<World>| async move {
            let client = world.client.clone();
            let tasks = [(); 3].map(|()| {
                let client = client.clone();
                spawn(async move {
                    pause().await;
                    let connecting = client.connect(server_address(), "localhost");
                    connecting.await.map(|_| ()).unwrap_err()
                })
            });
            pause().await;
            world.client.close(0, b"");
            world.server.close(0, b"");
            for task in tasks {
                let error = task.await.unwrap();
                assert!(matches!(
                    error,
                    ConnectError::EndpointClosed | ConnectError::Connection(_)
                ));
            }
            client.idle().await;
        },
    );
}

/// Both ends close, drop and send at the same time.
#[test]
fn ends_that_cross_each_other_agree_that_it_is_over() {
    check(Settings::default(), |world: Arc<World>| async move {
        let (server, client) = world.connect().await;
        let talk = |connection: crate::api::connection::Connection, code| {
            spawn(async move {
                let mut send = connection.open_uni().await?;
                let _ = send.write_chunk(Bytes::from_static(b"data")).await;
                pause().await;
                if code > 0 {
                    connection.close(code, b"");
                }
                Ok::<_, ConnectionError>(())
            })
        };
        let tasks = [talk(server.clone(), 0), talk(client, 9)];
        let closed = server.closed().await;
        assert!(
            matches!(closed, ConnectionError::Application { .. }),
            "{closed}"
        );
        for task in tasks {
            let _ = task.await.unwrap();
        }
    });
}
