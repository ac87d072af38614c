//! Bidirectional streams that the peer opened: requests, and streams of sessions.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Waker, ready},
};

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use http::Request;
use hybriq::{RecvStream, SendStream, StreamId};
use hybriq_h3::{Code, Receiver, Start};

use super::{Link, Recv, Send, StreamError};

/// Bytes of a stream that are read before it is known whether it belongs to a session, at most.
const FIRST: usize = 1 << 10;

/// The requests of a connection, at a server.
pub(crate) struct Requests {
    link: Arc<Link>,
    /// Streams that may be requests, or belong to a session.
    opening: Few<Opening>,
}

type Opening =
    Pin<Box<dyn Future<Output = Result<Option<Stream>, StreamError>> + std::marker::Send>>;

/// Futures that run at the same time. While there are none, which is most of the time, they take no memory.
pub(super) struct Few<F>(Option<FuturesUnordered<F>>);

/// The halves of the stream of a request.
pub(crate) struct Arrived {
    pub(crate) send: Send,
    pub(crate) recv: Recv<Request<()>>,
}

/// A stream that may be a request, or belong to a session.
pub(crate) struct Stream {
    send: SendStream,
    recv: RecvStream,
    /// What was read of it, which is something only where there are sessions.
    receiver: Option<Box<Receiver<Request<()>>>>,
}

impl<F: Future> Few<F> {
    pub(super) const fn new() -> Self {
        Self(None)
    }

    pub(super) fn push(&mut self, future: F) {
        self.0.get_or_insert_default().push(future);
    }

    /// Waits until one of them is ready.
    pub(super) async fn next(&mut self) -> F::Output {
        poll_fn(|cx| {
            let next = self.0.as_mut().map(|futures| futures.poll_next_unpin(cx));
            match next {
                Some(Poll::Ready(Some(output))) => return Poll::Ready(output),
                Some(Poll::Ready(None)) => self.0 = None,
                Some(Poll::Pending) | None => {}
            }
            Poll::Pending
        })
        .await
    }
}

impl Requests {
    pub(crate) fn new(link: Arc<Link>) -> Self {
        Self {
            link,
            opening: Few::new(),
        }
    }

    /// Returns the next request. Streams of sessions are given to them. No request is lost if the future is dropped.
    ///
    /// # Errors
    /// The connection is over, or the client broke a rule for which it is closed.
    pub(crate) async fn next(&mut self) -> Result<Stream, StreamError> {
        loop {
            // Here, because nothing was accepted yet.
            tokio::task::consume_budget().await;
            tokio::select! {
                biased;
                // First, because others may come without end.
                opened = self.opening.next() => {
                    if let Some(request) = opened? {
                        return Ok(request);
                    }
                }
                accepted = self.link.transport.accept_bidi() => {
                    let (send, recv) = accepted?;
                    if let Some(request) = self.on_accepted(Stream::new(send, recv))? {
                        return Ok(request);
                    }
                }
            }
        }
    }

    /// Returns a request, if one has arrived. Otherwise [`next`](Self::next) waits for it.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub(crate) fn now(&mut self) -> Result<Option<Stream>, StreamError> {
        let mut cx = Context::from_waker(Waker::noop());
        // First, because others may come without end.
        while let Poll::Ready(opened) = pin!(self.opening.next()).poll(&mut cx) {
            if let Some(stream) = opened? {
                return Ok(Some(stream));
            }
        }
        let accepted = pin!(self.link.transport.accept_bidi()).poll(&mut cx);
        match accepted {
            Poll::Ready(accepted) => {
                let (send, recv) = accepted?;
                self.on_accepted(Stream::new(send, recv))
            }
            Poll::Pending => Ok(None),
        }
    }

    /// Returns a stream that was accepted, if it is a request.
    fn on_accepted(&mut self, mut stream: Stream) -> Result<Option<Stream>, StreamError> {
        if self.link.sessions.is_none() {
            return Ok(Some(stream));
        }
        // Most streams have arrived with their first bytes.
        let mut cx = Context::from_waker(Waker::noop());
        match stream.poll_start(&self.link, &mut cx) {
            Poll::Ready(start) => Ok(stream.unless_of_session(&self.link, start?)),
            Poll::Pending => {
                let link = self.link.clone();
                let sort = async move { stream.sort(&link).await };
                self.opening.push(Box::pin(sort));
                Ok(None)
            }
        }
    }
}

impl Stream {
    pub(super) fn new(send: SendStream, recv: RecvStream) -> Self {
        Self {
            send,
            recv,
            receiver: None,
        }
    }

    pub(crate) fn id(&self) -> StreamId {
        self.send.id()
    }

