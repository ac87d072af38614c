//! A socket with the connections that share it.
//!
//! ```text
//!   socket ─► route by id ─► quiche ─► wake who can go on
//!   socket ◄─ due timers, and whatever a connection wants to send
//! ```

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use quiche::ConnectionId;
use tokio::io::ReadBuf;
use tokio::net::UdpSocket;
use tokio::time::{Sleep, sleep_until};

use super::Ended;
use super::line::{Dirty, Line, Number};
use crate::stacks::wakers::Wakers;
use crate::stacks::{Failure, Traffic};

/// Maximum size of a UDP payload.
const MAX_DATAGRAM: usize = 65_535;
/// Maximum number of datagrams received before any is sent.
const BATCH: usize = 64;
/// Length of the connection ids.
const ID_LEN: usize = 16;

/// Reaction of an endpoint to the first datagram of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Drops it, as a client does.
    Never,
    /// Accepts the connection.
    AtOnce,
    /// Sends a Retry, and accepts a connection that returns its token.
    AfterRetry,
}

/// A socket with the connections that share it.
pub struct Endpoint {
    address: SocketAddr,
    traffic: Cell<Traffic>,
    socket: UdpSocket,
    /// Second socket of a client that moves.
    second: OnceCell<Second>,
    admission: Admission,
    has_paths: Cell<bool>,
    config: RefCell<quiche::Config>,
    lines: RefCell<HashMap<Number, Rc<Line>>>,
    routes: RefCell<HashMap<ConnectionId<'static>, Number>>,
    timers: RefCell<BTreeSet<(Instant, Number)>>,
    dirty: Rc<Dirty>,
    incoming: RefCell<VecDeque<Rc<Line>>>,
    stopped: Cell<bool>,
    next: Cell<Number>,
    users: Arc<Wakers>,
}

/// Second socket of a client that moves.
struct Second {
    socket: UdpSocket,
    /// The same socket, to read from before the runtime knows that it is readable: quiche takes a
    /// packet for a repeated one once 128 later ones have arrived on the other socket, and the
    /// answer to its only PATH_CHALLENGE would be lost.
    unwatched: std::net::UdpSocket,
    address: SocketAddr,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint").finish_non_exhaustive()
    }
}

impl Endpoint {
    /// Starts to run connections on a socket, in a `LocalSet`.
    pub fn start(
        socket: std::net::UdpSocket,
        config: quiche::Config,
        admission: Admission,
    ) -> Result<Rc<Self>, Failure> {
        socket.set_nonblocking(true)?;
        let socket = UdpSocket::from_std(socket)?;
        let endpoint = Rc::new(Self {
            address: socket.local_addr()?,
            traffic: Cell::default(),
            socket,
            second: OnceCell::new(),
            admission,
            has_paths: Cell::default(),
            config: RefCell::new(config),
            lines: RefCell::default(),
            routes: RefCell::default(),
            timers: RefCell::default(),
            dirty: Rc::default(),
            incoming: RefCell::default(),
            stopped: Cell::default(),
            next: Cell::default(),
            users: Arc::default(),
        });
        let mut pump = Pump {
            endpoint: Rc::clone(&endpoint),
            timer: Box::pin(sleep_until(tokio::time::Instant::now())),
            buffer: vec![0; MAX_DATAGRAM],
            unsent: None,
        };
        tokio::task::spawn_local(poll_fn(move |cx| pump.poll(cx)));
        Ok(endpoint)
    }

    /// Returns the address of its socket.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the traffic of its socket.
    pub fn traffic(&self) -> Traffic {
        self.traffic.get()
    }

    /// Issues the connection ids that a peer needs for other paths, and follows a client's
    /// [`Endpoint::migrate`]. Without it connections have one path.
    pub fn allow_paths(&self) {
        self.has_paths.set(true);
    }

    /// Moves a client's connection to another port, after [`Endpoint::allow_paths`]. A client can
    /// move once.
    pub async fn migrate(&self, line: &Line) -> Result<(), Failure> {
        let local = self.probe(line)?;
        line.touch();
        let moved = line.wait(|| {
            if let Some(ended) = line.ended() {
                return Some(Err(ended));
            }
            let quic = line.quic.borrow();
            let mut paths = quic.path_stats();
            let active = paths.any(|path| path.active && path.local_addr == local);
            active.then_some(Ok(()))
        });
        moved.await.map_err(|ended: Ended| ended.to_string().into())
    }

