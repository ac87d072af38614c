//! Connections of quinn, or of its fork noq, as scripts use them.

use std::cell::Cell;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::sync::Mutex;

use super::library::crypto::rustls::HandshakeData;
use super::library::{
    self, Connecting, ConnectionError, ReadError, RecvStream, SendDatagramError, SendStream,
    StoppedError, VarInt, WriteError, ZeroRttAccepted,
};
use super::{packets, read, stack, write};
use crate::drivers::rustls_watch::{Begun, Watch};
use crate::drivers::{
    Answer, Connection, Halves, Handover, Negotiated, Reader, Stats, Traffic, Writer, failures,
    yield_until,
};
use crate::system::outcome::{Failed, Kind};

/// A connection, perhaps still in its handshake.
pub(super) struct Opened {
    pub(super) connection: library::Connection,
    /// Future to wait for before the handshake is complete.
    early: Mutex<Option<ZeroRttAccepted>>,
    /// Outcome of 0-RTT data.
    early_data: Cell<Option<bool>>,
    /// State of the handshake, on clients only.
    handshake: Option<(Arc<Watch>, Begun)>,
    negotiated: Mutex<Option<Negotiated>>,
    /// Number of datagrams sent when this end closed the connection, and the code.
    closed: Cell<Option<(u64, u64)>>,
}

impl Opened {
    pub(super) async fn accept(
        connecting: Connecting,
        handover: Handover,
    ) -> Result<Rc<Self>, Failed> {
        Self::begin(connecting, handover, None).await
    }

    pub(super) async fn connect(
        connecting: Connecting,
        handover: Handover,
        handshake: (Arc<Watch>, Begun),
    ) -> Result<Rc<Self>, Failed> {
        Self::begin(connecting, handover, Some(handshake)).await
    }

    async fn begin(
        connecting: Connecting,
        handover: Handover,
        handshake: Option<(Arc<Watch>, Begun)>,
    ) -> Result<Rc<Self>, Failed> {
        let connecting = if handover == Handover::Early {
            match connecting.into_0rtt() {
                Ok((connection, accepted)) => {
                    return Ok(Rc::new(Self::new(connection, Some(accepted), handshake)));
                }
                Err(connecting) => connecting,
            }
        } else {
            connecting
        };
        let opened = Self::new(connecting.await.map_err(ended)?, None, handshake);
        // This runs before other connections of the client are complete.
        opened.established().await?;
        Ok(Rc::new(opened))
    }

    fn new(
        connection: library::Connection,
        early: Option<ZeroRttAccepted>,
        handshake: Option<(Arc<Watch>, Begun)>,
    ) -> Self {
        Self {
            connection,
            early: Mutex::new(early),
            early_data: Cell::new(None),
            handshake,
            negotiated: Mutex::default(),
            closed: Cell::default(),
        }
    }

    fn is_client(&self) -> bool {
        self.handshake.is_some()
    }

    /// Waits until the handshake is complete.
    async fn wait(&self) -> Result<(), Failed> {
        let mut early = self.early.lock().await;
        let Some(accepted) = early.as_mut() else {
            return Ok(());
        };
        let accepted = accepted.await;
        // An application can only close a complete connection (RFC 9000 §10.2.3).
        let failed = self.connection.close_reason().filter(|reason| {
            !matches!(
                reason,
                ConnectionError::ApplicationClosed(_) | ConnectionError::LocallyClosed
            )
        });
        if let Some(reason) = failed {
            return Err(ended(reason));
        }
        if self.is_client() {
            self.early_data.set(Some(accepted));
        }
        *early = None;
        Ok(())
    }

    /// Returns `None` if the peer closed without an error, or this end did.
    fn unless_clean<T>(&self, error: ConnectionError) -> Result<Option<T>, Failed> {
        match error {
            ConnectionError::ApplicationClosed(close)
                if close.error_code == VarInt::from_u32(0) =>
            {
                Ok(None)
            }
            ConnectionError::LocallyClosed => match self.closed.get() {
                Some((_, code)) if code != 0 => {
                    Err(Failed::new(Kind::Application(code), "closed by this end"))
                }
                _ => Ok(None),
            },
            error => Err(ended(error)),
        }
    }
}

