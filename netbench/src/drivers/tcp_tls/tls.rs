//! TLS over a TCP socket.
//!
//! Implemented here because tokio-rustls gives a server its early data only after the handshake,
//! which defeats 0-RTT.

use std::io::{self, Read as _, Write as _};
use std::task::{Context, Poll, ready};

use rustls::{Connection, Error};

use super::socket::Socket;

/// A TLS connection, perhaps still in its handshake.
pub(super) struct Tls {
    pub(super) socket: Socket,
    session: Connection,
    /// Failure, for later calls.
    failed: Option<Failed>,
    finish: Finish,
    /// True if this client sent early data.
    early: bool,
    /// True if the peer's close_notify arrived.
    peer_finished: bool,
    /// True if bytes of the peer wait to be read.
    unread: bool,
}

/// Progress of the close of the sending direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Finish {
    Open,
    /// Requested before the handshake was complete.
    Wanted,
    Sent,
}

/// Reason why a connection cannot continue.
#[derive(Clone, Debug)]
pub(super) enum Failed {
    Tls(Error),
    Tcp(io::ErrorKind, String),
}

impl From<Failed> for io::Error {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Tls(error) => Self::new(io::ErrorKind::InvalidData, error),
            Failed::Tcp(kind, text) => Self::new(kind, text),
        }
    }
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Self::Tcp(error.kind(), error.to_string())
    }
}

impl Tls {
    pub(super) fn new(socket: Socket, session: Connection) -> Self {
        Self {
            socket,
            session,
            failed: None,
            finish: Finish::Open,
            early: false,
            peer_finished: false,
            unread: false,
        }
    }

    pub(super) fn session(&self) -> &Connection {
        &self.session
    }

    /// Returns true if streams can be used: after the handshake, or as early data.
    fn is_open(&mut self) -> bool {
        match &mut self.session {
            Connection::Client(client) if client.is_handshaking() => client.early_data().is_some(),
            Connection::Server(server) if server.is_handshaking() => server.early_data().is_some(),
            _ => true,
        }
    }

    /// Waits until streams can be used.
    pub(super) fn poll_open(&mut self, cx: &Context<'_>) -> Poll<Result<(), Failed>> {
        while !self.is_open() {
            ready!(self.poll_turn(cx))?;
        }
        // The rest of the handshake is sent with the first bytes, or now.
        self.flush_some(cx)?;
        Poll::Ready(Ok(()))
    }

    /// Waits until the handshake is complete.
    pub(super) fn poll_established(&mut self, cx: &Context<'_>) -> Poll<Result<(), Failed>> {
        while self.session.is_handshaking() {
            ready!(self.poll_turn(cx))?;
        }
        self.flush_some(cx)?;
        Poll::Ready(Ok(()))
    }

    /// Returns true if this server got early data.
    pub(super) fn has_early_data(&mut self) -> bool {
        match &mut self.session {
            Connection::Client(_) => false,
            Connection::Server(server) => server.early_data().is_some(),
        }
    }

    /// Returns true if this client's early data was discarded.
    pub(super) fn lost_early_data(&self) -> bool {
        match &self.session {
            Connection::Client(client) => {
                self.early && !client.is_handshaking() && !client.is_early_data_accepted()
            }
            Connection::Server(_) => false,
        }
    }

    /// Sends all pending bytes, then receives.
    fn poll_turn(&mut self, cx: &Context<'_>) -> Poll<Result<(), Failed>> {
        ready!(self.poll_flush(cx))?;
        self.poll_fill(cx)
    }

    fn flush_some(&mut self, cx: &Context<'_>) -> Result<(), Failed> {
        match self.poll_flush(cx) {
            Poll::Ready(result) => result,
            Poll::Pending => Ok(()),
        }
    }

