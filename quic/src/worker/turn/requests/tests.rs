use std::{net::SocketAddr, sync::Arc, task::Poll};

use bytes::Bytes;
use hybriq_proto::{
    config::AddressValidation,
    endpoint::{Arrival, Local, Setup},
    owners::cids::CidGenerator,
};
use hybriq_tls::Trust;

use super::*;
use crate::{
    config::{ClientConfig, Ids, Limits, TokenKeys},
    restart::{Inheritance, relay::Reason},
    sync::Mutex,
    udp::{Opened, Options, Socket},
    worker::{
        Attempt, Departure, Mailbox, Shared, Spent, Watcher, WorkerSettings, sockets::Sockets,
    },
};

/// More handshakes than one turn starts.
const HANDSHAKES: usize = 40;

/// The default settings of an endpoint.
fn settings() -> Arc<WorkerSettings> {
    Arc::new(WorkerSettings {
        inheritance: Inheritance::default(),
        server: Mutex::default(),
        ids: Ids::default(),
        workers: 1,
        token_keys: TokenKeys::random(),
        address_validation: AddressValidation::default(),
        accept_backlog: 1,
        spent: Spent::default(),
        watcher: Watcher::default(),
        name: None,
    })
}

/// A worker of an endpoint that is not run, and its mailbox.
fn worker() -> (Worker, Arc<Mailbox>) {
    let options = Options::default();
    let socket = Socket::bind(([127, 0, 0, 1], 0).into(), options).expect("a socket");
    let mailbox = Mailbox::new(Arc::default());
    let shared = Shared::new(
        [mailbox.clone()].into(),
        vec![socket.local_address()],
        1,
        Limits::default(),
        Arc::default(),
    );
    let sockets = Sockets::new(vec![socket], options);
    (
        Worker::new(0, shared, mailbox.clone(), sockets, settings()),
        mailbox,
    )
}

fn setup() -> Setup {
    ClientConfig::new()
        .trust(Trust::dangerously_accept_any_certificate())
        .setup()
        .expect("a provider")
}

fn connect(setup: &Setup) -> (Arc<Attempt>, Command) {
    let (attempt, promise) = Attempt::new(Departure::Now);
    let command = Command::Connect {
        setup: setup.clone(),
        // Nothing is sent: the worker does not run.
        peer: SocketAddr::from(([127, 0, 0, 1], 9)),
        server_name: "localhost".to_owned(),
        promise,
    };
    (attempt, command)
}

/// Asks for more handshakes than one turn starts; a task waits for each.
fn ask_for_many(mailbox: &Mailbox, setup: &Setup) -> Vec<Arc<Attempt>> {
    let ask = |_| {
        let (attempt, command) = connect(setup);
        assert!(mailbox.push(command));
        attempt
    };
    (0..HANDSHAKES).map(ask).collect()
}

#[tokio::test]
async fn a_migration_does_not_wait_for_the_budget_of_handshakes() {
    let (mut worker, mailbox) = worker();
    let setup = setup();
    let (_first, command) = connect(&setup);
    mailbox.push(command);
    worker.take_requests();
    let connection = {
        let mut entries = worker.connections.iter_mut();
        entries.next().expect("one").connection.clone()
    };

    let _waiting = ask_for_many(&mailbox, &setup);
    let request = connection.lock().begin_move(&mut Vec::new());
    assert!(connection.migrate(request, ([127, 0, 0, 1], 0).into()));
    worker.take_requests();
    assert!(worker.inbox.has_waiting(), "the budget is used up");
    let socket = connection.lock().moving.socket();
    assert!(socket.is_some(), "a socket was opened all the same");
}

