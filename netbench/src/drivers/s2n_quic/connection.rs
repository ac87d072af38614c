//! Connections of s2n-quic as scripts use them.

use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use s2n_quic::application;
use s2n_quic::connection::{BidirectionalStreamAcceptor, Error, Handle, ReceiveStreamAcceptor};
use s2n_quic::provider::datagram::default::{DatagramError, Receiver, Sender};
use s2n_quic::stream::{BidirectionalStream, Error as StreamError, ReceiveStream, SendStream};
use tokio::sync::Mutex;

use super::super::{
    Answer, Connection, Halves, Negotiated, Reader, Stats, Writer, failures, yield_until,
};
use super::events::Counts;
use crate::stacks;
use crate::system::outcome::{Failed, Kind};

/// A connection whose handshake is complete.
pub(super) struct Opened {
    handle: Handle,
    bidi: Mutex<BidirectionalStreamAcceptor>,
    uni: Mutex<ReceiveStreamAcceptor>,
    counts: Arc<Counts>,
    /// Negotiated parameters, on clients only.
    negotiated: Option<Negotiated>,
    /// Number of datagrams sent when this end closed the connection.
    sent_at_close: Cell<Option<u64>>,
}

impl Opened {
    pub(super) fn new(
        connection: s2n_quic::Connection,
        negotiated: Option<Negotiated>,
    ) -> Result<Rc<Self>, Failed> {
        let counts = connection
            .query_event_context(|counts: &Arc<Counts>| Arc::clone(counts))
            .map_err(Failed::other)?;
        let (handle, acceptor) = connection.split();
        let (bidi, uni) = acceptor.split();
        Ok(Rc::new(Self {
            handle,
            bidi: Mutex::new(bidi),
            uni: Mutex::new(uni),
            counts,
            negotiated,
            sent_at_close: Cell::default(),
        }))
    }

    fn sent_datagrams(&self) -> u64 {
        let traffic = self.counts.stats().traffic;
        traffic.map_or(0, |traffic| traffic.sent_datagrams)
    }
}

impl Connection for Opened {
    fn established(&self) -> Answer<'_, Negotiated> {
        Box::pin(async {
            let early_data = self.negotiated.as_ref().map(|_| false);
            Ok(Negotiated {
                early_data,
                ..self.negotiated.clone().unwrap_or_default()
            })
        })
    }

    fn open_bidi(&self) -> Answer<'_, Halves> {
        Box::pin(async {
            let mut handle = self.handle.clone();
            Ok(both(
                handle.open_bidirectional_stream().await.map_err(ended)?,
            ))
        })
    }

    fn open_uni(&self) -> Answer<'_, Box<dyn Writer>> {
        Box::pin(async {
            let mut handle = self.handle.clone();
            let stream = handle.open_send_stream().await.map_err(ended)?;
            Ok(Box::new(Sending::new(stream)) as Box<dyn Writer>)
        })
    }

    fn accept_bidi(&self) -> Answer<'_, Option<Halves>> {
        Box::pin(async {
            let mut acceptor = self.bidi.lock().await;
            match acceptor.accept_bidirectional_stream().await {
                Ok(stream) => Ok(stream.map(both)),
                Err(error) => unless_clean(error),
            }
        })
    }

    fn accept_uni(&self) -> Answer<'_, Option<Box<dyn Reader>>> {
        Box::pin(async {
            let mut acceptor = self.uni.lock().await;
            match acceptor.accept_receive_stream().await {
                Ok(stream) => Ok(stream.map(|stream| Box::new(Receiving::new(stream)) as _)),
                Err(error) => unless_clean(error),
            }
        })
    }

    fn send_datagram(&self, mut data: Bytes) -> Answer<'_, ()> {
        Box::pin(async move {
            poll_fn(|cx| {
                self.handle
                    .datagram_mut(|sender: &mut Sender| sender.poll_send_datagram(&mut data, cx))
                    .unwrap_or(Poll::Pending)
            })
            .await
            .map_err(|error| match error {
                DatagramError::ConnectionError { error, .. } => ended(error),
                error => Failed::other(error),
            })
        })
    }

    fn receive_datagram(&self) -> Answer<'_, Option<Bytes>> {
        Box::pin(async {
            let received = poll_fn(|cx| {
                self.handle
                    .datagram_mut(|receiver: &mut Receiver| receiver.poll_recv_datagram(cx))
                    .unwrap_or(Poll::Pending)
            });
            tokio::select! {
                received = received => match received {
                    Ok(data) => Ok(Some(data)),
                    Err(DatagramError::ConnectionError { error, .. }) => unless_clean(error),
                    Err(error) => Err(Failed::other(error)),
                },
                error = self.counts.closed() => unless_clean(error),
            }
        })
    }

    fn stats(&self) -> Stats {
        self.counts.stats()
    }

    fn server_name(&self) -> Option<String> {
        let name = self.handle.server_name().ok()??;
        Some(name.to_string())
    }

    /// Returns false, because sessions are not resumed.
    fn has_ticket(&self) -> bool {
        true
    }

    fn close(&self, code: u64) {
        self.sent_at_close.set(Some(self.sent_datagrams()));
        self.handle
            .close(application::Error::new(code).unwrap_or(application::Error::UNKNOWN));
    }

    fn closed(&self) -> Answer<'_, ()> {
        Box::pin(async {
            let error = self.counts.closed().await;
            if let Some(sent) = self.sent_at_close.get() {
                yield_until(|| self.sent_datagrams() > sent).await;
            }
            unless_clean::<()>(error).map(|_| ())
        })
    }
}

