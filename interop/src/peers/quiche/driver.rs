//! The loop that drives quiche's connections.

use std::{
    future::Future,
    io,
    net::SocketAddr,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Instant,
};

use tokio::{
    io::ReadBuf,
    net::UdpSocket,
    sync::{mpsc, oneshot},
    time::{Sleep, sleep_until},
};

use super::{failure_of, id, stream::Stream};
use crate::{Activity, Failure, Handshake, Reader, Writer, echo_stream};

/// Maximum size of a UDP payload.
const MAX_DATAGRAM: usize = 65_535;
/// Value of BoringSSL's `ssl_early_data_accepted`.
const EARLY_DATA_ACCEPTED: u32 = 2;

/// Requests of a connection's user.
pub(super) enum Command {
    /// Opens a bidirectional stream.
    Open(oneshot::Sender<(Writer, Reader)>),
    /// Sends an unreliable datagram, and returns the next one received.
    Datagram(Vec<u8>, oneshot::Sender<Vec<u8>>),
    /// Moves to another local port.
    Migrate(oneshot::Sender<bool>),
    /// Closes the connection.
    Close,
}

/// User of a connection.
pub(super) enum User {
    /// A client, which waits for the handshake and then sends commands.
    Client {
        established: Option<oneshot::Sender<Result<Told, Failure>>>,
        commands: mpsc::UnboundedReceiver<Command>,
        next_stream: u64,
        wants: Vec<oneshot::Sender<(Writer, Reader)>>,
        echoes: Vec<oneshot::Sender<Vec<u8>>>,
        ticket: Ticket,
    },
    /// An echo server.
    Server {
        outcomes: mpsc::UnboundedSender<Result<Handshake, Failure>>,
        activity: Arc<Activity>,
        told: bool,
        accepted: u64,
    },
}

/// Latest session ticket of the client.
pub(super) type Ticket = Arc<Mutex<Option<Vec<u8>>>>;

/// Facts that a client learns at the end of its handshake.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told {
    pub(super) resumed: bool,
    pub(super) early_data: bool,
}

/// One connection with its streams.
pub(super) struct Line {
    pub(super) connection: quiche::Connection,
    pub(super) user: User,
    streams: Vec<Stream>,
    /// Second socket, after a migration.
    moved: Option<(UdpSocket, SocketAddr)>,
    migrating: Option<oneshot::Sender<bool>>,
}

impl Line {
    pub(super) fn new(connection: quiche::Connection, user: User) -> Self {
        Self {
            connection,
            user,
            streams: Vec::new(),
            moved: None,
            migrating: None,
        }
    }

    /// Lets everything try again; returns true if anything advanced.
    pub(super) fn turn(&mut self, cx: &mut Context<'_>) -> bool {
        let mut moved = self.tell() | self.listen(cx) | self.accept() | self.on_path_events();
        self.remember();
        self.issue_ids();
        for stream in &mut self.streams {
            moved |= stream.pump(cx, &mut self.connection);
        }
        self.streams.retain(|stream| !stream.is_over());
        moved | self.echo_datagrams()
    }

    fn remember(&mut self) {
        if let User::Client { ticket, .. } = &self.user
            && let Some(session) = self.connection.session()
        {
            let mut ticket = ticket.lock().unwrap_or_else(PoisonError::into_inner);
            if ticket.as_deref() != Some(session) {
                *ticket = Some(session.to_vec());
            }
        }
    }

    /// Issues the connection ids that the peer needs for another path.
    fn issue_ids(&mut self) {
        while self.connection.is_established() && self.connection.scids_left() > 0 {
            let (scid, token) = (id(), id());
            let scid = quiche::ConnectionId::from_ref(&scid);
            let mut reset = [0; 16];
            reset.copy_from_slice(&token[..16]);
            if self
                .connection
                .new_scid(&scid, u128::from_be_bytes(reset), false)
                .is_err()
            {
                return;
            }
        }
    }

    fn is_open(&self) -> bool {
        self.connection.is_established() || self.connection.is_in_early_data()
    }

    /// Reports the outcome of the handshake, once.
    fn tell(&mut self) -> bool {
        let over = self.connection.is_closed() || self.connection.is_draining();
        if !self.connection.is_established() && !over {
            return false;
        }
        let failure = || failure_of(&self.connection);
        let told = Told {
            resumed: self.connection.is_resumed(),
            early_data: self.connection.early_data_reason() == EARLY_DATA_ACCEPTED,
        };
        let established = self.connection.is_established();
        match &mut self.user {
            User::Client {
                established: to, ..
            } => to.take().is_some_and(|to| {
                let _ = to.send(if established {
                    Ok(told)
                } else {
                    Err(failure())
                });
                true
            }),
            User::Server { told, outcomes, .. } => {
                let first = !std::mem::replace(told, true);
                if first {
                    let _ = outcomes.send(if established {
                        Ok(Handshake::default())
                    } else {
                        Err(failure())
                    });
                }
                first
            }
        }
    }

