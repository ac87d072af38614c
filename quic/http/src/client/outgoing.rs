//! Request bodies, which can be sent again as long as their beginning is kept.

use std::{
    error::Error,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker, ready},
    time::Duration,
};

use bytes::{Buf, Bytes};
use futures_util::task::AtomicWaker;
use http::{HeaderMap, Response, StatusCode, request::Parts};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use tokio::time::Sleep;

use super::error::BoxError;
use crate::versions::{
    content::Promised,
    interim::{OnInterim, expects_continue},
};

/// Bytes of a body that are kept until the response comes, so that the request can be sent again.
const KEPT: usize = 64 << 10;

/// The body of a request. Clones share it.
#[derive(Clone)]
pub(super) struct Outgoing(Option<Arc<Mutex<Source>>>);

/// A body that is being sent.
struct Source {
    body: Pin<Box<dyn Body<Data = Bytes, Error = BoxError> + Send>>,
    /// Frames that were read, or `None` if there were too many to keep.
    kept: Option<Vec<Kept>>,
    kept_bytes: usize,
    /// Size of the whole body.
    size: SizeHint,
    promised: Promised,
    ended: bool,
    failed: Option<Failed>,
    /// True once a response arrived, so that no other attempt follows.
    settled: bool,
    /// Number of the attempt that reads.
    attempt: u64,
    /// Task that waits for more of the body.
    reader: Option<Waker>,
}

/// The body of one attempt, to end its sending.
pub(super) struct Upload(Arc<Mutex<Source>>, u64);

impl Upload {
    /// Returns true if part of the body was not read.
    pub(super) fn is_under_way(&self) -> bool {
        let source = lock(&self.0);
        source.attempt == self.1 && !source.ended && source.failed.is_none()
    }

    /// Sends no more of the body: its stream is reset.
    pub(super) fn end(self) {
        let mut source = lock(&self.0);
        if source.attempt == self.1 {
            source.attempt += 1;
        }
        let reader = source.reader.take();
        drop(source);
        reader.into_iter().for_each(Waker::wake);
    }
}

enum Kept {
    Data(Bytes),
    Trailers(HeaderMap),
}

impl Kept {
    fn frame(&self) -> Frame<Bytes> {
        match self {
            Self::Data(data) => Frame::data(data.clone()),
            Self::Trailers(trailers) => Frame::trailers(trailers.clone()),
        }
    }
}

impl Outgoing {
    /// Takes a body of the promised length.
    pub(super) fn new<B>(body: B, promised: Promised) -> Self
    where
        B: Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
    {
        if body.is_end_stream() {
            return Self(None);
        }
        let size = body.size_hint();
        let body = body
            .map_frame(|frame| frame.map_data(|mut data| data.copy_to_bytes(data.remaining())))
            .map_err(Into::into);
        Self(Some(Arc::new(Mutex::new(Source {
            body: Box::pin(body),
            kept: Some(Vec::new()),
            kept_bytes: 0,
            size,
            promised,
            ended: false,
            failed: None,
            settled: false,
            attempt: 0,
            reader: None,
        }))))
    }

    /// Returns true if the request has no body.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Returns the body from its beginning, for another attempt. Earlier attempts get no more of it. Returns `None`
    /// if its beginning was not kept.
    pub(super) fn again(&self) -> Option<Sending> {
        let Some(source) = &self.0 else {
            return Some(Sending::default());
        };
        let mut locked = lock(source);
        if locked.kept.is_none() || locked.settled {
            return None;
        }
        locked.attempt += 1;
        Some(Sending {
            size: locked.size,
            promised: locked.promised,
            attempt: locked.attempt,
            at: 0,
            source: Some(source.clone()),
            gate: None,
        })
    }

    /// Returns the error of the body, if it had one.
    pub(super) fn failed(&self) -> Option<Arc<dyn Error + Send + Sync>> {
        let source = lock(self.0.as_ref()?);
        source.failed.as_ref().map(|failed| failed.0.clone())
    }

    /// Returns true if the body can be sent again.
    pub(super) fn can_repeat(&self) -> bool {
        self.0.as_ref().is_none_or(|source| {
            let source = lock(source);
            source.kept.is_some() && !source.settled
        })
    }