fn both(stream: BidirectionalStream) -> (Box<dyn Writer>, Box<dyn Reader>) {
    let (receive, send) = stream.split();
    (
        Box::new(Sending::new(send)),
        Box::new(Receiving::new(receive)),
    )
}

/// Maximum number of bytes given to a stream at once.
const PIECE: usize = 64 << 10;

/// Stream that is reset when dropped unfinished; s2n-quic would finish it.
struct Sending {
    stream: SendStream,
    ended: bool,
}

impl Sending {
    fn new(stream: SendStream) -> Self {
        Self {
            stream,
            ended: false,
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
        // s2n-quic takes all bytes as soon as there is room for one.
        let mut piece = data.slice(..data.len().min(PIECE));
        let offered = piece.len();
        ready!(self.stream.poll_send(&mut piece, cx)).map_err(given_up)?;
        data.advance(offered - piece.len());
        Poll::Ready(Ok(()))
    }

    fn poll_finish(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Failed>> {
        self.ended = true;
        Poll::Ready(self.stream.finish().map_err(given_up))
    }

    fn poll_acknowledged(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failed>> {
        self.stream.poll_close(cx).map_err(given_up)
    }

    fn reset(&mut self, code: u64) {
        self.ended = true;
        let code = application::Error::new(code).unwrap_or(application::Error::UNKNOWN);
        // An error means that it ended before.
        let _ = self.stream.reset(code);
    }
}

/// Stream that hands out data in pieces of the requested size.
struct Receiving {
    stream: ReceiveStream,
    rest: Bytes,
}

impl Receiving {
    fn new(stream: ReceiveStream) -> Self {
        Self {
            stream,
            rest: Bytes::new(),
        }
    }
}

impl Reader for Receiving {
    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<Result<Option<Bytes>, Failed>> {
        if self.rest.is_empty() {
            match ready!(self.stream.poll_receive(cx)).map_err(given_up)? {
                Some(bytes) => self.rest = bytes,
                None => return Poll::Ready(Ok(None)),
            }
        }
        let piece = self.rest.split_to(max.min(self.rest.len()));
        Poll::Ready(Ok(Some(piece)))
    }
}

fn given_up(error: StreamError) -> Failed {
    match error {
        StreamError::ConnectionError { error, .. } => ended(error),
        StreamError::StreamReset { .. } => Failed::new(Kind::Reset, error),
        error => Failed::other(error),
    }
}

/// Returns `None` if the connection was closed without an error.
fn unless_clean<T>(error: Error) -> Result<Option<T>, Failed> {
    match error {
        Error::Closed { .. } => Ok(None),
        Error::Application { error, .. } if *error == 0 => Ok(None),
        error => Err(ended(error)),
    }
}

/// Returns the reason for the end of a connection.
pub(super) fn ended(error: Error) -> Failed {
    if let Some(close) = stacks::s2n_quic::close(error) {
        return failures::transport(close.code, error);
    }
    match error {
        Error::Application { error: code, .. } => Failed::new(Kind::Application(*code), error),
        Error::StatelessReset { .. } => Failed::new(Kind::Reset, error),
        Error::IdleTimerExpired { .. } | Error::MaxHandshakeDurationExceeded { .. } => {
            Failed::new(Kind::Timeout, error)
        }
        error => Failed::other(error),
    }
}
