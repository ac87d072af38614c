//! A socket with the connections that share it.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::future::poll_fn;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::Poll;
use std::time::Instant;

use quiche::ConnectionId;

use super::Ended;
use super::line::{Line, Number, Quic, Shared, Waiting};
use super::socket::Socket;
use crate::stacks::{Failure, Traffic};

/// Length of the connection ids.
const ID_LEN: usize = 16;
/// Bit of a first byte that tells long headers from short ones (RFC 9000 §17).
const LONG_HEADER: u8 = 0x80;

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
    traffic: Cell<Traffic>,
    pub(super) socket: Socket,
    /// Second socket of a client that moves.
    pub(super) second: OnceCell<Socket>,
    admission: Admission,
    has_paths: Cell<bool>,
    config: RefCell<quiche::Config>,
    lines: RefCell<HashMap<Number, Rc<Line>>>,
    routes: RefCell<HashMap<ConnectionId<'static>, Rc<Line>>>,
    timers: RefCell<BTreeSet<(Instant, Number)>>,
    pub(super) shared: Rc<Shared>,
    incoming: RefCell<VecDeque<Rc<Line>>>,
    stopped: Cell<bool>,
    next: Cell<Number>,
    users: Waiting,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint").finish_non_exhaustive()
    }
}

impl Endpoint {
    pub(super) fn new(
        socket: std::net::UdpSocket,
        config: quiche::Config,
        admission: Admission,
    ) -> Result<Self, Failure> {
        Ok(Self {
            traffic: Cell::default(),
            socket: Socket::new(socket)?,
            second: OnceCell::new(),
            admission,
            has_paths: Cell::default(),
            config: RefCell::new(config),
            lines: RefCell::default(),
            routes: RefCell::default(),
            timers: RefCell::default(),
            shared: Rc::default(),
            incoming: RefCell::default(),
            stopped: Cell::default(),
            next: Cell::default(),
            users: Waiting::default(),
        })
    }

    /// Returns the address of its socket.
    pub fn address(&self) -> SocketAddr {
        self.socket.address()
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
        let socket = Socket::new(std::net::UdpSocket::bind((self.address().ip(), 0))?)?;
        let local = socket.address();
        let mut quic = line.quic.borrow_mut();
        let peer = quic.path_stats().map(|path| path.peer_addr).next();
        quic.probe_path(local, peer.ok_or("there is no path")?)?;
        let second = self.second.set(socket);
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
        self.shared.wake();
    }

    /// Returns the next connection, still in its handshake; `None` once the endpoint is stopped.
    pub async fn accept(&self) -> Option<Rc<Line>> {
        poll_fn(|cx| match self.incoming.borrow_mut().pop_front() {
            Some(line) => Poll::Ready(Some(line)),
            None if self.stopped.get() => Poll::Ready(None),
            None => {
                self.users.join(cx);
                Poll::Pending
            }
        })
        .await
    }

