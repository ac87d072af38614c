//! A worker whose socket is full waits for the socket, and does not spin.

use std::{sync::Arc, time::Duration};

use shuttle::future::spawn;

use super::world::{CLIENT, SERVER, Settings, World, check, client_address, server_address};
use crate::sync::time;

/// Number of times that a worker may be polled while nothing happens but its timers.
const POLLS: usize = 20;

/// The acknowledgement for half of a ClientHello waits for the socket, and another one is due.
#[test]
fn a_server_that_owes_an_acknowledgement_waits_for_its_socket() {
    check(
        Settings::default().in_time(),
        |world: Arc<World>| async move {
            let (network, server) = (world.network.clone(), server_address());
            network.fill(server);
            let mut connecting = Vec::new();
            for _ in 0..2 {
                network.set_reachable(server, Some(1));
                connecting.push(world.client.connect(server, "localhost"));
                time::sleep(Duration::from_millis(200)).await;
            }
            assert!(network.refused(server) > 0, "nothing was due");
            let wait = Duration::from_millis(500);
            world.polled_at_most(POLLS, SERVER, wait).await;

            network.set_reachable(server, None);
            network.drain(server);
            let accepting = [(); 2].map(|()| {
                let endpoint = world.server.clone();
                spawn(async move { endpoint.accept().await.unwrap().accept().await })
            });
            for (connecting, accepting) in connecting.into_iter().zip(accepting) {
                let connected = connecting.await.unwrap();
                accepting.await.unwrap().unwrap();
                drop(connected);
            }
        },
    );
}

/// Data must be sent and sent again, and cannot be.
#[test]
fn a_client_that_has_data_to_send_waits_for_its_socket() {
    check(
        Settings::default().in_time(),
        |world: Arc<World>| async move {
            let (network, address) = (world.network.clone(), client_address());
            let (server, client) = world.connect().await;
            let mut send = client.open_uni().await.unwrap();
            send.write_all(&[1; 1000]).await.unwrap();
            network.fill(address);
            send.write_all(&vec![1; 100_000]).await.unwrap();
            time::sleep(Duration::from_secs(1)).await;
            assert!(network.refused(address) > 0, "nothing was to be sent");
            let wait = Duration::from_secs(3);
            world.polled_at_most(POLLS, CLIENT, wait).await;

            network.drain(address);
            send.finish();
            let mut recv = server.accept_uni().await.unwrap().unwrap();
            assert_eq!(recv.read_to_end(200_000).await.unwrap().len(), 101_000);
        },
    );
}
