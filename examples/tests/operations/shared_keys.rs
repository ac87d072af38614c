//! Servers of a fleet accept each other's tokens, resume each other's sessions, and end each other's
//! lost connections.

use std::collections::HashMap;
use std::sync::Arc;

use hybriq::ConnectionError;

use crate::clients::{ask, connect, endpoint, soon};
use crate::topology::{Fleet, Ids, on_clients_host, service};

async fn tokens(fleet: Arc<Fleet>) {
    let _servers = [fleet.start(0), fleet.start(1)];
    let client = endpoint(fleet.authority.trust());

    // The client gets a Retry from one server, and comes back to the other, which lets it in.
    fleet.router.state().loses_server_after_retry = true;
    let connection = connect(&client, service()).await.unwrap();
    ask(&connection, 1).await.unwrap();
    let (from, to) = {
        let mut state = fleet.router.state();
        state.loses_server_after_retry = false;
        let diverted: Vec<_> = state.instead.drain().collect();
        assert_eq!(diverted.len(), 1);
        assert_eq!(state.retries(), [diverted[0].0]);
        diverted[0]
    };
    connection.close(0, b"done");

    // The token of the second server for later connections spares a Retry at the first.
    fleet.router.take_out(to).await;
    let connection = connect(&client, service()).await.unwrap();
    ask(&connection, 2).await.unwrap();
    assert_eq!(fleet.router.state().retries(), [from]);

    // Somebody without a token gets one.
    let stranger = endpoint(fleet.authority.trust());
    connect(&stranger, service()).await.unwrap();
    assert_eq!(fleet.router.state().retries(), [from, from]);
}

#[test]
fn a_token_of_one_server_is_good_at_the_other() {
    on_clients_host("tokens", Ids::Encrypted, &["--always-retry"], tokens);
}

async fn sessions(fleet: Arc<Fleet>) {
    let _servers = [fleet.start(0), fleet.start(1)];
    let client = endpoint(fleet.authority.trust());
    for (server, resumed) in [(0, false), (1, true), (0, true)] {
        fleet.router.put_in(server);
        fleet.router.take_out(1 - server).await;
        let connection = connect(&client, service()).await.unwrap();
        assert_eq!(connection.handshake().resumed, resumed, "server {server}");
        // The ticket comes before the answer.
        ask(&connection, 1).await.unwrap();
        connection.close(0, b"done");
        drop(connection);
        client.idle().await;
    }
}

#[test]
fn a_session_of_one_server_is_resumed_at_the_other() {
    on_clients_host("sessions", Ids::Encrypted, &[], sessions);
}

async fn resets(fleet: Arc<Fleet>) {
    let _servers = [fleet.start(0), fleet.start(1)];
    let client = endpoint(fleet.authority.trust());
    let connection = connect(&client, service()).await.unwrap();
    ask(&connection, 1).await.unwrap();

    // Its server is gone, and the router sends its datagrams to the other.
    fleet.router.state().instead = HashMap::from([(0, 1), (1, 0)]);
    let lost = ask(&connection, 2).await.unwrap_err();
    assert!(lost.contains("reset"), "{lost}");
    assert!(matches!(
        soon(connection.closed()).await,
        ConnectionError::Reset
    ));

    fleet.router.state().instead.clear();
    let connection = connect(&client, service()).await.unwrap();
    ask(&connection, 3).await.unwrap();
}

#[test]
fn a_server_tells_clients_that_the_connection_of_another_is_lost() {
    on_clients_host("resets", Ids::Encrypted, &[], resets);
}