    /// Sends a PATH_CHALLENGE from a second socket, and returns the address of that.
    fn probe(&self, line: &Line) -> Result<SocketAddr, Failure> {
        let socket = std::net::UdpSocket::bind((self.address.ip(), 0))?;
        socket.set_nonblocking(true)?;
        let local = socket.local_addr()?;
        let mut quic = line.quic.borrow_mut();
        let peer = quic.path_stats().map(|path| path.peer_addr).next();
        quic.probe_path(local, peer.ok_or("there is no path")?)?;
        let second = self.second.set(Second {
            unwatched: socket.try_clone()?,
            socket: UdpSocket::from_std(socket)?,
            address: local,
        });
        second
            .map_err(|_| "it has moved before".into())
            .map(|()| local)
    }

    /// Lets the task end once no connection is left.
    pub fn stop(&self) {
        self.stopped.set(true);
        for line in self.incoming.borrow_mut().drain(..) {
            line.close(0);
        }
        self.dirty.pump.wake_all();
    }

    /// Returns the next connection, still in its handshake; `None` once the endpoint is stopped.
    pub async fn accept(&self) -> Option<Rc<Line>> {
        poll_fn(|cx| match self.incoming.borrow_mut().pop_front() {
            Some(line) => Poll::Ready(Some(line)),
            None if self.stopped.get() => Poll::Ready(None),
            None => {
                let _ = self.users.join(cx);
                Poll::Pending
            }
        })
        .await
    }

    /// Starts a connection, with a ticket of an earlier one.
    pub fn connect(
        self: &Rc<Self>,
        server: SocketAddr,
        name: &str,
        ticket: Option<&[u8]>,
    ) -> quiche::Result<Rc<Line>> {
        let number = self.number();
        let id = new_id(number);
        let config = &mut self.config.borrow_mut();
        let mut quic = quiche::connect(Some(name), &id, self.address, server, config)?;
        if let Some(ticket) = ticket {
            quic.set_session(ticket)?;
        }
        Ok(self.add(number, id, quic))
    }

    fn number(&self) -> Number {
        let number = self.next.get();
        self.next.set(number + 1);
        number
    }

    fn add(
        self: &Rc<Self>,
        number: Number,
        id: ConnectionId<'static>,
        quic: quiche::Connection,
    ) -> Rc<Line> {
        let line = Rc::new(Line::new(quic, Rc::clone(&self.dirty), number));
        self.routes.borrow_mut().insert(id, number);
        self.lines.borrow_mut().insert(number, Rc::clone(&line));
        self.dirty.touch(number);
        line
    }

    fn on_datagram(self: &Rc<Self>, datagram: &mut [u8], from: SocketAddr, to: SocketAddr) {
        self.count(0, datagram.len());
        let Ok(header) = quiche::Header::from_slice(datagram, ID_LEN) else {
            return;
        };
        let number = self.routes.borrow().get(&header.dcid).copied();
        let number = match number {
            Some(number) => number,
            None if header.ty == quiche::Type::Initial => match self.begin(&header, from) {
                Ok(Some(number)) => number,
                _ => return,
            },
            None => return,
        };
        let line = self.lines.borrow().get(&number).cloned();
        if let Some(line) = line {
            line.receive(datagram, from, to);
            self.dirty.numbers.borrow_mut().push_back(number);
        }
    }

