//! The sockets of a worker.

pub(super) mod batch;
pub(super) mod output;
pub(super) mod reports;

mod trouble;

use std::{
    net::SocketAddr,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use hybriq_proto::{
    endpoint::{Local, SocketId, Transmit},
    wire::{error::MigrateError, limits},
};

pub(super) use self::trouble::Advice;
use self::trouble::Trouble;
use crate::udp::{self, Buffers, Handle, Socket, Watched};

/// The sockets of a worker: those it was created with, and those that connections moved to.
pub(crate) struct Sockets {
    /// Sockets by their ids. There is always one.
    bound: Vec<Option<Bound>>,
    /// Socket that new connections start from.
    primary: SocketId,
    /// Index of the socket to receive from first.
    turn: usize,
    /// Options of sockets opened later.
    options: udp::Options,
    /// Number of sockets that the worker was created with, which have the first ids.
    made: usize,
    /// Number of sockets from which another process receives: all of the first ones, or none.
    given: usize,
}

struct Bound {
    socket: Socket,
    kept: Kept,
    /// Number of connections that use it.
    users: usize,
    trouble: Trouble,
}

/// Time until a full socket is tried again if the runtime cannot watch it because this process has
/// no file descriptors left.
const UNWATCHED: Duration = Duration::from_millis(5);

/// Lifetime of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// Kept as long as the worker runs.
    Always,
    /// Closed once no connection uses it.
    WhileUsed,
}

/// The sockets that a connection uses, apart from those that are kept anyway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Used(u16);

impl Sockets {
    /// Keeps these sockets for as long as the worker runs; new connections start from the first.
    pub(crate) fn new(sockets: Vec<Socket>, options: udp::Options) -> Self {
        let bound = |socket| {
            Some(Bound {
                socket,
                kept: Kept::Always,
                users: 0,
                trouble: Trouble::default(),
            })
        };
        let bound: Vec<_> = sockets.into_iter().map(bound).collect();
        Self {
            made: bound.len(),
            given: 0,
            bound,
            primary: SocketId::default(),
            turn: 0,
            options,
        }
    }

    pub(super) fn get(&self, id: SocketId) -> Option<&Socket> {
        let bound = self.bound.get(usize::from(id.0))?.as_ref()?;
        Some(&bound.socket)
    }

    /// Returns the number of sockets.
    pub(super) fn count(&self) -> usize {
        self.bound.iter().flatten().count()
    }

    /// Returns the socket that new connections start from.
    pub(super) const fn primary(&self) -> SocketId {
        self.primary
    }

    /// Opens a socket from which a peer can be reached. Returns it with the address it is bound to.
    pub(super) fn open(
        &mut self,
        address: SocketAddr,
        peer: SocketAddr,
    ) -> Result<(SocketId, SocketAddr), MigrateError> {
        if self.get(self.primary).is_some_and(Socket::is_custom) {
            // A socket of the system would be on another network.
            return Err(MigrateError::Bind(address, std::io::ErrorKind::Unsupported));
        }
        let socket = Socket::bind(address, self.options)
            .map_err(|error| MigrateError::Bind(address, std::io::Error::from(error).kind()))?;
        let bound = socket.local_address();
        if !udp::can_reach(bound, peer) {
            return Err(MigrateError::Unreachable);
        }
        let added = self.add(socket);
        added
            .map(|socket| (socket, bound))
            .map_err(|_| MigrateError::TooManySockets)
    }

    /// Returns additional handles of the sockets that the worker was created with, in the order of
    /// their ids. Fails if the endpoint was moved to others: socket ids would mean something else
    /// in another process.
    pub(super) fn lend(&self) -> std::io::Result<Vec<Handle>> {
        let made = self.bound.iter().take(self.made);
        let kept = |bound: &&Bound| bound.kept == Kept::Always;
        let handles = made.map(|bound| match bound.as_ref().filter(kept) {
            Some(bound) => bound.socket.handle(),
            None => Err(std::io::ErrorKind::Unsupported.into()),
        });
        handles.collect()
    }

    /// Stops receiving from the sockets that the worker was created with: a successor receives from
    /// them.
    pub(super) fn give_away(&mut self) {
        self.given = self.made;
        self.watch(Watched::Sending);
    }

    /// Receives from all sockets again.
    pub(super) fn take_back(&mut self) {
        self.given = 0;
        self.watch(Watched::Both);
    }

    fn watch(&mut self, for_what: Watched) {
        for bound in self.bound.iter_mut().take(self.made).flatten() {
            if let Err(error) = bound.socket.watch(for_what) {
                tracing::warn!(%error, "cannot change how a socket is watched");
            }
        }
    }