impl Connection for Opened {
    fn established(&self) -> Answer<'_, Negotiated> {
        Box::pin(async {
            self.wait().await?;
            if self.early_data.get() == Some(false) {
                return Err(early_data_rejected());
            }
            let mut known = self.negotiated.lock().await;
            if let Some(negotiated) = &*known {
                return Ok(negotiated.clone());
            }
            let mut negotiated = match &self.handshake {
                Some((watch, begun)) => watch.complete(*begun),
                None => Negotiated::default(),
            };
            if self.is_client() {
                negotiated.early_data = Some(self.early_data.get() == Some(true));
            }
            *known = Some(negotiated.clone());
            Ok(negotiated)
        })
    }

    fn open_bidi(&self) -> Answer<'_, Halves> {
        Box::pin(async { Ok(both(self.connection.open_bi().await.map_err(ended)?)) })
    }

    fn open_uni(&self) -> Answer<'_, Box<dyn Writer>> {
        Box::pin(async {
            let stream = self.connection.open_uni().await.map_err(ended)?;
            Ok(Box::new(Sending::new(stream)) as Box<dyn Writer>)
        })
    }

    fn accept_bidi(&self) -> Answer<'_, Option<Halves>> {
        Box::pin(async {
            match self.connection.accept_bi().await {
                Ok(streams) => Ok(Some(both(streams))),
                Err(error) => self.unless_clean(error),
            }
        })
    }

    fn accept_uni(&self) -> Answer<'_, Option<Box<dyn Reader>>> {
        Box::pin(async {
            match self.connection.accept_uni().await {
                Ok(stream) => Ok(Some(Box::new(stream) as Box<dyn Reader>)),
                Err(error) => self.unless_clean(error),
            }
        })
    }

    fn send_datagram(&self, data: Bytes) -> Answer<'_, ()> {
        Box::pin(async {
            let sent = self.connection.send_datagram_wait(data).await;
            sent.map_err(|error| match error {
                SendDatagramError::ConnectionLost(error) => ended(error),
                error => Failed::other(error),
            })
        })
    }

    fn receive_datagram(&self) -> Answer<'_, Option<Bytes>> {
        Box::pin(async {
            match self.connection.read_datagram().await {
                Ok(data) => Ok(Some(data)),
                Err(error) => self.unless_clean(error),
            }
        })
    }

    fn stats(&self) -> Stats {
        let stats = self.connection.stats();
        let (packets_sent, packets_lost) = packets(&stats);
        Stats {
            traffic: Some(Traffic {
                sent_datagrams: stats.udp_tx.datagrams,
                sent_bytes: stats.udp_tx.bytes,
                received_datagrams: stats.udp_rx.datagrams,
                received_bytes: stats.udp_rx.bytes,
            }),
            packets_sent,
            packets_lost,
            timeouts: 0,
        }
    }

    fn server_name(&self) -> Option<String> {
        let data = self.connection.handshake_data()?;
        data.downcast::<HandshakeData>().ok()?.server_name
    }

    fn has_ticket(&self) -> bool {
        let handshake = self.handshake.as_ref();
        handshake.is_none_or(|(watch, _)| watch.has_ticket())
    }

    fn close(&self, code: u64) {
        let sent = self.connection.stats().udp_tx.datagrams;
        self.closed.set(Some((sent, code)));
        let code = VarInt::from_u64(code).unwrap_or(VarInt::MAX);
        self.connection.close(code, b"");
    }

    fn closed(&self) -> Answer<'_, ()> {
        Box::pin(async {
            let reason = self.connection.closed().await;
            if let Some((sent, _)) = self.closed.get() {
                yield_until(|| self.connection.stats().udp_tx.datagrams > sent).await;
            }
            self.unless_clean::<()>(reason).map(|_| ())
        })
    }
}

fn both((send, receive): (SendStream, RecvStream)) -> (Box<dyn Writer>, Box<dyn Reader>) {
    (Box::new(Sending::new(send)), Box::new(receive))
}

/// Code with which a peer stopped a stream; `None` if it has everything.
type Stopped = Result<Option<VarInt>, StoppedError>;

/// Stream that is reset when dropped unfinished; the library would finish it.
struct Sending {
    stream: SendStream,
    ended: bool,
    /// Ends when the peer has everything, or stops the stream.
    stopped: Option<Pin<Box<dyn Future<Output = Stopped>>>>,
}

impl Sending {
    fn new(stream: SendStream) -> Self {
        Self {
            stream,
            ended: false,
            stopped: None,
        }
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        if !self.ended {
            Writer::reset(self, 0);
        }
    }
}

impl Writer for Sending {
    fn poll_send(&mut self, cx: &mut Context<'_>, data: &mut Bytes) -> Poll<Result<(), Failed>> {
        // The stream itself remembers its waker, so that the futures need not be kept.
        pin!(write(&mut self.stream, data))
            .poll(cx)
            .map_err(not_written)
    }

    fn poll_finish(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Failed>> {
        self.ended = true;
        // An error means that it ended before.
        let _ = self.stream.finish();
        Poll::Ready(Ok(()))
    }

    fn poll_acknowledged(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failed>> {
        let stream = &self.stream;
        let stopped = self
            .stopped
            .get_or_insert_with(|| Box::pin(stream.stopped()));
        stopped.as_mut().poll(cx).map(|stopped| match stopped {
            Ok(None) => Ok(()),
            Ok(Some(code)) => Err(not_written(WriteError::Stopped(code))),
            Err(error) => Err(not_written(error.into())),
        })
    }

    fn reset(&mut self, code: u64) {
        self.ended = true;
        let code = VarInt::from_u64(code).unwrap_or(VarInt::MAX);
        // An error means that it ended before.
        let _ = self.stream.reset(code);
    }
}

impl Reader for RecvStream {
    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<Result<Option<Bytes>, Failed>> {
        pin!(read(self, max)).poll(cx).map_err(not_read)
    }
}

fn not_written(error: WriteError) -> Failed {
    match error {
        WriteError::ConnectionLost(error) => ended(error),
        WriteError::Stopped(_) => Failed::new(Kind::Reset, error),
        WriteError::ZeroRttRejected => early_data_rejected(),
        WriteError::ClosedStream => Failed::other(error),
    }
}

fn not_read(error: ReadError) -> Failed {
    match error {
        ReadError::ConnectionLost(error) => ended(error),
        ReadError::Reset(_) => Failed::new(Kind::Reset, error),
        ReadError::ZeroRttRejected => early_data_rejected(),
        error => Failed::other(error),
    }
}

fn early_data_rejected() -> Failed {
    Failed::new(Kind::EarlyDataRejected, "the server refused 0-RTT data")
}

/// Returns the reason for the end of a connection.
pub(super) fn ended(error: ConnectionError) -> Failed {
    if let Some(close) = stack::close(&error) {
        return failures::transport(close.code, error);
    }
    match &error {
        ConnectionError::ApplicationClosed(close) => {
            Failed::new(Kind::Application(close.error_code.into_inner()), error)
        }
        ConnectionError::Reset => Failed::new(Kind::Reset, error),
        ConnectionError::TimedOut => Failed::new(Kind::Timeout, error),
        _ => Failed::other(error),
    }
}