    /// Starts a connection for a client's first datagram, if it is admitted. Later datagrams carry
    /// the id that the client chose.
    fn begin(
        self: &Rc<Self>,
        header: &quiche::Header<'_>,
        from: SocketAddr,
    ) -> quiche::Result<Option<Number>> {
        if self.admission == Admission::Never {
            return Ok(None);
        }
        let number = self.number();
        let token = header.token.as_deref().unwrap_or_default();
        let (id, first) = match self.admission {
            Admission::Never | Admission::AtOnce => (new_id(number), None),
            Admission::AfterRetry if token.is_empty() => {
                return self.retry(header, from, &new_id(number)).map(|()| None);
            }
            Admission::AfterRetry => {
                let first = ConnectionId::from_ref(token);
                (header.dcid.clone().into_owned(), Some(first))
            }
        };
        let config = &mut self.config.borrow_mut();
        let quic = quiche::accept(&id, first.as_ref(), self.address, from, config)?;
        let line = self.add(number, id, quic);
        let chosen = header.dcid.clone().into_owned();
        self.routes.borrow_mut().insert(chosen.clone(), number);
        line.was_reached_as(chosen);
        if self.stopped.get() {
            line.close(0);
        } else {
            self.incoming.borrow_mut().push_back(line);
            self.users.wake_all();
        }
        Ok(Some(number))
    }

    /// Sends a Retry. Its token is the id that the client chose, which the connection must return
    /// to it: enough for a test, although others could make it too.
    fn retry(
        &self,
        header: &quiche::Header<'_>,
        from: SocketAddr,
        id: &ConnectionId<'_>,
    ) -> quiche::Result<()> {
        let mut packet = [0; 256];
        let (client, first) = (&header.scid, &header.dcid);
        let len = quiche::retry(client, first, id, first, header.version, &mut packet)?;
        // A Retry that cannot be sent is lost, as elsewhere on the path.
        let _ = self.socket.try_send_to(&packet[..len], from);
        self.count(len, 0);
        Ok(())
    }

    /// Issues ids for other paths, and moves a client to the path of its second socket.
    fn serve_paths(&self, number: Number, line: &Line) {
        let mut quic = line.quic.borrow_mut();
        while let Some(event) = quic.path_event_next() {
            if let quiche::PathEvent::Validated(local, peer) = event
                && self
                    .second
                    .get()
                    .is_some_and(|second| second.address == local)
            {
                // An error shows as a connection that stays where it is.
                let _ = quic.migrate(local, peer);
            }
        }
        while quic.is_established() && quic.scids_left() > 0 {
            let id = new_id(number);
            let mut token = [0; 16];
            // Without random bytes the token is a constant, which only weakens stateless resets.
            let _ = aws_lc_rs::rand::fill(&mut token);
            if quic
                .new_scid(&id, u128::from_be_bytes(token), false)
                .is_err()
            {
                return;
            }
            self.routes.borrow_mut().insert(id, number);
        }
    }

    /// Returns the socket with that address.
    fn socket(&self, local: SocketAddr) -> &UdpSocket {
        match self.second.get() {
            Some(second) if second.address == local => &second.socket,
            _ => &self.socket,
        }
    }

    fn count(&self, sent: usize, received: usize) {
        self.traffic.set(self.traffic.get().with(sent, received));
    }

    /// Updates a connection's timer, and drops the connection if it is over.
    fn update_timer(&self, number: Number, line: &Line) {
        let timers = &mut self.timers.borrow_mut();
        if let Some(old) = line.timer.take() {
            timers.remove(&(old, number));
        }
        if line.quic.borrow().is_closed() {
            self.lines.borrow_mut().remove(&number);
            let routes = &mut self.routes.borrow_mut();
            for id in line.ids() {
                routes.remove(&id);
            }
            return;
        }
        let due = line.quic.borrow().timeout_instant();
        line.timer.set(due);
        timers.extend(due.map(|due| (due, number)));
    }
}

/// Returns a connection id that contains the connection's number.
fn new_id(number: Number) -> ConnectionId<'static> {
    let mut id = [0; ID_LEN];
    // If no random bytes can be drawn, the first id of a connection is still unique on this socket.
    let _ = aws_lc_rs::rand::fill(&mut id[8..]);
    id[..8].copy_from_slice(&number.to_be_bytes());
    ConnectionId::from_vec(id.to_vec())
}

struct Pump {
    endpoint: Rc<Endpoint>,
    timer: Pin<Box<Sleep>>,
    buffer: Vec<u8>,
    /// Datagram for which the socket had no room.
    unsent: Option<(Vec<u8>, quiche::SendInfo)>,
}

