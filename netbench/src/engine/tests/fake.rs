//! A stack in memory, on virtual time: tests choose every delay and failure.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::drivers::{
    Accepting, Answer, Connection, Connector, Driver, Listener, Negotiated, Reader, Role, Setup,
    Stats, Traffic, Writer,
};
use crate::scenario::axes::{Cell as Axis, Resumption};
use crate::system::failure::Failure;
use crate::system::outcome::{Failed, Kind};

/// Outcome of a handshake.
#[derive(Clone, Debug)]
pub(super) enum Handshake {
    Takes(Duration),
    Fails(Kind),
    Never,
}

/// Network between the two ends.
pub(super) struct Network {
    /// Outcome of the n-th handshake, counted from 0.
    pub(super) handshake: Box<dyn Fn(u64) -> Handshake>,
    /// One-way delay.
    pub(super) delay: Duration,
    /// Interval in which nothing arrives, counted from the beginning.
    pub(super) stall: Option<(Duration, Duration)>,
    /// Number n such that every n-th datagram is lost.
    pub(super) loses: Option<u64>,
    /// Number of tickets that a connection leaves behind, each good for one connection.
    pub(super) tickets_each: u64,
    pub(super) begin: Instant,
    pub(super) state: State,
}

/// Events so far.
#[derive(Default)]
pub(super) struct State {
    pub(super) connections: Cell<u64>,
    pub(super) open: Cell<u64>,
    pub(super) most_open: Cell<u64>,
    /// Start of each connection, with its name.
    pub(super) log: RefCell<Vec<(Duration, String)>>,
    /// All bytes written to streams.
    pub(super) written: RefCell<Vec<u8>>,
    datagrams: Cell<u64>,
    /// Tickets by server name.
    tickets: RefCell<HashMap<String, u64>>,
    listener: RefCell<Option<UnboundedSender<Rc<End>>>>,
}

impl Network {
    pub(super) fn new() -> Self {
        Self {
            handshake: Box::new(|_| Handshake::Takes(Duration::from_millis(1))),
            delay: Duration::ZERO,
            stall: None,
            loses: None,
            tickets_each: 1,
            begin: Instant::now(),
            state: State::default(),
        }
    }

    /// Returns the arrival time of something sent now.
    fn arrival(&self, delay: Duration) -> Instant {
        let at = Instant::now() + delay;
        match self.stall {
            Some((from, until)) if (self.begin + from..self.begin + until).contains(&at) => {
                self.begin + until
            }
            _ => at,
        }
    }
}

/// The fake stack.
pub(super) struct Fake(pub(super) Rc<Network>);

impl Driver for Fake {
    fn name(&self) -> &'static str {
        "fake"
    }

    fn congestion(&self) -> String {
        "none".to_owned()
    }

    fn check(&self, _: Role, _: &Axis) -> Result<(), Failure> {
        Ok(())
    }

    fn listen(&self, _: &Setup, address: SocketAddr) -> Result<Box<dyn Listener>, Failure> {
        let (sender, incoming) = unbounded_channel();
        *self.0.state.listener.borrow_mut() = Some(sender);
        Ok(Box::new(FakeListener { address, incoming }))
    }

    fn client(&self, setup: &Setup, _: SocketAddr) -> Result<Box<dyn Connector>, Failure> {
        Ok(Box::new(FakeConnector {
            network: Rc::clone(&self.0),
            cell: setup.cell.clone(),
        }))
    }
}

struct FakeListener {
    address: SocketAddr,
    incoming: UnboundedReceiver<Rc<End>>,
}

impl Listener for FakeListener {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn accept(&mut self) -> Answer<'_, Accepting> {
        Box::pin(async {
            let end = self.incoming.recv().await;
            let end = end.ok_or_else(|| Failed::other("no more connections"))?;
            let accepting: Accepting = Box::pin(async { Ok(end as Rc<dyn Connection>) });
            Ok(accepting)
        })
    }

    fn traffic(&self) -> Option<Traffic> {
        None
    }
}

struct FakeConnector {
    network: Rc<Network>,
    cell: Axis,
}

