//! The task that moves the datagrams of an endpoint.
//!
//! ```text
//!   send whatever connections have ─► receive a batch ─► wake who can go on ─► let them run ─┐
//!          ▲                                                                                 │
//!          └─────────────────────────────────────────────────────────────────────────────────┘
//! ```
//! Users run before anything is sent, so that their data and the acknowledgements share packets.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Instant;

use tokio::task::spawn_local;
use tokio::time::{Sleep, sleep_until};

use super::endpoint::{Admission, Endpoint};
use super::line::Line;
use super::socket::{Inbox, Socket, Train};
use crate::stacks::Failure;

/// Room for a train, and for a datagram that does not join it.
const OUTBOX: usize = 2 * 65_535;

impl Endpoint {
    /// Starts to run connections on a socket, in a `LocalSet`.
    pub fn start(
        socket: std::net::UdpSocket,
        config: quiche::Config,
        admission: Admission,
    ) -> Result<Rc<Self>, Failure> {
        let endpoint = Rc::new(Self::new(socket, config, admission)?);
        let mut pump = Pump::new(Rc::clone(&endpoint));
        spawn_local(poll_fn(move |cx| pump.poll(cx)));
        Ok(endpoint)
    }
}

struct Pump {
    endpoint: Rc<Endpoint>,
    timer: Pin<Box<Sleep>>,
    inbox: Inbox,
    outbox: Vec<u8>,
    /// Trains for which the socket had no room.
    unsent: VecDeque<(Train, Vec<u8>)>,
    /// Connections that received something or whose timer expired.
    touched: Vec<Rc<Line>>,
}

impl Pump {
    fn new(endpoint: Rc<Endpoint>) -> Self {
        Self {
            endpoint,
            timer: Box::pin(sleep_until(tokio::time::Instant::now())),
            inbox: Inbox::new(),
            outbox: vec![0; OUTBOX],
            unsent: VecDeque::new(),
            touched: Vec::new(),
        }
    }

    /// Runs the endpoint. Ready when it is stopped and has no connections.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.endpoint.shared.wait(cx);
        self.send(cx);
        if self.endpoint.is_over() {
            return Poll::Ready(());
        }
        let more = self.receive(cx);
        self.expire(cx);
        if more || !self.touched.is_empty() {
            cx.waker().wake_by_ref();
        }
        for line in self.touched.drain(..) {
            line.wake();
            line.touch();
        }
        Poll::Pending
    }

    /// Receives a batch of each socket; returns false if there is no more.
    fn receive(&mut self, cx: &mut Context<'_>) -> bool {
        let endpoint = Rc::clone(&self.endpoint);
        let mut more = false;
        if let Some(second) = endpoint.second.get() {
            // quiche takes a packet for a repeated one once 128 later ones have arrived on the other
            // socket, and the answer to its only PATH_CHALLENGE would be lost: this reads before the
            // runtime knows that there is something.
            if let Ok(count) = second.receive(&mut self.inbox) {
                self.deliver(count, second);
                more = true;
            }
            more |= self.receive_from(second, cx);
        }
        more | self.receive_from(&endpoint.socket, cx)
    }

    /// Receives a batch of a socket; returns false if there is no more.
    fn receive_from(&mut self, socket: &Socket, cx: &mut Context<'_>) -> bool {
        let Poll::Ready(received) = socket.poll_receive(&mut self.inbox, cx) else {
            return false;
        };
        // An error is an ICMP message about a sent datagram.
        self.deliver(received.unwrap_or(0), socket);
        true
    }

    fn deliver(&mut self, count: usize, socket: &Socket) {
        for (datagram, from) in self.inbox.datagrams(count) {
            let line = self.endpoint.on_datagram(datagram, from, socket.address());
            let Some(line) = line else { continue };
            let is_last = |last: &Rc<Line>| Rc::ptr_eq(last, &line);
            if !self.touched.last().is_some_and(is_last) {
                self.touched.push(line);
            }
        }
    }

    /// Sends everything, or as much as the sockets have room for.
    fn send(&mut self, cx: &mut Context<'_>) {
        let endpoint = Rc::clone(&self.endpoint);
        loop {
            while let Some((train, bytes)) = self.unsent.front() {
                let socket = endpoint.socket_at(train.from);
                if socket.poll_send(train, bytes, cx).is_pending() {
                    return;
                }
                self.unsent.pop_front();
            }
            let Some(line) = endpoint.next_dirty() else {
                return;
            };
            endpoint.serve_paths(&line);
            self.drain(&line);
            if !self.unsent.is_empty() {
                // The rest is sent once there is room.
                line.touch();
            }
            endpoint.update_timer(&line);
            match line.ended() {
                Some(_) => line.wake(),
                None => line.on_sent(),
            }
        }
    }

    /// Sends the datagrams of one connection, while the socket has room.
    fn drain(&mut self, line: &Line) {
        let most = self.endpoint.socket.longest_train();
        let mut train: Option<Train> = None;
        while self.unsent.is_empty() {
            let used = train.map_or(0, |train| train.len);
            let written = line.quic.borrow_mut().send(&mut self.outbox[used..]);
            let Ok((len, info)) = written else { break };
            line.count(len, 0);
            self.endpoint.count(len, 0);
            if train.as_mut().is_some_and(|it| it.push(len, &info, most)) {
                continue;
            }
            if let Some(full) = train.replace(Train::of(len, &info)) {
                self.dispatch(full);
                self.outbox.copy_within(used..used + len, 0);
            }
        }
        if let Some(last) = train {
            self.dispatch(last);
        }
    }

    /// Sends a train, which is at the start of the buffer, or keeps it until there is room.
    fn dispatch(&mut self, train: Train) {
        let bytes = &self.outbox[..train.len];
        let socket = self.endpoint.socket_at(train.from);
        // A datagram that cannot be sent for another reason is lost, as elsewhere on the path.
        let is_blocked = |error: io::Error| error.kind() == io::ErrorKind::WouldBlock;
        if !self.unsent.is_empty() || socket.send(&train, bytes).is_err_and(is_blocked) {
            self.unsent.push_back((train, bytes.to_vec()));
        }
    }

    /// Handles expired timers.
    fn expire(&mut self, cx: &mut Context<'_>) {
        let now = Instant::now();
        while let Some(line) = self.endpoint.next_expired(now) {
            line.quic.borrow_mut().on_timeout();
            self.touched.push(line);
        }
        let Some(due) = self.endpoint.next_due() else {
            return;
        };
        // A timer that is set too early costs less than one that moves with each acknowledgement.
        if due < self.timer.deadline().into_std() || self.timer.is_elapsed() {
            self.timer.as_mut().reset(due.into());
        }
        if self.timer.as_mut().poll(cx).is_ready() {
            cx.waker().wake_by_ref();
        }
    }
}
