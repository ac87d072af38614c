//! One end of a tunnel: UDP payloads in HTTP Datagrams, or in DATAGRAM capsules on the stream of the request.

use std::{
    fmt, io,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::{BufMut as _, Bytes, BytesMut};
use hybriq::{ConnectionError, error::SendDatagramError};
use hybriq_h3::{DatagramCapsules, Inbox, Violation, put_datagram_capsule_head, read_context};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    sync::Notify,
};

use crate::upgrade::{Flow, TakesDatagrams};

/// Largest UDP payload in bytes (RFC 9298 §5).
pub const MAX_PAYLOAD: usize = 65_527;

/// The context of UDP payloads (RFC 9298 §4), as an integer of RFC 9000 §16.
const UDP: &[u8] = &[0];

/// Largest part of the stream that is read at once, in bytes.
const PART: usize = 4 << 10;

/// Bytes of capsules that are written at once, unless one alone is longer.
const TOGETHER: usize = 16 << 10;

/// Time in which the peer has to answer the end of a tunnel.
const CLOSE_TIME: Duration = Duration::from_secs(10);

/// Bytes of payloads that wait in each direction by default, at most.
pub(super) const QUEUE: usize = 256 << 10;

/// One end of a tunnel for UDP payloads. Payloads may be lost, and may overtake each other, as over UDP. Dropping it
/// ends the tunnel.
///
/// # Size of payloads
/// Over HTTP/3 with datagrams, a payload has at most [`max_payload`](Self::max_payload) bytes, which depends on the path
/// to the proxy. Over capsules, it has at most [`MAX_PAYLOAD`].
pub struct UdpTunnel(Arc<Shared>);

/// Reason why a payload cannot be sent, or why a tunnel is over.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TunnelError {
    /// An end closed the tunnel.
    #[error("the tunnel is closed")]
    Closed,
    /// The stream of the request was reset.
    #[error("the tunnel was cut off")]
    Aborted,
    /// The peer broke a rule.
    #[error(transparent)]
    Violation(#[from] Violation),
    /// The connection to the proxy, or to the client, is over.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// The payload is larger than the tunnel accepts now.
    #[error("a payload of {len} bytes is larger than the tunnel takes, which is {max}")]
    TooLarge {
        /// Size of the payload, in bytes.
        len: usize,
        /// Largest size now, in bytes.
        max: usize,
    },
}

/// Counters of payloads since the tunnel began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TunnelStats {
    /// Payloads that were sent, or wait to be sent.
    pub sent: u64,
    /// Payloads that arrived.
    pub received: u64,
    /// Payloads that were dropped because a queue was full, in either direction.
    pub dropped: u64,
    /// Payloads that were too large to be sent.
    pub too_large: u64,
    /// Datagrams that arrived for another context than that of UDP payloads, and were dropped (RFC 9298 §4).
    pub unknown: u64,
}

struct Shared {
    flow: Option<Flow>,
    /// Keeps the connection of a client.
    _keep: Option<Arc<dyn Send + Sync>>,
    state: Mutex<State>,
    /// Told when there is a capsule to send, or this end closes the tunnel.
    output: Notify,
    /// Told when the tunnel is over.
    ended: Notify,
    counts: Counts,
}

#[derive(Default)]
struct Counts {
    sent: AtomicU64,
    received: AtomicU64,
    dropped: AtomicU64,
    too_large: AtomicU64,
    unknown: AtomicU64,
}

struct State {
    received: Inbox<()>,
    /// Payloads that wait to be sent in capsules.
    unsent: Inbox<()>,
    reader: Option<Waker>,
    end: Option<TunnelError>,
}

impl UdpTunnel {
    /// Creates an end of a tunnel on the stream of an accepted request for `connect-udp` over HTTP/1.1 or HTTP/2, with
    /// each payload in a capsule. For clients and servers of other libraries.
    ///
    /// # Panics
    /// There is no tokio runtime.
    pub fn over_stream(stream: impl AsyncRead + AsyncWrite + Send + 'static) -> Self {
        Self::start(stream, None, QUEUE, None)
    }

    /// Starts a tunnel whose payloads wait in queues of `queue` bytes.
    pub(super) fn start(
        stream: impl AsyncRead + AsyncWrite + Send + 'static,
        flow: Option<Flow>,
        queue: usize,
        keep: Option<Arc<dyn Send + Sync>>,
    ) -> Self {
        let shared = Arc::new(Shared {
            flow,
            _keep: keep,
            state: Mutex::new(State {
                received: Inbox::new(queue),
                unsent: Inbox::new(queue),
                reader: None,
                end: None,
            }),
            output: Notify::new(),
            ended: Notify::new(),
            counts: Counts::default(),
        });
        let driving = drive(Driver(shared.clone()), stream);
        if let Some(flow) = &shared.flow {
            flow.begin(shared.clone());
            flow.connection().spawn(driving);
        } else {
            tokio::spawn(driving);
        }
        Self(shared)
    }