impl Connector for FakeConnector {
    fn connect<'a>(&'a self, _: SocketAddr, name: &'a str) -> Answer<'a, Rc<dyn Connection>> {
        Box::pin(async move {
            let state = &self.network.state;
            let number = state.connections.get();
            state.connections.set(number + 1);
            let began = self.network.begin.elapsed();
            state.log.borrow_mut().push((began, name.to_owned()));
            let open = Open::new(&self.network);
            let has_ticket = {
                let mut tickets = state.tickets.borrow_mut();
                let count = tickets.entry(name.to_owned()).or_default();
                std::mem::replace(count, count.saturating_sub(1)) > 0
            };
            match (self.network.handshake)(number) {
                Handshake::Takes(time) => {
                    sleep_until(self.network.arrival(time)).await;
                }
                Handshake::Fails(kind) => return Err(Failed::new(kind, "as the test says")),
                Handshake::Never => std::future::pending().await,
            }
            let resumed = self.cell.resumption != Resumption::Full && has_ticket;
            let link = Rc::new(Link {
                network: Rc::clone(&self.network),
                name: name.to_owned(),
                negotiated: Negotiated {
                    group: self.cell.group.to_string(),
                    resumed: Some(resumed),
                    ..Negotiated::default()
                },
                sides: Default::default(),
                closed: RefCell::default(),
                wakers: RefCell::default(),
            });
            let end = |side, open| {
                Rc::new(End {
                    link: Rc::clone(&link),
                    side,
                    _open: open,
                })
            };
            if let Some(listener) = &*state.listener.borrow() {
                let _ = listener.send(end(1, None));
            }
            *state
                .tickets
                .borrow_mut()
                .entry(name.to_owned())
                .or_default() += self.network.tickets_each;
            Ok(end(0, Some(open)) as Rc<dyn Connection>)
        })
    }

    fn traffic(&self) -> Option<Traffic> {
        None
    }
}

/// Counts the client's concurrent connections, from the start of the handshake to the end.
struct Open(Rc<Network>);

impl Open {
    fn new(network: &Rc<Network>) -> Self {
        let state = &network.state;
        let open = state.open.get() + 1;
        state.open.set(open);
        state.most_open.set(state.most_open.get().max(open));
        Self(Rc::clone(network))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let open = &self.0.state.open;
        open.set(open.get() - 1);
    }
}

/// The two ends of a connection.
struct Link {
    network: Rc<Network>,
    name: String,
    negotiated: Negotiated,
    /// Inboxes of the client and of the server.
    sides: [Inbox; 2],
    closed: RefCell<Option<(usize, u64)>>,
    wakers: RefCell<Vec<Waker>>,
}

#[derive(Default)]
struct Inbox {
    bidi: RefCell<VecDeque<(Instant, FakeWriter, FakeReader)>>,
    uni: RefCell<VecDeque<(Instant, FakeReader)>>,
    datagrams: RefCell<VecDeque<(Instant, Bytes)>>,
}

impl Link {
    fn wake(&self) {
        self.wakers.take().into_iter().for_each(Waker::wake);
    }

    /// Takes the first item of a queue once it has arrived; `None` if the connection was closed
    /// without an error.
    async fn first<T>(
        &self,
        queue: impl Fn() -> Option<Instant>,
        take: impl Fn() -> Option<T>,
    ) -> Result<Option<T>, Failed> {
        loop {
            if let Some((_, code)) = *self.closed.borrow() {
                return if code == 0 {
                    Ok(None)
                } else {
                    Err(closed(code))
                };
            }
            match queue() {
                Some(at) if at <= Instant::now() => return Ok(take()),
                Some(at) => {
                    tokio::select! {
                        () = sleep_until(at) => {}
                        () = self.changed() => {}
                    }
                }
                None => self.changed().await,
            }
        }
    }

    async fn changed(&self) {
        let mut is_first = true;
        std::future::poll_fn(|cx| {
            if std::mem::take(&mut is_first) {
                self.wakers.borrow_mut().push(cx.waker().clone());
                return Poll::Pending;
            }
            Poll::Ready(())
        })
        .await;
    }
}

fn closed(code: u64) -> Failed {
    Failed::new(Kind::Application(code), "the peer closed the connection")
}

struct End {
    link: Rc<Link>,
    side: usize,
    _open: Option<Open>,
}

