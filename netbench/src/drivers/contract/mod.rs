//! Contract of all drivers, tested with every built-in driver, and with each QUIC driver against
//! hybriq in both roles. Cells that a driver refuses are skipped and reported.

mod close;
mod handshake;
mod http;
mod listen;
mod one_stream;
mod size;
mod stats;
mod streams;

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;

use super::{Connection, Connector, Listener, Reader, Role, Setup, Transport, Writer, driver};
use crate::handshake::certificates;
use crate::scenario::axes::{Cell, Stack};
use crate::system::outcome::Failed;

/// Timeout, longer than any test takes on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// Drivers of client and server.
#[derive(Clone, Copy, Debug)]
struct Pair {
    client: Stack,
    server: Stack,
}

/// Returns each driver with itself, and each QUIC driver with hybriq.
fn pairs() -> Vec<Pair> {
    let mut pairs = Vec::new();
    for stack in Stack::ALL {
        if let Err(reason) = driver(stack) {
            println!("left out: {reason}");
            continue;
        }
        let with = |client, server| Pair { client, server };
        pairs.push(with(stack, stack));
        if stack != Stack::Hybriq && stack != Stack::TcpTls {
            pairs.push(with(stack, Stack::Hybriq));
            pairs.push(with(Stack::Hybriq, stack));
        }
    }
    pairs
}

/// Checks a behaviour of every pair that supports the cell; at least one must.
fn every_pair<F: Future<Output = ()>>(cell: &Cell, behaviour: impl Fn(Ends) -> F) {
    let transport = Transport::default();
    every_pair_with(cell, &transport, behaviour);
}

fn every_pair_with<F: Future<Output = ()>>(
    cell: &Cell,
    transport: &Transport,
    behaviour: impl Fn(Ends) -> F,
) {
    let mut checked = 0;
    for pair in pairs() {
        let cell = Cell {
            driver: pair.server,
            client: pair.client,
            ..cell.clone()
        };
        if let Err(reason) = can(&cell) {
            println!("{pair:?} left out: {reason}");
            continue;
        }
        println!("{pair:?}");
        checked += 1;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let checking = async {
            let ends = Ends::new(Setup {
                certificates: certificates::make(certificates::Wanted::of(&cell)).unwrap(),
                cell,
                transport: transport.clone(),
            });
            let done = tokio::time::timeout(PATIENCE, behaviour(ends)).await;
            done.unwrap_or_else(|_| panic!("{pair:?} does not come to an end"));
        };
        runtime.block_on(tokio::task::LocalSet::new().run_until(checking));
    }
    assert!(checked > 0, "nobody can do {cell:?}");
}

fn can(cell: &Cell) -> Result<(), crate::system::failure::Failure> {
    driver(cell.driver)?.check(Role::Server, cell)?;
    driver(cell.client)?.check(Role::Client, cell)
}

/// A listening server, and a client for it.
struct Ends {
    setup: Setup,
    listener: Box<dyn Listener>,
    connector: Box<dyn Connector>,
}

type Outcome = Result<Rc<dyn Connection>, Failed>;

impl Ends {
    fn new(setup: Setup) -> Self {
        let local = ([127, 0, 0, 1], 0).into();
        let server = driver(setup.cell.driver).unwrap();
        let listener = server.listen(&setup, local).unwrap();
        let connector = Self::connector(&setup, &*listener);
        Self {
            setup,
            listener,
            connector,
        }
    }

    fn connector(setup: &Setup, listener: &dyn Listener) -> Box<dyn Connector> {
        let client = driver(setup.cell.client).unwrap();
        client.client(setup, listener.address()).unwrap()
    }

    /// Returns the outcomes of both ends.
    async fn try_connect(&mut self) -> (Outcome, Outcome) {
        let address = self.listener.address();
        let connect = self.connector.connect(address, certificates::SERVER_NAME);
        let accept = async { self.listener.accept().await?.await };
        tokio::join!(connect, accept)
    }

    /// Returns the client's end and the server's, both established.
    async fn connect(&mut self) -> (Rc<dyn Connection>, Rc<dyn Connection>) {
        let (client, server) = self.try_connect().await;
        let (client, server) = (client.unwrap(), server.unwrap());
        let (told, also) = tokio::join!(client.established(), server.established());
        told.unwrap();
        also.unwrap();
        (client, server)
    }
}

async fn send(writer: &mut dyn Writer, bytes: impl Into<Bytes>) -> Result<(), Failed> {
    let mut bytes = bytes.into();
    while !bytes.is_empty() {
        std::future::poll_fn(|cx| writer.poll_send(cx, &mut bytes)).await?;
    }
    Ok(())
}

async fn finish(writer: &mut dyn Writer) -> Result<(), Failed> {
    std::future::poll_fn(|cx| writer.poll_finish(cx)).await
}

/// Returns the next bytes, at most `max`.
async fn receive(reader: &mut dyn Reader, max: usize) -> Result<Option<Bytes>, Failed> {
    std::future::poll_fn(|cx| reader.poll_receive(cx, max)).await
}

async fn receive_exactly(reader: &mut dyn Reader, len: usize) -> Result<Vec<u8>, Failed> {
    let mut received = Vec::new();
    while received.len() < len {
        match receive(reader, len - received.len()).await? {
            Some(bytes) => received.extend_from_slice(&bytes),
            None => return Err(Failed::other("the end came early")),
        }
    }
    Ok(received)
}

async fn receive_all(reader: &mut dyn Reader) -> Result<Vec<u8>, Failed> {
    let mut received = Vec::new();
    while let Some(bytes) = receive(reader, usize::MAX).await? {
        received.extend_from_slice(&bytes);
    }
    Ok(received)
}

/// Returns bytes that differ by position and stream.
fn pattern(seed: usize, len: usize) -> Vec<u8> {
    (0..len)
        .map(|at| (at * 31 + at / 251 + seed * 7) as u8)
        .collect()
}

/// Echoes data until there are no more streams.
async fn echo(server: &dyn Connection) {
    let mut answering = Vec::new();
    while let Ok(Some((mut writer, mut reader))) = server.accept_bidi().await {
        answering.push(tokio::task::spawn_local(async move {
            while let Ok(Some(bytes)) = receive(&mut *reader, usize::MAX).await {
                if send(&mut *writer, bytes).await.is_err() {
                    return;
                }
            }
            let _ = finish(&mut *writer).await;
        }));
    }
    for answer in answering {
        answer.await.unwrap();
    }
}