    /// Starts a connection, with a ticket of an earlier one.
    pub fn connect(
        &self,
        server: SocketAddr,
        name: &str,
        ticket: Option<&[u8]>,
    ) -> quiche::Result<Rc<Line>> {
        let number = self.number();
        let id = new_id(number);
        let config = &mut self.config.borrow_mut();
        let mut quic: Quic =
            quiche::connect_with_buffer_factory(Some(name), &id, self.address(), server, config)?;
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

    fn add(&self, number: Number, id: ConnectionId<'static>, quic: Quic) -> Rc<Line> {
        let line = Rc::new(Line::new(quic, Rc::clone(&self.shared), number));
        self.routes.borrow_mut().insert(id, Rc::clone(&line));
        self.lines.borrow_mut().insert(number, Rc::clone(&line));
        line.touch();
        line
    }

    /// Delivers a datagram, and returns its connection.
    pub(super) fn on_datagram(
        &self,
        datagram: &mut [u8],
        from: SocketAddr,
        to: SocketAddr,
    ) -> Option<Rc<Line>> {
        self.count(0, datagram.len());
        let line = if *datagram.first()? & LONG_HEADER == 0 {
            self.route(&ConnectionId::from_ref(datagram.get(1..=ID_LEN)?))?
        } else {
            let header = quiche::Header::from_slice(datagram, ID_LEN).ok()?;
            match self.route(&header.dcid) {
                Some(line) => line,
                None if header.ty == quiche::Type::Initial => self.begin(&header, from).ok()??,
                None => return None,
            }
        };
        line.receive(datagram, from, to);
        Some(line)
    }

    fn route(&self, id: &ConnectionId<'_>) -> Option<Rc<Line>> {
        let routes: &HashMap<ConnectionId<'_>, Rc<Line>> = &self.routes.borrow();
        routes.get(id).cloned()
    }

    /// Starts a connection for a client's first datagram, if it is admitted. Later datagrams carry
    /// the id that the client chose.
    fn begin(
        &self,
        header: &quiche::Header<'_>,
        from: SocketAddr,
    ) -> quiche::Result<Option<Rc<Line>>> {
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
        let quic =
            quiche::accept_with_buf_factory(&id, first.as_ref(), self.address(), from, config)?;
        let line = self.add(number, id, quic);
        let chosen = header.dcid.clone().into_owned();
        self.routes
            .borrow_mut()
            .insert(chosen.clone(), Rc::clone(&line));
        line.was_reached_as(chosen);
        if self.stopped.get() {
            line.close(0);
        } else {
            self.incoming.borrow_mut().push_back(Rc::clone(&line));
            self.users.wake_all();
        }
        Ok(Some(line))
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
    pub(super) fn serve_paths(&self, line: &Rc<Line>) {
        if !self.has_paths.get() {
            return;
        }
        let mut quic = line.quic.borrow_mut();
        while let Some(event) = quic.path_event_next() {
            if let quiche::PathEvent::Validated(local, peer) = event
                && self
                    .second
                    .get()
                    .is_some_and(|second| second.address() == local)
            {
                // An error shows as a connection that stays where it is.
                let _ = quic.migrate(local, peer);
            }
        }
        while quic.is_established() && quic.scids_left() > 0 {
            let id = new_id(line.number);
            let mut token = [0; 16];
            // Without random bytes the token is a constant, which only weakens stateless resets.
            let _ = aws_lc_rs::rand::fill(&mut token);
            if quic
                .new_scid(&id, u128::from_be_bytes(token), false)
                .is_err()
            {
                return;
            }
            self.routes.borrow_mut().insert(id, Rc::clone(line));
        }
    }

    /// Returns the socket with that address.
    pub(super) fn socket_at(&self, local: SocketAddr) -> &Socket {
        let second = self.second.get();
        second.map_or(&self.socket, |second| {
            if second.address() == local {
                second
            } else {
                &self.socket
            }
        })
    }

    pub(super) fn count(&self, sent: usize, received: usize) {
        self.traffic.set(self.traffic.get().with(sent, received));
    }

    /// Returns true if it is stopped and has no connections.
    pub(super) fn is_over(&self) -> bool {
        self.stopped.get() && self.lines.borrow().is_empty()
    }

    /// Returns the next connection that may have something to send, or a new timer.
    pub(super) fn next_dirty(&self) -> Option<Rc<Line>> {
        loop {
            let number = self.shared.next()?;
            if let Some(line) = self.lines.borrow().get(&number) {
                line.mark_served();
                return Some(Rc::clone(line));
            }
        }
    }

    /// Returns the time of the next timer.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.timers.borrow().first().map(|(due, _)| *due)
    }

    /// Returns a connection whose timer has expired.
    pub(super) fn next_expired(&self, now: Instant) -> Option<Rc<Line>> {
        while self.next_due()? <= now {
            let (_, number) = self.timers.borrow_mut().pop_first()?;
            if let Some(line) = self.lines.borrow().get(&number) {
                line.timer.set(None);
                return Some(Rc::clone(line));
            }
        }
        None
    }

    /// Updates a connection's timer, and drops the connection if it is over.
    pub(super) fn update_timer(&self, line: &Line) {
        let due = line.quic.borrow().timeout_instant();
        let old = line.timer.replace(due);
        if old != due {
            let timers = &mut self.timers.borrow_mut();
            old.map(|old| timers.remove(&(old, line.number)));
            timers.extend(due.map(|due| (due, line.number)));
        }
        if line.quic.borrow().is_closed() {
            self.lines.borrow_mut().remove(&line.number);
            let routes = &mut self.routes.borrow_mut();
            for id in line.ids() {
                routes.remove(&id);
            }
        }
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