impl Drop for End {
    fn drop(&mut self) {
        self.close(99);
    }
}

impl End {
    fn peer(&self) -> &Inbox {
        &self.link.sides[1 - self.side]
    }

    fn own(&self) -> &Inbox {
        &self.link.sides[self.side]
    }

    fn arrival(&self) -> Instant {
        self.link.network.arrival(self.link.network.delay)
    }
}

impl Connection for End {
    fn established(&self) -> Answer<'_, Negotiated> {
        Box::pin(async { Ok(self.link.negotiated.clone()) })
    }

    fn open_bidi(&self) -> Answer<'_, (Box<dyn Writer>, Box<dyn Reader>)> {
        Box::pin(async {
            let (there, their_reader) = pipe(&self.link);
            let (back, reader) = pipe(&self.link);
            let entry = (self.arrival(), back, their_reader);
            self.peer().bidi.borrow_mut().push_back(entry);
            self.link.wake();
            Ok((
                Box::new(there) as Box<dyn Writer>,
                Box::new(reader) as Box<dyn Reader>,
            ))
        })
    }

    fn open_uni(&self) -> Answer<'_, Box<dyn Writer>> {
        Box::pin(async {
            let (there, reader) = pipe(&self.link);
            let entry = (self.arrival(), reader);
            self.peer().uni.borrow_mut().push_back(entry);
            self.link.wake();
            Ok(Box::new(there) as Box<dyn Writer>)
        })
    }

    fn accept_bidi(&self) -> Answer<'_, Option<(Box<dyn Writer>, Box<dyn Reader>)>> {
        Box::pin(async {
            let queue = &self.own().bidi;
            let first = || queue.borrow().front().map(|entry| entry.0);
            let entry = self.link.first(first, || queue.borrow_mut().pop_front());
            Ok(entry.await?.map(|(_, writer, reader)| {
                (
                    Box::new(writer) as Box<dyn Writer>,
                    Box::new(reader) as Box<dyn Reader>,
                )
            }))
        })
    }

    fn accept_uni(&self) -> Answer<'_, Option<Box<dyn Reader>>> {
        Box::pin(async {
            let queue = &self.own().uni;
            let first = || queue.borrow().front().map(|entry| entry.0);
            let entry = self.link.first(first, || queue.borrow_mut().pop_front());
            Ok(entry
                .await?
                .map(|(_, reader)| Box::new(reader) as Box<dyn Reader>))
        })
    }

    fn send_datagram(&self, data: Bytes) -> Answer<'_, ()> {
        Box::pin(async {
            let network = &self.link.network;
            let number = network.state.datagrams.get() + 1;
            network.state.datagrams.set(number);
            if !network.loses.is_some_and(|n| number.is_multiple_of(n)) {
                let entry = (self.arrival(), data);
                self.peer().datagrams.borrow_mut().push_back(entry);
                self.link.wake();
            }
            Ok(())
        })
    }

    fn receive_datagram(&self) -> Answer<'_, Option<Bytes>> {
        Box::pin(async {
            let queue = &self.own().datagrams;
            let first = || queue.borrow().front().map(|entry| entry.0);
            let entry = self.link.first(first, || queue.borrow_mut().pop_front());
            Ok(entry.await?.map(|(_, data)| data))
        })
    }

    fn stats(&self) -> Stats {
        Stats::default()
    }

    fn server_name(&self) -> Option<String> {
        Some(self.link.name.clone())
    }

    fn has_ticket(&self) -> bool {
        self.link
            .network
            .state
            .tickets
            .borrow()
            .get(&self.link.name)
            .is_some_and(|count| *count > 0)
    }

    fn close(&self, code: u64) {
        self.link
            .closed
            .borrow_mut()
            .get_or_insert((self.side, code));
        self.link.wake();
    }

    fn closed(&self) -> Answer<'_, ()> {
        Box::pin(async {
            loop {
                if let Some((side, code)) = *self.link.closed.borrow() {
                    return if side == self.side || code == 0 {
                        Ok(())
                    } else {
                        Err(closed(code))
                    };
                }
                self.link.changed().await;
            }
        })
    }
}

/// Capacity of a pipe in bytes.
const CAPACITY: usize = 256 << 10;

