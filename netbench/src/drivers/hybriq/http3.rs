//! HTTP/3 of a client: the core of hybriq-h3 over the streams of a connection.

use std::{
    cell::RefCell,
    collections::HashMap,
    future::poll_fn,
    mem,
    rc::Rc,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream::FuturesUnordered, task::AtomicWaker};
use http::Response;
use hybriq::{Connection, ReadError, RecvStream, SendStream, StreamId, tls::Side};
use hybriq_h3::{
    Config, Critical, Event, Received, Receiver, Scope, Settings, Uni, UniReceiver, Violation,
    put_data_head,
};
use tokio::task::{AbortHandle, spawn_local};

use super::connection::ended;
use crate::drivers::Answer;
use crate::drivers::http::{Come, Fetching, body::Pattern, check, request};
use crate::scenario::Fetch;
use crate::system::outcome::Failed;

/// Capacity of a dynamic table of QPACK in bytes, and responses that may wait for its entries: those of the
/// clients of hybriq-http.
const TABLE: u64 = 4096;
const BLOCKED: u64 = 16;

/// Bytes about what was received that may wait for the next request.
const MOST_LATER: usize = 64;

/// Largest part of a unidirectional stream that is read at once, in bytes.
const PART: usize = 4 << 10;

/// Our critical streams: entries of the table go first, because requests wait for them.
const CRITICAL: [Critical; 3] = [Critical::Encoder, Critical::Control, Critical::Decoder];

/// Makes requests on a connection, until it is dropped.
pub(super) struct Client {
    link: Rc<Link>,
    driver: AbortHandle,
}

impl Drop for Client {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Client {
    /// Starts HTTP/3 on a connection whose handshake is complete.
    pub(super) async fn start(connection: Connection) -> Result<Self, Failed> {
        let mut settings = Settings::new();
        settings.qpack_max_table_capacity = TABLE;
        settings.qpack_blocked_streams = BLOCKED;
        let mut http3 = hybriq_h3::Connection::new(Side::Client, Config::new(settings));
        if connection.max_datagram_size().is_some() {
            http3.on_transport_datagrams();
        }
        let mut critical = Vec::new();
        for kind in CRITICAL {
            let stream = connection.open_uni().await.map_err(ended)?;
            critical.push((kind, stream, Bytes::new()));
        }
        let link = Rc::new(Link {
            connection,
            core: RefCell::new(Core {
                http3,
                critical,
                blocked: HashMap::new(),
            }),
            driver: AtomicWaker::new(),
        });
        link.flush()?;
        let driver = spawn_local(Rc::clone(&link).drive()).abort_handle();
        Ok(Self { link, driver })
    }

    async fn one(&self, fetch: Fetch) -> Result<(), Failed> {
        let link = &*self.link;
        let (mut send, mut recv) = link.connection.open_bidi().await.map_err(ended)?;
        let request = request(fetch, ())?;
        let mut receiver = Receiver::response(send.id(), request.method());
        let head = link.head(send.id(), &request, fetch.send)?;
        upload(&mut send, head, fetch.send).await?;
        let mut come = Come::default();
        loop {
            match poll_fn(|cx| link.poll_response(cx, &mut receiver)).await? {
                Received::Head(response) if response.status().is_informational() => {}
                Received::Head(response) => check(&response)?,
                Received::Data(data) => come.add(data)?,
                Received::End => return come.end(fetch.receive),
                Received::NeedData => {
                    let read = recv.read_chunk(usize::MAX).await;
                    let read = read.map_err(Failed::other)?;
                    let is_end = read.is_none() || recv.is_finished();
                    if let Some(data) = read {
                        receiver.on_data(data);
                    }
                    if is_end {
                        receiver.on_fin();
                    }
                }
                Received::HeadTooLarge => return Err(Failed::other("the head is too large")),
                _ => {}
            }
        }
    }
}

impl Fetching for Client {
    fn fetch(&self, fetch: Fetch) -> Answer<'_, ()> {
        Box::pin(self.one(fetch))
    }
}

/// Sends the head of a request, its content and its end.
async fn upload(send: &mut SendStream, mut head: Bytes, bytes: u64) -> Result<(), Failed> {
    for data in Pattern::new(bytes) {
        let mut chunks = [mem::take(&mut head), data];
        let written = send.write_chunks(&mut chunks).await;
        written.map_err(Failed::other)?;
    }
    send.finish_with(&mut [head]).await.map_err(Failed::other)
}

/// A connection, which its requests share.
struct Link {
    connection: Connection,
    core: RefCell<Core>,
    /// The task that drives the connection.
    driver: AtomicWaker,
}

/// State of a connection.
struct Core {
    http3: hybriq_h3::Connection,
    /// Our critical streams, each with what waits to be sent on it.
    critical: Vec<(Critical, SendStream, Bytes)>,
    /// Requests whose responses wait for entries of the dynamic table.
    blocked: HashMap<StreamId, Waker>,
}

