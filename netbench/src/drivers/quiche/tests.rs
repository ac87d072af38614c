//! Tests of the event loop of quiche.

use std::net::{SocketAddr, UdpSocket};
use std::rc::Rc;

use crate::drivers::{Role, Setup, Transport};
use crate::handshake::certificates::{self, SERVER_NAME, Wanted};
use crate::scenario::axes::Cell;
use crate::stacks::quiche::{
    Admission, Config, Endpoint, Kind, Line, Receiver, Sender, client, server,
};

fn end(config: Config, admission: Admission) -> Rc<Endpoint> {
    let socket = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
    Endpoint::start(socket, config, admission).unwrap()
}

/// Answers each stream with what came on it.
async fn echo(endpoint: Rc<Endpoint>) {
    let line = endpoint.accept().await.unwrap();
    while let Ok(id) = line.accept(Kind::Bidi).await {
        let (mut sender, mut receiver) = both(id, &line);
        while let Ok(Some(bytes)) = receiver.receive().await {
            sender.send(bytes).await.unwrap();
        }
        sender.finish().await.unwrap();
    }
}

fn both(id: u64, line: &Rc<Line>) -> (Sender, Receiver) {
    let sender = Sender::new(id, Rc::clone(line));
    (sender, Receiver::new(id, Rc::clone(line)))
}

/// Connects two ends, and has a client use the connection.
fn connected(user: impl AsyncFnOnce(Rc<Line>)) {
    let cell = Cell::default();
    let setup = Setup {
        certificates: certificates::make(Wanted::of(&cell)).unwrap(),
        cell,
        transport: Transport::default(),
    };
    let settings = (&setup.transport).into();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let run = async {
        let serving = server(&setup.tls(Role::Server), &settings).unwrap();
        let serving = end(serving, Admission::AtOnce);
        let address: SocketAddr = serving.address();
        tokio::task::spawn_local(echo(serving));
        let connecting = client(&setup.tls(Role::Client), &settings).unwrap();
        let connecting = end(connecting, Admission::Never);
        let line = connecting.connect(address, SERVER_NAME, None).unwrap();
        line.wait(|| line.quic().borrow().is_established().then_some(()))
            .await;
        user(line).await;
    };
    runtime.block_on(tokio::task::LocalSet::new().run_until(run));
}

/// Makes a request, and reads its response.
async fn exchange(line: &Rc<Line>, bytes: usize) {
    let id = line.open(Kind::Bidi).await.unwrap();
    let (mut sender, mut receiver) = both(id, line);
    let sending = async {
        sender.send(vec![7; bytes].into()).await.unwrap();
        sender.finish().await.unwrap();
    };
    let receiving = async {
        let mut received = 0;
        while let Some(part) = receiver.receive().await.unwrap() {
            received += part.len();
        }
        assert_eq!(received, bytes);
    };
    tokio::join!(sending, receiving);
}

#[test]
fn a_transfer_larger_than_all_windows_goes_both_ways() {
    connected(async |line| exchange(&line, 24 << 20).await);
}