    /// Starts new connections from a socket of this process alone if a successor receives from
    /// their usual socket: the successor could not tell the first answers from new clients.
    pub(super) fn leave_given(&mut self) {
        if usize::from(self.primary.0) >= self.given {
            return;
        }
        let Some(mut address) = self.get(self.primary).map(Socket::local_address) else {
            return;
        };
        address.set_port(0);
        match Socket::bind(address, self.options) {
            Ok(socket) => {
                self.set_primary(socket);
            }
            Err(error) => tracing::warn!(%error, "cannot open a socket for new connections"),
        }
    }

    /// Adds a socket that connections may move to. Returns it if there are too many.
    pub(super) fn add(&mut self, socket: Socket) -> Result<SocketId, Box<Socket>> {
        let free = self.bound.iter().position(Option::is_none);
        let place = free.unwrap_or(self.bound.len());
        if place >= limits::SOCKETS {
            return Err(Box::new(socket));
        }
        let bound = Some(Bound {
            socket,
            kept: Kept::WhileUsed,
            users: 0,
            trouble: Trouble::default(),
        });
        match self.bound.get_mut(place) {
            Some(empty) => *empty = bound,
            None => self.bound.push(bound),
        }
        Ok(SocketId(place as u8))
    }

    /// Starts new connections from another socket, and returns the previous one. If there are too many
    /// sockets, one that connections moved to is replaced.
    pub(super) fn set_primary(&mut self, socket: Socket) -> SocketId {
        let old = self.primary;
        self.primary = match self.add(socket) {
            Ok(id) => id,
            Err(socket) => {
                let gives_way = |bound: &Bound| bound.kept == Kept::WhileUsed;
                let place = self
                    .bound
                    .iter()
                    .position(|bound| bound.as_ref().is_some_and(gives_way))
                    .unwrap_or(old.0.into());
                if let Some(Some(bound)) = self.bound.get_mut(place) {
                    bound.socket = *socket;
                    bound.trouble = Trouble::default();
                }
                SocketId(place as u8)
            }
        };
        self.set_kept(self.primary, Kept::Always);
        old
    }

    /// Closes a socket once it is unused, unless new connections start from it.
    pub(super) fn release(&mut self, id: SocketId) {
        if id != self.primary {
            self.set_kept(id, Kept::WhileUsed);
            self.close_unused(id);
        }
    }

    fn set_kept(&mut self, id: SocketId, kept: Kept) {
        if let Some(Some(bound)) = self.bound.get_mut(usize::from(id.0)) {
            bound.kept = kept;
        }
    }

    /// Closes a socket that no connection uses.
    pub(super) fn close_unused(&mut self, id: SocketId) {
        if let Some(place) = self.bound.get_mut(usize::from(id.0)) {
            if place
                .as_ref()
                .is_some_and(|bound| bound.users == 0 && bound.kept == Kept::WhileUsed)
            {
                *place = None;
            }
        }
    }

    /// Returns true if there is only one socket, so that its users need not be counted.
    pub(super) fn is_single(&self) -> bool {
        self.bound.len() <= 1
    }

    /// Records the sockets that a connection uses now, and closes those that it was the last to use.
    pub(super) fn recount(&mut self, used: &mut Used, uses: impl Fn(SocketId) -> bool) {
        for place in 0..self.bound.len() {
            let (id, bit) = (SocketId(place as u8), 1 << place);
            let Some(Some(bound)) = self.bound.get_mut(place) else {
                used.0 &= !bit;
                continue;
            };
            match (used.0 & bit != 0, uses(id)) {
                (false, true) => {
                    used.0 |= bit;
                    bound.users += 1;
                }
                (true, false) => {
                    used.0 &= !bit;
                    bound.users = bound.users.saturating_sub(1);
                    self.close_unused(id);
                }
                _ => {}
            }
        }
    }

    /// Returns the local address of a connection: the address that its socket is bound to, with the
    /// IP address that the peer's datagrams were sent to, if the system reported it.
    pub(super) fn local_address(&self, local: Local) -> Option<SocketAddr> {
        let mut address = self.get(local.socket)?.local_address();
        if let Some(ip) = local.ip {
            address.set_ip(ip);
        }
        Some(address)
    }

    /// Returns the ids of all sockets from which this process receives, starting with a different
    /// one at each call.
    pub(super) fn take_turns(&mut self) -> impl Iterator<Item = SocketId> + use<> {
        let (count, first) = (self.bound.len().max(1), self.turn);
        self.turn = (first + 1) % count;
        let given = self.given;
        let all = (0..count).map(move |step| (first + step) % count);
        all.filter(move |&place| place >= given)
            .map(|place| SocketId(place as u8))
    }

    /// Returns the number of datagrams that one call may send from a socket.
    pub(super) fn max_datagrams(&self, id: SocketId) -> usize {
        self.get(id).map_or(1, Socket::max_datagrams)
    }