    /// Stops keeping the body, because a response arrived.
    pub(super) fn settle(&self) {
        if let Some(source) = &self.0 {
            lock(source).settled = true;
        }
    }
}

/// The body of one attempt.
#[derive(Default)]
pub(super) struct Sending {
    source: Option<Arc<Mutex<Source>>>,
    attempt: u64,
    /// Number of kept frames that were sent.
    at: usize,
    size: SizeHint,
    promised: Promised,
    /// What the body waits for before it begins.
    gate: Option<(Arc<Gate>, Pin<Box<Sleep>>)>,
}

/// Keeps the body of a request back until the server wants it.
#[derive(Debug, Default)]
struct Gate {
    is_open: AtomicBool,
    reader: AtomicWaker,
}

impl Gate {
    fn open(&self) {
        self.is_open.store(true, Ordering::Release);
        self.reader.wake();
    }

    fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }
}

/// Takes the interim responses to one attempt.
#[derive(Clone, Debug, Default)]
pub(super) struct Hearing {
    caller: Option<OnInterim>,
    gate: Option<Arc<Gate>>,
}

impl Hearing {
    /// Prepares an attempt. Its body waits for at most this time if the request expects 100.
    pub(super) fn of(request: &Parts, body: &mut Sending, most: Duration) -> Self {
        if !body.is_end_stream() && expects_continue(&request.headers) {
            body.gate = Some((Arc::default(), Box::pin(tokio::time::sleep(most))));
        }
        Self {
            caller: request.extensions.get().cloned(),
            gate: body.gate.as_ref().map(|(gate, _)| gate.clone()),
        }
    }

    /// Takes an interim response.
    pub(super) fn take(&self, response: Response<()>) {
        if response.status() == StatusCode::CONTINUE {
            self.open();
        }
        if let Some(caller) = &self.caller {
            caller.take(response);
        }
    }

    /// Lets the body begin.
    pub(super) fn open(&self) {
        if let Some(gate) = &self.gate {
            gate.open();
        }
    }

    /// Returns true if the body did not begin.
    pub(super) fn is_waiting(&self) -> bool {
        self.gate.as_ref().is_some_and(|gate| !gate.is_open())
    }
}

/// Error of the body, for the application and the transport.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
struct Failed(Arc<dyn Error + Send + Sync>);

impl Sending {
    /// Returns a handle to end the sending of the body, if there is a body.
    pub(super) fn upload(&self) -> Option<Upload> {
        let source = self.source.clone()?;
        Some(Upload(source, self.attempt))
    }
}