impl Link {
    /// Drives the connection until it is over.
    async fn drive(self: Rc<Self>) {
        let mut streams = FuturesUnordered::new();
        loop {
            tokio::select! {
                accepted = self.connection.accept_uni() => match accepted {
                    Ok(Some(stream)) => streams.push(self.read(stream)),
                    // The requests show why.
                    Ok(None) | Err(_) => return,
                },
                Some(read) = streams.next() => if let Err(violation) = read {
                    self.broken(&violation);
                    return;
                },
                _ = poll_fn(|cx| {
                    self.driver.register(cx.waker());
                    self.poll_flush(cx)
                }) => return,
            }
        }
    }

    /// Reads a unidirectional stream of the server.
    async fn read(&self, mut stream: RecvStream) -> Result<(), Violation> {
        let mut uni = UniReceiver::new();
        loop {
            let data = match stream.read_chunk(PART).await {
                Ok(Some(data)) => data,
                Ok(None) | Err(ReadError::Reset(_)) => return uni.on_end(),
                Err(_) => return Ok(()),
            };
            match self.on_uni(&mut uni, data)? {
                Uni::NeedData => {}
                Uni::Ignored(violation) => {
                    stream.stop(violation.code().0);
                    return Ok(());
                }
                _ => return Ok(()),
            }
        }
    }

    fn on_uni(&self, uni: &mut UniReceiver, data: Bytes) -> Result<Uni, Violation> {
        let core = &mut *self.core.borrow_mut();
        let read = uni.on_data(data, &mut core.http3)?;
        while let Some(event) = core.http3.poll_event() {
            if let Event::Unblocked(stream) = event
                && let Some(waker) = core.blocked.remove(&stream)
            {
                waker.wake();
            }
        }
        Ok(read)
    }

    /// Encodes the head of a request, and announces its content.
    fn head(
        &self,
        stream: StreamId,
        request: &http::Request<()>,
        content: u64,
    ) -> Result<Bytes, Failed> {
        let mut head = Vec::new();
        let written = self
            .core
            .borrow_mut()
            .http3
            .write_request(stream, request, &mut head);
        written.map_err(Failed::other)?;
        if content > 0 {
            put_data_head(content, &mut head);
        }
        self.flush()?;
        Ok(head.into())
    }

    /// Returns the outcome of a response.
    fn poll_response(
        &self,
        cx: &mut Context<'_>,
        receiver: &mut Receiver<Response<()>>,
    ) -> Poll<Result<Received<Response<()>>, Failed>> {
        let id = receiver.id();
        let mut core = self.core.borrow_mut();
        let received = match receiver.poll(&mut core.http3) {
            Ok(received) => received,
            Err(violation) => return Poll::Ready(Err(self.broken(&violation))),
        };
        match received {
            Received::Blocked => {
                core.blocked.insert(id, cx.waker().clone());
                return Poll::Pending;
            }
            Received::Pause => {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            _ => {}
        }
        let is_much = core.http3.unsent() > MOST_LATER;
        drop(core);
        if is_much {
            self.flush()?;
        }
        Poll::Ready(Ok(received))
    }

    /// Sends on our critical streams what can be sent at once, and leaves the rest to the driver.
    fn flush(&self) -> Result<(), Failed> {
        if !self.core.borrow().http3.has_output() {
            return Ok(());
        }
        let mut cx = Context::from_waker(Waker::noop());
        if let Poll::Ready(failed) = self.poll_flush(&mut cx) {
            return Err(failed);
        }
        let core = self.core.borrow();
        if core
            .critical
            .iter()
            .any(|(_, _, unsent)| !unsent.is_empty())
        {
            self.driver.wake();
        }
        Ok(())
    }

    /// Sends what waits for our critical streams; ready if they have failed.
    fn poll_flush(&self, cx: &mut Context<'_>) -> Poll<Failed> {
        let core = &mut *self.core.borrow_mut();
        for (kind, stream, unsent) in &mut core.critical {
            loop {
                if unsent.is_empty() {
                    *unsent = core.http3.take_output(*kind);
                }
                if unsent.is_empty() {
                    break;
                }
                match stream.poll_write_chunk(cx, unsent) {
                    Poll::Ready(Ok(_)) => {}
                    Poll::Ready(Err(error)) => return Poll::Ready(Failed::other(error)),
                    Poll::Pending => break,
                }
            }
        }
        Poll::Pending
    }

    /// Returns the failure of a server that breaks a rule. One that ends the connection closes it.
    fn broken(&self, violation: &Violation) -> Failed {
        if violation.scope() == Scope::Connection {
            let reason = violation.to_string();
            self.connection.close(violation.code().0, reason.as_bytes());
        }
        Failed::other(violation)
    }
}
