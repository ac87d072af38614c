//! A socket with the connections that share it.
//!
//! ```text
//!   socket ─► route by id ─► quiche ─► wake who can go on
//!   socket ◄─ due timers, and whatever a connection wants to send
//! ```

use std::cell::{Cell, RefCell};
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

use super::line::{Dirty, Line, Number};
use crate::Failure;
use crate::drivers::wakers::Wakers;
use crate::drivers::{Role, Traffic};
use crate::outcome::Failed;

/// Maximum size of a UDP payload.
const MAX_DATAGRAM: usize = 65_535;
/// Maximum number of datagrams received before any is sent.
const BATCH: usize = 64;
/// Length of the connection ids.
const ID_LEN: usize = 16;

pub(super) struct Endpoint {
    pub(super) address: SocketAddr,
    pub(super) traffic: Cell<Traffic>,
    socket: UdpSocket,
    role: Role,
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

impl Endpoint {
    pub(super) fn start(
        socket: std::net::UdpSocket,
        config: quiche::Config,
        role: Role,
    ) -> Result<Rc<Self>, Failure> {
        socket.set_nonblocking(true)?;
        let socket = UdpSocket::from_std(socket)?;
        let endpoint = Rc::new(Self {
            address: socket.local_addr()?,
            traffic: Cell::default(),
            socket,
            role,
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

    /// Lets the task end once no connection is left.
    pub(super) fn stop(&self) {
        self.stopped.set(true);
        for line in self.incoming.borrow_mut().drain(..) {
            line.close(0);
        }
        self.dirty.pump.wake_all();
    }

    pub(super) async fn accept(&self) -> Result<Rc<Line>, Failed> {
        poll_fn(|cx| match self.incoming.borrow_mut().pop_front() {
            Some(line) => Poll::Ready(Ok(line)),
            None if self.stopped.get() => Poll::Ready(Err(Failed::other("the socket failed"))),
            None => {
                let _ = self.users.join(cx);
                Poll::Pending
            }
        })
        .await
    }

    pub(super) fn connect(
        self: &Rc<Self>,
        server: SocketAddr,
        name: &str,
        ticket: Option<&[u8]>,
    ) -> quiche::Result<Rc<Line>> {
        let (number, id) = self.number();
        let config = &mut self.config.borrow_mut();
        let mut quic = quiche::connect(Some(name), &id, self.address, server, config)?;
        if let Some(ticket) = ticket {
            quic.set_session(ticket)?;
        }
        Ok(self.add(number, id, quic))
    }

    /// Returns a number, and the connection id that contains it.
    fn number(&self) -> (Number, ConnectionId<'static>) {
        let number = self.next.get();
        self.next.set(number + 1);
        let mut id = [0; ID_LEN];
        // If no random bytes can be drawn, the id is still unique on this socket.
        let _ = aws_lc_rs::rand::fill(&mut id[8..]);
        id[..8].copy_from_slice(&number.to_be_bytes());
        (number, ConnectionId::from_vec(id.to_vec()))
    }

    fn add(
        self: &Rc<Self>,
        number: Number,
        id: ConnectionId<'static>,
        quic: quiche::Connection,
    ) -> Rc<Line> {
        let line = Rc::new(Line::new(quic, Rc::clone(&self.dirty), number, self.role));
        self.routes.borrow_mut().insert(id, number);
        self.lines.borrow_mut().insert(number, Rc::clone(&line));
        self.dirty.touch(number);
        line
    }

    fn on_datagram(self: &Rc<Self>, datagram: &mut [u8], from: SocketAddr) {
        self.count(0, datagram.len());
        let Ok(header) = quiche::Header::from_slice(datagram, ID_LEN) else {
            return;
        };
        let number = self.routes.borrow().get(&header.dcid).copied();
        let number = match number {
            Some(number) => number,
            None if self.role == Role::Server && header.ty == quiche::Type::Initial => {
                let Ok(number) = self.begin(&header, from) else {
                    return;
                };
                number
            }
            None => return,
        };
        let line = self.lines.borrow().get(&number).cloned();
        if let Some(line) = line {
            line.receive(datagram, from, self.address);
            self.dirty.numbers.borrow_mut().push_back(number);
        }
    }

    /// Starts a connection for a client's first datagram. Later ones carry the id that the client
    /// chose.
    fn begin(
        self: &Rc<Self>,
        header: &quiche::Header<'_>,
        from: SocketAddr,
    ) -> quiche::Result<Number> {
        let (number, id) = self.number();
        let config = &mut self.config.borrow_mut();
        let quic = quiche::accept(&id, None, self.address, from, config)?;
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
        Ok(number)
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

struct Pump {
    endpoint: Rc<Endpoint>,
    timer: Pin<Box<Sleep>>,
    buffer: Vec<u8>,
    /// Datagram for which the socket had no room.
    unsent: Option<(Vec<u8>, SocketAddr)>,
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
        for _ in 0..BATCH {
            let mut buffer = ReadBuf::new(&mut self.buffer);
            match self.endpoint.socket.poll_recv_from(cx, &mut buffer) {
                Poll::Ready(Ok(from)) => self.endpoint.on_datagram(buffer.filled_mut(), from),
                // An ICMP message about a sent datagram.
                Poll::Ready(Err(_)) => {}
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(())
    }

    /// Sends everything; pending if the socket has no room.
    fn send(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            if let Some((datagram, to)) = &self.unsent {
                match self.endpoint.socket.poll_send_to(cx, datagram, *to) {
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
            match self.endpoint.socket.try_send_to(datagram, info.to) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.unsent = Some((datagram.to_vec(), info.to));
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