#[tokio::test]
async fn closing_does_not_wait_for_the_budget_of_handshakes() {
    let (mut worker, mailbox) = worker();
    let _waiting = ask_for_many(&mailbox, &setup());
    worker.take_requests();
    assert!(worker.inbox.has_waiting(), "the budget is used up");
    assert!(mailbox.push(Command::Close(7, Bytes::new())));
    worker.take_requests();
    assert_eq!(worker.standing, Standing::Closed);
    let mut entries = worker.connections.iter_mut();
    assert!(entries.all(|entry| entry.connection.lock().closed.is_some()));
    drop(entries);
    assert!(worker.inbox.has_waiting(), "no handshake started meanwhile");
}

/// Creates a worker with this number of connections.
fn worker_with(connections: usize) -> (Worker, Arc<Mailbox>) {
    let (mut worker, mailbox) = worker();
    let setup = setup();
    while worker.connections.len() < connections {
        // Nobody may drop the promise before the connection exists.
        let (_attempt, command) = connect(&setup);
        assert!(mailbox.push(command));
        worker.inbox.begin_turn();
        worker.take_requests();
    }
    worker.queues.touched.clear();
    for entry in worker.connections.iter_mut() {
        entry.touched = false;
    }
    (worker, mailbox)
}

fn closed(worker: &mut Worker) -> usize {
    let entries = worker.connections.iter_mut();
    let closed = entries.filter(|entry| entry.connection.lock().closed.is_some());
    closed.count()
}

#[tokio::test]
async fn many_connections_are_closed_over_several_turns() {
    let (mut worker, mailbox) = worker_with(600);
    assert!(mailbox.push(Command::Close(7, Bytes::new())));
    worker.take_requests();
    assert_eq!(
        (closed(&mut worker), worker.queues.touched.len()),
        (128, 128)
    );
    assert!(worker.walks.closing.is_some(), "the worker must not sleep");
    worker.go_on_closing();
    assert_eq!(closed(&mut worker), 256);
    while worker.walks.closing.is_some() {
        worker.go_on_closing();
    }
    assert_eq!(closed(&mut worker), 600);
    // A second close changes nothing.
    assert!(mailbox.push(Command::Close(8, Bytes::new())));
    worker.take_requests();
    assert!(worker.walks.closing.is_none());
}

#[tokio::test]
async fn many_connections_that_the_application_touches_are_serviced_over_several_turns() {
    let (mut worker, _mailbox) = worker_with(600);
    for entry in worker.connections.iter_mut() {
        entry.connection.close(7, Bytes::new());
    }
    worker.inbox.begin_turn();
    worker.take_requests();
    assert_eq!(worker.queues.touched.len(), 512);
    worker.take_requests();
    assert_eq!(worker.queues.touched.len(), 512, "it is the same turn");
    assert!(worker.inbox.has_waiting(), "the worker must not sleep");
    worker.inbox.begin_turn();
    worker.take_requests();
    assert_eq!(worker.queues.touched.len(), worker.connections.len());
    assert!(!worker.inbox.has_waiting());
}

#[tokio::test]
async fn many_timers_are_handled_over_several_turns() {
    let (mut worker, _mailbox) = worker_with(600);
    let now = worker.now;
    for slot in 0..600 {
        let entry = worker.connections.get(Slot(slot)).expect("a connection");
        worker
            .timers
            .set(Slot(slot), &mut entry.deadline, Some(now));
    }
    worker.on_timeouts();
    assert_eq!(worker.queues.touched.len(), 256);
    assert_eq!(
        worker.next_timeout(),
        Some(now),
        "the worker must not sleep"
    );
    worker.on_timeouts();
    worker.on_timeouts();
    assert_eq!(worker.queues.touched.len(), 600);
}

/// Returns the number of connections that were told to move to the socket on which new ones start.
fn moving(worker: &mut Worker) -> usize {
    let target = Some(worker.sockets.primary());
    let entries = worker.connections.iter_mut();
    let moving = entries.filter(|entry| entry.connection.lock().moving.socket() == target);
    moving.count()
}