    pub(super) fn poll_flush(&mut self, cx: &Context<'_>) -> Poll<Result<(), Failed>> {
        self.check()?;
        while self.session.wants_write() {
            let session = &mut self.session;
            let written = self.socket.poll_write_with(cx, |to| session.write_tls(to));
            if let Err(error) = ready!(written) {
                return Poll::Ready(self.fail(error.into()));
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Receives available bytes.
    fn poll_fill(&mut self, cx: &Context<'_>) -> Poll<Result<(), Failed>> {
        self.check()?;
        let session = &mut self.session;
        let received = match ready!(
            self.socket
                .poll_read_with(cx, |from| session.read_tls(from))
        ) {
            Ok(received) => received,
            Err(error) => return Poll::Ready(self.fail(error.into())),
        };
        let handshaking = self.session.is_handshaking();
        match self.session.process_new_packets() {
            Ok(state) => {
                self.peer_finished = state.peer_has_closed();
                self.unread = state.plaintext_bytes_to_read() > 0;
            }
            Err(error) => {
                // Sends the alert.
                let _ = self.poll_flush(cx);
                return Poll::Ready(self.fail(Failed::Tls(error)));
            }
        }
        if received == 0 && !self.peer_finished {
            let text = "the peer ended the TCP connection without a close_notify".to_owned();
            return Poll::Ready(self.fail(Failed::Tcp(io::ErrorKind::ConnectionReset, text)));
        }
        if handshaking {
            // Others may wait for this part of the handshake.
            self.socket.wake_all();
            if self.finish == Finish::Wanted && !self.session.is_handshaking() {
                self.send_end();
                let _ = self.poll_flush(cx)?.map(|()| self.socket.finish());
            }
        }
        self.flush_some(cx)?;
        Poll::Ready(Ok(()))
    }

    pub(super) fn check(&self) -> Result<(), Failed> {
        self.failed.clone().map_or(Ok(()), Err)
    }

    fn fail(&mut self, failed: Failed) -> Result<(), Failed> {
        self.failed = Some(failed.clone());
        self.socket.wake_all();
        Err(failed)
    }

    /// Reads the next bytes of the peer; 0 at the end.
    pub(super) fn poll_read(
        &mut self,
        cx: &Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<Result<usize, Failed>> {
        loop {
            if let Connection::Server(server) = &mut self.session
                && let Some(mut early) = server.early_data()
                && let Ok(read @ 1..) = early.read(buffer)
            {
                return Poll::Ready(Ok(read));
            }
            match self.session.reader().read(buffer) {
                Ok(read) => {
                    // A full buffer may have taken everything.
                    let state = self.session.process_new_packets();
                    self.unread = state.is_ok_and(|state| state.plaintext_bytes_to_read() > 0);
                    if read == 0 {
                        self.socket.wake_all();
                    }
                    return Poll::Ready(Ok(read));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    ready!(self.poll_fill(cx))?;
                }
                Err(error) => {
                    self.fail(error.into())?;
                }
            }
        }
    }

    /// Takes some of the bytes.
    pub(super) fn poll_write(
        &mut self,
        cx: &Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize, Failed>> {
        self.check()?;
        loop {
            let written = match &mut self.session {
                Connection::Client(client) if client.is_handshaking() => {
                    let early = client.early_data();
                    let written = early.map_or(Ok(0), |mut early| early.write(bytes));
                    self.early |= written.as_ref().is_ok_and(|&written| written > 0);
                    written
                }
                session => session.writer().write(bytes),
            };
            let written = written.map_err(Failed::from)?;
            if written > 0 {
                self.flush_some(cx)?;
                return Poll::Ready(Ok(written));
            }
            if self.session.is_handshaking() {
                ready!(self.poll_turn(cx))?;
            } else {
                ready!(self.poll_flush(cx))?;
            }
        }
    }

    /// Sends a close_notify, which ends this direction, and a FIN. Early data has no such end: a
    /// client sends it once the handshake is complete.
    pub(super) fn poll_finish(&mut self, cx: &Context<'_>) -> Poll<Result<(), Failed>> {
        self.check()?;
        let client = matches!(self.session, Connection::Client(_));
        if client && self.session.is_handshaking() {
            self.finish = Finish::Wanted;
            self.socket.wake_all();
            return Poll::Ready(Ok(()));
        }
        self.send_end();
        ready!(self.poll_flush(cx))?;
        self.socket.finish();
        self.socket.wake_all();
        Poll::Ready(Ok(()))
    }

    /// Ends the connection with a RST.
    pub(super) fn abort(&mut self, why: &str) {
        self.socket.abort();
        let failed = Failed::Tcp(io::ErrorKind::ConnectionAborted, why.to_owned());
        let _ = self.fail(failed);
    }

    fn send_end(&mut self) {
        if self.finish != Finish::Sent {
            self.finish = Finish::Sent;
            self.session.send_close_notify();
        }
    }

    /// Returns true if this side has ended.
    pub(super) fn has_finished(&self) -> bool {
        self.finish == Finish::Sent
    }

    /// Waits until the peer has ended, without taking any of its bytes.
    pub(super) fn poll_peer_finished(&mut self, cx: &Context<'_>) -> Poll<Result<(), Failed>> {
        loop {
            self.check()?;
            if self.peer_finished {
                return Poll::Ready(Ok(()));
            }
            if self.unread {
                self.socket.wait(cx);
                return Poll::Pending;
            }
            ready!(self.poll_fill(cx))?;
        }
    }
}
