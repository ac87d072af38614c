//! A socket that returns only errors rests between attempts, and ends its endpoint if that lasts.

use std::{sync::Arc, time::Duration};

use hybriq_proto::wire::error::ConnectionError;

use super::world::{CLIENT, Settings, World, check, client_address, server_address};
use crate::{api::connection::Connection, errors::ConnectError, sync::time};

/// The system's error for a device that fails.
const EIO: i32 = 5;

/// Number of times that a worker may be polled while its socket fails.
const POLLS: usize = 120;

/// Sends a message on a new stream.
async fn send(from: &Connection) {
    let mut send = from.open_uni().await.unwrap();
    send.write_all(b"in").await.unwrap();
    send.finish();
}

/// Waits until the message has arrived.
async fn arrives(at: &Connection) {
    let mut recv = at.accept_uni().await.unwrap().unwrap();
    assert_eq!(recv.read_to_end(10).await.unwrap(), b"in");
}

#[test]
fn a_socket_that_lasts_in_error_ends_its_endpoint_with_a_reason() {
    check(
        Settings::default().in_time(),
        |world: Arc<World>| async move {
            let (network, address) = (world.network.clone(), client_address());
            let (_server, client) = world.connect().await;
            network.set_receive_error(address, Some(EIO));
            let wait = Duration::from_secs(5);
            world.polled_at_most(POLLS, CLIENT, wait).await;
            let errors = world.client.stats().receive_errors;
            assert!((4..30).contains(&errors), "{errors} errors");
            assert_eq!(
                (world.client.failure(), client.close_reason()),
                (None, None)
            );

            time::sleep(Duration::from_secs(8)).await;
            let reason = world.client.failure().expect("the endpoint failed");
            assert_eq!(reason.code, Some(EIO));
            let failed = ConnectionError::SocketFailed(reason);
            assert_eq!(client.closed().await, failed);
            assert!(world.client.accept().await.is_none());
            let connected = world.client.connect(server_address(), "localhost").await;
            match connected {
                Err(ConnectError::Connection(error)) => assert_eq!(error, failed),
                other => panic!("{other:?}"),
            }
            world.client.idle().await;
            network.set_receive_error(address, None);
        },
    );
}

#[test]
fn a_socket_that_recovers_goes_on() {
    check(
        Settings::default().in_time(),
        |world: Arc<World>| async move {
            let (network, address) = (world.network.clone(), client_address());
            network.set_receive_error(address, Some(EIO));
            time::sleep(Duration::from_millis(300)).await;
            network.set_receive_error(address, None);
            let (server, client) = world.connect().await;
            send(&client).await;
            arrives(&server).await;
            assert_eq!(world.client.failure(), None);
        },
    );
}

/// This process has no file descriptors left with which the runtime could watch for room.
#[test]
fn a_full_socket_that_nobody_watches_is_tried_with_pauses() {
    check(
        Settings::default().in_time(),
        |world: Arc<World>| async move {
            let (network, address) = (world.network.clone(), client_address());
            let (server, client) = world.connect().await;
            network.set_unwatched(address);
            network.fill(address);
            send(&client).await;
            let wait = Duration::from_millis(200);
            world.polled_at_most(POLLS, CLIENT, wait).await;
            network.drain(address);
            arrives(&server).await;
        },
    );
}

/// The first datagram of a client cannot be sent.
#[test]
fn a_connect_whose_first_datagram_cannot_be_sent_ends_with_the_systems_reason() {
    check(
        Settings::default().in_time(),
        |world: Arc<World>| async move {
            const ENETUNREACH: i32 = 101;
            let (network, address) = (world.network.clone(), client_address());
            network.set_send_error(address, Some(ENETUNREACH));
            let error = world.client.connect(server_address(), "localhost").await;
            network.set_send_error(address, None);
            match error {
                Err(ConnectError::Connection(ConnectionError::Unreachable { peer, reason })) => {
                    assert_eq!(peer, server_address());
                    assert_eq!(reason.code, Some(ENETUNREACH));
                }
                other => panic!("{other:?}"),
            }
            let (server, client) = world.connect().await;
            network.set_send_error(address, Some(ENETUNREACH));
            send(&client).await;
            time::sleep(Duration::from_millis(200)).await;
            network.set_send_error(address, None);
            // It is sent again.
            arrives(&server).await;
        },
    );
}