    /// Sends a payload, or drops it: the oldest are dropped when too many wait.
    ///
    /// # Errors
    /// The payload is too large, or the tunnel is over.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "what is sent is copied today, and need not be"
    )]
    pub fn send(&self, payload: Bytes) -> Result<(), TunnelError> {
        let shared = &*self.0;
        let (len, max) = (payload.len(), self.max_payload());
        let counts = &shared.counts;
        if let Some(flow) = shared.flow.as_ref().filter(|flow| flow.is_taken()) {
            if let Some(end) = &shared.lock().end {
                return Err(end.clone());
            }
            match flow.send(UDP, &payload) {
                Ok(()) => {}
                Err(SendDatagramError::Connection(error)) => return Err(error.into()),
                Err(SendDatagramError::TooLarge { .. }) => {
                    add(&counts.too_large, 1);
                    return Err(TunnelError::TooLarge { len, max });
                }
                Err(_) => {
                    add(&counts.dropped, 1);
                    return Ok(());
                }
            }
        } else {
            if len > max {
                add(&counts.too_large, 1);
                return Err(TunnelError::TooLarge { len, max });
            }
            let mut state = shared.lock();
            if let Some(end) = &state.end {
                return Err(end.clone());
            }
            // A slice would keep what it is a slice of, and cost more than the queue counts.
            let dropped = state.unsent.push((), Bytes::copy_from_slice(&payload));
            drop(state);
            add(&counts.dropped, dropped);
            shared.output.notify_one();
        }
        add(&counts.sent, 1);
        Ok(())
    }

    /// Returns the next payload; `None` once an end has closed the tunnel. The oldest are dropped when too many wait.
    ///
    /// # Errors
    /// The tunnel is over for another reason.
    ///
    /// # Cancel safety
    /// Takes no payload if the future is dropped before it is ready.
    pub async fn recv(&self) -> Result<Option<Bytes>, TunnelError> {
        std::future::poll_fn(|cx| self.poll_recv(cx)).await
    }

    /// The `poll` twin of [`recv`](Self::recv). Only the task that polled last is woken.
    pub fn poll_recv(&self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, TunnelError>> {
        let mut state = self.0.lock();
        if let Some(payload) = state.received.pop() {
            return Poll::Ready(Ok(Some(payload)));
        }
        match &state.end {
            Some(TunnelError::Closed) => Poll::Ready(Ok(None)),
            Some(end) => Poll::Ready(Err(end.clone())),
            None => {
                let replaced = state.reader.replace(cx.waker().clone());
                drop(state);
                drop(replaced);
                Poll::Pending
            }
        }
    }

    /// Returns the largest size of a payload now, in bytes. QUIC inside the tunnel needs 1200 (RFC 9000 §14).
    pub fn max_payload(&self) -> usize {
        let flow = self.0.flow.as_ref().filter(|flow| flow.is_taken());
        flow.map_or(MAX_PAYLOAD, |flow| {
            let most = flow.max_size().unwrap_or_default();
            most.saturating_sub(UDP.len()).min(MAX_PAYLOAD)
        })
    }

    /// Returns true if payloads go in datagrams of QUIC; otherwise, capsules carry them over a reliable stream.
    pub fn has_datagrams(&self) -> bool {
        self.0.flow.as_ref().is_some_and(Flow::is_taken)
    }

    /// Returns the counters of payloads.
    pub fn stats(&self) -> TunnelStats {
        let counts = &self.0.counts;
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        TunnelStats {
            sent: get(&counts.sent),
            received: get(&counts.received),
            dropped: get(&counts.dropped),
            too_large: get(&counts.too_large),
            unknown: get(&counts.unknown),
        }
    }
}

impl Drop for UdpTunnel {
    fn drop(&mut self) {
        self.0.finish(TunnelError::Closed);
        let received = std::mem::replace(&mut self.0.lock().received, Inbox::new(0));
        drop(received);
    }
}

impl fmt::Debug for UdpTunnel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UdpTunnel")
            .field("max_payload", &self.max_payload())
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

fn add(count: &AtomicU64, more: usize) {
    count.fetch_add(more as u64, Ordering::Relaxed);
}

impl TakesDatagrams for Shared {
    fn on_datagram(&self, data: Bytes) {
        let Some((0, payload)) = read_context(data) else {
            return add(&self.counts.unknown, 1);
        };
        let mut state = self.lock();
        if state.end.is_some() {
            return;
        }
        let dropped = state.received.push((), payload);
        let reader = state.reader.take();
        drop(state);
        add(&self.counts.received, 1);
        add(&self.counts.dropped, dropped);
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the tunnel, unless it is over.
    fn finish(&self, end: TunnelError) {
        let mut state = self.lock();
        state.end.get_or_insert(end);
        let reader = state.reader.take();
        drop(state);
        if let Some(reader) = reader {
            reader.wake();
        }
        self.output.notify_one();
        self.ended.notify_one();
    }

    /// Waits until capsules are to be sent, and returns some; `None` once the tunnel is over and all were returned.
    async fn output(&self) -> Option<Vec<u8>> {
        loop {
            let waits = self.output.notified();
            {
                let mut state = self.lock();
                let mut out = Vec::new();
                while out.len() < TOGETHER {
                    let Some(payload) = state.unsent.pop() else {
                        break;
                    };
                    put_datagram_capsule_head(UDP.len() + payload.len(), &mut out);
                    out.put(UDP);
                    out.put(payload);
                }
                if !out.is_empty() {
                    return Some(out);
                }
                if state.end.is_some() {
                    return None;
                }
            }
            waits.await;
        }
    }
}

/// The task of a tunnel. Dropping it ends the tunnel.
struct Driver(Arc<Shared>);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.finish(TunnelError::Aborted);
        if let Some(flow) = &self.0.flow {
            flow.end();
        }
    }
}