    fn listen(&mut self, cx: &mut Context<'_>) -> bool {
        let mut moved = false;
        loop {
            let User::Client { commands, .. } = &mut self.user else {
                return moved;
            };
            let command = match commands.poll_recv(cx) {
                Poll::Ready(Some(command)) => command,
                Poll::Ready(None) => {
                    let _ = self.connection.close(true, 0, b"");
                    return moved;
                }
                Poll::Pending => break,
            };
            self.on_command(command);
            moved = true;
        }
        moved | self.open_wanted()
    }

    fn on_command(&mut self, command: Command) {
        let User::Client { wants, echoes, .. } = &mut self.user else {
            return;
        };
        match command {
            Command::Open(to) => wants.push(to),
            Command::Datagram(bytes, to) => {
                if self.connection.dgram_send(&bytes).is_ok() {
                    echoes.push(to);
                }
            }
            Command::Migrate(to) => {
                if self.migrate().is_ok() {
                    self.migrating = Some(to);
                }
            }
            Command::Close => {
                let _ = self.connection.close(true, 0, b"");
            }
        }
    }

    fn migrate(&mut self) -> io::Result<()> {
        let socket = std::net::UdpSocket::bind(("127.0.0.1", 0))?;
        socket.set_nonblocking(true)?;
        let local = socket.local_addr()?;
        let paths = self.connection.path_stats();
        let peer = paths.map(|path| path.peer_addr).next();
        let peer = peer.ok_or_else(|| io::Error::other("no path"))?;
        self.connection
            .probe_path(local, peer)
            .map_err(io::Error::other)?;
        self.moved = Some((UdpSocket::from_std(socket)?, local));
        Ok(())
    }

    fn on_path_events(&mut self) -> bool {
        let mut moved = false;
        while let Some(event) = self.connection.path_event_next() {
            moved = true;
            if let quiche::PathEvent::Validated(local, peer) = event
                && self.migrating.is_some()
            {
                let done = self.connection.migrate(local, peer).is_ok();
                if let Some(to) = self.migrating.take() {
                    let _ = to.send(done);
                }
            }
        }
        moved
    }

    fn open_wanted(&mut self) -> bool {
        let open = self.is_open();
        let User::Client {
            next_stream, wants, ..
        } = &mut self.user
        else {
            return false;
        };
        let mut moved = false;
        while open && !wants.is_empty() && self.connection.peer_streams_left_bidi() > 0 {
            let id = *next_stream;
            // An empty write creates the stream.
            if self.connection.stream_send(id, b"", false).is_err() {
                break;
            }
            *next_stream += 4;
            let (stream, writer, reader) = Stream::new(id);
            self.streams.push(stream);
            let _ = wants.remove(0).send((writer, reader));
            moved = true;
        }
        moved
    }

    /// Accepts streams of a client, in order.
    fn accept(&mut self) -> bool {
        let User::Server {
            accepted, activity, ..
        } = &mut self.user
        else {
            return false;
        };
        let mut moved = false;
        for id in self.connection.readable() {
            while *accepted <= id {
                let active = self.connection.path_stats().find(|path| path.active);
                if let Some(path) = active {
                    activity.saw_client_at(path.peer_addr);
                }
                let (stream, writer, reader) = Stream::new(*accepted);
                self.streams.push(stream);
                tokio::spawn(echo_stream(writer, reader));
                *accepted += 4;
                moved = true;
            }
        }
        moved
    }

    fn echo_datagrams(&mut self) -> bool {
        let mut datagram = vec![0; MAX_DATAGRAM];
        let mut moved = false;
        while let Ok(len) = self.connection.dgram_recv(&mut datagram) {
            moved = true;
            match &mut self.user {
                User::Client { echoes, .. } if !echoes.is_empty() => {
                    let _ = echoes.remove(0).send(datagram[..len].to_vec());
                }
                User::Client { .. } => {}
                User::Server { .. } => {
                    let _ = self.connection.dgram_send(&datagram[..len]);
                }
            }
        }
        moved
    }
}

/// All connections of a socket. A client's driver ends with its only connection.
pub(super) struct Driver {
    pub(super) socket: UdpSocket,
    pub(super) local: SocketAddr,
    pub(super) lines: Vec<Line>,
    pub(super) accept: Option<Accept>,
    pub(super) timer: Pin<Box<Sleep>>,
    /// Datagram for which the socket had no room.
    pub(super) waiting: Option<(usize, Vec<u8>, quiche::SendInfo)>,
}