/// One direction of a stream.
#[derive(Default)]
struct Pipe {
    chunks: VecDeque<(Instant, Bytes)>,
    waiting: usize,
    is_finished: bool,
    reset: Option<u64>,
    is_abandoned: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

struct FakeWriter {
    pipe: Rc<RefCell<Pipe>>,
    link: Rc<Link>,
}

struct FakeReader {
    pipe: Rc<RefCell<Pipe>>,
    sleep: Option<Pin<Box<Sleep>>>,
    link: Rc<Link>,
}

fn pipe(link: &Rc<Link>) -> (FakeWriter, FakeReader) {
    let pipe = Rc::new(RefCell::default());
    let writer = FakeWriter {
        pipe: Rc::clone(&pipe),
        link: Rc::clone(link),
    };
    let reader = FakeReader {
        pipe,
        sleep: None,
        link: Rc::clone(link),
    };
    (writer, reader)
}

impl Writer for FakeWriter {
    fn poll_send(&mut self, cx: &mut Context<'_>, data: &mut Bytes) -> Poll<Result<(), Failed>> {
        let mut pipe = self.pipe.borrow_mut();
        if pipe.is_abandoned {
            return Poll::Ready(Err(Failed::new(Kind::Reset, "nobody reads it")));
        }
        let room = CAPACITY - pipe.waiting;
        if room == 0 {
            pipe.writer = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let chunk = data.split_to(data.len().min(room));
        self.link
            .network
            .state
            .written
            .borrow_mut()
            .extend_from_slice(&chunk);
        pipe.waiting += chunk.len();
        let at = self.link.network.arrival(self.link.network.delay);
        pipe.chunks.push_back((at, chunk));
        pipe.reader.take().into_iter().for_each(Waker::wake);
        Poll::Ready(Ok(()))
    }

    fn poll_finish(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Failed>> {
        let mut pipe = self.pipe.borrow_mut();
        pipe.is_finished = true;
        pipe.reader.take().into_iter().for_each(Waker::wake);
        Poll::Ready(Ok(()))
    }

    fn poll_acknowledged(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failed>> {
        let mut pipe = self.pipe.borrow_mut();
        if pipe.chunks.is_empty() {
            return Poll::Ready(Ok(()));
        }
        pipe.writer = Some(cx.waker().clone());
        Poll::Pending
    }

    fn reset(&mut self, code: u64) {
        let mut pipe = self.pipe.borrow_mut();
        pipe.reset = Some(code);
        pipe.reader.take().into_iter().for_each(Waker::wake);
    }
}

impl Drop for FakeWriter {
    fn drop(&mut self) {
        if !self.pipe.borrow().is_finished {
            self.reset(0);
        }
    }
}

impl Reader for FakeReader {
    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<Result<Option<Bytes>, Failed>> {
        if let Some((_, code)) = *self.link.closed.borrow()
            && code != 0
        {
            return Poll::Ready(Err(closed(code)));
        }
        let mut pipe = self.pipe.borrow_mut();
        if pipe.reset.is_some() {
            return Poll::Ready(Err(Failed::new(Kind::Reset, "the peer gave it up")));
        }
        let Some((at, chunk)) = pipe.chunks.front_mut() else {
            if pipe.is_finished {
                return Poll::Ready(Ok(None));
            }
            pipe.reader = Some(cx.waker().clone());
            return Poll::Pending;
        };
        if *at > Instant::now() {
            let mut sleep = Box::pin(sleep_until(*at));
            if sleep.as_mut().poll(cx).is_pending() {
                self.sleep = Some(sleep);
                pipe.reader = Some(cx.waker().clone());
                return Poll::Pending;
            }
        }
        let data = chunk.split_to(chunk.len().min(max));
        if chunk.is_empty() {
            pipe.chunks.pop_front();
        }
        pipe.waiting -= data.len();
        pipe.writer.take().into_iter().for_each(Waker::wake);
        Poll::Ready(Ok(Some(data)))
    }
}

impl Drop for FakeReader {
    fn drop(&mut self) {
        let mut pipe = self.pipe.borrow_mut();
        pipe.is_abandoned = true;
        pipe.writer.take().into_iter().for_each(Waker::wake);
    }
}