/// Runs the stream of a tunnel until both ends are through with it.
async fn drive(driver: Driver, stream: impl AsyncRead + AsyncWrite + Send) {
    let shared = &driver.0;
    let (mut read, mut write) = tokio::io::split(stream);
    let mut capsules = Bytes::new();
    let end = tokio::select! {
        biased;
        end = receive(shared, &mut read) => end,
        end = send(shared, &mut write, &mut capsules) => end,
        end = overdue(shared) => end,
    };
    if let (TunnelError::Violation(violation), Some(flow)) = (&end, &shared.flow) {
        flow.abort(*violation);
    }
    let is_closed = end == TunnelError::Closed;
    shared.finish(end);
    let unsent = std::mem::replace(&mut shared.lock().unsent, Inbox::new(0));
    drop(unsent);
    if let Some(flow) = &shared.flow {
        flow.end();
    }
    if is_closed {
        // Nothing is kept of what comes. A peer that does not end its side has the stream reset.
        let end = async {
            // A capsule that was begun comes to its end (RFC 9297 §3.3).
            let _ = write.write_all_buf(&mut capsules).await;
            let _ = write.shutdown().await;
            while let Ok(1..) = read.read_buf(&mut BytesMut::with_capacity(PART)).await {
                tokio::task::consume_budget().await;
            }
        };
        let _ = tokio::time::timeout(CLOSE_TIME, end).await;
    }
}

/// Reads capsules until the tunnel is over.
async fn receive(shared: &Shared, stream: &mut (impl AsyncRead + Unpin)) -> TunnelError {
    // The id of the context may take 8 bytes.
    let mut capsules = DatagramCapsules::new(8 + MAX_PAYLOAD);
    loop {
        // Capsules without number do not keep other tasks waiting.
        tokio::task::consume_budget().await;
        let mut part = BytesMut::with_capacity(PART);
        match stream.read_buf(&mut (&mut part).limit(PART)).await {
            Ok(0) if capsules.is_between() => return TunnelError::Closed,
            Ok(0) => return Violation::CapsuleCut.into(),
            Ok(_) => {}
            Err(error) => return cut(shared, &error),
        }
        let mut data = part.freeze();
        loop {
            match capsules.next(&mut data) {
                Ok(Some(datagram)) if is_too_long(&datagram) => {
                    return Violation::DatagramCapsuleTooLong.into();
                }
                // A slice would keep the whole part, and cost more than the queue counts.
                Ok(Some(datagram)) => shared.on_datagram(Bytes::copy_from_slice(&datagram)),
                Ok(None) => break,
                Err(violation) => return violation.into(),
            }
        }
    }
}

/// Returns true if a UDP payload is longer than there are any.
fn is_too_long(datagram: &Bytes) -> bool {
    datagram.len() > UDP.len() + MAX_PAYLOAD
        && read_context(datagram.clone())
            .is_some_and(|(context, payload)| context == 0 && payload.len() > MAX_PAYLOAD)
}

/// Sends capsules until this end closes the tunnel. What is left of them if the future is dropped stays in `capsules`.
async fn send(
    shared: &Shared,
    stream: &mut (impl AsyncWrite + Unpin),
    capsules: &mut Bytes,
) -> TunnelError {
    while let Some(output) = shared.output().await {
        *capsules = output.into();
        let sent = async {
            stream.write_all_buf(capsules).await?;
            stream.flush().await
        };
        if let Err(error) = sent.await {
            return cut(shared, &error);
        }
    }
    TunnelError::Closed
}

/// Waits until the rest takes too long after the tunnel is over: the peer gives no credit for it.
async fn overdue(shared: &Shared) -> TunnelError {
    shared.ended.notified().await;
    tokio::time::sleep(CLOSE_TIME).await;
    TunnelError::Aborted
}

/// Returns the end of a tunnel whose stream failed.
fn cut(shared: &Shared, error: &io::Error) -> TunnelError {
    tracing::debug!(%error, "the stream of a tunnel failed");
    let connection = shared.flow.as_ref().map(Flow::connection);
    let reason = connection.and_then(hybriq::Connection::close_reason);
    reason.map_or(TunnelError::Aborted, TunnelError::Connection)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_payload_that_waits_keeps_nothing_but_itself() {
        let (stream, _peer) = tokio::io::duplex(1);
        let tunnel = UdpTunnel::over_stream(stream);
        let whole = Bytes::from(vec![7; 60_000]);
        tunnel.send(whole.slice(..1)).expect("an open tunnel");
        assert!(whole.is_unique());
    }
}