impl Pump {
    /// Runs the endpoint. Ready when it is stopped and has no connections.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let _ = self.endpoint.dirty.pump.join(cx);
        loop {
            let received = self.receive(cx);
            let sent = self.send(cx);
            if received.is_pending() && (!self.expire(cx) || sent.is_pending()) {
                break;
            }
        }
        if self.endpoint.stopped.get() && self.endpoint.lines.borrow().is_empty() {
            return Poll::Ready(());
        }
        Poll::Pending
    }

    /// Receives a batch; pending if there is no more.
    fn receive(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let endpoint = &self.endpoint;
        if let Some(second) = endpoint.second.get() {
            for _ in 0..BATCH {
                let Ok((len, from)) = second.unwatched.recv_from(&mut self.buffer) else {
                    break;
                };
                endpoint.on_datagram(&mut self.buffer[..len], from, second.address);
            }
            let (socket, address) = (&second.socket, second.address);
            let more = receive(endpoint, socket, address, &mut self.buffer, cx);
            if more.is_ready() {
                return more;
            }
        }
        let buffer = &mut self.buffer;
        receive(endpoint, &endpoint.socket, endpoint.address, buffer, cx)
    }

    /// Sends everything; pending if the socket has no room.
    fn send(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            if let Some((datagram, info)) = &self.unsent {
                let socket = self.endpoint.socket(info.from);
                match socket.poll_send_to(cx, datagram, info.to) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(_) => self.unsent = None,
                }
            }
            let number = self.endpoint.dirty.numbers.borrow_mut().pop_front();
            let Some(number) = number else {
                return Poll::Ready(());
            };
            let line = self.endpoint.lines.borrow().get(&number).cloned();
            let Some(line) = line else { continue };
            if self.endpoint.has_paths.get() {
                self.endpoint.serve_paths(number, &line);
            }
            if self.drain(&line) {
                // The rest is sent once there is room.
                self.endpoint.dirty.numbers.borrow_mut().push_front(number);
            }
            self.endpoint.update_timer(number, &line);
            line.wake();
        }
    }

    /// Sends the datagrams of one connection; returns true if the socket had no room for all.
    fn drain(&mut self, line: &Line) -> bool {
        loop {
            let sent = line.quic.borrow_mut().send(&mut self.buffer);
            let Ok((len, info)) = sent else {
                return false;
            };
            line.count(len, 0);
            self.endpoint.count(len, 0);
            let datagram = &self.buffer[..len];
            match self
                .endpoint
                .socket(info.from)
                .try_send_to(datagram, info.to)
            {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.unsent = Some((datagram.to_vec(), info));
                    return true;
                }
                // A datagram that cannot be sent is lost, as elsewhere on the path.
                _ => {}
            }
        }
    }

    /// Handles expired timers; returns true if there were any.
    fn expire(&mut self, cx: &mut Context<'_>) -> bool {
        let now = Instant::now();
        let mut any = false;
        loop {
            let first = self.endpoint.timers.borrow().first().copied();
            let Some((due, number)) = first else { break };
            if due > now {
                self.timer.as_mut().reset(due.into());
                any |= self.timer.as_mut().poll(cx).is_ready();
                break;
            }
            any = true;
            self.endpoint.timers.borrow_mut().pop_first();
            let line = self.endpoint.lines.borrow().get(&number).cloned();
            if let Some(line) = line {
                line.timer.set(None);
                line.quic.borrow_mut().on_timeout();
                self.endpoint.dirty.numbers.borrow_mut().push_back(number);
            }
        }
        any
    }
}

/// Receives a batch of a socket; pending if there is no more.
fn receive(
    endpoint: &Rc<Endpoint>,
    socket: &UdpSocket,
    to: SocketAddr,
    buffer: &mut [u8],
    cx: &mut Context<'_>,
) -> Poll<()> {
    for _ in 0..BATCH {
        let mut buffer = ReadBuf::new(buffer);
        match socket.poll_recv_from(cx, &mut buffer) {
            Poll::Ready(Ok(from)) => endpoint.on_datagram(buffer.filled_mut(), from, to),
            // An ICMP message about a sent datagram.
            Poll::Ready(Err(_)) => {}
            Poll::Pending => return Poll::Pending,
        }
    }
    Poll::Ready(())
}
