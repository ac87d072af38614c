//! Two servers behind a QUIC-LB load balancer: clients move, servers restart, nothing is lost.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hybriq::Endpoint;
use rustix::process::Signal;
use tokio::task::{JoinSet, spawn_blocking};

use crate::clients::{Count, ask_until_asked_to_go, config, connect, soon};
use crate::nat::Nat;
use crate::topology::{CLIENTS, Fleet, Ids, SERVERS, on_clients_host, service};

/// Clients at once, half of them behind a NAT.
const HALF: usize = 6;

/// Returns an endpoint with a port of its own on the clients' host.
fn client(fleet: &Fleet) -> Endpoint {
    let config = config(fleet.authority.trust());
    let builder = Endpoint::builder().client(config);
    builder.bind((CLIENTS, 0)).unwrap()
}

/// Asks and connects again, until nobody wants more answers.
async fn transfer(
    client: Endpoint,
    service: SocketAddr,
    (answered, ending): (Count, Arc<AtomicBool>),
) -> Result<(), String> {
    loop {
        let connection = connect(&client, service).await;
        let connection = connection.map_err(|error| format!("connecting: {error}"))?;
        let connection = ask_until_asked_to_go(connection, answered.clone()).await?;
        connection.close(0, b"done");
        if ending.load(Ordering::Relaxed) {
            return Ok(());
        }
    }
}

/// Returns an address that a balancer without connection ids would send to another server.
fn contrary(fleet: &Fleet, current: SocketAddr) -> SocketAddr {
    let state = fleet.router.state();
    let server = *state.visited[&current].first().unwrap();
    let ports = (20_000..30_000).map(|port| SocketAddr::new(current.ip(), port));
    let mut free = ports.filter(|address| !state.visited.contains_key(address));
    free.find(|address| state.by_hash(*address) != server)
        .unwrap()
}

/// Moves a client against the hash, and waits until its connection continues there.
async fn move_on(
    fleet: &Fleet,
    from: SocketAddr,
    answered: &Count,
    to: impl AsyncFnOnce(SocketAddr),
) {
    let new = contrary(fleet, from);
    to(new).await;
    soon(async {
        while !fleet.router.state().visited.contains_key(&new) {
            answered.grows(1).await;
        }
    })
    .await;
    answered.grows(2).await;
    let state = fleet.router.state();
    assert_eq!(
        state.visited[&new], state.visited[&from],
        "{from} moved to {new}"
    );
}

async fn transfers_survive(fleet: Arc<Fleet>) {
    let mut servers: Vec<_> = (0..SERVERS).map(|server| fleet.start(server)).collect();
    let ending = Arc::new(AtomicBool::new(false));
    let mut transfers = JoinSet::new();
    let (mut clients, mut nats) = (Vec::new(), Vec::new());
    for _ in 0..HALF {
        let (client, answered) = (client(&fleet), Count::default());
        let job = transfer(
            client.clone(),
            service(),
            (answered.clone(), ending.clone()),
        );
        transfers.spawn(job);
        clients.push((client, answered));

        let answered = Count::default();
        let nat = Nat::new(CLIENTS, service()).await;
        let inner = Endpoint::client(config(fleet.authority.trust())).unwrap();
        let job = transfer(inner, nat.inside, (answered.clone(), ending.clone()));
        transfers.spawn(job);
        nats.push((nat, answered));
    }
    let all = || {
        clients
            .iter()
            .map(|it| &it.1)
            .chain(nats.iter().map(|it| &it.1))
    };
    for answered in all() {
        answered.reaches(1).await;
    }

    for _ in 0..2 {
        for (client, answered) in &clients {
            let rebind = async |to| assert_eq!(client.rebind(to).unwrap(), to);
            move_on(&fleet, client.local_address(), answered, rebind).await;
        }
        for (nat, answered) in &nats {
            move_on(&fleet, nat.outside(), answered, async |to| {
                nat.move_to(to).await;
            })
            .await;
        }
    }
    assert!(fleet.router.state().against_hash > 0);

    for server in 0..SERVERS {
        fleet.router.take_out(server).await;
        let old = servers.remove(server);
        old.signal(Signal::TERM);
        let (status, said) = spawn_blocking(|| old.ends()).await.unwrap();
        assert!(status.success());
        assert_eq!(said[1], "drained: 0 connections were cut off");
        let starting = fleet.clone();
        let new = spawn_blocking(move || starting.start(server))
            .await
            .unwrap();
        servers.insert(server, new);
        fleet.router.put_in(server);
        for answered in all() {
            answered.grows(2).await;
        }
    }

    ending.store(true, Ordering::Relaxed);
    for server in servers {
        server.signal(Signal::TERM);
        let (status, said) = spawn_blocking(|| server.ends()).await.unwrap();
        assert!(status.success());
        assert_eq!(said[1], "drained: 0 connections were cut off");
    }
    while let Some(outcome) = transfers.join_next().await {
        outcome.unwrap().unwrap();
    }
}

#[test]
fn nothing_is_lost_while_clients_move_and_servers_restart() {
    on_clients_host("balanced", Ids::Encrypted, &[], transfers_survive);
}

#[test]
fn nothing_is_lost_with_ids_in_the_clear() {
    on_clients_host("balanced-plain", Ids::Plain, &[], transfers_survive);
}