/// Server's reaction to a datagram that belongs to no connection: possibly an answer, possibly a
/// connection.
pub(super) type Accept =
    Box<dyn FnMut(&quiche::Header<'_>, SocketAddr) -> (Option<Vec<u8>>, Option<Line>) + Send>;

impl Driver {
    pub(super) fn new(socket: UdpSocket, accept: Option<Accept>) -> io::Result<Self> {
        Ok(Self {
            local: socket.local_addr()?,
            socket,
            lines: Vec::new(),
            accept,
            timer: Box::pin(sleep_until(tokio::time::Instant::now())),
            waiting: None,
        })
    }

    fn receive(&mut self, cx: &mut Context<'_>) -> bool {
        let mut moved = false;
        let mut bytes = vec![0; MAX_DATAGRAM];
        loop {
            let mut buffer = ReadBuf::new(&mut bytes);
            let Poll::Ready(received) = self.socket.poll_recv_from(cx, &mut buffer) else {
                break;
            };
            moved = true;
            let len = buffer.filled().len();
            if let Ok(from) = received {
                self.on_datagram(&mut bytes[..len], from);
            }
        }
        for line in &mut self.lines {
            let Some((socket, local)) = &line.moved else {
                continue;
            };
            let mut buffer = ReadBuf::new(&mut bytes);
            while let Poll::Ready(received) = socket.poll_recv_from(cx, &mut buffer) {
                moved = true;
                if let Ok(from) = received {
                    let info = quiche::RecvInfo { from, to: *local };
                    let _ = line.connection.recv(buffer.filled_mut(), info);
                }
                buffer.clear();
            }
        }
        moved
    }

    fn on_datagram(&mut self, datagram: &mut [u8], from: SocketAddr) {
        let info = quiche::RecvInfo {
            from,
            to: self.local,
        };
        let Some(accept) = &mut self.accept else {
            if let Some(line) = self.lines.first_mut() {
                let _ = line.connection.recv(datagram, info);
            }
            return;
        };
        let Ok(header) = quiche::Header::from_slice(datagram, quiche::MAX_CONN_ID_LEN) else {
            return;
        };
        let known = self.lines.iter_mut().find(|line| {
            let mut ids = line.connection.source_ids();
            ids.any(|id| *id == header.dcid)
                || !line.connection.is_established()
                    && line
                        .connection
                        .path_stats()
                        .any(|path| path.peer_addr == from)
        });
        let line = if let Some(line) = known {
            line
        } else {
            let (answer, line) = accept(&header, from);
            if let Some(answer) = answer {
                let _ = self.socket.try_send_to(&answer, from);
            }
            let Some(line) = line else { return };
            self.lines.push(line);
            let Some(line) = self.lines.last_mut() else {
                return;
            };
            line
        };
        let _ = line.connection.recv(datagram, info);
    }

    fn send(&mut self, cx: &mut Context<'_>) -> bool {
        let mut moved = false;
        loop {
            if self.waiting.is_none() {
                self.waiting = self.next_datagram();
            }
            let Some((line, bytes, info)) = &self.waiting else {
                return moved;
            };
            let other = self.lines.get(*line).and_then(|line| line.moved.as_ref());
            let socket = match other {
                Some((socket, local)) if *local == info.from => socket,
                _ => &self.socket,
            };
            if socket.poll_send_to(cx, bytes, info.to).is_pending() {
                return moved;
            }
            self.waiting = None;
            moved = true;
        }
    }

    fn next_datagram(&mut self) -> Option<(usize, Vec<u8>, quiche::SendInfo)> {
        let mut bytes = vec![0; 1500];
        for (index, line) in self.lines.iter_mut().enumerate() {
            if let Ok((len, info)) = line.connection.send(&mut bytes) {
                bytes.truncate(len);
                return Some((index, bytes, info));
            }
        }
        None
    }

    fn on_timer(&mut self, cx: &mut Context<'_>) -> bool {
        let now = Instant::now();
        let mut next: Option<Instant> = None;
        let mut due = false;
        for line in &mut self.lines {
            if line
                .connection
                .timeout_instant()
                .is_some_and(|at| at <= now)
            {
                line.connection.on_timeout();
                due = true;
            }
            let at = line.connection.timeout_instant();
            next = next.into_iter().chain(at).min();
        }
        let far = now + std::time::Duration::from_mins(1);
        self.timer.as_mut().reset(next.unwrap_or(far).into());
        due | self.timer.as_mut().poll(cx).is_ready()
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        loop {
            let mut moved = this.receive(cx);
            for line in &mut this.lines {
                moved |= line.turn(cx);
            }
            moved |= this.send(cx);
            moved |= this.on_timer(cx);
            if this.waiting.is_none() {
                this.lines.retain(|line| !line.connection.is_closed());
            }
            if this.accept.is_none() && this.lines.is_empty() {
                return Poll::Ready(());
            }
            if !moved {
                return Poll::Pending;
            }
        }
    }
}