#[tokio::test]
async fn many_connections_move_to_another_socket_over_several_turns() {
    let (mut worker, mailbox) = worker_with(600);
    let first = worker.sockets.primary();
    let rebind = |mailbox: &Mailbox| {
        let socket = Opened::bind(([127, 0, 0, 1], 0).into(), Options::default());
        let command = Command::Rebind(Box::new(socket.expect("a socket")));
        assert!(mailbox.push(command));
    };
    rebind(&mailbox);
    worker.take_requests();
    assert_eq!(
        (moving(&mut worker), worker.queues.touched.len()),
        (128, 128)
    );
    assert!(
        worker.walks.rebinding.is_some(),
        "the worker must not sleep"
    );
    assert!(
        worker.sockets.get(first).is_some(),
        "connections still use the old socket"
    );
    worker.go_on_rebinding();
    assert_eq!(moving(&mut worker), 256);
    while worker.walks.rebinding.is_some() {
        worker.go_on_rebinding();
    }
    assert_eq!(moving(&mut worker), 600);

    // A rebind that arrives before the other has reached every connection replaces it.
    rebind(&mailbox);
    worker.take_requests();
    rebind(&mailbox);
    worker.take_requests();
    assert_eq!(moving(&mut worker), 128);
    while worker.walks.rebinding.is_some() {
        worker.go_on_rebinding();
    }
    assert_eq!(moving(&mut worker), 600);
    let addresses = worker.sockets.addresses();
    assert_eq!(addresses.len(), 1, "the old ones are given up");
}

/// An id generator that fails: each call panics.
#[derive(Debug)]
struct Broken;

impl CidGenerator for Broken {
    fn len(&self) -> usize {
        8
    }

    fn generate(&self, _worker: u8, _cid: &mut [u8]) {
        panic!("the generator was told to fail");
    }

    fn worker(&self, _cid: &[u8]) -> Option<u8> {
        None
    }
}

#[tokio::test]
async fn a_panic_loses_no_request_but_its_own() {
    let (mut worker, mailbox) = worker();
    let setup = setup();
    let settings = Arc::get_mut(&mut worker.settings).expect("nobody else has it");
    settings.ids.generator = Arc::new(Broken);
    worker.endpoint = worker.settings.endpoint(0);
    let (failing, command) = connect(&setup);
    assert!(mailbox.push(command));
    let turn = std::panic::AssertUnwindSafe(|| worker.take_requests());
    assert!(std::panic::catch_unwind(turn).is_err());
    let outcome = failing.poll(&std::task::Context::from_waker(std::task::Waker::noop()));
    let Poll::Ready(Err(ConnectError::Connection(error))) = outcome else {
        panic!("the task waits, or does not learn why");
    };
    assert!(error.to_string().contains("worker"), "{error}");

    // A client's first packet, which is answered with a Retry. That needs an id.
    let settings = Arc::get_mut(&mut worker.settings).expect("nobody else has it");
    settings.address_validation = AddressValidation::Always;
    worker.recover();
    let mut initial = vec![0; 1200];
    let header = [
        0xc3, 0, 0, 0, 1, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0x44, 0x9e,
    ];
    initial[..header.len()].copy_from_slice(&header);
    let arrival = Arrival {
        peer: SocketAddr::from(([127, 0, 0, 1], 9)),
        local: Local::default(),
        ecn: None,
    };
    worker.endpoint.set_server(setup.clone());
    assert!(mailbox.push_foreign(arrival, &initial, Reason::Id));
    assert!(mailbox.push(Command::Close(7, Bytes::new())));
    let turn = std::panic::AssertUnwindSafe(|| worker.take_requests());
    assert!(std::panic::catch_unwind(turn).is_err());
    worker.recover();
    assert_eq!(worker.standing, Standing::Open);
    assert!(worker.inbox.has_waiting(), "the worker must not sleep");
    worker.take_requests();
    assert_eq!(worker.standing, Standing::Closed);
}