    /// Receives a batch from a socket, unless it rests after errors.
    pub(super) fn receive(
        &mut self,
        id: SocketId,
        now: Instant,
        buffers: &mut Buffers,
    ) -> std::io::Result<usize> {
        let bound = self.bound.get_mut(usize::from(id.0));
        let bound = bound.and_then(Option::as_mut);
        let bound = bound.ok_or(std::io::ErrorKind::WouldBlock)?;
        if bound.trouble.rests_until().is_some_and(|until| until > now) {
            return Err(std::io::ErrorKind::WouldBlock.into());
        }
        let received = bound.socket.receive(buffers);
        let is_well = |error: &std::io::Error| error.kind() == std::io::ErrorKind::WouldBlock;
        if received.as_ref().err().is_none_or(is_well) {
            bound.trouble.on_well();
        }
        received
    }

    /// Handles an error of [`Sockets::receive`].
    pub(super) fn on_receive_error(&mut self, id: SocketId, now: Instant) -> Advice {
        match self.bound.get_mut(usize::from(id.0)) {
            Some(Some(bound)) => bound.trouble.on_error(now),
            _ => Advice::Rest(false),
        }
    }

    /// Returns true if the endpoint cannot do without this socket.
    pub(super) fn is_kept(&self, id: SocketId) -> bool {
        let bound = self.bound.get(usize::from(id.0)).and_then(Option::as_ref);
        bound.is_some_and(|bound| bound.kept == Kept::Always)
    }

    /// Returns the time at which a socket is tried again: either one that rests after errors, or a
    /// full one that the batch waits for and the runtime cannot watch.
    pub(super) fn next_trial(&self, full: Option<SocketId>, now: Instant) -> Option<Instant> {
        let unwatched = full.and_then(|id| self.get(id));
        let unwatched = unwatched.filter(|socket| !socket.is_watched_for_room());
        let unwatched = unwatched.map(|_| now + UNWATCHED);
        let bound = self.bound.iter().flatten();
        let rests = bound.filter_map(|bound| bound.trouble.rests_until());
        rests.chain(unwatched).min()
    }

    /// Sends from the socket of the datagram. Datagrams of a closed socket are lost.
    pub(super) fn send(&self, transmit: &Transmit, contents: &[u8]) -> std::io::Result<()> {
        self.get(transmit.local.socket)
            .map_or(Ok(()), |socket| socket.send(transmit, contents))
    }

    /// Sets whether the system keeps reports about datagrams that are sent from the socket that new
    /// connections start from.
    pub(super) fn keep_reports(&mut self, keep: bool) {
        if let Some(Some(bound)) = self.bound.get_mut(usize::from(self.primary.0)) {
            bound.socket.keep_reports(keep);
        }
    }

    /// Returns ready when there may be reports about datagrams that were sent.
    pub(super) fn poll_reports(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut bound = self.bound.iter_mut().flatten();
        if bound.any(|bound| bound.socket.poll_reports(cx).is_ready()) {
            return Poll::Ready(());
        }
        Poll::Pending
    }

    /// Takes the next report about a datagram that was sent.
    pub(super) fn take_report(&self) -> Option<udp::Report> {
        let mut bound = self.bound.iter().flatten();
        bound.find_map(|bound| bound.socket.take_report())
    }

    /// Notes that a datagram of a train was sent on its own, after the system had refused the
    /// train.
    pub(super) fn on_taken_apart(&self, transmit: &Transmit) {
        if let Some(socket) = self.get(transmit.local.socket) {
            socket.on_taken_apart(transmit.peer);
        }
    }

    /// Returns ready when datagrams may be waiting at one of the sockets.
    pub(super) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
        let ready = self
            .bound
            .iter()
            .flatten()
            .filter(|bound| bound.trouble.rests_until().is_none())
            .any(|bound| bound.socket.poll_readable(cx).is_ready());
        if ready {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    /// Returns ready when a socket may have room to send.
    pub(super) fn poll_writable(&self, id: SocketId, cx: &mut Context<'_>) -> Poll<()> {
        self.get(id)
            .map_or(Poll::Ready(()), |socket| socket.poll_writable(cx))
    }

    /// Returns the addresses of the sockets that are kept; new connections start from the first.
    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        let primary = self.get(self.primary).into_iter();
        let others = self.bound.iter().enumerate().filter_map(|(place, bound)| {
            let bound = bound.as_ref()?;
            let other = place != usize::from(self.primary.0) && bound.kept == Kept::Always;
            other.then_some(&bound.socket)
        });
        primary.chain(others).map(Socket::local_address).collect()
    }
}

#[cfg(test)]
mod tests;