    /// Returns the halves of the stream of a request.
    pub(crate) fn into_request(self, link: &Arc<Link>) -> Arrived {
        let receiver = match self.receiver {
            Some(receiver) => *receiver,
            None => Receiver::request(self.recv.id()),
        };
        Arrived {
            send: Send::new(self.send, link.clone()),
            recv: Recv::new(self.recv, receiver, link.clone()),
        }
    }

    /// Waits for the first bytes of the stream, and refuses one on which they do not arrive in time. Gives a stream
    /// of a session to it, and returns others.
    pub(super) async fn sort(mut self, link: &Link) -> Result<Option<Self>, StreamError> {
        let Some(sessions) = &link.sessions else {
            return Ok(Some(self));
        };
        let counted = link.counts.opening_bidi();
        let start = poll_fn(|cx| self.poll_start(link, cx));
        let start = tokio::time::timeout(sessions.header_time(), start).await;
        drop(counted);
        if let Ok(start) = start {
            Ok(self.unless_of_session(link, start?))
        } else {
            self.send.reset(Code::H3_REQUEST_INCOMPLETE.0);
            self.recv.stop(Code::H3_REQUEST_INCOMPLETE.0);
            Ok(None)
        }
    }

    /// Returns what the stream is, once its first bytes have arrived.
    fn poll_start(
        &mut self,
        link: &Link,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Start, StreamError>> {
        let new = || Box::new(Receiver::request(self.send.id()));
        let receiver = self.receiver.get_or_insert_with(new);
        loop {
            if let Some(start) = link.receive(|core| Ok(receiver.start(&core.http3)?))? {
                return Poll::Ready(Ok(start));
            }
            match ready!(self.recv.poll_read_start(cx, FIRST)) {
                Ok(Some(data)) => receiver.on_data(data),
                // Whoever reads the message finds it.
                Ok(None) | Err(_) => return Poll::Ready(Ok(Start::Message)),
            }
        }
    }

    fn unless_of_session(self, link: &Link, start: Start) -> Option<Self> {
        match (start, &link.sessions) {
            (Start::Session(id), Some(sessions)) => {
                let data = self.receiver.map(|mut receiver| receiver.take_rest());
                let data = data.unwrap_or_default();
                sessions.on_bidi(id, self.send, self.recv, data);
                None
            }
            _ => Some(self),
        }
    }
}

#[cfg(test)]
mod tests {
    use hybriq::{ClientConfig, Endpoint, Identity, ServerConfig, StreamId, Trust};
    use hybriq_h3::webtransport::{Windows, announce};

    use super::*;
    use crate::versions::http3::{Setup, TakesStreams, Transport};

    /// Takes no streams.
    #[derive(Debug)]
    struct Nobody;

    impl TakesStreams for Nobody {
        fn on_bidi(&self, _: StreamId, _: SendStream, _: RecvStream, _: bytes::Bytes) {}

        fn on_uni(&self, _: StreamId, _: RecvStream, _: bytes::Bytes) {}

        fn header_time(&self) -> std::time::Duration {
            std::time::Duration::MAX
        }
    }

    #[tokio::test]
    async fn streams_that_were_not_known_are_served_beside_new_ones() {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a name");
        let key = made.signing_key.serialize_der().try_into().expect("a key");
        let certificate = made.cert.der().clone();
        let identity = Identity::from_der(vec![certificate.clone()], key);
        let config = ServerConfig::new(identity).alpn([hybriq_h3::ALPN]);
        let server = Endpoint::server("127.0.0.1:0", config).expect("a server");
        let config = ClientConfig::new().trust(Trust::roots_der([certificate]));
        let client = Endpoint::client(config.alpn([hybriq_h3::ALPN])).expect("a client");
        let connecting = client.connect(server.local_address(), "localhost");
        let accepted = async { server.accept().await.expect("a client").accept().await };
        let (client, server) = tokio::join!(connecting, accepted);
        let (client, server) = (client.expect("a connection"), server.expect("the same"));
        let mut setup = Setup::new(1_000);
        setup.streams = Some(Arc::new(Nobody));
        announce(&mut setup.config.settings, 1, Windows::default());
        let link = Arc::new(Link::new(Transport::Established(server), setup));
        let mut requests = Requests::new(link);
        let (mut first, _first) = client.open_bidi().await.expect("a stream");
        // Half of a type.
        first.write_all(&[0x40]).await.expect("a client");
        while requests.opening.0.is_none() {
            assert!(requests.now().expect("a connection").is_none());
            tokio::task::yield_now().await;
        }
        first.write_all(&[1, 0]).await.expect("a client");
        first.acknowledged().await.expect("a server");
        let (mut second, _second) = client.open_bidi().await.expect("a stream");
        second.write_all(&[1, 0]).await.expect("a client");
        second.acknowledged().await.expect("a server");
        for stream in [first.id(), second.id()] {
            let request = requests.now().expect("a connection").expect("a request");
            assert_eq!(request.id(), stream);
        }
    }
}