impl Body for Sending {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        if let Some((gate, time)) = &mut this.gate {
            gate.reader.register(cx.waker());
            if !gate.is_open() {
                ready!(time.as_mut().poll(cx));
                gate.open();
            }
            this.gate = None;
        }
        let Some(source) = &this.source else {
            return Poll::Ready(None);
        };
        let mut source = lock(source);
        if source.attempt != this.attempt {
            // Another attempt has taken its place, or the response was dropped.
            return Poll::Ready(Some(Err(h2::Error::from(h2::Reason::CANCEL).into())));
        }
        let kept = source.kept.as_ref().and_then(|kept| kept.get(this.at));
        if let Some(kept) = kept {
            this.at += 1;
            let frame = kept.frame();
            let len = frame.data_ref().map_or(0, Bytes::len);
            // It was counted in the attempt that read it.
            let _ = this.promised.on_data(len, false);
            return Poll::Ready(Some(Ok(frame)));
        }
        if source.ended {
            return Poll::Ready(None);
        }
        let frame = loop {
            match source.body.as_mut().poll_frame(cx) {
                // Each would be a frame of HTTP/2, of which h2 takes 100 without data on a connection.
                Poll::Ready(Some(Ok(frame))) if frame.data_ref().is_some_and(Bytes::is_empty) => {}
                Poll::Ready(frame) => break frame,
                Poll::Pending => {
                    let replaced = match &source.reader {
                        Some(reader) if reader.will_wake(cx.waker()) => None,
                        _ => source.reader.replace(cx.waker().clone()),
                    };
                    drop(source);
                    drop(replaced);
                    return Poll::Pending;
                }
            }
        };
        this.at += 1;
        let counted = match &frame {
            Some(Err(_)) => Ok(()),
            frame => {
                let data = frame
                    .as_ref()
                    .and_then(|frame| frame.as_ref().ok()?.data_ref());
                let is_last = data.is_none() || source.body.is_end_stream();
                this.promised.on_data(data.map_or(0, Bytes::len), is_last)
            }
        };
        let frame = match counted {
            Ok(()) => frame,
            Err(broken) => Some(Err(broken.into())),
        };
        Poll::Ready(match frame {
            Some(Ok(frame)) => {
                source.keep(&frame);
                Some(Ok(frame))
            }
            Some(Err(error)) => {
                source.kept = None;
                let failed = source.failed.insert(Failed(error.into()));
                Some(Err(failed.clone().into()))
            }
            None => {
                source.ended = true;
                None
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        self.source.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        match self.source {
            Some(_) => self.size,
            None => SizeHint::with_exact(0),
        }
    }
}

impl Source {
    /// Keeps a frame, or stops keeping if there is too much.
    fn keep(&mut self, frame: &Frame<Bytes>) {
        let Some(kept) = self.kept.as_mut().filter(|_| !self.settled) else {
            return;
        };
        if let Some(data) = frame.data_ref() {
            self.kept_bytes += data.len();
            kept.push(Kept::Data(data.clone()));
        } else if let Some(trailers) = frame.trailers_ref() {
            kept.push(Kept::Trailers(trailers.clone()));
        }
        if self.kept_bytes > KEPT || kept.len() > KEPT / 64 {
            self.kept = None;
        }
    }
}

fn lock(source: &Mutex<Source>) -> MutexGuard<'_, Source> {
    source.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use http_body_util::{Empty, Full, StreamBody};

    use super::*;

    fn pieces(len: usize, count: usize) -> Outgoing {
        let piece = Bytes::from(vec![7; len]);
        let pieces = (0..count).map(move |_| Ok::<_, BoxError>(Frame::data(piece.clone())));
        Outgoing::new(
            StreamBody::new(futures_util::stream::iter(pieces)),
            Promised::default(),
        )
    }

    async fn read(body: Sending) -> Result<usize, BoxError> {
        Ok(body.collect().await?.to_bytes().len())
    }

    #[tokio::test]
    async fn a_body_is_sent_again_from_its_beginning() {
        let outgoing = Outgoing::new(Full::<Bytes>::from("hello"), Promised::default());
        let mut first = outgoing.again().expect("the beginning");
        assert!(first.frame().await.is_some_and(|frame| frame.is_ok()));
        let second = outgoing.again().expect("the beginning");
        assert_eq!(second.size_hint().exact(), Some(5));
        // The first attempt gets no more.
        assert!(first.frame().await.is_some_and(|frame| frame.is_err()));
        assert_eq!(read(second).await.ok(), Some(5));
        let third = outgoing.again().expect("the beginning");
        outgoing.settle();
        assert_eq!(read(third).await.ok(), Some(5));
        assert!(outgoing.again().is_none());
    }

    #[tokio::test]
    async fn a_long_body_is_sent_once() {
        let outgoing = pieces(KEPT / 4, 5);
        let mut first = outgoing.again().expect("the beginning");
        for _ in 0..4 {
            assert!(first.frame().await.is_some());
        }
        assert!(outgoing.again().is_some(), "all of it is kept");
        let outgoing = pieces(KEPT / 4, 5);
        let all = read(outgoing.again().expect("the beginning")).await;
        assert_eq!(all.ok(), Some(5 * KEPT / 4));
        assert!(outgoing.again().is_none());
        // Nor are many small frames kept.
        let outgoing = pieces(1, 5000);
        let all = read(outgoing.again().expect("the beginning")).await;
        assert_eq!(all.ok(), Some(5000));
        assert!(outgoing.again().is_none());
    }

    #[tokio::test]
    async fn frames_without_data_are_not_sent() {
        let outgoing = pieces(0, 5000);
        let mut body = outgoing.again().expect("the beginning");
        assert!(body.frame().await.is_none());
    }

    #[tokio::test]
    async fn no_body_is_always_at_its_beginning() {
        let outgoing = Outgoing::new(Empty::<Bytes>::new(), Promised::default());
        assert!(outgoing.is_empty());
        outgoing.settle();
        let body = outgoing.again().expect("nothing");
        assert!(body.is_end_stream());
        assert_eq!(read(body).await.ok(), Some(0));
    }
}
